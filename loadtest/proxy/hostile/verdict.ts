/** Whether hostile clients harmed the others. Pure. */
import { PROCESS_BYTES } from '../../../shadow-proxy/src/plan/memory.js';
import type { Attack } from './attacks.js';
import type { Seen } from './victims.js';

export interface Finding extends Pick<Attack, 'allowed'> {
  readonly attack: string;
  readonly does: string;
  /** What the well-behaved clients saw just before the attack, and during it. */
  readonly calm: Seen;
  readonly seen: Seen;
  /** Maximum resident bytes of the proxy, or of Redis, during the attack. */
  readonly peak: number;
  /** Whether a server was declared down. */
  readonly outage: boolean;
}

export interface Tolerance {
  /** The factor by which the others' p99 may rise. */
  readonly factor: number;
  /** A p99 up to this (ms) is harmless, whatever it was before; some attacks are allowed more. */
  readonly floorMs: number;
  /** The limits are multiplied by this: more than 1 if other work on the machine must not decide. */
  readonly leeway: number;
  /** Maximum time for a reply (ms) by the wall clock, which also shows a server that waits for nothing. */
  readonly stallMs: number;
  /** Maximum bytes of the process; null: no limit. */
  readonly maxRss: number | null;
}

/** The memory that `shadow-proxy --check` requires for one shard with these limits, in bytes. */
export const neededRss = (totalClientBytes: number, queueBytes: number): number =>
  PROCESS_BYTES + totalClientBytes + queueBytes;

/** The rule in words, for the report. */
export const ruleOf = ({ factor, floorMs, leeway, stallMs, maxRss }: Tolerance): string =>
  `holds = the p99 of the others, in CPU time of proxy and source, is at most ${factor} times what it was just before, or at most ` +
  `${floorMs} ms, or what the attack is allowed${leeway === 1 ? '' : `, times ${leeway}`}; every reply is right and takes less than ${stallMs / 1000} s; ` +
  `nobody else is disconnected; no server is declared lost${maxRss === null ? '' : `; RSS stays under ${mib(maxRss)}`}`;

/** Maximum p99 (ms of work) of the others. */
export const mostMs = (
  { calm, allowed }: Pick<Finding, 'calm' | 'allowed'>,
  { factor, floorMs, leeway }: Tolerance,
): number => Math.max(calm.work.p99 * factor, allowed?.ms ?? 0, floorMs) * leeway;

/** The requirements that are not met; empty if all are. */
export function judge(finding: Finding, tolerance: Tolerance): string[] {
  const { calm, seen, peak, outage } = finding;
  const { stallMs, maxRss } = tolerance;
  const most = mostMs(finding, tolerance);
  const checks: [fails: boolean, what: string][] = [
    [seen.replies === 0, 'the others got no reply'],
    [
      !(seen.work.p99 <= most),
      `the p99 of the others rose from ${calm.work.p99.toFixed(1)} to ${seen.work.p99.toFixed(1)} ms, more than ${most.toFixed(1)} ms`,
    ],
    [seen.wall.worst >= stallMs, `a reply to the others took ${(seen.wall.worst / 1000).toFixed(1)} s`],
    [seen.lost > 0, `${seen.lost} of the others were disconnected`],
    [seen.wrong.length > 0, `the others got wrong replies: ${seen.wrong.join(' | ')}`],
    [maxRss !== null && peak > maxRss, `RSS of ${mib(peak)}, more than ${mib(maxRss ?? 0)}`],
    [outage, 'a server was declared lost'],
  ];
  return checks.filter(([fails]) => fails).map(([, what]) => what);
}

export const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
