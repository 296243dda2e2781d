/**
 * The emergency rollback when no proxy answers at the admin HTTP. It takes the shard's lease, which stops the process
 * that has it, or keeps a hanging process from serving. It copies what that process had in flight to the source, and
 * saves the stage `shadow`. The process that starts next (a standby, or by the service manager) sends clients to the
 * source again.
 *
 *   take the lease ─▶ journal: keys in flight ─▶ compared, copied target → source ─▶ state: shadow ─▶ release the lease
 *
 * Meanwhile no process serves the shard, so nothing is written.
 */
import { inTime } from '../io/in-time.js';
import { join } from 'node:path';
import { redactKey } from '../compare/redact.js';
import type { CopiedKey } from '../copy/key/key-dump.js';
import { appendCopy, refusalOf } from '../copy/key/copy-commands.js';
import { connectTo, KeyReader } from '../copy/key/key-reader.js';
import { differenceOf } from '../copy/verify/verifier.js';
import type { Connection } from '../upstream/connection.js';
import { Dialer } from '../upstream/dialer.js';
import { Ownership } from '../lease/ownership.js';
import { Turn } from '../io/turn.js';
import type { Plan, ShardPlan } from '../plan/plan.js';
import { makeHashKey, readHashKey } from '../storage/hash-key.js';
import { readLeftJournal, type JournalRecords } from '../storage/journal-reader.js';
import { holderSince, readState, StateStore, type HistoryEvent } from '../storage/state.js';
import { isError, text } from '../resp/decode.js';
import { Scalars } from '../resp/scalars.js';
import { CommandWriter } from '../resp/command-writer.js';
import { Router, type Workload } from '../route/router.js';
import { canReturn, type StagePoint } from '../route/stage.js';
import { noReturn } from '../route/transitions.js';
import { StageError, unknownWorkload } from './stage-change.js';

export interface OfflineRequest {
  /** Null: all workloads that the target answers. */
  readonly workload: string | null;
  /** Continue although some keys cannot be copied, and lose their changes. */
  readonly force: boolean;
  readonly note: Readonly<Record<string, unknown>>;
}

export interface OfflineRollback {
  readonly shard: string;
  /** The process that had the shard; null if there was none. */
  readonly fenced: string | null;
  readonly changes: readonly { readonly workload: string; readonly from: StagePoint; readonly to: StagePoint }[];
  /** Keys that were in flight to the source, and that it has now. */
  readonly repaired: number;
  /** Descriptions of what the source may lack. */
  readonly lost: readonly string[];
  /** Workloads in `complete`, which cannot be rolled back. */
  readonly stuck: readonly string[];
}

const ACQUIRE_MS = 15_000;
const SHADOW: StagePoint = { stage: 'shadow', percent: 100 };
const TOLERANCE_MS = 1_000;

/**
 * @throws {StageError} with nothing changed, except that the process that had the shard is stopped
 * @throws {Error} if the source cannot be reached
 */
export async function rollBackOffline(plan: Plan, shard: ShardPlan, request: OfflineRequest): Promise<OfflineRollback> {
  const directory = join(plan.state, shard.name);
  const before = await readState(directory, shard.name);
  if (before === null)
    throw new StageError(
      'refused',
      `there is no state of shard ${shard.name} in ${directory}; nothing was changed. Run this command on the host with the state folder of the shard's proxy`,
    );
  // A mistyped name must not stop the proxy.
  const names = [...plan.workloads, plan.default].map(({ name }) => name);
  if (request.workload !== null && !names.includes(request.workload)) throw unknownWorkload(request.workload, names);
  const dialers = {
    source: new Dialer(shard.source, plan.limits.connectMs),
    target: new Dialer(shard.target, plan.limits.connectMs),
  };
  const ownership = new Ownership({ shard: shard.name, dialers, lost: () => undefined });
  let fenced: string | null = null;
  const late = (): Error =>
    new Error(
      `the lease of shard ${shard.name} could not be acquired within ${ACQUIRE_MS / 1000} s: check that the source is up`,
    );
  try {
    const acquired = ownership.acquire({
      standby: true,
      takeOver: true,
      needed: () => Promise.resolve(['source'] as const),
      waiting(where, { process }) {
        if (process !== before.owner?.process && !request.force)
          throw new StageError(
            'refused',
            `shard ${shard.name} cannot be rolled back from ${directory}: ${where}, and its journal is in another folder; nothing was changed. Run this command on the host of that proxy. Or add --force, and lose what only the target has`,
          );
        fenced = where;
      },
    });
    await inTime(acquired, ACQUIRE_MS, late);
    const done = await rollBack(plan, shard, request, dialers, ownership);
    return { shard: shard.name, fenced, ...done };
  } finally {
    await ownership.release(false);
  }
}

async function rollBack(
  plan: Plan,
  shard: ShardPlan,
  { workload: wanted, force, note }: OfflineRequest,
  dialers: { source: Dialer; target: Dialer },
  ownership: Ownership,
): Promise<Omit<OfflineRollback, 'shard' | 'fenced'>> {
  const state = await StateStore.open(plan.state, shard.name);
  const point = (name: string, first: StagePoint): StagePoint => state.current.workloads[name] ?? first;
  const router = new Router(
    plan.workloads.map((each) => ({ ...each, ...point(each.name, each) })),
    point('default', plan.default),
  );
  const moving = router.workloads.filter(
    (each) => (wanted === null || each.name === wanted) && canReturn(each.position.stage),
  );
  const stuck = router.workloads
    .filter((each) => (wanted === null || each.name === wanted) && each.position.stage === 'complete')
    .map(({ name }) => name);
  if (moving.length === 0 && stuck.length > 0) throw new StageError('no-return', stuck.map(noReturn).join('\n'));
  if (moving.length === 0)
    throw new StageError(
      'refused',
      `nothing to roll back in shard ${shard.name}: the target answers clients of ${wanted === null ? 'no workload' : `no key of "${wanted}"`}`,
    );
  const { repaired: repaired, lost } = await repair(
    shard.name,
    readHashKey(join(plan.state, shard.name)) ?? makeHashKey(join(plan.state, shard.name)),
    await readLeftJournal(join(plan.state, shard.name), state.previous),
    router,
    moving,
    dialers,
  );
  const { predecessor } = ownership;
  const last = predecessor ?? (await holderSince(join(plan.state, shard.name)));
  if (last !== null && !predecessor?.clean && last.process !== state.previous?.owner?.process)
    lost.unshift(
      `what another proxy wrote: its journal is in another folder${last.process === '' ? '' : `, that of process ${last.process}`}`,
    );
  if (lost.length > 0 && !force) {
    throw new StageError(
      'not-clean',
      `shard ${shard.name} is fenced, and not rolled back: the source may lack ${lost.join('; ')}. Start the proxy again: it repairs the source from the target. Or add --force, and lose these writes`,
      { lost },
    );
  }
  const changes = moving.map(({ name, position: { stage, percent } }) => ({
    workload: name,
    from: { stage, percent },
    to: SHADOW,
  }));
  for (const change of changes) {
    const event: HistoryEvent = {
      event: 'stage',
      ...change,
      ...note,
      rollback: true,
      offline: true,
      ...(lost.length > 0 && { forced: true, lost }),
    };
    await state.update(
      ({ workloads }) => ({ workloads: { ...workloads, [change.workload]: change.to }, owner: ownership.epoch }),
      event,
    );
  }
  await state.close();
  return { changes, repaired: repaired, lost, stuck };
}

/** Compares the keys that were in flight to the source when the process ended, and copies those that differ. */
async function repair(
  shard: string,
  hashKey: Buffer,
  left: JournalRecords,
  router: Router,
  moving: readonly Workload[],
  dialers: { source: Dialer; target: Dialer },
): Promise<{ repaired: number; lost: string[] }> {
  const lost = moving.flatMap(({ name }) =>
    left.workloads.has(name) ? [`keys of ${name} (every key is a suspect: ${left.workloads.get(name)!})`] : [],
  );
  if (left.everything !== null) lost.push(`writes to unknown keys (${left.everything})`);
  const keys: CopiedKey[] = left.keys
    .map(({ db, key }) => ({ db, key, workload: router.match(key, 0, key.length) }))
    .filter(({ workload }) => moving.includes(workload));
  if (keys.length === 0) return { repaired: 0, lost };
  const open = (side: 'source' | 'target'): Promise<Connection> =>
    connectTo(dialers[side], `shadow-proxy-rollback:${shard}`, new Turn());
  const [source, target] = (['source', 'target'] as const).map(
    (side) => new KeyReader(`the ${side}`, () => open(side), dialers[side].isCluster),
  );
  let writer: Connection | undefined;
  let repaired = 0;
  try {
    writer = await open('source');
    for (const each of keys) if (await repairKey(each, source, target, writer)) repaired++;
  } catch (problem) {
    const names = keys.slice(0, 5).map(({ key }) => redactKey(key, hashKey));
    lost.push(
      `writes to ${keys.length} keys (${names.join(', ')}${keys.length > names.length ? ', …' : ''}): ${(problem as Error).message}`,
    );
  } finally {
    source.close();
    target.close();
    writer?.destroy();
  }
  return { repaired: repaired, lost };
}

/** Repairs a key. @returns whether it had to be copied */
async function repairKey(key: CopiedKey, source: KeyReader, target: KeyReader, writer: Connection): Promise<boolean> {
  const [[right], [there]] = await Promise.all([target.read(key.db, [key]), source.read(key.db, [key])]);
  if (differenceOf(right, there, 0, TOLERANCE_MS) === null) return false;
  const out = new CommandWriter();
  const commands = appendCopy(key, right, out);
  const selected = await writer.ask('SELECT', key.db);
  const refusal = isError(selected)
    ? text(selected)
    : refusalOf(commands, new Scalars(await writer.askBytes(out.finish(), commands.commands)));
  if (refusal !== null) throw new Error(`the source refused: ${refusal}`);
  return true;
}
