/** Payloads of every version of Redis are read and written without a server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeDump, encodeDump, transcode, TranscodeError, type HashValue } from '../../../src/copy/rdb/transcode.js';
import { PayloadWriter } from '../../../src/copy/rdb/payload-writer.js';
import { SERVERS } from '../../integration/rdb/fixtures/all.js';
import { fixtures as redis74 } from '../../integration/rdb/fixtures/redis-7.4.js';
import { fixtures as redis80 } from '../../integration/rdb/fixtures/redis-8.0-m01.js';

test('every payload stays the same value through every version that can hold it', () => {
  for (const fixtures of Object.values(SERVERS)) {
    for (const { name, payload, expiry } of fixtures) {
      const value = decodeDump(Buffer.from(payload, 'base64'));
      assert.deepEqual(decodeDump(transcode(Buffer.from(payload, 'base64'), 12)), value, name);
      if (expiry || value.type === 'stream') continue;
      for (const version of [6, 7, 8, 9, 10, 11]) {
        const again = decodeDump(encodeDump(value, version));
        // Sorted sets are written in the reverse order.
        assert.deepEqual(
          again.type === 'zset' ? { ...again, members: [...again.members].reverse() } : again,
          value,
          `${name}, RDB ${version}`,
        );
      }
    }
  }
});

test('the expiry of hash fields is in the model, stays in RDB 12, and is refused by what cannot hold it', () => {
  let seen = 0;
  for (const { payload, expiry } of [...redis74, ...redis80]) {
    if (!expiry) continue;
    seen++;
    const bytes = Buffer.from(payload, 'base64');
    const { fields } = decodeDump(bytes) as HashValue;
    const found = fields.filter((field) => field.expireAt).map(({ field, expireAt }) => [field.toString(), expireAt]);
    assert.deepEqual(found.sort(), [...expiry].sort());
    const again = decodeDump(encodeDump({ type: 'hash', fields }, 12)) as HashValue;
    assert.deepEqual(again.fields, fields);
    for (const version of [9, 10, 11]) {
      assert.throws(
        () => transcode(bytes, version),
        (error: unknown) => error instanceof TranscodeError && error.code === 'TARGET',
      );
    }
  }
  assert.equal(seen, 4);
});

test('hashes of release candidates of Redis 7.4, which give each moment by itself, are read', () => {
  const [a, b] = [4102444800000, 4102444800005];
  const first = new PayloadWriter();
  first.u8(22);
  first.length(3);
  for (const [at, field] of [
    [0, 'none'],
    [a, 'one'],
    [b, 'two'],
  ] as const) {
    first.length(at);
    first.string(Buffer.from(field));
    first.string(Buffer.from('v'));
  }
  const fields = [
    { field: Buffer.from('none'), value: Buffer.from('v') },
    { field: Buffer.from('one'), value: Buffer.from('v'), expireAt: a },
    { field: Buffer.from('two'), value: Buffer.from('v'), expireAt: b },
  ];
  assert.deepEqual(decodeDump(first.finish(12)), { type: 'hash', fields });
  // The packed form: as that of 7.4, whose first eight bytes are the earliest moment.
  const { payload, expiry } = redis74.find(({ name }) => name === 'hash with expiring fields, small')!;
  const bytes = Buffer.from(payload, 'base64');
  const packed = new PayloadWriter();
  packed.u8(23);
  packed.raw(bytes.subarray(9, -10));
  const found = (decodeDump(packed.finish(12)) as HashValue).fields.filter(({ expireAt }) => expireAt);
  assert.deepEqual(found.map(({ field, expireAt }) => [field.toString(), expireAt]).sort(), [...expiry!].sort());
});
