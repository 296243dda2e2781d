/** Rows of commands for strings, numbers and bits. */
import { isNull, text } from '../../resp/decode.js';
import { OK } from '../../resp/encode.js';
import { command, effect, one, taking, word, type EffectOf } from '../effect.js';
import { bitfieldKeys, setKeys } from '../hidden-keys.js';
import { inScript, type Rows } from '../row.js';
import { ttlAt2, ttlOption } from '../ttl-argument.js';

/** Options that a replicated script may use. */
const TTL = { ex: 1, px: 1, nx: 0, xx: 0 };

const optionsOf = (args: readonly Buffer[]): string[] => args.slice(3).map(word);

/** SET's conditions on the old value: IFEQ since Valkey 8.1, all since Redis 8.4. */
const CONDITION = /^IF(EQ|NE|DEQ|DNE)$/;

/** SET … IFEQ value: the effect has no condition if it was met; with GET the reply does not show that. */
const setIf: EffectOf = (args, reply) => {
  let at = 3;
  while (at < args.length && !CONDITION.test(word(args[at]))) at += VALUED.test(word(args[at])) ? 2 : 1;
  const rest = [...args.slice(0, at), ...args.slice(at + 2)];
  if (at === args.length || optionsOf(rest).includes('GET')) return 'copy';
  return isNull(reply) ? null : one(rest, 'same');
};

/** Options of SET that have a value. */
const VALUED = /^(EX|PX|EXAT|PXAT)$/;

/** DELIFEQ (Valkey 9), DELEX (Redis 8.4): a reply of 1 says that the key was deleted. */
const deletedIf: EffectOf = (args, reply) => (text(reply) === '1' ? one(['DEL', args[1]], 'same') : null);

/** MSETEX (Redis 8.4, Valkey 9.1): all keys are set, or none. */
const msetex: EffectOf = (_args, reply) => (text(reply) === '1' ? 'copy' : null);

/**
 * SET … NX GET, which only newer servers know: nil says that the key was set. KeyDB loses what SET … KEEPTTL writes to
 * an expired key that is not removed yet: reading the key first removes it.
 */
const set: EffectOf = (args, reply, protocol) => {
  const options = optionsOf(args);
  if (options.some((option) => CONDITION.test(option))) return setIf(args, reply, protocol);
  if (options.includes('NX') && options.includes('GET')) {
    if (!isNull(reply)) return null;
    return one([...args.slice(0, 3), ...args.slice(3).filter((arg) => word(arg) !== 'NX' && word(arg) !== 'GET')], OK);
  }
  return options.includes('KEEPTTL') ? [command(['EXISTS', args[1]], null), command(args, 'same')] : 'verbatim';
};

const keepsTtl = (args: readonly Buffer[]): boolean => optionsOf(args).includes('KEEPTTL');
/** Whether no other option makes SET read the key. */
const keepsTtlBlindly = (args: readonly Buffer[]): boolean =>
  keepsTtl(args) && !['NX', 'XX', 'GET'].some((option) => optionsOf(args).includes(option));

/** The mirror gets the authority's sum, because long doubles differ between processors. */
const incrbyfloat: EffectOf = (args, reply) => [
  command(['EXISTS', args[1]], null),
  command(['SET', args[1], reply.data!, 'KEEPTTL'], OK),
];

export const STRINGS: Rows = {
  append: { counts: 'append', repeatable: inScript('kv', 'number') },
  bitfield: { readKeys: bitfieldKeys, counts: 'increment' },
  decr: { counts: 'increment', repeatable: inScript('k', 'number') },
  decrby: { counts: 'increment', repeatable: inScript('kn', 'number') },
  get: { repeatable: inScript('k', 'text') },
  delifeq: { effect: effect(deletedIf, '`DEL`, or nothing where the value was another one') },
  delex: { effect: effect(deletedIf, '`DEL`, or nothing where the condition was not met') },
  getbit: { repeatable: inScript('kn', 'number') },
  getdel: { effect: taking('exists', 0), replaces: true, repeatable: inScript('k', 'text') },
  getex: { relativeTtl: ttlOption(2, 'EX', 'PX', 'GETEX'), absoluteTtl: ttlOption(2, 'EXAT', 'PXAT', 'GETEX') },
  getrange: { repeatable: inScript('knn', 'text') },
  getset: { repeatable: inScript('kv', 'text') },
  incr: { counts: 'increment', repeatable: inScript('k', 'number') },
  incrby: { counts: 'increment', repeatable: inScript('kn', 'number') },
  incrbyfloat: {
    effect: effect(incrbyfloat, '`SET … KEEPTTL` of the sum, after an `EXISTS`'),
    keepsTtl: () => true,
    counts: 'float',
  },
  mget: { splittable: true, repeatable: inScript('(k)', 'table') },
  mset: { replaces: true, repeatable: inScript('(kv)', 'table') },
  msetex: { effect: effect(msetex, 'the keys are copied, or nothing where the condition was not met') },
  msetnx: { counts: 'lock' },
  psetex: { relativeTtl: ttlAt2(1, 'PSETEX'), replaces: true, repeatable: inScript('knv', 'table') },
  set: {
    readKeys: setKeys,
    effect: effect(
      set,
      'with `IFEQ`, `IFNE`, `IFDEQ` or `IFDNE`: without it, or nothing where it was not met; with `GET`, too, the key is copied. With `NX` and `GET` together: the `SET` without both, or nothing if the key existed. With `KEEPTTL`: as sent, after an `EXISTS` (KeyDB may lose what `SET … KEEPTTL` writes to a key that has just expired). Otherwise as sent',
      { least: 4 },
    ),
    relativeTtl: ttlOption(3, 'EX', 'PX', 'SET'),
    absoluteTtl: ttlOption(3, 'EXAT', 'PXAT', 'SET'),
    keepsTtl,
    keepsTtlBlindly,
    repeatable: inScript('kvx', 'table', TTL),
  },
  setbit: { repeatable: inScript('knn', 'number') },
  setex: { relativeTtl: ttlAt2(1000, 'PSETEX'), replaces: true, repeatable: inScript('knv', 'table') },
  setnx: { counts: 'lock', repeatable: inScript('kv', 'number') },
  setrange: { counts: 'append', repeatable: inScript('knv', 'number') },
  strlen: { repeatable: inScript('k', 'number') },
};
