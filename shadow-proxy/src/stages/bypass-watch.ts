/**
 * Rule 15: writes that bypass the proxy. A list of connected clients misses short connections; the server's own counts
 * of calls do not. Pure: compares the server's counts at two times with what the proxy had sent by then.
 *
 * If the server counts more calls than the proxy can have sent, other clients have sent them. The commands that a
 * script calls are counted, too: while scripts run nothing is known.
 */
export interface CallCounts {
  readonly runId: string;
  /** Calls since the server started, by command; subcommands are added up. */
  readonly calls: ReadonlyMap<string, number>;
  /** Calls that the proxy had sent before it asked (`sentBefore`), and when the answer came (`sentAfter`). */
  readonly sentBefore: ReadonlyMap<string, number>;
  readonly sentAfter: ReadonlyMap<string, number>;
  /** How many of `sentBefore` the server may not have run yet. */
  readonly inFlight: number;
  /** Scripts and functions that were sent by then. */
  readonly scripts: number;
  /** Whether the server may have run one of these scripts after it counted. */
  readonly mayRunScripts: boolean;
}

/**
 * Commands that are not compared: the proxy sends them under other commands' names, or at other times than it counts
 * them. For example, a blocking command is first sent in its form without blocking.
 */
const NOT_COMPARED: ReadonlySet<string> = new Set([
  'lpop',
  'rpop',
  'lmpop',
  'zpopmin',
  'zpopmax',
  'zmpop',
  'lmove',
  'rpoplpush',
  'blpop',
  'brpop',
  'blmpop',
  'bzpopmin',
  'bzpopmax',
  'bzmpop',
  'blmove',
  'brpoplpush',
  'xreadgroup',
  'eval',
  'evalsha',
  'fcall',
]);

/** Writes that others have certainly made between the two readings, by command; null if nothing is known. */
export function foreignWrites(before: CallCounts, now: CallCounts): Readonly<Record<string, number>> | null {
  if (before.runId !== now.runId || before.scripts !== now.scripts || before.mayRunScripts) return null;
  const found: Record<string, number> = {};
  for (const [name, calls] of now.calls) {
    if (NOT_COMPARED.has(name)) continue;
    const more = calls - (before.calls.get(name) ?? 0);
    // CONFIG RESETSTAT has set the count back.
    if (more < 0) return null;
    const ours = (now.sentAfter.get(name) ?? 0) - (before.sentBefore.get(name) ?? 0) + before.inFlight;
    if (more > ours) found[name] = more - ours;
  }
  return found;
}

/**
 * Reads `INFO commandstats`: calls of the commands that the proxy counts as writes. Redis 7 counts subcommands
 * separately: those that only read (`isRead('function|list')`) are left out.
 */
export function parseCalls(
  stats: ReadonlyMap<string, string>,
  writes: ReadonlySet<string>,
  isRead: (subcommand: string) => boolean,
): Map<string, number> {
  const calls = new Map<string, number>();
  for (const [field, value] of stats) {
    const [, whole, name] = /^cmdstat_(([^|]+).*)/.exec(field) ?? [];
    const count = Number(/^calls=(\d+)/.exec(value)?.[1]);
    if (name !== undefined && writes.has(name) && !(whole !== name && isRead(whole)) && Number.isFinite(count))
      calls.set(name, (calls.get(name) ?? 0) + count);
  }
  return calls;
}
