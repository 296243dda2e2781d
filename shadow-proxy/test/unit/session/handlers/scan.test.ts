/** SCAN goes on where it began, whatever the stage is by then. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { argumentsOf } from '../../../../src/resp/decode.js';
import { encodeCommand } from '../../../../src/resp/encode.js';
import type { Side } from '../../../../src/route/stage.js';
import { scanOf, shapeOf } from '../../../../src/session/handlers/scan.js';
import { connect } from '../../../support/context.js';

const BIT = 2 ** 52;
const wire = (reply: string): Buffer => Buffer.from(`${reply.replaceAll(' ', '\r\n')}\r\n`);
const owned = (key: Buffer, start: number): boolean => key[start] === 'm'.charCodeAt(0);
const shaped = (name: string, matcher: typeof owned | null, reply: string): string | undefined =>
  shapeOf(name, 'target', matcher)?.(wire(reply)).toString().trimEnd().replaceAll('\r\n', ' ');

test('it begins at the authority, and goes on at the server whose cursor it has', async () => {
  const { client } = await connect();
  const way = (authority: Side, ...args: string[]): string => {
    client.parser.feed(encodeCommand(args));
    client.parser.next();
    const { side, frame } = scanOf(client, authority);
    return `${side} ${frame === null ? 'as it came' : argumentsOf(frame).join(' ')}`;
  };
  for (const authority of ['source', 'target'] as const) {
    for (const none of ['0', '00', 'x', '-1', '9'.repeat(20)])
      assert.equal(way(authority, 'SCAN', none), `${authority} as it came`, none);
    assert.equal(way(authority, 'SCAN', '17', 'COUNT', '5'), 'source as it came');
    assert.equal(way(authority, 'SCAN', String(BIT - 1)), 'source as it came');
    assert.equal(way(authority, 'SCAN', String(BIT + 17), 'MATCH', 'a*'), 'target SCAN 17 MATCH a*');
  }
});

test('the target’s cursors are given with the bit, its last one is 0; nothing else is changed', () => {
  assert.equal(shaped('scan', null, '*2 $2 17 *1 $1 k'), `*2 $16 ${BIT + 17} *1 $1 k`);
  assert.equal(shaped('scan', null, '*2 $1 0 *1 $1 k'), '*2 $1 0 *1 $1 k');
  assert.equal(shaped('scan', null, '-ERR'), '-ERR');
  assert.equal(shapeOf('keys', 'target', null), null);
  assert.equal(shapeOf('dbsize', 'target', owned), null);
});

test('on a shared target a client gets only its own shard’s keys', () => {
  assert.equal(shaped('keys', owned, '*3 $2 m1 $2 x1 $2 m2'), '*2 $2 m1 $2 m2');
  assert.equal(shaped('scan', owned, '*2 $2 17 *2 $2 m1 $2 x1'), `*2 $16 ${BIT + 17} *1 $2 m1`);
  assert.equal(shaped('scan', owned, '*2 $1 0 *1 $2 x1'), '*2 $1 0 *0');
  assert.equal(shaped('keys', owned, '-ERR'), '-ERR');
});
