/** What works on keys of every type: expiry, names, copies, whole databases. */
import { call, rule, type Call, type Rule } from '../command.js';
import type { Argument, Plain } from '../reply.js';
import { TYPES } from '../types.js';
import type { Values } from '../values.js';

type Words = readonly (Argument | number)[];

const condition = (g: Values): Words => g.random.pick<Words>([[], [], ['NX'], ['XX'], ['GT'], ['LT']]);
/** Seconds; now and then so few that the key expires at once, or more than a server can hold. */
const seconds = (g: Values): number | string =>
  g.random.chance(0.05)
    ? g.random.pick(['0', '-1', '9223372036854775807', '9223372036854775'])
    : Math.ceil(g.ttl() / 1000);
/** Source and destination of one type, so that what comes out can be used. */
const pair = (g: Values): [Argument, Argument] => {
  const type = g.random.pick(['str', 'num', 'list', 'hash', 'set', 'zset', 'lex', 'geo', 'log', 'ids', 'hll'] as const);
  return [g.key(type), g.key(type)];
};
const sorting = (g: Values): Words => [
  ...g.random.pick<Words>([
    [],
    ['BY', 'nosort'],
    ['BY', `${g.options.prefixes[0]}num:*`],
    ['BY', `${g.options.prefixes[0]}hash:*->m12`],
  ]),
  ...g.maybe('LIMIT', 0, 5),
  ...g.maybe('GET', '#', 'GET', `${g.options.prefixes[0]}num:*`),
  ...g.maybe('DESC'),
  ...(g.random.chance(0.7) ? ['ALPHA'] : []),
];

function dump(g: Values): Call {
  const type = g.random.pick(TYPES);
  const learn = (reply: Plain): void => {
    if (Buffer.isBuffer(reply) && reply.length < 100_000) g.dumps.push({ type, payload: reply });
    if (g.dumps.length > 30) g.dumps.shift();
  };
  return { ...call('bulk?', 'DUMP', g.key(type)), learn };
}

function restore(g: Values): Call {
  const choice = g.random.next();
  const { type, payload } = g.dumps[Math.floor(choice * g.dumps.length)] ?? {
    type: 'str',
    payload: Buffer.from('no payload'),
  };
  const [ms, ...absolute] = g.random.pick<() => Words>([
    () => [0],
    () => [g.ttl()],
    () => [g.now() + g.ttl(), 'ABSTTL'],
  ])();
  return call('status', 'RESTORE', g.key(type), ms, payload, ...(g.random.chance(0.8) ? ['REPLACE'] : []), ...absolute);
}

/** Whole databases change in 2 and 3 only, so that what a connection stored in 0 and 1 stays. */
function barrier(g: Values): Call {
  if (!g.options.barriers) return call('int', 'DBSIZE');
  if (g.random.chance(0.5)) return call('status', 'SWAPDB', 2, 3);
  return g.db >= 2 ? call('status', 'FLUSHDB', ...g.maybe('ASYNC')) : call('int', 'DBSIZE');
}

export const KEYS: readonly Rule[] = [
  rule(8, (g) =>
    call('int', g.random.pick(['DEL', 'UNLINK']), ...g.random.times(g.random.between(1, 3), () => g.anyKey())),
  ),
  rule(4, (g) => call('int', 'EXISTS', ...g.random.times(g.random.between(1, 4), () => g.anyKey()))),
  rule(2, (g) => call('int', 'TOUCH', ...g.random.times(g.random.between(1, 3), () => g.anyKey()))),
  rule(3, (g) => call('status', 'TYPE', g.anyKey())),
  rule(6, (g) => call('int', 'EXPIRE', g.anyKey(), seconds(g), ...condition(g))),
  rule(8, (g) => call('int', 'PEXPIRE', g.anyKey(), g.ttl(), ...condition(g))),
  rule(3, (g) => call('int', 'EXPIREAT', g.anyKey(), Math.ceil((g.now() + g.ttl()) / 1000), ...condition(g))),
  rule(3, (g) => call('int', 'PEXPIREAT', g.anyKey(), g.now() + g.ttl(), ...condition(g))),
  rule(4, (g) => call('int', 'PERSIST', g.anyKey())),
  rule(6, (g) => call('int', g.random.pick(['TTL', 'PTTL', 'EXPIRETIME', 'PEXPIRETIME']), g.anyKey())),
  rule(4, (g) => call('status', 'RENAME', ...pair(g))),
  rule(2, (g) => call('int', 'RENAMENX', ...pair(g))),
  rule(5, (g) => call('int', 'COPY', ...pair(g), ...g.maybe('DB', g.random.between(0, 3)), ...g.maybe('REPLACE'))),
  rule(3, (g) => call('int', 'MOVE', g.anyKey(), g.random.between(0, 3))),
  rule(4, dump),
  rule(4, restore),
  rule(2, (g) => call('any', 'OBJECT', g.random.pick(['ENCODING', 'REFCOUNT', 'IDLETIME', 'FREQ']), g.anyKey())),
  rule(3, (g) =>
    call(
      'array',
      g.random.pick(['SORT', 'SORT_RO']),
      g.key(g.random.pick(['list', 'nums', 'set', 'zset'])),
      ...sorting(g),
    ),
  ),
  rule(3, (g) =>
    call('int', 'SORT', g.key(g.random.pick(['list', 'nums', 'set', 'zset'])), ...sorting(g), 'STORE', g.key('list')),
  ),
  rule(0.5, (g) =>
    call('array', 'SCAN', 0, ...g.maybe('MATCH', '*str*'), ...g.maybe('COUNT', 20), ...g.maybe('TYPE', 'hash')),
  ),
  rule(0.2, (g) => call('array', 'KEYS', g.random.pick(['*num:*', '*[a-c]*', 'str:?']))),
  rule(0.5, () => call('bulk?', 'RANDOMKEY')),
  rule(0.5, () => call('int', 'DBSIZE')),
  rule(0.5, () => call('array', 'TIME')),
  rule(0.1, barrier),
  // What no server takes: the refusal must reach the right client too.
  rule(1, (g) =>
    g.random.pick([
      call('any', 'GET'),
      call('any', 'NOSUCHCOMMAND', g.anyKey()),
      call('any', 'SET', g.key('str'), 'v', 'EX', 'soon'),
      call('any', 'EXPIRE', g.anyKey(), '1.5'),
    ]),
  ),
];
