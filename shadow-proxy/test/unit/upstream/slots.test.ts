/** CLUSTER SLOTS and CLUSTER NODES, as Redis 4 to 7 and KeyDB give them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeReply } from '../../../src/resp/decode.js';
import { array, bulk, integer } from '../../../src/resp/encode.js';
import { mastersOf, nodesOf, type ListedNode } from '../../../src/upstream/slots.js';

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

const one = (line: string): ListedNode => nodesOf(`${line}\n`)[0];

test('a master with its slots, a replica with its master', () => {
  const [master, replica, ...more] = nodesOf(
    'aa 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-5460 7000 16380-16383\n' +
      'bb 10.0.0.2:7000@17000,host-b slave aa 0 1 1 connected\n',
  );
  assert.deepEqual(master, {
    id: 'aa',
    address: { host: '10.0.0.1', port: 7000 },
    isAsked: true,
    isMaster: true,
    masterId: null,
    isFailed: false,
    slots: [
      [0, 5460],
      [7000, 7000],
      [16380, 16383],
    ],
    leaving: [],
  });
  assert.deepEqual(replica, {
    id: 'bb',
    address: { host: '10.0.0.2', port: 7000 },
    isAsked: false,
    isMaster: false,
    masterId: 'aa',
    isFailed: false,
    slots: [],
    leaving: [],
  });
  assert.deepEqual(more, []);
});

test('addresses: without a host, of IPv6, without a bus port, or none at all', () => {
  const address = (place: string, flags = 'master'): ListedNode['address'] =>
    one(`aa ${place} ${flags} - 0 0 1 connected`).address;
  assert.deepEqual(address(':7000@17000'), { host: '', port: 7000 });
  assert.deepEqual(address('fd00::1:7000@17000,,tls-port=0'), { host: 'fd00::1', port: 7000 });
  assert.deepEqual(address('10.0.0.1:7000'), { host: '10.0.0.1', port: 7000 });
  assert.equal(address(':0@0', 'slave,fail,noaddr'), null);
  assert.equal(address('10.0.0.1:7000@17000', 'slave,noaddr'), null);
});

test('failed, suspected and disconnected nodes are named as such', () => {
  const failed = (flags: string, link = 'connected'): boolean =>
    one(`aa 10.0.0.1:7000@17000 ${flags} - 0 0 1 ${link}`).isFailed;
  assert.deepEqual(
    [failed('master'), failed('master,fail'), failed('master,fail?'), failed('master', 'disconnected')],
    [false, true, true, true],
  );
  assert.equal(failed('myself,master', 'disconnected'), false);
});

test('a slot that leaves is named at its node, and still belongs to it', () => {
  const { slots, leaving } = one('aa h:1@2 myself,master - 0 0 1 connected 0-99 [5->-bb] [7->-bb] [200-<-bb]');
  assert.deepEqual([slots, leaving], [[[0, 99]], [5, 7]]);
});
