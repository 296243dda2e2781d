/** Payloads of encodings that no server has written for long. */
import { seal } from './seal.js';

export const part = (...bytes: (number | string)[]): Buffer => {
  const content = Buffer.concat(
    bytes.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : Buffer.from([piece]))),
  );
  return Buffer.concat([Buffer.from([content.length]), content]);
};

export const join = (...pieces: (Buffer | number[])[]): Buffer =>
  Buffer.concat(pieces.map((piece) => Buffer.from(piece)));
const LONG_IN_ZIPMAP = join([9, 0x41, 0x36, 254, 1, 97, 254, 44, 1, 0, 0, 0], Buffer.alloc(300, 'b'), [255]);

/** What no server has written for long, but old snapshots hold; both servers still read it themselves. */
export const ANCIENT: Record<string, Buffer> = {
  'a zipmap': seal(join([9], part(2, 3, 'foo', 3, 0, 'bar', 5, 'hello', 5, 2, 'world', 0, 0, 255)), 6),
  'a zipmap with a long value that does not know its size': seal(LONG_IN_ZIPMAP, 6),
  'scores as text': seal(
    join([3, 4], part('a'), part('1.5'), part('b'), part('-2e+30'), part('c'), [254], part('d'), [255]),
    6,
  ),
  'a list of plain strings': seal(join([1, 3], part('a'), [0xc0, 0xff], part('')), 6),
  'a length of 32 bits for a short string': seal([0, 0x80, 0, 0, 0, 1, 65], 6),
  'a length of 64 bits for a short string': seal([0, 0x81, 0, 0, 0, 0, 0, 0, 0, 1, 65], 9),
};
