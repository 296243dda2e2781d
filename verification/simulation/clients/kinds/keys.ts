/** Commands of keys of any type, of several keys, and those that name none. */
import type { Command, Draw, Form } from '../draw.js';

/** On one key of any type. */
export const ANY: readonly Form[] = [
  (_, key) => ['TYPE', key],
  (_, key) => ['EXISTS', key, key],
  (_, key) => ['TOUCH', key],
  (_, key) => ['DUMP', key],
  (draw, key) => ['OBJECT', draw.pick('ENCODING', 'REFCOUNT', 'IDLETIME'), key],
  (_, key) => ['PTTL', key],
  (_, key) => ['UNLINK', key],
  (draw, key) => ['EXPIRE', key, draw.pick('1', '0', '-1', '100')],
  (_, key) => ['PERSIST', key],
  (draw, key) => ['SET', key, draw.value(), 'KEEPTTL'],
];

export const KINDS = ['s', 'c', 'l', 'h', 't', 'z', 'x', 'e'] as const;

export const anyKey = (draw: Draw): string => draw.key(draw.random.pick(KINDS));

export function several(draw: Draw): Command {
  const [first, second] = [draw.key('s'), draw.key('s')];
  const value = draw.value();
  switch (draw.random.below(6)) {
    case 0:
      return draw.of(['MSET', first, value, second, value], first, second);
    case 1:
      return draw.of(['MGET', first, second], first, second);
    case 2:
      return draw.of([draw.pick('DEL', 'UNLINK', 'EXISTS', 'TOUCH'), first, second], first, second);
    case 3:
      return draw.of([draw.pick('RENAME', 'RENAMENX'), first, second], first, second);
    case 4:
      return draw.of(['COPY', first, second, ...draw.pick([], ['REPLACE'])], first, second);
    default:
      return draw.of(['MSETNX', first, value, second, value], first, second);
  }
}

/** Keys of any types: what was at the other is replaced. */
export function mixed(draw: Draw): Command {
  const [from, to] = [anyKey(draw), anyKey(draw)];
  const payload = draw.payload();
  switch (draw.random.below(4)) {
    case 0:
      return draw.of(['RENAME', from, to], from, to);
    case 1:
      return draw.of(['COPY', from, to, 'REPLACE'], from, to);
    case 2:
      if (payload !== null) {
        const options = draw.pick(['REPLACE'], ['REPLACE'], []);
        return draw.of(['RESTORE', to, draw.pick('0', draw.ms()), payload, ...options], to);
      }
      return draw.of(['DUMP', from], from);
    default:
      return draw.form(ANY, from);
  }
}

/** A time to live for a key of any type, which is longer than a run; it is taken away as often. */
export function lasting(draw: Draw): Command {
  const key = anyKey(draw);
  return draw.of(draw.random.chance(0.5) ? ['EXPIRE', key, '10000'] : ['PERSIST', key], key);
}

/** Commands on the whole database that change nothing. */
export function keyspace(draw: Draw): Command {
  return draw.of(
    draw.pick<readonly string[]>(
      ['SCAN', '0', 'COUNT', '1000'],
      ['SCAN', '0', 'MATCH', 's*', 'TYPE', 'string'],
      ['RANDOMKEY'],
      ['KEYS', draw.pick('s1*', 's*')],
      ['DBSIZE'],
      ['CONFIG', 'SET', 'notify-keyspace-events', draw.pick('KEn', 'KEA', '')],
      ['PING'],
      ['ECHO', draw.value()],
      ['TIME'],
    ),
  );
}

/** Commands, and options of commands, that KeyDB lacks. */
export function ofRedisOnly(draw: Draw): Command {
  const [list, other, sorted, set, expiring] = [
    draw.key('b'),
    draw.key('b'),
    draw.key('z'),
    draw.key('t'),
    draw.key('e'),
  ];
  const string = draw.key('s');
  switch (draw.random.below(8)) {
    case 0:
      return draw.of(['LMPOP', '2', list, other, draw.pick('LEFT', 'RIGHT'), 'COUNT', '2'], list, other);
    case 1:
      return draw.of(['BLMPOP', draw.seconds(), '2', list, other, 'LEFT'], list, other);
    case 2:
      return draw.of(['ZMPOP', '1', sorted, 'MIN'], sorted);
    case 3:
      return draw.of(['BZMPOP', draw.seconds(), '1', sorted, 'MAX', 'COUNT', '2'], sorted);
    case 4:
      return draw.of(['SINTERCARD', '1', set], set);
    case 5:
      return draw.of(['BITCOUNT', string, '0', '-1', draw.pick('BIT', 'BYTE')], string);
    case 6:
      return draw.of(['PEXPIRE', expiring, draw.ms(), draw.pick('NX', 'XX', 'GT', 'LT')], expiring);
    default:
      return draw.of(['PEXPIRETIME', expiring], expiring);
  }
}

/** From so many bytes on a reply is not put together with those before it. */
const LARGE = 'x'.repeat(17_000);

const FLOOD = 250;

/** Values that are longer than most, between small ones. */
export function large(draw: Draw): Command {
  const key = draw.key('m');
  return draw.random.chance(0.3)
    ? draw.of(['SET', key, `${draw.value()}${LARGE}`], key)
    : draw.of([draw.pick('GET', 'GET', 'STRLEN'), key], key);
}

/** A client that sends megabytes, or asks for them and reads late, in one pipeline. */
export function floods(draw: Draw): readonly Command[] {
  const key = draw.key('m');
  const set = draw.of(['SET', key, `${draw.value()}${LARGE}`], key);
  const get = draw.of(['GET', key], key);
  return draw.random.chance(0.5)
    ? Array.from({ length: FLOOD }, () => set)
    : [{ ...set, unreadMs: 300 }, ...Array.from({ length: FLOOD }, () => get)];
}

/** Commands that would change a server behind the proxy's back, or stop it: no server may be sent them. */
export const FORBIDDEN: readonly (readonly string[])[] = [
  ['SHUTDOWN', 'NOSAVE'],
  ['REPLICAOF', '10.0.0.9', '6379'],
  ['MONITOR'],
  ['ACL', 'SETUSER', 'other', 'off'],
  ['CONFIG', 'SET', 'maxmemory', '1'],
  ['CLIENT', 'PAUSE', '1000'],
  ['MIGRATE', '10.0.0.9', '6379', 's0', '0', '100'],
];

export const forbidden = (draw: Draw): Command => draw.of(draw.random.pick(FORBIDDEN));

/** Of some keys: a few of them fill a file of the journal. */
const LONG = 'x'.repeat(250_000);

/** Writes to keys with names of 250,000 bytes. */
export function longNames(draw: Draw): Command {
  const [key, other] = [`${draw.key('n')}${LONG}`, `${draw.key('n')}${LONG}`];
  switch (draw.random.below(3)) {
    case 0:
      return draw.of(['APPEND', key, draw.value()], key);
    case 1:
      return draw.of(['SET', key, draw.value()], key);
    default:
      return draw.of(['MSET', key, draw.value(), other, draw.value()], key, other);
  }
}

/** Commands that read keys which nothing ever writes, the keys `r…`; some write to others what they read. */
export function unwritten(draw: Draw): Command {
  const [key, other, set] = [draw.key('r'), draw.key('s'), draw.key('t')];
  switch (draw.random.below(6)) {
    case 0:
      return draw.of(['GET', key], key);
    case 1:
      return draw.of(['LRANGE', key, '0', '-1'], key);
    case 2:
      return draw.of(['MGET', key, other], key, other);
    case 3:
      return draw.of(['SUNIONSTORE', set, key, set], set, key);
    case 4:
      return draw.of(['COPY', key, other, 'REPLACE'], key, other);
    default:
      return draw.of(['EXISTS', key, other], key, other);
  }
}
