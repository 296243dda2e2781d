/** The values that Terraform and a provider exchange, byte for byte as the format says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode, encode, UNKNOWN, type Value } from '../schema/msgpack.js';

test('what was encoded is decoded to the same', () => {
  const values: readonly Value[] = [
    null,
    true,
    false,
    0,
    -1,
    127,
    2 ** 40,
    -(2 ** 40),
    0.5,
    '',
    'grün',
    'x'.repeat(70_000),
    UNKNOWN,
    [],
    ['a', UNKNOWN, [null]],
    {},
    { tags: { Team: 'cache' }, id: UNKNOWN, ports: [1, 2] },
  ];
  for (const value of values) assert.deepEqual(decode(encode(value)), value);
});

test('each form that Terraform may choose is read', () => {
  const forms: readonly (readonly [string, Value])[] = [
    ['7f', 127],
    ['ff', -1],
    ['e0', -32],
    ['cc80', 128],
    ['cd0100', 256],
    ['ce00010000', 65_536],
    ['cf0000010000000000', 2 ** 40],
    ['d080', -128],
    ['d18000', -32_768],
    ['d280000000', -2_147_483_648],
    ['d3fffffeffffffffff', -(2 ** 40) - 1],
    ['ca3f000000', 0.5],
    ['a161', 'a'],
    ['d90161', 'a'],
    ['da000161', 'a'],
    ['9101', [1]],
    ['dc000101', [1]],
    ['81a16101', { a: 1 }],
    ['de0001a16101', { a: 1 }],
    ['d40000', UNKNOWN],
    ['d5000000', UNKNOWN],
    ['c7020c8100', UNKNOWN],
    ['c800020c8100', UNKNOWN],
  ];
  for (const [hex, value] of forms) assert.deepEqual(decode(Buffer.from(hex, 'hex')), value, hex);
});

test('what is no value is refused, and says so', () => {
  assert.throws(() => decode(Buffer.from('c1', 'hex')), /no MessagePack of kind 0xc1/);
  assert.throws(() => decode(Buffer.from('a261', 'hex')), /ends within a value/);
  assert.throws(() => decode(Buffer.from('810101', 'hex')), /has no name/);
});
