/** What the admin HTTP does with the stages of several shards. */
import type { z } from 'zod';
import type { StagePoint } from '../plan/plan.js';
import { STAGES, stageRule } from '../route/stage.js';
import { closedGates } from '../stages/gates.js';
import type { Promotion, Rollback } from '../stages/promotion.js';
import { StageError } from '../stages/stage-change.js';
import { AdminError, asAdminError } from './errors.js';
import type { promoteRequest, rollbackRequest } from './requests.js';
import type { ShardControl } from './shard-control.js';

type Of<T> = { shard: string } & T;

/** What a change to `complete` must name. @throws {StageError} */
function confirmed(migration: string, workload: string, named: string | undefined): void {
  if (named === migration) return;
  throw new StageError(
    'point-of-no-return',
    `"${workload}" would move to complete, from which there is no rollback: ${named === undefined ? 'confirm it' : `"${named}" is not the name of the migration`}${named === undefined ? ' with the name of the migration' : ''}, ${migration}. Nothing was changed`,
  );
}

/** Of several shards none goes where one may not, and those that went go back where a later one does not. */
export async function promoteAll(
  migration: string,
  shards: readonly ShardControl[],
  { pointOfNoReturn, ...wanted }: Omit<z.infer<typeof promoteRequest>, 'shard'>,
): Promise<Of<Promotion>[]> {
  const judged: Of<Promotion>[] = [];
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
  const done: Of<Promotion>[] = [];
  for (const shard of shards) {
    try {
      done.push({ shard: shard.name, ...(await shard.promote(wanted)) });
    } catch (error) {
      const { status, code, message, details } = asAdminError(error);
      const back = await undo(shards, done, `${shard.name} refused`);
      throw new AdminError(code, `${shard.name}: ${message}${back}`, status, details);
    }
  }
  return done;
}

/** Stage by stage. @returns what to tell of it */
async function undo(
  shards: readonly ShardControl[],
  done: readonly { shard: string; workload: string; from: StagePoint }[],
  why: string,
): Promise<string> {
  const stuck: string[] = [];
  for (const { shard, workload, from } of [...done].reverse()) {
    const control = shards.find((each) => each.name === shard)!;
    const at = STAGES.indexOf(control.snapshot().workloads.find(({ name }) => name === workload)!.stage);
    const to = STAGES.indexOf(from.stage);
    // The stage itself may be the same, and its share not.
    const steps = at === to ? [from.stage] : at < to ? STAGES.slice(at + 1, to + 1) : STAGES.slice(to, at).reverse();
    try {
      for (const stage of steps)
        await control.changeStage({
          workload,
          stage,
          percent: stage === 'live' ? from.percent : undefined,
          note: { undone: why },
        });
    } catch (error) {
      stuck.push(`${shard} was not moved back: ${(error as Error).message}`);
    }
  }
  if (stuck.length > 0) return `; ${stuck.join('; ')}`;
  return done.length === 0 ? '' : `; ${done.map(({ shard }) => shard).join(', ')} went back to the stage before`;
}

/**
 * Of a workload that is named none goes back where one shard refuses. An emergency rollback, without a workload, goes
 * on: what can go back does, and the answer says what did not.
 */
export async function rollbackAll(
  shards: readonly ShardControl[],
  { workload, ...wanted }: Omit<z.infer<typeof rollbackRequest>, 'shard'>,
): Promise<Of<Rollback>[]> {
  if (workload === undefined && wanted.drill)
    throw new AdminError('bad-request', 'a rollback drill is for one workload: name it', 400);
  const done: Of<Rollback>[] = [];
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
            `${shard.name}: ${message}${wanted.dryRun ? '' : await undo(shards, pointsBefore(done), `${shard.name} refused`)}`,
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

/** Where they were before. */
const pointsBefore = (
  done: readonly ({ shard: string } & Rollback)[],
): { shard: string; workload: string; from: StagePoint }[] =>
  done.map(({ shard, workload, changes }) => ({ shard, workload, from: changes[0].from }));

/**
 * The workloads of which clients get the target's replies; those that are complete refuse to go back, and say what to
 * do.
 */
const answeredByTarget = (shard: ShardControl): string[] =>
  shard
    .snapshot()
    .workloads.filter(({ stage }) => stage === 'live' || stageRule(stage).authority === 'target')
    .map(({ name }) => name);
