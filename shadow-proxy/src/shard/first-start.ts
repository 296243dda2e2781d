/** The very first start of a shard: what the servers hold is not known to be equal, whatever the plan says. */
import { otherSide, SIDES, stageRule } from '../route/stage.js';
import { judgeTarget } from '../stages/gates.js';
import { soon } from '../stages/soon.js';
import { StageError } from '../stages/stage-change.js';
import type { ShardOptions } from './contract.js';
import type { Parts } from './parts.js';

/** With so much of the authority's keys a mirror may hold all of them. */
const ENOUGH_KEYS = 0.95;
/** The keys of the target are counted for at most so long. */
const FIRST_COUNT_MS = 60_000;

type Needed = Pick<Parts, 'sequencer' | 'admitted' | 'keeper' | 'flipper' | 'collector' | 'logger'>;

/**
 * A plan whose first stage is beyond off is held to the gate as well: where the target has keys that the shard did not
 * write, the workload stays off. A standby with a folder of its own goes on in the stage of the process that it saw,
 * and deletes no key that only the target has.
 * @throws {StageError} if both servers should hold the same, and do not; {Error} where that cannot be known
 */
export async function admitFirst(
  { sequencer, admitted, keeper, collector, logger }: Needed,
  { alike, consent, ownership }: ShardOptions,
): Promise<void> {
  const goesOn = (ownership.predecessor?.note ?? '') !== '';
  if (!goesOn) await admitUsers({ sequencer, collector, logger });
  for (const workload of sequencer.router.workloads) {
    const { name, stage } = workload;
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
    // Clients get the target's replies already: nothing of it is overwritten, but by them.
    if (stageRule(stage).authority === 'target') continue;
    // What could not be looked at is no refusal: the target does not answer, or not in time.
    if (alike) throw answer === 'unknown' ? new Error(evidence) : new StageError('gates-closed', evidence);
    logger.error(
      { workload: name },
      `the workload stays off although the plan says ${stage}: ${evidence}; then run: shadow-compare promote ${name}`,
    );
    await keeper.keptOff(workload, evidence);
  }
}

/**
 * Where clients get the target's replies from the first start on, its users must be those of the source.
 * @throws {StageError} if they are not, or where that cannot be known although both servers answer
 */
async function admitUsers({
  sequencer,
  collector,
  logger,
}: Pick<Needed, 'sequencer' | 'collector' | 'logger'>): Promise<void> {
  const { router, servers } = sequencer;
  const workload = router.workloads.find(({ stage }) => stageRule(stage).authority === 'target');
  if (workload === undefined) return;
  await Promise.all(SIDES.map((side) => soon(servers[side].identify())));
  const { answer, evidence } = await collector.checkUsers();
  if (answer === 'yes') return;
  const problem = `"${workload.name}" would begin in ${workload.stage}, where the target answers clients, and the gate users is closed: ${evidence}`;
  if (answer === 'unknown' && SIDES.some((side) => !servers[side].up))
    return logger.error({ workload: workload.name }, problem);
  throw new StageError('gates-closed', `${problem}; or begin in shadow`);
}

/** Keys from before the shard was written twice are not on the mirror. */
export async function beginCopies(parts: Needed, { alike }: ShardOptions): Promise<void> {
  if (alike) return void tellOfMissingKeys(parts);
  for (const workload of parts.sequencer.router.workloads) {
    if (workload.stage === 'dualwrite' || workload.stage === 'shadow') await parts.flipper.beginCopy(workload);
  }
}

/** Where both servers are believed to hold the same, and cannot, the operator gets a message. */
async function tellOfMissingKeys({ sequencer, logger }: Needed): Promise<void> {
  const { servers, router } = sequencer;
  const { keylessRule } = router.default;
  if (!keylessRule.mirrorsWrites) return;
  const [authority, mirror] = [servers[keylessRule.authority], servers[otherSide(keylessRule.authority)]];
  const counts = await Promise.all([authority.keyCount(), mirror.keyCount()]).catch(() => null);
  // Keys that have expired and are not removed yet are counted, on one server more than on the other.
  if (counts === null || counts[1] >= counts[0] * ENOUGH_KEYS) return;
  const keys = { [authority.side]: counts[0], [mirror.side]: counts[1] };
  logger.warn(
    { keys },
    `the ${mirror.side} lacks keys that the ${authority.side} has: keys from before the proxy started are not copied, and differ until a client writes them`,
  );
}
