/**
 * Keys, strings and their expiry: random commands to each model and to the real server.
 *
 * Needs real servers: replies to commands of keys and strings, and expiry, beside those of the model.
 */
import { duels, type Words } from './duel.js';
import type { Random } from './random.js';

const KEYS = ['k0', 'k1', 'k2', 'k3', 'k4', 'k5'];
const NUMBERS = ['0', '1', '-1', '7', '42', '-9223372036854775808', '9223372036854775807', '9223372036854775806'];
const BAD_NUMBERS = ['', 'x', '1.5', '01', ' 1', '1e3', '92233720368547758070'];
/** None that ends while the test runs. */
const TIMES = ['100000', '500000', '0', '-1', '-100', '-9223372036854775808', '9223372036854775807', ...BAD_NUMBERS];
const FLOATS = ['0.1', '-0.25', '3', '1e3', '1.5e-5', '100000.1', '12345678.9', '-0', 'x', 'nan'];

function command(random: Random): Words {
  const key = (): string => random.pick(KEYS);
  const value = (): string =>
    random.pick(['', 'abc', 'value', '\0\xff', '10', '3.25', 'x'.repeat(random.below(70)), ...NUMBERS]);
  const number = (): string => (random.chance(0.1) ? random.pick(BAD_NUMBERS) : random.pick(NUMBERS));
  const index = (): string => (random.chance(0.05) ? random.pick(BAD_NUMBERS) : String(random.below(16) - 8));
  const seconds = (): string => random.pick(TIMES);
  const now = Math.floor(Date.now() / 1000);
  const at = (): string => random.pick([String(now + 500), String(now - 500), ...TIMES]);
  const times = (): string[] =>
    random.pick([
      [],
      ['EX', seconds()],
      ['PX', random.pick(['100000', '0', '-1', 'x'])],
      ['EXAT', at()],
      ['PXAT', `${random.pick([now + 500, now - 500])}000`],
      ['KEEPTTL'],
      ['EX'],
      ['EX', '1000', 'PX', '100000'],
      ['EX', '1000', 'EX', '2000'],
    ]);
  const conditions = (): string[] => random.some(['NX', 'XX', 'GET', 'nx', 'get', 'ZZ'], 2);
  const expiry = (): string[] => (random.chance(0.3) ? random.some(['NX', 'XX', 'GT', 'LT', 'gt', 'ZZ'], 2) : []);
  return random.pick<() => Words>([
    () => ['GET', key()],
    () => ['SET', key(), value()],
    () => ['SET', key(), value(), ...times()],
    () => ['SET', key(), value(), ...times(), ...conditions()],
    () => ['SET', key(), value(), ...conditions(), ...times()],
    () => ['SETNX', key(), value()],
    () => ['SETEX', key(), seconds(), value()],
    () => ['PSETEX', key(), random.pick(['100000', '0', 'x']), value()],
    () => ['GETSET', key(), value()],
    () => ['GETDEL', key()],
    () => ['GETEX', key(), ...(random.chance(0.2) ? ['PERSIST'] : times())],
    () => ['APPEND', key(), value()],
    () => ['STRLEN', key()],
    () => ['INCR', key()],
    () => ['DECR', key()],
    () => ['INCRBY', key(), number()],
    () => ['DECRBY', key(), number()],
    () => ['INCRBYFLOAT', key(), random.pick(FLOATS)],
    () => ['SET', key(), random.pick(FLOATS)],
    () => ['GETRANGE', key(), index(), index()],
    () => ['SUBSTR', key(), index(), index()],
    () => ['SETRANGE', key(), index(), value()],
    () => ['GETBIT', key(), index()],
    () => ['SETBIT', key(), index(), random.pick(['0', '1', '2', 'x'])],
    () => [
      'BITCOUNT',
      key(),
      ...random.pick([[], ['0'], [index(), index()], [index(), index(), 'BIT'], ['0', '1', 'ZZ']]),
    ],
    () => ['MGET', ...random.some(KEYS, 3)],
    () => ['MSET', ...random.some(KEYS, 2).flatMap((each) => [each, value()])],
    () => ['MSETNX', ...random.some(KEYS, 2).flatMap((each) => [each, value()])],
    () => ['MSET', key(), value(), key()],
    () => ['DEL', ...random.some(KEYS, 3)],
    () => ['UNLINK', ...random.some(KEYS, 2)],
    () => ['EXISTS', ...random.some(KEYS, 3)],
    () => ['TOUCH', ...random.some(KEYS, 3)],
    () => ['TYPE', key()],
    () => ['EXPIRE', key(), seconds(), ...expiry()],
    () => ['PEXPIRE', key(), random.pick(['100000', '50000', ...TIMES]), ...expiry()],
    () => ['EXPIREAT', key(), at(), ...expiry()],
    () => ['PEXPIREAT', key(), `${random.pick([now + 500, now + 900, now - 500])}000`, ...expiry()],
    () => ['TTL', key()],
    () => ['PTTL', key()],
    () => ['EXPIRETIME', key()],
    () => ['PEXPIRETIME', key()],
    () => ['PERSIST', key()],
    () => ['RENAME', key(), key()],
    () => ['RENAMENX', key(), key()],
    () => [
      'COPY',
      key(),
      key(),
      ...random.pick([[], ['REPLACE'], ['DB', '1'], ['DB', '99'], ['DB', 'x', 'REPLACE'], ['ZZ']]),
    ],
    () => ['MOVE', key(), random.pick(['0', '1', '2', '99', 'x'])],
    () => ['SELECT', random.pick(['0', '0', '1', '2', '99', 'x', '-1'])],
    () => ['SWAPDB', random.pick(['0', '1', '99', 'x']), random.pick(['1', '2', '-1', 'x'])],
    () => ['KEYS', random.pick(['*', 'k?', 'k[0-2]', 'k[^1]', 'nothing*', '*1', '\\k1'])],
    () => ['DBSIZE'],
    () => [random.pick(['FLUSHDB', 'FLUSHALL']), ...random.pick([[], ['ASYNC'], ['SYNC'], ['ZZ']])],
    () => ['MULTI'],
    () => ['EXEC'],
    () => ['EXEC'],
    () => ['DISCARD'],
    () => ['WATCH', ...random.some(KEYS, 2)],
    () => ['UNWATCH'],
    () => ['DUMP', 'nothing'],
    () => ['RESTORE', key(), '0', 'no payload'],
    () => [
      'RESTORE',
      key(),
      random.pick(['-1', 'x', '0']),
      value(),
      random.pick(['REPLACE', 'ZZ', 'FREQ', 'IDLETIME']),
    ],
    () => ['OBJECT', random.pick(['ENCODING', 'FREQ', 'NOTHING']), 'nothing'],
    () => [
      random.pick(['GET', 'SET', 'INCR', 'DEL', 'EXPIRE', 'MGET', 'APPEND', 'COPY', 'SELECT', 'MULTI']),
      ...random.some(KEYS, 5),
    ],
    () => ['NOSUCH', ...random.some([...KEYS, 'y'.repeat(100)], 4)],
    () => ['PING'],
    () => ['ECHO', value()],
  ])();
}

duels('answers commands of keys and strings as the server does', 1, 6000, command);
