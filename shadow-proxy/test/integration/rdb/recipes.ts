import fc from 'fast-check';
import type { Redis } from 'ioredis';

export type Command = readonly (string | number | Buffer)[];

/** Commands that build one value under a key; the first after the command's name is the key. */
export interface Recipe {
  readonly type: string;
  readonly commands: readonly Command[];
}

export async function cook(client: Redis, recipe: Recipe): Promise<void> {
  const pipeline = client.pipeline();
  for (const [name, ...args] of recipe.commands) pipeline.call(String(name), ...args);
  for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error;
}

const EDGES = [0, 12, 13, 63, 64, 127, 128, 4095, 4096, 32767, 32768, 8388607, 8388608, 2147483647, 2147483648];
const INT64 = [
  '9223372036854775807',
  '-9223372036854775808',
  '9007199254740993',
  '4294967296',
  '1099511627776',
  '007',
  '-0',
  '+1',
  '1e3',
];

const SIZES = [63, 64, 250, 253, 254, 300, 4095, 4096, 16376, 16377, 16378, 16383, 16384];
const unit = fc.uint8Array({ minLength: 1, maxLength: 40 }).map((octets) => Buffer.from(octets));

/** Bytes near every border of an encoding: integers of all widths, binary, short, long, and what LZF likes. */
const bytes: fc.Arbitrary<Buffer> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .constantFrom(...EDGES)
      .chain((n) => fc.constantFrom(n, -n, n + 1, -n - 1))
      .map((n) => Buffer.from(String(n))),
  },
  { weight: 1, arbitrary: fc.constantFrom(...INT64).map((text) => Buffer.from(text)) },
  { weight: 4, arbitrary: fc.uint8Array({ maxLength: 70 }).map((octets) => Buffer.from(octets)) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.constantFrom(...SIZES), fc.nat(255)).map(([n, octet]) => Buffer.alloc(n, octet)),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(unit, fc.integer({ min: 2, max: 200 }))
      .map(([of, times]) => Buffer.concat(Array<Buffer>(times).fill(of))),
  },
);

const score = fc.oneof(
  fc.double({ noNaN: true }),
  fc.integer(),
  fc.constantFrom(0, -0, Infinity, -Infinity, 0.1, 1e21, -1e-7, 2 ** 53, 2 ** 63, Number.MAX_VALUE, Number.MIN_VALUE),
);
const scoreText = (value: number): string => (Object.is(value, -0) ? '-0' : String(value).replace('Infinity', 'inf'));

/** A few elements, or so many that the server leaves its packed encodings. */
const several = <T>(element: fc.Arbitrary<T>): fc.Arbitrary<T[]> =>
  fc.oneof(
    { weight: 6, arbitrary: fc.array(element, { minLength: 1, maxLength: 8 }) },
    { weight: 1, arbitrary: fc.array(element, { minLength: 140, maxLength: 400, size: 'max' }) },
  );
const manyIntegers = fc
  .tuple(fc.integer({ min: -40000, max: 40000 }), fc.integer({ min: 1, max: 700 }), fc.constantFrom(1, 1000, 2 ** 33))
  .map(([start, count, step]) => Array.from({ length: count }, (_, i) => Buffer.from(String(start + i * step))));

const K = 'key';
const string = bytes.map((value): Recipe => ({ type: 'string', commands: [['SET', K, value]] }));
const list = several(bytes).map((items): Recipe => ({ type: 'list', commands: [['RPUSH', K, ...items]] }));
const set = fc
  .oneof({ weight: 3, arbitrary: several(bytes) }, { weight: 1, arbitrary: manyIntegers })
  .map((members): Recipe => ({ type: 'set', commands: [['SADD', K, ...members]] }));
const hash = several(fc.tuple(bytes, bytes)).map((fields): Recipe => ({
  type: 'hash',
  commands: [['HSET', K, ...fields.flat()]],
}));
const zset = several(fc.tuple(score.map(scoreText), bytes)).map((members): Recipe => ({
  type: 'zset',
  commands: [['ZADD', K, ...members.flat()]],
}));

/** `[ms, seq]` of each entry ascends by steps; odd steps stay within a millisecond. */
const entry = fc.record({
  step: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constantFrom(300, 70_000, 2 ** 33)),
  seq: fc.oneof(fc.nat(3), fc.constantFrom(200, 40_000, '18446744073709551615')),
  fields: fc.oneof(
    { weight: 3, arbitrary: bytes.map((value) => [Buffer.from('field'), value]) },
    {
      weight: 1,
      arbitrary: fc.array(bytes, { minLength: 1, maxLength: 4 }).map((names) => names.flatMap((name) => [name, name])),
    },
  ),
  deleted: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
});

const group = fc.record({
  start: fc.constantFrom('0', '$', '5-1'),
  consumers: fc.uniqueArray(fc.constantFrom('alice', 'bob', 'c\u00e9', 'idle'), { minLength: 0, maxLength: 3 }),
  reads: fc.integer({ min: 0, max: 150 }),
  acked: fc.integer({ min: 0, max: 3 }),
  claimedAt: fc.option(fc.constantFrom(1, 1_600_000_000_000)),
  retries: fc.constantFrom(1, 300, 2 ** 33),
});

const stream = fc
  .record({
    entries: several(entry),
    groups: fc.array(group, { maxLength: 3 }),
    deleteBefore: fc.boolean(),
    last: fc.boolean(),
  })
  .map(({ entries, groups, deleteBefore, last }): Recipe => {
    let ms = 1;
    const ids = entries.map(({ step, seq }) => `${(ms += step)}-${seq}`);
    const added = entries.map(({ fields }, i): Command => ['XADD', K, ids[i], ...fields]);
    const deleted = entries.flatMap((of, i): Command[] => (of.deleted ? [['XDEL', K, ids[i]]] : []));
    const read = groups.flatMap((of, i) => readBy(`group ${i}`, of, ids));
    const end: Command[] = last ? [['XSETID', K, `${ms + 1}-7`]] : [];
    return {
      type: 'stream',
      commands: [...added, ...(deleteBefore ? deleted : []), ...read, ...(deleteBefore ? [] : deleted), ...end],
    };
  });

function readBy(
  name: string,
  of: typeof group extends fc.Arbitrary<infer T> ? T : never,
  ids: readonly string[],
): Command[] {
  const commands: Command[] = [['XGROUP', 'CREATE', K, name, of.start]];
  for (const consumer of of.consumers) {
    commands.push(['XGROUP', 'CREATECONSUMER', K, name, consumer]);
    if (consumer !== 'idle')
      commands.push(['XREADGROUP', 'GROUP', name, consumer, 'COUNT', of.reads + 1, 'STREAMS', K, '>']);
  }
  for (const id of ids.slice(0, of.acked)) commands.push(['XACK', K, name, id]);
  if (of.claimedAt !== null && of.consumers[0]) {
    commands.push([
      'XCLAIM',
      K,
      name,
      of.consumers[0],
      0,
      ids.at(-1)!,
      'TIME',
      of.claimedAt,
      'RETRYCOUNT',
      of.retries,
      'FORCE',
    ]);
  }
  return commands;
}

/** Any value that the commands of Redis 6.2 can build. */
export const recipe: fc.Arbitrary<Recipe> = fc.oneof(string, list, set, hash, zset, stream);
export const byType = { string, list, set, hash, zset, stream };
