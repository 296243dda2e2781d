/**
 * Commands of `shadow-compare` that gates, the status page and `status` name as the next step. Each is made here, and
 * only where the proxy accepts it: a command that is refused leads nowhere. Pure, for browsers have it, too.
 */
import { canReturn, type StagePoint } from '../route/stage.js';
import { SIDES, stageRule, type Side, type Stage } from '../route/stage.js';
import type { OutageWorkload, ShardSnapshot } from './snapshot.js';

/** What decides whether a command about a workload is accepted. */
export interface Standing {
  readonly name: string;
  readonly stage: Stage;
  /** Why no repair is made; null if repairs are made. */
  readonly frozen: string | null;
  /** Whether a server does not answer: what reads both waits for it. */
  readonly down: boolean;
}

/** The command without the program; undefined if it would be refused. */
export type NextCommand = string | undefined;

/** Lists what the changed authority lacks: the first step out of a freeze. */
export const ACCEPT = 'accept --dry-run';

/** Whether a server that is used does not answer. */
export const isDown = (shard: Pick<ShardSnapshot, Side>): boolean => SIDES.some((side) => shard[side].up === false);

const isCopied = ({ stage, down }: Standing): boolean => stageRule(stage).mirrorsWrites && !down;

export const backfillOf = (workload: Standing): NextCommand =>
  isCopied(workload) && workload.frozen === null ? `backfill --workload ${workload.name}` : undefined;

/**
 * Names the workloads that both servers have, while both answer. While repairs are frozen, comparing is accepted,
 * repairing is not.
 */
export function verifyOf(workloads: readonly Standing[], repair = false): NextCommand {
  const both = workloads.filter((workload) => isCopied(workload) && !(repair && workload.frozen !== null));
  return both.length === 0
    ? undefined
    : `verify --workload ${both.map(({ name }) => name).join(' ')}${repair ? ' --repair' : ''}`;
}

/** From the stages in which clients get the target's replies, and there is a way back. */
export const rollbackOf = ({ name, stage }: Pick<Standing, 'name' | 'stage'>): NextCommand =>
  canReturn(stage) ? `rollback ${name}` : undefined;

/** Refused while gates are closed, and says which: so the way on is shown in each stage but the last. */
export const promoteOf = ({ name, stage }: Pick<Standing, 'name' | 'stage'>): NextCommand =>
  stage === 'complete' ? undefined : `promote ${name} --dry-run`;

/** Loses what the mirror does not have yet: a refusal and the status of an outage say so before they name it. */
export const forceOf = (name: string, { stage, percent }: StagePoint): string =>
  `promote ${name} --to ${stage}${stage === 'live' ? ` --percent ${percent}` : ''} --force --force-suspects --reason 'these writes may be lost'`;

/** The same on the way back. */
export const forceBackOf = (name: string, { stage }: Pick<StagePoint, 'stage'>): string =>
  `rollback ${name} --to ${stage} --force --reason 'these writes may be lost'`;

/**
 * The other way out of an outage, behind the first in a line of text.
 * @param typedAs how a command, given without the program, is typed
 */
export const insteadOf = (
  { instead }: Pick<OutageWorkload, 'instead'>,
  typedAs: (command: string) => string = (command) => `shadow-compare ${command}`,
): string => (instead === undefined ? '' : `; or ${instead.text}: ${typedAs(instead.command)}`);

export const drillOf = ({ name, stage, down }: Omit<Standing, 'frozen'>): NextCommand =>
  stage === 'shadow' && !down ? `rollback ${name} --drill` : undefined;
