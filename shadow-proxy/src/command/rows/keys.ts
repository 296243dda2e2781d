/** Rows of commands for keys of any type. */
import { text } from '../../resp/decode.js';
import { integer } from '../../resp/encode.js';
import { copied, effect, one, word, type EffectOf } from '../effect.js';
import { migrateKeys, sortKeys } from '../hidden-keys.js';
import { READS, WRITES } from '../keys.js';
import { inScript, type Rows } from '../row.js';
import { ttlAt2 } from '../ttl-argument.js';

const CONDITIONS = new Set(['NX', 'XX', 'GT', 'LT']);

/** EXPIRE key time [NX|XX|GT|LT]: a reply of 1 says that the time took effect, so the condition is left out. */
const conditionalExpire: EffectOf = (args, reply) => {
  if (!args.slice(3).some((arg) => CONDITIONS.has(word(arg)))) return 'verbatim';
  return text(reply) === '1' ? one(args.slice(0, 3), integer(1)) : null;
};

/** SORT … BY … STORE: each server orders equal elements differently. */
const sort: EffectOf = (args) =>
  ['BY', 'STORE'].every((option) => args.slice(2).some((arg) => word(arg) === option)) ? 'copy' : 'verbatim';

const expires = effect(
  conditionalExpire,
  'with `NX`, `XX`, `GT` or `LT`: the time without the condition, or nothing where the condition was false; otherwise as sent',
  { least: 4 },
);

export const KEYS: Rows = {
  copy: {
    access: [READS, READS | WRITES], // without REPLACE, the result depends on whether the key exists
    movesTtl: true,
    leavesDatabase: true,
  },
  del: { replaces: true, splittable: true, repeatable: inScript('(k)', 'number') },
  exists: { splittable: true, repeatable: inScript('(k)', 'number') },
  expire: {
    effect: expires,
    relativeTtl: ttlAt2(1000, 'PEXPIRE'),
    repeatable: inScript('kn', 'number'),
  },
  expireat: {
    effect: expires,
    absoluteTtl: ttlAt2(1000, 'PEXPIREAT'),
    repeatable: inScript('kn', 'number'),
  },
  keys: { asksForAllKeys: true },
  migrate: { readKeys: migrateKeys },
  move: { movesTtl: true, leavesDatabase: true },
  persist: { repeatable: inScript('k', 'number') },
  pexpire: {
    effect: expires,
    relativeTtl: ttlAt2(1, 'PEXPIRE'),
    repeatable: inScript('kn', 'number'),
  },
  pexpireat: {
    effect: expires,
    absoluteTtl: ttlAt2(1, 'PEXPIREAT'),
    repeatable: inScript('kn', 'number'),
  },
  randomkey: { asksForAllKeys: true },
  rename: { movesTtl: true, repeatable: inScript('kk', 'table') },
  renamenx: { movesTtl: true, repeatable: inScript('kk', 'number') },
  restore: {
    access: [READS | WRITES], // as COPY
    // The payload has the source's RDB version, which the other server may be unable to read.
    effect: effect(copied, 'the key is copied: the payload has the RDB version of the source'),
    relativeTtl: (args) => (word(args[2]) === '0' ? null : ttlAt2(1, 'RESTORE')(args)),
    replaces: true,
  },
  scan: { asksForAllKeys: true },
  sort: {
    readKeys: sortKeys(true),
    effect: effect(
      sort,
      'with `BY` and `STORE`: the destination is copied, because servers order ties differently; otherwise as sent',
      { least: 6 },
    ),
  },
  sort_ro: { readKeys: sortKeys(false) },
  touch: { splittable: true },
  type: { repeatable: inScript('k', 'table') },
  unlink: { replaces: true, splittable: true, repeatable: inScript('(k)', 'number') },
};
