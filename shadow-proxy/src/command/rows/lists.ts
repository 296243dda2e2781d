/** Rows of list commands. */
import { isNull } from '../../resp/decode.js';
import { array, bulk, integer } from '../../resp/encode.js';
import { blocking, effect, one, strings, taking, word, type CommandEffect, type EffectOf } from '../effect.js';
import { inScript, type Rows } from '../row.js';

/** BLPOP, BRPOP: key … timeout. */
const blpop: EffectOf = (args, reply) => {
  if (!reply.items) return null;
  const [key, value] = strings(reply.items);
  return one([word(args[0]) === 'BLPOP' ? 'LPOP' : 'RPOP', key], bulk(value));
};

/** @param end the end from which it was taken, as in LREM: 1 is the left end, -1 the right */
const popped = (end: 1 | -1): CommandEffect =>
  effect(
    blpop,
    '`LPOP` or `RPOP` of the key that was popped; where several clients woke at once, `LREM` of the value',
    {
      ofWoken: (_args, reply) => {
        const [key, taken] = reply.items!;
        return one(['LREM', key.data!, end, taken.data!], integer(1));
      },
    },
  );

/** BLMOVE, BRPOPLPUSH: the form without B, and without a timeout. */
const blmove: EffectOf = (args, reply) =>
  isNull(reply) ? null : one([word(args[0]).slice(1), ...args.slice(1, -1)], 'same');
const moved = effect(blmove, '`LMOVE` or `RPOPLPUSH`; where several clients woke at once, the keys are copied');

/** LMPOP numkeys key… LEFT|RIGHT: the reply names the key and the popped values. */
const lmpop: EffectOf = (args, reply) => {
  if (!reply.items) return null;
  const [key, popped] = reply.items;
  const left = word(args[2 + Number(word(args[1]))]) === 'LEFT';
  return one(
    [left ? 'LPOP' : 'RPOP', key.data!, popped.items!.length],
    array(strings(popped.items!).map((item) => bulk(item))),
  );
};

export const LISTS: Rows = {
  // policy.ts refuses it by name.
  blmovem: { blocking: { timeout: 5, unit: 1000 } },
  blmove: {
    blocking: { timeout: 'last', unit: 1000 },
    effect: moved,
    counts: 'list',
  },
  blmpop: {
    blocking: { timeout: 1, unit: 1000 },
    effect: effect(blocking(lmpop), 'as `LMPOP` and `ZMPOP`; where several clients woke at once, the key is copied'),
    namedByReply: true,
    counts: 'list',
  },
  blpop: {
    blocking: { timeout: 'last', unit: 1000 },
    effect: popped(1),
    namedByReply: true,
    counts: 'list',
  },
  brpop: {
    blocking: { timeout: 'last', unit: 1000 },
    effect: popped(-1),
    namedByReply: true,
    counts: 'list',
  },
  brpoplpush: {
    blocking: { timeout: 'last', unit: 1000 },
    effect: moved,
    counts: 'list',
  },
  lindex: { repeatable: inScript('kn', 'text') },
  linsert: { counts: 'list', repeatable: inScript('kvvv', 'number') },
  llen: { repeatable: inScript('k', 'number') },
  lmove: { effect: taking('llen', 0), counts: 'list', repeatable: inScript('kkvv', 'text') },
  lmpop: {
    effect: effect(lmpop, '`LPOP` or `RPOP` of as many elements from the key that was popped'),
    namedByReply: true,
    takesOnly: true,
    counts: 'list',
  },
  lpop: { effect: taking('llen', 2), takesOnly: true, counts: 'list', repeatable: inScript('k', 'text') },
  lpush: { counts: 'list', repeatable: inScript('k(v)', 'number') },
  lpushx: { counts: 'list', repeatable: inScript('k(v)', 'number') },
  lrange: { repeatable: inScript('knn', 'table') },
  lrem: { takesOnly: true, counts: 'list', repeatable: inScript('knv', 'number') },
  lset: { counts: 'list', repeatable: inScript('knv', 'table') },
  ltrim: { takesOnly: true, counts: 'list', repeatable: inScript('knn', 'table') },
  rpop: { effect: taking('llen', 2), takesOnly: true, counts: 'list', repeatable: inScript('k', 'text') },
  rpoplpush: { effect: taking('llen', 0), counts: 'list', repeatable: inScript('kk', 'text') },
  rpush: { counts: 'list', repeatable: inScript('k(v)', 'number') },
  rpushx: { counts: 'list', repeatable: inScript('k(v)', 'number') },
};
