/** Streams and their consumer groups. */
import type { Command, Draw, Form } from '../draw.js';

const consumer = (draw: Draw): string => draw.pick('alice', 'bob');
/** IDs that an entry may have: small ones are given by clients, the others by the server's clock. */
const id = (draw: Draw): string => `${1 + draw.random.below(40)}-${draw.random.below(3)}`;

export const STREAM: readonly Form[] = [
  (draw, key) => ['XADD', key, '*', 'f', draw.value()],
  (draw, key) => ['XADD', key, '*', 'f', draw.value()],
  (draw, key) => ['XADD', key, 'MAXLEN', '8', '*', 'f', draw.value()],
  (draw, key) => ['XADD', key, 'NOMKSTREAM', '*', 'f', draw.value()],
  (draw, key) => ['XADD', key, id(draw), 'f', draw.value()],
  (_, key) => ['XLEN', key],
  (_, key) => ['XRANGE', key, '-', '+'],
  (_, key) => ['XREVRANGE', key, '+', '-', 'COUNT', '2'],
  (_, key) => ['XREAD', 'COUNT', '2', 'STREAMS', key, '0'],
  (draw, key) => ['XTRIM', key, 'MAXLEN', draw.below(6)],
  (draw, key) => ['XADD', key, 'MAXLEN', '~', '4', '*', 'f', draw.value()],
  (draw, key) => ['XDEL', key, id(draw)],
  (_, key) => ['XGROUP', 'CREATE', key, 'g', '0', 'MKSTREAM'],
  (_, key) => ['XGROUP', 'CREATE', key, 'g', '$', 'MKSTREAM'],
  (_, key) => ['XGROUP', 'SETID', key, 'g', '0'],
  (draw, key) => ['XGROUP', 'CREATECONSUMER', key, 'g', consumer(draw)],
  (draw, key) => ['XGROUP', 'DELCONSUMER', key, 'g', consumer(draw)],
  (draw, key) => ['XREADGROUP', 'GROUP', 'g', consumer(draw), 'COUNT', '2', 'STREAMS', key, '>'],
  (draw, key) => ['XREADGROUP', 'GROUP', 'g', consumer(draw), 'COUNT', '2', 'STREAMS', key, '>'],
  (draw, key) => ['XREADGROUP', 'GROUP', 'g', consumer(draw), 'NOACK', 'STREAMS', key, '>'],
  (draw, key) => ['XREADGROUP', 'GROUP', 'g', consumer(draw), 'STREAMS', key, '0'],
  (draw, key) => ['XACK', key, 'g', id(draw)],
  (draw, key) => ['XCLAIM', key, 'g', consumer(draw), '0', id(draw)],
  (draw, key) => ['XCLAIM', key, 'g', consumer(draw), '0', id(draw), 'JUSTID'],
  (draw, key) => ['XAUTOCLAIM', key, 'g', consumer(draw), '0', '0', 'COUNT', '2'],
  (_, key) => ['XPENDING', key, 'g'],
];

/** What certainly does the same on both servers, approximate trims among it. */
export const CERTAIN_STREAM: readonly Form[] = [
  (draw, key) => ['XADD', key, '*', 'f', draw.value()],
  (draw, key) => ['XADD', key, 'MAXLEN', '~', '4', '*', 'f', draw.value()],
  (_, key) => ['XTRIM', key, 'MAXLEN', '~', '3'],
  (_, key) => ['XTRIM', key, 'MAXLEN', '2'],
  (_, key) => ['XLEN', key],
  (_, key) => ['XRANGE', key, '-', '+'],
];

/** What the specification of streams knows, for followed keys: without commands that delete entries. */
export const FOLLOWED_STREAM: readonly Form[] = [
  (draw, key) => ['XADD', key, '*', 'f', draw.value()],
  (draw, key) => ['XADD', key, id(draw), 'f', draw.value()],
  (draw, key) => ['XADD', key, id(draw), 'f', draw.value()],
  (draw, key) => ['XADD', key, 'NOMKSTREAM', id(draw), 'f', draw.value()],
  (_, key) => ['XLEN', key],
  (_, key) => ['XRANGE', key, '-', '+'],
  (_, key) => ['XREAD', 'COUNT', '2', 'STREAMS', key, '0'],
  (draw, key) => ['XGROUP', 'CREATE', key, 'g', draw.pick('0', '$'), 'MKSTREAM'],
  (_, key) => ['XGROUP', 'SETID', key, 'g', '0'],
  (draw, key) => ['XREADGROUP', 'GROUP', 'g', consumer(draw), 'COUNT', '2', 'STREAMS', key, '>'],
  (draw, key) => ['XREADGROUP', 'GROUP', 'g', consumer(draw), 'COUNT', '2', 'STREAMS', key, '>'],
  (draw, key) => ['XREADGROUP', 'GROUP', 'g', consumer(draw), 'NOACK', 'STREAMS', key, '>'],
  (draw, key) => ['XREADGROUP', 'GROUP', 'g', consumer(draw), 'STREAMS', key, '0'],
  (draw, key) => ['XACK', key, 'g', id(draw)],
  (draw, key) => ['XCLAIM', key, 'g', consumer(draw), '0', id(draw), ...draw.pick([], ['JUSTID'])],
];

/** Reads that wait for an entry, on the keys `x…`. */
export function blockingRead(draw: Draw): Command | readonly Command[] {
  const [key, other] = [draw.key('x'), draw.key('x')];
  const ms = String(1 + draw.random.below(200));
  switch (draw.random.below(4)) {
    case 0:
      return draw.of(['XREAD', 'BLOCK', ms, 'STREAMS', key, '$'], key);
    case 3:
      return [
        draw.of(['XADD', key, '*', 'f', draw.value()], key),
        draw.of(['XREAD', 'BLOCK', ms, 'STREAMS', key, '$'], key),
      ];
    case 1:
      return draw.of(['XREAD', 'BLOCK', ms, 'STREAMS', key, other, '$', '$'], key, other);
    default:
      return draw.of(['XREADGROUP', 'GROUP', 'g', consumer(draw), 'BLOCK', ms, 'STREAMS', key, '>'], key);
  }
}
