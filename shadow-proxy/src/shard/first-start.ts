/** The very first start of a shard. It is not known whether the servers hold the same data, whatever the plan says. */
import { otherSide, SIDES, stageRule } from '../route/stage.js';
import { judgeTarget } from '../stages/gates.js';
import { soon } from '../stages/soon.js';
import { StageError } from '../stages/stage-change.js';
import type { ShardOptions } from './contract.js';
import type { Parts } from './parts.js';

/** A mirror that has this share of the authority's number of keys may have all of them. */
const ENOUGH_KEYS = 0.95;
/** Maximum time for counting the keys of the target, in ms. */
const FIRST_COUNT_MS = 60_000;

type FirstStartParts = Pick<Parts, 'sequencer' | 'admitted' | 'keeper' | 'flipper' | 'collector' | 'logger'>;

/**
 * If the plan's first stage is beyond off, the gate applies, too: if the target has keys that the shard did not write,
 * the workload stays off. A standby with a state folder of its own continues in the stage of the process that it saw,
 * and deletes no key that only the target has.
 * @throws {StageError} if both servers should hold the same data, and do not
 * @throws {Error} if that cannot be determined
 */
export async function admitFirst(
  { sequencer, admitted, keeper, collector, logger }: FirstStartParts,
  { alike, consent, ownership }: ShardOptions,
): Promise<void> {
  const goesOn = (ownership.predecessor?.note ?? '') !== '';
  if (!goesOn) await admitUsers({ sequencer, collector, logger });
  for (const workload of sequencer.router.workloads) {
    const {
      name,
      position: { stage },
    } = workload;
    if (stage === 'off' || workload.perRegion) continue;
    const facts = await admitted.facts(workload, FIRST_COUNT_MS);
    const { answer, evidence } = judgeTarget(
      facts,
      alike && facts.keys?.found === facts.keys?.onSource
        ? { overwrite: true, deleteForeign: false, confirm: Infinity }
        : consent,
    );
    if (answer === 'yes' || goesOn) {
      const admission = admitted.admission(facts, answer === 'yes' && consent.deleteForeign);
      await keeper.update((current) => ({ admitted: { ...current.admitted, [name]: admission } }));
      admitted.apply(workload);
      continue;
    }
    // Clients get the target's replies already: only they overwrite its keys.
    if (stageRule(stage).authority === 'target') continue;
    // A target that does not answer in time is no reason to refuse.
    if (alike) throw answer === 'unknown' ? new Error(evidence) : new StageError('gates-closed', evidence);
    logger.error(
      { workload: name },
      `the workload stays off although the plan says ${stage}: ${evidence}; then run: shadow-compare promote ${name}`,
    );
    await keeper.keptOff(workload, evidence);
  }
}

/**
 * If clients get the target's replies from the first start on, its users must be those of the source.
 * @throws {StageError} if they differ, or cannot be compared although both servers answer
 */
async function admitUsers({
  sequencer,
  collector,
  logger,
}: Pick<FirstStartParts, 'sequencer' | 'collector' | 'logger'>): Promise<void> {
  const { router, servers } = sequencer;
  const workload = router.workloads.find(({ position: { stage } }) => stageRule(stage).authority === 'target');
  if (workload === undefined) return;
  await Promise.all(SIDES.map((side) => soon(servers[side].identify())));
  const { answer, evidence } = await collector.checkUsers();
  if (answer === 'yes') return;
  const problem = `"${workload.name}" would begin in ${workload.position.stage}, where the target answers clients, and the gate users is closed: ${evidence}`;
  if (answer === 'unknown' && SIDES.some((side) => !servers[side].up))
    return logger.error({ workload: workload.name }, problem);
  throw new StageError('gates-closed', `${problem}; or begin in shadow`);
}

/** Keys from before the dual write are not on the mirror. */
export async function beginCopies(parts: FirstStartParts, { alike }: ShardOptions): Promise<void> {
  if (alike) return void tellOfMissingKeys(parts);
  for (const workload of parts.sequencer.router.workloads) {
    if (workload.position.stage === 'dualwrite' || workload.position.stage === 'shadow')
      await parts.flipper.beginCopy(workload);
  }
}

/** Logs a message for the operator if both servers should hold the same data, and cannot. */
async function tellOfMissingKeys({ sequencer, logger }: FirstStartParts): Promise<void> {
  const { servers, router } = sequencer;
  const {
    position: { keylessRule },
  } = router.default;
  if (!keylessRule.mirrorsWrites) return;
  const [authority, mirror] = [servers[keylessRule.authority], servers[otherSide(keylessRule.authority)]];
  const counts = await Promise.all([authority.keyCount(), mirror.keyCount()]).catch(() => null);
  // Expired keys that are not removed yet are counted, and one server may have more of them.
  if (counts === null || counts[1] >= counts[0] * ENOUGH_KEYS) return;
  const keys = { [authority.side]: counts[0], [mirror.side]: counts[1] };
  logger.warn(
    { keys },
    `the ${mirror.side} lacks keys that the ${authority.side} has: keys from before the proxy started are not copied, and differ until a client writes them`,
  );
}
