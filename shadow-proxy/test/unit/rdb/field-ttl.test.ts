/** Hashes whose fields expire, without the times to live. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayExpireFields, stripFieldTtls } from '../../../src/copy/rdb/field-ttl.js';
import { decodeDump, encodeDump } from '../../../src/copy/rdb/transcode.js';

const field = (name: string, expireAt?: number) => ({ field: Buffer.from(name), value: Buffer.from('v'), expireAt });
const hash = (...fields: ReturnType<typeof field>[]): Buffer => encodeDump({ type: 'hash', fields }, 12);

test('fields that have expired by the server clock are left out, and the next expiry is returned', () => {
  const payload = hash(field('a', 1_000), field('b', 2_000), field('c', 3_000), field('d'));
  assert.ok(mayExpireFields(payload));
  const stripped = stripFieldTtls(payload, 9, 1_000);
  assert.deepEqual({ ...stripped, payload: null }, { payload: null, fields: 3, expired: 1, next: 2_000 });
  const value = decodeDump(stripped.payload!);
  assert.ok(value.type === 'hash');
  assert.deepEqual(value.fields.map(({ field, expireAt }) => [field.toString(), expireAt]).sort(), [
    ['b', undefined],
    ['c', undefined],
    ['d', undefined],
  ]);
  assert.ok(!mayExpireFields(stripped.payload!));
});

test('where every field has expired there is no key', () => {
  assert.deepEqual(stripFieldTtls(hash(field('a', 1_000), field('b', 2_000)), 9, 2_000), {
    payload: null,
    fields: 2,
    expired: 2,
    next: Infinity,
  });
});
