/** Streams whose IDs the server gives (`log`), and streams whose IDs the clients choose (`ids`). */
import { call, rule, type Rule } from '../command.js';
import type { Argument } from '../reply.js';
import type { Values } from '../values.js';

type Words = readonly (Argument | number)[];

const stream = (g: Values): Argument => g.key(g.random.chance(0.7) ? 'log' : 'ids');
const group = (g: Values): string => (g.random.chance(0.8) ? 'g1' : 'g2');
const consumer = (g: Values): string => g.random.pick(['alice', 'bob', 'carol']);
const fields = (g: Values): Words => g.random.times(g.random.between(1, 3), () => [g.member(), g.value()]).flat();
const bound = (g: Values): string => g.random.pick(['-', '+', g.knownId(), `(${g.knownId()}`, '5']);
const someIds = (g: Values): string[] => g.random.times(g.random.between(1, 4), () => g.knownId());
const trim = (g: Values): Words =>
  g.random.pick<Words>([
    ['MAXLEN', g.random.between(0, 60)],
    ['MAXLEN', '=', g.random.between(0, 60)],
    ['MAXLEN', '~', g.random.between(0, 130)],
    ['MAXLEN', '~', g.random.between(0, 130), 'LIMIT', 50],
    ['MINID', g.knownId()],
    ['MINID', '~', g.knownId()],
  ]);

export const STREAMS: readonly Rule[] = [
  rule(12, (g) => ({
    ...call('bulk?', 'XADD', g.key('log'), ...g.maybe('NOMKSTREAM'), ...g.maybe(...trim(g)), '*', ...fields(g)),
    learn: g.learnIds,
  })),
  rule(2, (g) => ({ ...call('bulk', 'XADD', g.key('log'), `${g.now()}-*`, ...fields(g)), learn: g.learnIds })),
  rule(6, (g) => ({
    ...call('bulk?', 'XADD', g.key('ids'), ...g.maybe(...trim(g)), g.explicitId(), ...fields(g)),
    learn: g.learnIds,
  })),
  rule(4, (g) => call('int', 'XTRIM', stream(g), ...trim(g))),
  rule(3, (g) => call('int', 'XDEL', stream(g), ...someIds(g))),
  rule(2, (g) => call('int', 'XLEN', stream(g))),
  rule(5, (g) =>
    call(
      'array',
      g.random.pick(['XRANGE', 'XREVRANGE']),
      stream(g),
      bound(g),
      bound(g),
      ...g.maybe('COUNT', g.random.between(1, 9)),
    ),
  ),
  rule(3, (g) =>
    call(
      'map?',
      'XREAD',
      ...g.maybe('COUNT', 3),
      'STREAMS',
      stream(g),
      stream(g),
      g.knownId(),
      g.random.pick(['0', '$']),
    ),
  ),
  rule(0.7, (g) =>
    call(
      'map?',
      'XREAD',
      ...g.maybe('COUNT', 3),
      'BLOCK',
      g.random.between(1, 60),
      'STREAMS',
      stream(g),
      stream(g),
      g.knownId(),
      g.random.pick(['0', '$']),
    ),
  ),
  rule(1, (g) => ({
    ...call(
      'map?',
      'XREADGROUP',
      'GROUP',
      group(g),
      consumer(g),
      ...g.maybe('COUNT', 2),
      'BLOCK',
      g.random.between(1, 60),
      ...g.maybe('NOACK'),
      'STREAMS',
      stream(g),
      '>',
    ),
    learn: g.learnIds,
  })),
  rule(1, (g) =>
    call('status', 'XSETID', stream(g), g.knownId(), ...g.maybe('ENTRIESADDED', 500, 'MAXDELETEDID', '0-1')),
  ),

  rule(8, (g) =>
    call(
      'status',
      'XGROUP',
      'CREATE',
      stream(g),
      group(g),
      g.random.pick(['0', '$', g.knownId()]),
      ...(g.random.chance(0.8) ? ['MKSTREAM'] : []),
      ...g.random.pick([[], [], ['ENTRIESREAD', '5']]),
    ),
  ),
  rule(1, (g) => call('status', 'XGROUP', 'SETID', stream(g), group(g), g.random.pick(['0', '$', g.knownId()]))),
  rule(1, (g) => call('int', 'XGROUP', 'CREATECONSUMER', stream(g), group(g), consumer(g))),
  rule(1, (g) => call('int', 'XGROUP', 'DELCONSUMER', stream(g), group(g), consumer(g))),
  rule(0.5, (g) => call('int', 'XGROUP', 'DESTROY', stream(g), group(g))),
  rule(10, (g) => ({
    ...call(
      'map?',
      'XREADGROUP',
      'GROUP',
      group(g),
      consumer(g),
      ...g.maybe('COUNT', g.random.between(1, 5)),
      ...g.random.pick([[], [], ['NOACK']]),
      'STREAMS',
      stream(g),
      g.random.pick(['>', '>', '>', '0']),
    ),
    learn: g.learnIds,
  })),
  rule(1, (g) => call('map?', 'XREADGROUP', 'GROUP', group(g), consumer(g), 'STREAMS', stream(g), stream(g), '>', '>')),
  rule(5, (g) => call('int', 'XACK', stream(g), group(g), ...someIds(g))),
  rule(4, (g) =>
    call(
      'array',
      'XCLAIM',
      stream(g),
      group(g),
      consumer(g),
      g.random.pick(['0', '5', '100000']),
      ...someIds(g),
      ...g.maybe(
        ...g.random.pick<Words>([
          ['IDLE', 500],
          ['TIME', g.now() - 700],
          ['RETRYCOUNT', 3],
          ['FORCE'],
          ['JUSTID'],
          ['FORCE', 'JUSTID'],
        ]),
      ),
    ),
  ),
  rule(3, (g) =>
    call(
      'array',
      'XAUTOCLAIM',
      stream(g),
      group(g),
      consumer(g),
      g.random.pick(['0', '5']),
      g.random.pick(['-', '0-0', g.knownId()]),
      ...g.maybe('COUNT', 4),
      ...g.maybe('JUSTID'),
    ),
  ),
  rule(2, (g) => call('array', 'XPENDING', stream(g), group(g))),
  rule(2, (g) =>
    call('array', 'XPENDING', stream(g), group(g), ...g.maybe('IDLE', 1), '-', '+', 10, ...g.maybe(consumer(g))),
  ),
  rule(2, (g) => call('map', 'XINFO', 'STREAM', stream(g), ...g.maybe('FULL', 'COUNT', 5))),
  rule(1, (g) => call('array', 'XINFO', 'GROUPS', stream(g))),
  rule(1, (g) => call('array', 'XINFO', 'CONSUMERS', stream(g), group(g))),
];
