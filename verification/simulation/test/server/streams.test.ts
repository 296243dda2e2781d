/**
 * Streams and their groups, without clients that wait.
 *
 * Needs real servers: replies to commands of streams, beside those of the model.
 */
import { duels, type Words } from './duel.js';
import type { Random } from './random.js';

const KEYS = ['s', 't'];
const GROUPS = ['g', 'h'];
const CONSUMERS = ['c1', 'c2', 'c3'];

function command(random: Random): Words {
  const key = (): string => random.pick([...KEYS, 's', 's']);
  const group = (): string => random.pick(GROUPS);
  const consumer = (): string => random.pick(CONSUMERS);
  const id = (): string =>
    random.chance(0.05)
      ? random.pick(['x', '', '1-x', '-1', '18446744073709551616', '1-2-3'])
      : `${1 + random.below(60)}${random.pick(['', '-0', '-1', '-2'])}`;
  const edge = (): string => random.pick(['-', '+', id(), id(), `(${id()}`, '(']);
  const fields = (): string[] =>
    random.some(['f', 'g', 'h'], 2).flatMap((field) => [field, random.pick(['v', '1', ''])]);
  const count = (): string => random.pick(['1', '2', '0', '100', '-1', 'x']);
  const trim = (): string[] =>
    random.pick([
      ['MAXLEN', random.pick(['5', '3', '10', '-1', 'x'])],
      ['MAXLEN', '=', '8'],
      ['MAXLEN', '~', '4'],
      ['MINID', id()],
      ['MINID', '~', id()],
      ['MAXLEN', '~', '0', 'LIMIT', '100'],
      ['MAXLEN', '5', 'LIMIT', '1'],
      ['LIMIT', '5'],
      ['MAXLEN', '4', 'MINID', '3'],
    ]);
  const ids = (): string[] => Array.from({ length: 1 + random.below(3) }, id);
  return random.pick<() => Words>([
    () => ['XADD', key(), id(), ...fields()],
    () => ['XADD', key(), `${1 + random.below(60)}-${random.pick(['*', '0', '5'])}`, ...fields()],
    () => ['XADD', key(), `${20 + random.below(60)}-${random.below(9)}`, ...fields()],
    () => [
      'XADD',
      key(),
      ...random.pick([['NOMKSTREAM'], trim(), []]),
      id(),
      ...fields(),
      ...random.pick([[], [], ['odd']]),
    ],
    () => ['XADD', key(), '0-0', 'f', 'v'],
    () => ['XLEN', key()],
    () => [
      random.pick(['XRANGE', 'XREVRANGE']),
      key(),
      edge(),
      edge(),
      ...random.pick([[], ['COUNT', count()], ['ZZ']]),
    ],
    () => ['XREAD', ...random.pick([[], ['COUNT', count()]]), 'STREAMS', 's', 't', random.pick(['$', id()]), id()],
    () => [
      'XREAD',
      random.pick(['COUNT', 'NOACK', 'ZZ']),
      '1',
      'STREAMS',
      key(),
      random.pick(['>', id()]),
      ...random.pick([[], ['1']]),
    ],
    () => [
      'XGROUP',
      'CREATE',
      key(),
      group(),
      random.pick(['$', '0', id()]),
      ...random.pick([[], ['MKSTREAM'], ['ENTRIESREAD', '3'], ['ZZ']]),
    ],
    () => ['XGROUP', 'SETID', key(), group(), random.pick(['$', '0', id(), '-'])],
    () => ['XGROUP', 'DESTROY', random.pick([key(), 'nothing']), random.pick(['h', 'h', 'g', 'i'])],
    () => ['XGROUP', random.pick(['CREATECONSUMER', 'DELCONSUMER']), key(), group(), consumer()],
    () => [
      'XREADGROUP',
      'GROUP',
      group(),
      consumer(),
      ...random.pick([[], ['NOACK']]),
      ...random.pick([[], ['COUNT', count()]]),
      'STREAMS',
      key(),
      random.pick(['>', '>', '>', '0', id(), '$']),
    ],
    () => ['XREADGROUP', 'GROUP', 'g', consumer(), 'STREAMS', 's', '>'],
    () => ['XREADGROUP', 'COUNT', '1', 'STREAMS', key(), '>'],
    () => ['XACK', key(), group(), ...ids()],
    () => ['XDEL', key(), ...ids()],
    () => ['XTRIM', key(), ...trim()],
    () => [
      'XCLAIM',
      key(),
      group(),
      consumer(),
      random.pick(['0', '50000', 'x']),
      ...ids(),
      ...random.pick([
        [],
        ['JUSTID'],
        ['FORCE'],
        ['IDLE', '100000'],
        ['RETRYCOUNT', '7', 'FORCE'],
        ['LASTID', id()],
        ['TIME', 'x'],
        ['ZZ'],
      ]),
    ],
    () => [
      'XAUTOCLAIM',
      key(),
      group(),
      consumer(),
      random.pick(['0', '50000', 'x']),
      random.pick(['0', edge()]),
      ...random.pick([[], ['COUNT', count()], ['JUSTID'], ['ZZ']]),
    ],
    () => ['XPENDING', key(), group()],
    () => [
      'XPENDING',
      key(),
      group(),
      ...random.pick([[], ['IDLE', '50000']]),
      edge(),
      edge(),
      count(),
      ...random.pick([[], [consumer()]]),
    ],
    () => ['XINFO', 'STREAM', key(), ...random.pick([[], [], ['FULL'], ['FULL', 'COUNT', '2'], ['ZZ']])],
    () => ['XINFO', 'GROUPS', key()],
    () => ['XINFO', 'CONSUMERS', key(), group()],
    () => [
      'XSETID',
      random.pick([key(), 'nothing']),
      id(),
      ...random.pick([[], [], ['ENTRIESADDED', '50'], ['MAXDELETEDID', id()], ['ZZ']]),
    ],
    () => ['DEL', random.pick(['t', 't', 's'])],
    () => ['COPY', 's', 't', 'REPLACE'],
    () => ['SET', 't', 'text'],
    () => ['HELLO', random.pick(['2', '3'])],
  ])();
}

duels('answers commands of streams as the server does', 21, 5000, command);
