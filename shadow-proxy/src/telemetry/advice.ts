/**
 * Commands of `shadow-compare` that gates, the status page and `status` suggest as the next step. They are suggested
 * only if the proxy accepts them. Pure, because browsers run it, too.
 */
import { canReturn, type StagePoint } from '../route/stage.js';
import { SIDES, stageRule, type Side, type Stage } from '../route/stage.js';
import type { OutageWorkload, ShardSnapshot } from './snapshot.js';

/** Determines whether a command about a workload is accepted. */
export interface WorkloadCondition {
  readonly name: string;
  readonly stage: Stage;
  /** Why no repair is made; null if repairs are made. */
  readonly frozen: string | null;
  /** Whether a server does not answer: a command that reads both would wait for it. */
  readonly down: boolean;
}

/** The command without the program; undefined if it would be refused. */
export type NextCommand = string | undefined;

/** Lists what the changed authority lacks: the first step to unfreeze repairs. */
export const ACCEPT = 'accept --dry-run';

/** Whether a server that is used does not answer. */
export const isDown = (shard: Pick<ShardSnapshot, Side>): boolean => SIDES.some((side) => shard[side].up === false);

const isCopied = ({ stage, down }: WorkloadCondition): boolean => stageRule(stage).mirrorsWrites && !down;

export const backfillOf = (workload: WorkloadCondition): NextCommand =>
  isCopied(workload) && workload.frozen === null ? `backfill --workload ${workload.name}` : undefined;

/**
 * Names the workloads that both servers have, if both answer. While repairs are frozen, comparing is accepted, but
 * repairing is not.
 */
export function verifyOf(workloads: readonly WorkloadCondition[], repair = false): NextCommand {
  const both = workloads.filter((workload) => isCopied(workload) && !(repair && workload.frozen !== null));
  return both.length === 0
    ? undefined
    : `verify --workload ${both.map(({ name }) => name).join(' ')}${repair ? ' --repair' : ''}`;
}

/** For stages in which clients get the target's replies, and a rollback is possible. */
export const rollbackOf = ({ name, stage }: Pick<WorkloadCondition, 'name' | 'stage'>): NextCommand =>
  canReturn(stage) ? `rollback ${name}` : undefined;

/** If gates are closed, the command is refused and names them. So it is suggested in every stage but the last. */
export const promoteOf = ({ name, stage }: Pick<WorkloadCondition, 'name' | 'stage'>): NextCommand =>
  stage === 'complete' ? undefined : `promote ${name} --dry-run`;

/** The command loses what the mirror lacks: the refusal, and the status of an outage, say so before they suggest it. */
export const forceOf = (name: string, { stage, percent }: StagePoint): string =>
  `promote ${name} --to ${stage}${stage === 'live' ? ` --percent ${percent}` : ''} --force --force-suspects --reason 'these writes may be lost'`;

/** The same for a rollback. */
export const forceBackOf = (name: string, { stage }: Pick<StagePoint, 'stage'>): string =>
  `rollback ${name} --to ${stage} --force --reason 'these writes may be lost'`;

/**
 * The alternative in an outage, after the first command in a line of text.
 * @param typedAs returns how a command without the program is typed
 */
export const insteadOf = (
  { instead }: Pick<OutageWorkload, 'instead'>,
  typedAs: (command: string) => string = (command) => `shadow-compare ${command}`,
): string => (instead === undefined ? '' : `; or ${instead.text}: ${typedAs(instead.command)}`);

export const drillOf = ({ name, stage, down }: Omit<WorkloadCondition, 'frozen'>): NextCommand =>
  stage === 'shadow' && !down ? `rollback ${name} --drill` : undefined;
