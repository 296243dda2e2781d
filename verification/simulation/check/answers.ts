/** What a single reply must say beyond its type: whose element it is. No client waits for less time than it asked. */
import { typeOf } from './reply-types.js';
import type { Reply } from '../clients/replies.js';

/** Commands that block, by which argument says for how long, from the end where it is negative; in seconds. */
const TIMEOUTS: Readonly<Record<string, number>> = {
  ...{ BLPOP: -1, BRPOP: -1, BZPOPMIN: -1, BZPOPMAX: -1, BLMOVE: -1, BRPOPLPUSH: -1, BLMPOP: 1, BZMPOP: 1 },
};

/** How long the command may block, in ms: Infinity without a limit, 0 for a command that does not block. */
export function blocksMs(args: readonly string[]): number {
  const [name] = args;
  if (name === 'XREAD' || name === 'XREADGROUP') {
    const at = args.indexOf('BLOCK');
    return at === -1 ? 0 : Number(args[at + 1]) || Infinity;
  }
  const at = TIMEOUTS[name];
  return at === undefined ? 0 : 1000 * Number(args.at(at)) || Infinity;
}

/** Timers have whole milliseconds. */
const ROUNDED_MS = 1;

/**
 * Why no server answers so.
 * @param waitedMs since it was sent; Infinity where that is not known
 */
export function wrongAnswer(args: readonly string[], reply: Reply, waitedMs: number): string | null {
  if (reply === null) {
    const askedMs = blocksMs(args);
    if (askedMs <= 0 || waitedMs >= askedMs - ROUNDED_MS) return null;
    return `${args.join(' ')} got nil after ${waitedMs.toFixed(1)} ms`;
  }
  if (args[0] === 'MGET') return foreignValue(args, reply);
  if (blocksMs(args) === 0 || args[0] === 'BLMOVE' || args[0] === 'BRPOPLPUSH' || typeOf(reply) !== '*') return null;
  let [whose] = reply as readonly Reply[];
  if (args[0].startsWith('XREAD') && Array.isArray(whose)) whose = (whose as readonly Reply[])[0];
  const isAsked = typeof whose === 'string' && args.includes(whose.slice(1));
  return isAsked ? null : `${args.join(' ')} got ${JSON.stringify(reply)}`;
}

/** The host that a cluster's redirection names, as in `-MOVED 3300 10.0.0.2:6379`; null for other errors. */
export function redirectedTo(error: string): string | null {
  return /\b(?:MOVED|ASK) \d+ (\S+):\d+$/.exec(error)?.[1] ?? null;
}

/** Values of the keys `q…` begin with the name of their key. */
function foreignValue([, ...keys]: readonly string[], reply: Reply): string | null {
  if (!Array.isArray(reply) || keys.some((key) => key[0] !== 'q')) return null;
  const values = reply as readonly Reply[];
  const isOwn = values.every((value, i) => value === null || (value as string).startsWith(`$${keys[i]}=`));
  return isOwn && values.length === keys.length ? null : `MGET ${keys.join(' ')} got ${JSON.stringify(reply)}`;
}
