/** Keys of two authorities: a command that cannot be split is refused, and every other one is not. */
import { isError, type Reply } from '../clients/replies.js';
import { partsOf, type KeyName } from '../world/key-name.js';

const SPLIT = new Set(['MGET', 'DEL', 'UNLINK', 'EXISTS', 'TOUCH']);
/** They name keys, and do not use them. */
const NOT_USED = new Set(['WATCH', 'UNWATCH', 'DISCARD']);
const REFUSED = /^-ERR shadow-proxy: .* spans workload /;
/** They would reach keys of both. */
const EVERY_KEY = new Set(['FLUSHALL', 'FLUSHDB', 'SWAPDB']);

/** Why the reply is wrong. @param isApart whether the key has another authority than most */
export function crossingProblem(
  args: readonly string[],
  keys: readonly KeyName[],
  reply: Reply,
  isApart: (key: string) => boolean,
): string | null {
  if (reply === '+QUEUED' || NOT_USED.has(args[0])) return null;
  const isCrossing = EVERY_KEY.has(args[0]) || new Set(keys.map((key) => isApart(partsOf(key).name))).size > 1;
  const isRefused = isError(reply) && REFUSED.test(reply);
  const isWrong = isCrossing && !SPLIT.has(args[0]) ? !isError(reply) : isRefused;
  return isWrong ? `${args.join(' ')} got ${JSON.stringify(reply)}` : null;
}

/** A key of another shard that the reply names, of a command about all keys; null where there is none. */
export function namesOther(
  args: readonly string[],
  reply: Reply,
  isOfOtherShard: (key: string) => boolean,
): string | null {
  if (args[0] !== 'KEYS' && args[0] !== 'SCAN') return null;
  if (!Array.isArray(reply)) return null;
  const names = (args[0] === 'SCAN' ? reply[1] : reply) as readonly string[];
  return names.map((name) => name.slice(1)).find(isOfOtherShard) ?? null;
}
