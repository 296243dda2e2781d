/** CLUSTER SLOTS, as Redis 4 to 7 and KeyDB give it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeReply } from '../../../src/resp/decode.js';
import { array, bulk, integer } from '../../../src/resp/encode.js';
import { mastersOf } from '../../../src/upstream/slots.js';

const range = (first: number, last: number, host: string | null, port: number, id: string): Buffer =>
  array([
    integer(first),
    integer(last),
    array([bulk(host), integer(port), bulk(id)]),
    array([bulk('10.0.0.9'), integer(1), bulk('r')]),
  ]);

test('masters have their ranges in order, and the host that was asked where they do not know their own', () => {
  const { reply } = decodeReply(
    array([
      range(9000, 16383, '10.0.0.2', 7002, 'b'),
      range(100, 199, '10.0.0.2', 7002, 'b'),
      range(0, 99, '', 7001, 'a'),
      range(200, 8999, null, 7001, 'a'),
    ]),
  );
  assert.deepEqual(mastersOf(reply, '10.0.0.7'), [
    {
      id: 'a',
      address: { host: '10.0.0.7', port: 7001 },
      slots: [
        [0, 99],
        [200, 8999],
      ],
    },
    {
      id: 'b',
      address: { host: '10.0.0.2', port: 7002 },
      slots: [
        [100, 199],
        [9000, 16383],
      ],
    },
  ]);
});
