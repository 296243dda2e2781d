/** What the answers about a key say. */
import { NO_KEY, PERSISTENT } from '../../../src/resp/key-life.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readKeyDump } from '../../../src/copy/key/key-dump.js';
import { Scalars } from '../../../src/resp/scalars.js';
import { seal } from '../../integration/rdb/seal.js';

/** As a server says it to DUMP, and to PTTL. */
const answers = (payload: Buffer | null, pttl: number): Scalars =>
  new Scalars(
    Buffer.concat([
      payload === null
        ? Buffer.from('$-1\r\n')
        : Buffer.concat([Buffer.from(`$${payload.length}\r\n`), payload, Buffer.from('\r\n')]),
      Buffer.from(`:${pttl}\r\n`),
    ]),
  );

/** A hash without a field, as Redis 6.2.9 dumps it, and the same in a listpack. */
const ZIPLIST = [13, 11, 11, 0, 0, 0, 10, 0, 0, 0, 0, 0, 255];
const LISTPACK = [16, 7, 7, 0, 0, 0, 0, 0, 255];

test('a hash without a field is as good as no key, and nothing else is', () => {
  const none = { payload: null, life: NO_KEY };
  assert.deepEqual(readKeyDump(answers(null, -2)), none);
  for (const payload of [seal(ZIPLIST, 9), seal(LISTPACK, 10)]) {
    for (const pttl of [-1, 5_000]) assert.deepEqual(readKeyDump(answers(payload, pttl)), none);
  }
  const others = [
    [0, 11, ...ZIPLIST.slice(2)],
    [10, ...ZIPLIST.slice(1)],
    [13, 15, 15, 0, 0, 0, 12, 0, 0, 0, 2, 0, 0, 0xf2, 2, 0xf3, 255],
    [...ZIPLIST, 0],
  ].map((bytes) => seal(bytes, 9));
  for (const payload of others) assert.deepEqual(readKeyDump(answers(payload, -1)), { payload, life: PERSISTENT });
});
