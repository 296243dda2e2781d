/**
 * Writes to a sorted set of which the mirror has not all yet: what they do depends on what else it holds.
 *
 * - Popped elements are known from the reply, and removed.
 * - Elements cut by rank are not known: the copy begins again.
 * - Elements that the mirror has with another score (ZINCRBY of one that it had not) may escape a ZREMRANGEBYSCORE, or
 *   be caught by it: they are read once more.
 */
import { ACCEPT, COMPARE, type Operation } from '../../pipeline/operation.js';
import { decodeReply } from '../../resp/decode.js';
import { encodeCommand } from '../../resp/encode.js';
import type { Written } from './meanwhile.js';
import type { Parts } from './parts.js';

export const writtenScores =
  ({ meanwhile }: Parts, uncertain: Map<string, Buffer>): Written =>
  (name, args, operation) => {
    switch (name) {
      case 'ZREMRANGEBYRANK':
        return meanwhile.disturb('it was cut by rank');
      case 'ZPOPMIN':
      case 'ZPOPMAX':
        if (!removeSame(args[1], operation)) meanwhile.disturb('elements were popped in a transaction');
        return;
      case 'ZINCRBY':
      case 'ZADD':
      case 'GEOADD':
        for (const member of conditional(name, args)) uncertain.set(member.toString('latin1'), Buffer.from(member));
    }
  };

const OPTIONS = new Set(['NX', 'XX', 'GT', 'LT', 'CH', 'INCR']);

/** The members whose new score depends on the old one. */
function conditional(name: string, args: readonly Buffer[]): Buffer[] {
  if (name === 'ZINCRBY') return [args[3]];
  let at = 2;
  while (at < args.length && OPTIONS.has(args[at].toString('latin1').toUpperCase())) at++;
  const step = name === 'ZADD' ? 2 : 3;
  return at === 2 ? [] : args.filter((_, i) => i >= at && (i - at) % step === step - 1);
}

/** The mirror is to remove what was popped; false if the reply does not show what that was. */
function removeSame(key: Buffer, operation: Operation): boolean {
  if (operation.check !== COMPARE || operation.replyEnd === operation.replyStart) return false;
  const items = decodeReply(operation.reply, operation.replyStart).reply.items ?? [];
  const members = items.flatMap((item, i) =>
    item.items !== null ? [item.items[0].data!] : i % 2 === 0 ? [item.data!] : [],
  );
  // Empty on the authority, it is empty on the mirror.
  if (members.length === 0) return true;
  const frame = encodeCommand(['ZREM', key, ...members]);
  operation.become(frame);
  operation.start = 0;
  operation.end = frame.length;
  operation.check = ACCEPT;
  operation.replyEnd = operation.replyStart;
  return true;
}
