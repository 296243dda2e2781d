/** Stage changes of several shards, as the admin HTTP requests them. */
import type { z } from 'zod';
import { unixMs } from '../io/clock.js';
import { formatPoint, stageRule, type StagePoint } from '../route/stage.js';
import { stagesTo } from '../route/transitions.js';
import { closedGates } from '../stages/gates.js';
import type { Promotion, Rollback } from '../stages/promotion.js';
import { StageError } from '../stages/stage-change.js';
import { AdminError, asAdminError } from './errors.js';
import type { promoteRequest, rollbackRequest, takeBackRequest } from './requests.js';
import type { ShardControl } from './shard-control.js';

type OnShard<T> = { shard: string } & T;

/** Checks the name that confirms a change to `complete`. @throws {StageError} */
function confirmed(migration: string, workload: string, named: string | undefined): void {
  if (named === migration) return;
  throw new StageError(
    'point-of-no-return',
    `"${workload}" would move to complete, from which there is no rollback: ${named === undefined ? 'confirm it' : `"${named}" is not the name of the migration`}${named === undefined ? ' with the name of the migration' : ''}, ${migration}. Nothing was changed`,
  );
}

/** Promotes several shards: if one refuses, none is promoted, and those that were are rolled back. */
export async function promoteAll(
  migration: string,
  shards: readonly ShardControl[],
  { pointOfNoReturn, ...wanted }: Omit<z.infer<typeof promoteRequest>, 'shard'>,
): Promise<OnShard<Promotion>[]> {
  const judged: OnShard<Promotion>[] = [];
  for (const shard of shards) {
    try {
      judged.push({ shard: shard.name, ...(await shard.promote({ ...wanted, dryRun: true })) });
    } catch (error) {
      const { status, code, message, details } = asAdminError(error);
      throw new AdminError(code, `${shard.name}: ${message}`, status, details);
    }
  }
  if (wanted.dryRun) return judged;
  const closed = judged.filter(({ gates }) => closedGates(gates, wanted).length > 0);
  if (closed.length > 0) {
    const names = closed.map(
      ({ shard, gates }) =>
        `${shard} (${closedGates(gates, wanted)
          .map((gate) => gate.name)
          .join(', ')})`,
    );
    throw new AdminError(
      'gates-closed',
      `"${wanted.workload}" keeps its stage; closed gates: ${names.join('; ')}`,
      409,
      { promotions: judged },
    );
  }
  if (judged.some(({ to }) => to.stage === 'complete')) confirmed(migration, wanted.workload, pointOfNoReturn);
  const done: OnShard<Promotion>[] = [];
  for (const shard of shards) {
    try {
      done.push({ shard: shard.name, ...(await shard.promote(wanted)) });
    } catch (error) {
      const { status, code, message, details } = asAdminError(error);
      const back = await undone(shards, done, `${shard.name} refused`);
      throw new AdminError(code, `${shard.name}: ${message}${back}`, status, details);
    }
  }
  return done;
}

interface ChangedWorkload {
  readonly shard: string;
  readonly workload: string;
  readonly from: StagePoint;
}

/** A shard that was not rolled back, and why. */
interface UnmovedShard {
  readonly shard: string;
  readonly reason: string;
}

/** @returns a sentence to append to a message */
async function undone(shards: readonly ShardControl[], done: readonly ChangedWorkload[], why: string): Promise<string> {
  const stuck = await undo(shards, done, why);
  if (stuck.length > 0)
    return `; ${stuck.map(({ shard, reason }) => `${shard} was not moved back: ${reason}`).join('; ')}`;
  return done.length === 0 ? '' : `; ${done.map(({ shard }) => shard).join(', ')} went back to the stage before`;
}

/** Goes back stage by stage. @returns the shards that were not rolled back, and why */
async function undo(
  shards: readonly ShardControl[],
  done: readonly ChangedWorkload[],
  why: string,
): Promise<readonly UnmovedShard[]> {
  const stuck: UnmovedShard[] = [];
  for (const { shard, workload, from } of [...done].reverse()) {
    const control = shards.find((each) => each.name === shard)!;
    const { stage: now } = control.snapshot().workloads.find(({ name }) => name === workload)!;
    const steps = stagesTo(now, from.stage) ?? [];
    try {
      // The stage may be the same with another percentage. If there is no way back, the shard says so.
      for (const stage of steps.length === 0 ? [from.stage] : steps)
        await control.changeStage({
          workload,
          stage,
          percent: stage === 'live' ? from.percent : undefined,
          note: { undone: why },
        });
    } catch (error) {
      stuck.push({ shard, reason: (error as Error).message });
    }
  }
  return stuck;
}

/**
 * If one shard refuses, a named workload stays where it is on every shard. An emergency rollback, without a workload,
 * goes on: it rolls back what it can, and the answer names the rest.
 */
export async function rollbackAll(
  shards: readonly ShardControl[],
  { workload, ...wanted }: Omit<z.infer<typeof rollbackRequest>, 'shard'>,
): Promise<OnShard<Rollback>[]> {
  if (workload === undefined && wanted.drill)
    throw new AdminError('bad-request', 'a rollback drill is for one workload: name it', 400);
  const done: OnShard<Rollback>[] = [];
  const refused: AdminError[] = [];
  for (const shard of shards) {
    for (const each of workload === undefined ? answeredByTarget(shard) : [workload]) {
      try {
        done.push({ shard: shard.name, ...(await shard.rollback({ ...wanted, workload: each })) });
      } catch (error) {
        const { status, code, message, details } = asAdminError(error);
        if (workload !== undefined)
          throw new AdminError(
            code,
            `${shard.name}: ${message}${wanted.dryRun ? '' : await undone(shards, pointsBefore(done), `${shard.name} refused`)}`,
            status,
            details,
          );
        refused.push(new AdminError(code, `${shard.name}: ${message}`, status, details));
      }
    }
  }
  if (refused.length === 0) return done;
  const rolledBack = done.map(({ shard, workload: each }) => `${shard}: ${each} was rolled back`);
  throw new AdminError(
    refused[0].code,
    [...refused.map(({ message }) => message), ...rolledBack].join('; '),
    refused[0].status,
    {
      rollbacks: done,
      details: refused.flatMap(({ details = {} }) => ('details' in details ? [details.details] : [])),
      next: [...new Set(refused.flatMap(({ details = {} }) => ('next' in details ? details.next : [])))],
    },
  );
}

/**
 * How long after a change, in ms, another process of the plan may still refuse, so that this one takes its change back.
 */
const TAKE_BACK_MS = 5 * 60_000;

/**
 * Moves a workload back without gates, because another process of the plan refused the same change. Only a change of
 * the last minutes is taken back.
 * @throws {StageError} if the workload was not in that stage then
 */
export async function takeBack(
  shards: readonly ShardControl[],
  { workload, from, why }: Omit<z.infer<typeof takeBackRequest>, 'shard'>,
): Promise<{ shard: string }[]> {
  const since = unixMs() - TAKE_BACK_MS;
  for (const shard of shards) {
    const was = (await shard.history()).some(
      ({ event, time, workload: name, from: before }) =>
        event === 'stage' && name === workload && isPoint(before, from) && Date.parse(String(time)) >= since,
    );
    if (!was)
      throw new StageError(
        'refused',
        `${shard.name}: "${workload}" was not in ${formatPoint(from)} during the last 5 minutes: only a change made since then can be taken back. Use \`rollback\` or \`promote\``,
      );
  }
  const stuck = await undo(
    shards,
    shards.map(({ name }) => ({ shard: name, workload, from })),
    why,
  );
  if (stuck.length > 0)
    throw new StageError('refused', stuck.map(({ shard, reason }) => `${shard}: ${reason}`).join('; '));
  return shards.map(({ name }) => ({ shard: name }));
}

const isPoint = (value: unknown, { stage, percent }: StagePoint): boolean => {
  const point = value as Partial<StagePoint> | undefined;
  return point?.stage === stage && point.percent === percent;
};

/** The stages before the change. */
const pointsBefore = (done: readonly OnShard<Rollback>[]): ChangedWorkload[] =>
  done.map(({ shard, workload, changes }) => ({ shard, workload, from: changes[0].from }));

/** Workloads whose clients get the target's replies. Those in `complete` refuse the rollback, and say what to do. */
const answeredByTarget = (shard: ShardControl): string[] =>
  shard
    .snapshot()
    .workloads.filter(({ stage }) => stageRule(stage).authority === 'target')
    .map(({ name }) => name);
