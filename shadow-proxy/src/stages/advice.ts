/**
 * Commands of `shadow-compare` that gates, the status page and `status` name as the next step. Each is made here, and
 * only where the proxy accepts it: a command that is refused leads nowhere. Pure, for browsers have it, too.
 */
import { stageRule, type Stage } from '../route/stage.js';

/** What decides whether a command about a workload is accepted. */
export interface Standing {
  readonly name: string;
  readonly stage: Stage;
  /** Why no repair is made; null if repairs are made. */
  readonly frozen: string | null;
}

/** The command without the program; undefined if it would be refused. */
export type NextCommand = string | undefined;

/** Lists what the changed authority lacks: the first step out of a freeze. */
export const ACCEPT = 'accept --dry-run';

const isCopied = ({ stage }: Pick<Standing, 'stage'>): boolean => stageRule(stage).mirrorsWrites;

export const backfillOf = (workload: Standing): NextCommand =>
  isCopied(workload) && workload.frozen === null ? `backfill --workload ${workload.name}` : undefined;

/** Names the workloads that both servers have. While repairs are frozen, comparing is accepted, repairing is not. */
export function verifyOf(workloads: readonly Standing[], repair = false): NextCommand {
  const both = workloads.filter((workload) => isCopied(workload) && !(repair && workload.frozen !== null));
  return both.length === 0
    ? undefined
    : `verify --workload ${both.map(({ name }) => name).join(' ')}${repair ? ' --repair' : ''}`;
}

/** From the stages in which clients get the target's replies, and there is a way back. */
export const rollbackOf = ({ name, stage }: Pick<Standing, 'name' | 'stage'>): NextCommand =>
  stage === 'live' || stage === 'rampdown' ? `rollback ${name}` : undefined;

export const drillOf = ({ name, stage }: Pick<Standing, 'name' | 'stage'>): NextCommand =>
  stage === 'shadow' ? `rollback ${name} --drill` : undefined;
