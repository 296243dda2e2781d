/** Rows of sorted set commands. */
import { text } from '../../resp/decode.js';
import { array, bulk, integer } from '../../resp/encode.js';
import { blocking, effect, one, strings, taking, word, type EffectOf } from '../effect.js';
import { inScript, type Rows } from '../row.js';

/**
 * With INCR, which an argument may contain, ZADD replies with a score. Its text depends on the server, as for other
 * commands with scores.
 */
const SCORES = { nx: 0, xx: 0, ch: 0, gt: 0, lt: 0 };

/** BZPOPMIN, BZPOPMAX: key … timeout. */
const bzpop: EffectOf = (args, reply) => {
  if (!reply.items) return null;
  const [key, member, score] = reply.items;
  const scoreFrame = score.type === ',' ? Buffer.from(`,${text(score)}\r\n`) : bulk(score.data!);
  return one([word(args[0]).slice(1), key.data!], array([bulk(member.data!), scoreFrame]));
};

const popped = effect(
  bzpop,
  '`ZPOPMIN` or `ZPOPMAX` of the key that was popped; where several clients woke at once, `ZREM` of the member',
  {
    ofWoken: (_args, reply) => {
      const [key, taken] = reply.items!;
      return one(['ZREM', key.data!, taken.data!], integer(1));
    },
  },
);

const zmpop: EffectOf = (args, reply, protocol) => {
  if (!reply.items) return null;
  const [key, popped] = reply.items;
  const min = word(args[2 + Number(word(args[1]))]) === 'MIN';
  const flat = popped.items!.flatMap((pair) => strings(pair.items!));
  return one(
    [min ? 'ZPOPMIN' : 'ZPOPMAX', key.data!, popped.items!.length],
    protocol === 2 ? array(flat.map((item) => bulk(item))) : null,
  );
};

export const SORTED_SETS: Rows = {
  bzmpop: {
    blocking: { timeout: 1, unit: 1000 },
    effect: effect(blocking(zmpop), 'as `LMPOP` and `ZMPOP`; where several clients woke at once, the key is copied'),
    namedByReply: true,
  },
  bzpopmax: {
    blocking: { timeout: 'last', unit: 1000 },
    effect: popped,
    namedByReply: true,
  },
  bzpopmin: {
    blocking: { timeout: 'last', unit: 1000 },
    effect: popped,
    namedByReply: true,
  },
  zadd: { repeatable: inScript('kx(nv)', null, SCORES) },
  zcard: { repeatable: inScript('k', 'number') },
  zcount: { repeatable: inScript('knn', 'number') },
  zincrby: { counts: 'increment', repeatable: inScript('knv', null) },
  zlexcount: { repeatable: inScript('kvv', 'number') },
  zmpop: {
    effect: effect(zmpop, '`ZPOPMIN` or `ZPOPMAX` of as many members from the key that was popped'),
    namedByReply: true,
    takesOnly: true,
  },
  zpopmax: { effect: taking('zcard', 2), takesOnly: true, repeatable: inScript('k', null) },
  zpopmin: { effect: taking('zcard', 2), takesOnly: true, repeatable: inScript('k', null) },
  zrange: { repeatable: inScript('knn', 'table') },
  zrangebyscore: { repeatable: inScript('knn', 'table') },
  zrank: { repeatable: inScript('kv', 'text') },
  zrem: { takesOnly: true, repeatable: inScript('k(v)', 'number') },
  zremrangebylex: { repeatable: inScript('kvv', 'number') },
  zremrangebyrank: { counts: 'window', repeatable: inScript('knn', 'number') },
  zremrangebyscore: { counts: 'window', repeatable: inScript('knn', 'number') },
  zrevrange: { repeatable: inScript('knn', 'table') },
  zrevrangebyscore: { repeatable: inScript('knn', 'table') },
  zrevrank: { repeatable: inScript('kv', 'text') },
};
