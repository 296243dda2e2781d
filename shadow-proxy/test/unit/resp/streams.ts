/** Arbitrary streams of requests and replies, with what they mean; and arbitrary ways to cut them into chunks. */
import fc from 'fast-check';
import type { Reply, ReplyType } from '../../../src/resp/decode.js';

/** Frames as bytes, each with what a decoder has to make of it. */
export interface Framed<T> {
  readonly bytes: Buffer;
  readonly value: T;
}

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');
const line = (type: string, text: string | number | bigint): Buffer => latin1(`${type}${text}\r\n`);

/** Values of any bytes, line ends among them; now and then long ones. */
const value = fc.oneof(
  { weight: 8, arbitrary: fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 2, arbitrary: fc.constantFrom(latin1('\r\n'), latin1('$3\r\nfoo\r\n'), latin1('*1\r\n'), latin1('')) },
  { weight: 1, arbitrary: fc.integer({ min: 200, max: 5000 }).map((size) => Buffer.alloc(size, 'v')) },
);

/** Text that a line may hold. */
const lineText = fc.string({
  unit: fc.integer({ min: 32, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 100,
});

export const arrayRequest: fc.Arbitrary<Framed<Buffer[]>> = fc
  .array(value, { minLength: 1, maxLength: 8 })
  .map((args) => ({
    bytes: Buffer.concat([
      line('*', args.length),
      ...args.flatMap((arg) => [line('$', arg.length), arg, latin1('\r\n')]),
    ]),
    value: args,
  }));

const quoted = (arg: Buffer): string =>
  `"${[...arg].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}"`;
const word = fc.stringMatching(/^[a-zA-Z0-9*$:_.\\-]{1,10}$/).filter((text) => !text.startsWith('*'));

export const inlineRequest: fc.Arbitrary<Framed<Buffer[]>> = fc
  .record({
    args: fc.array(
      fc.oneof(
        word.map((text) => ({ written: text, arg: latin1(text) })),
        fc
          .uint8Array({ maxLength: 6 })
          .map((bytes) => ({ written: quoted(Buffer.from(bytes)), arg: Buffer.from(bytes) })),
        word.map((text) => ({ written: `'${text} \\' "'`, arg: latin1(`${text} ' "`) })),
      ),
      { minLength: 1, maxLength: 5 },
    ),
    space: fc.constantFrom(' ', '  ', '\t'),
    end: fc.constantFrom('\n', '\r\n'),
    // What Redis skips without an answer.
    before: fc.constantFrom('', '', '\r\n', '\n', '*0\r\n', '*-1\r\n'),
  })
  .map(({ args, space, end, before }) => ({
    bytes: latin1(before + args.map(({ written }) => written).join(space) + end),
    value: args.map(({ arg }) => arg),
  }));

export const request = fc.oneof({ weight: 4, arbitrary: arrayRequest }, { weight: 1, arbitrary: inlineRequest });

const scalar = (type: ReplyType, bytes: Buffer, data: Buffer | null): Framed<Reply> => ({
  bytes,
  value: { type, data, items: null },
});
const aLine = (type: ReplyType, text: fc.Arbitrary<string>): fc.Arbitrary<Framed<Reply>> =>
  text.map((content) => scalar(type, line(type, content), latin1(content)));
const aBlob = (type: ReplyType, data: fc.Arbitrary<Buffer>): fc.Arbitrary<Framed<Reply>> =>
  data.map((content) => scalar(type, Buffer.concat([line(type, content.length), content, latin1('\r\n')]), content));

const aggregate = (type: ReplyType, items: readonly Framed<Reply>[], count: number): Framed<Reply> => ({
  bytes: Buffer.concat([line(type, count), ...items.map((item) => item.bytes)]),
  value: { type, data: null, items: items.map((item) => item.value) },
});

const scalars2: fc.Arbitrary<Framed<Reply>> = fc.oneof(
  aLine('+', lineText),
  aLine('-', lineText),
  aLine(':', fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String)),
  aBlob('$', value),
  fc.constant(scalar('$', latin1('$-1\r\n'), null)),
  fc.constant(scalar('*', latin1('*-1\r\n'), null)),
);

const scalars3: fc.Arbitrary<Framed<Reply>> = fc.oneof(
  scalars2,
  fc.constant(scalar('_', latin1('_\r\n'), null)),
  aLine('#', fc.constantFrom('t', 'f')),
  aLine(',', fc.oneof(fc.double().map(String), fc.constantFrom('inf', '-inf', 'nan'))),
  aLine('(', fc.bigInt({ min: -(10n ** 60n), max: 10n ** 60n }).map(String)),
  aBlob('!', lineText.map(latin1)),
  aBlob(
    '=',
    value.map((text) => Buffer.concat([latin1('txt:'), text])),
  ),
);

/** Any reply of RESP2: scalars, both nulls, arrays of arrays. */
export const reply2: fc.Arbitrary<Framed<Reply>> = fc.letrec<{ reply: Framed<Reply> }>((tie) => ({
  reply: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    { weight: 3, arbitrary: scalars2 },
    {
      weight: 1,
      arbitrary: fc.array(tie('reply'), { maxLength: 5 }).map((items) => aggregate('*', items, items.length)),
    },
  ),
})).reply;

/** Any reply of RESP3: all of RESP2's, its own scalars, maps, sets, pushes, and attributes before any of them. */
export const reply3: fc.Arbitrary<Framed<Reply>> = fc.letrec<{ reply: Framed<Reply>; pairs: Framed<Reply>[] }>(
  (tie) => ({
    pairs: fc.array(fc.tuple(tie('reply'), tie('reply')), { maxLength: 3 }).map((pairs) => pairs.flat()),
    reply: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      { weight: 4, arbitrary: scalars3 },
      {
        weight: 1,
        arbitrary: fc
          .tuple(fc.constantFrom<ReplyType>('*', '~', '>'), fc.array(tie('reply'), { maxLength: 4 }))
          .map(([type, items]) => aggregate(type, items, items.length)),
      },
      { weight: 1, arbitrary: tie('pairs').map((items) => aggregate('%', items, items.length / 2)) },
      {
        weight: 1,
        arbitrary: fc.tuple(tie('pairs'), tie('reply')).map(([pairs, { bytes, value: of }]) => ({
          bytes: Buffer.concat([line('|', pairs.length / 2), ...pairs.map((item) => item.bytes), bytes]),
          value: of,
        })),
      },
    ),
  }),
).reply;

/** Places to cut a stream at, as fractions of its length. */
export const cuts = fc.oneof(
  { weight: 3, arbitrary: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 }) },
  { weight: 1, arbitrary: fc.constant('every byte' as const) },
);

/** The stream in pieces, each in memory of its own. */
export function cut(stream: Buffer, at: readonly number[] | 'every byte'): Buffer[] {
  const places =
    at === 'every byte' ? [...stream.keys()] : at.map((part) => Math.floor(part * stream.length)).sort((a, b) => a - b);
  return [...places, stream.length].map((end, i, all) => Buffer.from(stream.subarray(i === 0 ? 0 : all[i - 1], end)));
}
