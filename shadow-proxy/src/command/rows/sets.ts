/** Rows of commands for sets and HyperLogLogs. */
import { integer } from '../../resp/encode.js';
import { effect, one, strings, type EffectOf } from '../effect.js';
import { READS, WRITES } from '../keys.js';
import { inScript, type Rows } from '../row.js';

const spop: EffectOf = (args, reply) => {
  const members = reply.items ? strings(reply.items) : reply.data ? [reply.data] : [];
  return members.length === 0 ? null : one(['SREM', args[1], ...members], integer(members.length));
};

export const SETS: Rows = {
  sadd: { repeatable: inScript('k(v)', 'number') },
  scard: { repeatable: inScript('k', 'number') },
  sdiffstore: { repeatable: inScript('(k)', 'number') },
  sinterstore: {
    access: [WRITES, READS], // as SUNIONSTORE and SDIFFSTORE
    repeatable: inScript('(k)', 'number'),
  },
  sismember: { repeatable: inScript('kv', 'number') },
  smismember: { repeatable: inScript('k(v)', 'table') },
  smove: { repeatable: inScript('kkv', 'number') },
  spop: { effect: effect(spop, '`SREM` of the members that were returned') },
  srem: { repeatable: inScript('k(v)', 'number') },
  sunionstore: { repeatable: inScript('(k)', 'number') },
  pfcount: {
    access: [READS], // writes to its cache only
  },
};
