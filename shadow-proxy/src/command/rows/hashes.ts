/** Commands about hashes. */
import { copied, effect, one, type EffectOf } from '../effect.js';
import { inScript, type Rows } from '../row.js';

/** Likewise INCRBYFLOAT. */
const hincrbyfloat: EffectOf = (args, reply) => one(['HSET', args[1], args[2], reply.data!], null);

/** What they did to the fields' times to live; a copy says where the mirror cannot hold it. */
const expiringFields = effect(
  copied,
  'the key is copied; a hash with fields that expire cannot be copied, and stays a suspect',
);

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
  hexpire: {
    effect: expiringFields,
  },
  hpexpire: {
    effect: expiringFields,
  },
  hexpireat: {
    effect: expiringFields,
  },
  hpexpireat: {
    effect: expiringFields,
  },
  hpersist: {
    effect: expiringFields,
  },
  hsetex: {
    effect: expiringFields,
  },
  hgetex: {
    effect: expiringFields,
  },
  hgetdel: {
    effect: expiringFields,
  },
};
