/** Rows of hash commands. */
import { isNull, text } from '../../resp/decode.js';
import { effect, one, word, type EffectOf } from '../effect.js';
import { inScript, type Rows } from '../row.js';

/** The mirror gets the result of HINCRBYFLOAT, as for INCRBYFLOAT. */
const hincrbyfloat: EffectOf = (args, reply) => one(['HSET', args[1], args[2], reply.data!], null);

/** The mirror cannot hold a TTL of a field: the plan says how it is copied. */
const COPIES_KEY = 'the key is copied; the plan (`hashFieldTtl`) says what becomes of the TTLs of its fields';

/** There is no effect if the numbers in the reply say that no field was changed. */
const changes =
  (...nothing: string[]): EffectOf =>
  (_args, reply) =>
    reply.items?.every((item) => nothing.includes(text(item))) === true ? null : 'copy';

/** HEXPIRE replies so if there is no such field, or the condition was not met. */
const expires = effect(changes('-2', '0'), COPIES_KEY);

/**
 * Splits the arguments: those after FIELDS and their number (`per` for each field), and all others, which are options.
 */
function parted(args: readonly Buffer[], per: number): { fields: readonly Buffer[]; options: readonly Buffer[] } {
  const at = args.findIndex((arg, i) => i > 1 && word(arg) === 'FIELDS') + 2;
  const end = at + per * Number(word(args[at - 1]));
  return { fields: args.slice(at, end), options: [...args.slice(2, at - 2), ...args.slice(end)] };
}

const setsTtl = (options: readonly Buffer[]): boolean =>
  options.some((option) => /^(EX|PX|EXAT|PXAT|PERSIST)$/.test(word(option)));

/** HGETEX without a TTL only reads. */
const hgetex: EffectOf = (args) => (setsTtl(parted(args, 1).options) ? 'copy' : null);

/** HSETEX without a TTL is an HSET if its condition was met. */
const hsetex: EffectOf = (args, reply) => {
  if (text(reply) === '0') return null;
  const { fields, options } = parted(args, 2);
  return setsTtl(options) ? 'copy' : one(['HSET', args[1], ...fields], null);
};

const hgetdel: EffectOf = (args, reply) =>
  reply.items?.every(isNull) === true ? null : one(['HDEL', args[1], ...parted(args, 1).fields], null);

export const HASHES: Rows = {
  hdel: { repeatable: inScript('k(v)', 'number') },
  hexists: { repeatable: inScript('kv', 'number') },
  hget: { repeatable: inScript('kv', 'text') },
  hincrby: { counts: 'increment', repeatable: inScript('kvn', 'number') },
  hincrbyfloat: { effect: effect(hincrbyfloat, '`HSET` of the sum'), counts: 'float' },
  hlen: { repeatable: inScript('k', 'number') },
  hmget: { repeatable: inScript('k(v)', 'table') },
  hmset: { repeatable: inScript('k(vv)', 'table') },
  hset: { repeatable: inScript('k(vv)', 'number') },
  hsetnx: { counts: 'lock', repeatable: inScript('kvv', 'number') },
  hstrlen: { repeatable: inScript('kv', 'number') },
  hexpire: { effect: expires },
  hexpireat: { effect: expires },
  hgetdel: { effect: effect(hgetdel, '`HDEL` of its fields') },
  hgetex: { effect: effect(hgetex, `without a TTL option nothing; otherwise ${COPIES_KEY}`) },
  hpersist: { effect: effect(changes('-2', '-1'), COPIES_KEY) },
  hpexpire: { effect: expires },
  hpexpireat: { effect: expires },
  hsetex: { effect: effect(hsetex, `without a TTL option \`HSET\`; otherwise ${COPIES_KEY}`) },
};
