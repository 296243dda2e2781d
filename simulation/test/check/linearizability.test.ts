import assert from 'node:assert/strict';
import { test } from 'node:test';
import { violation, type Call } from '../../check/linearizability.js';
import { listSpec, stringSpec } from '../../check/spec.js';
import type { Reply } from '../../clients/replies.js';

const call = (from: number, to: number, command: string, reply?: Reply): Call => ({
  client: 'a client',
  args: command.split(' '),
  from,
  to,
  reply,
});

test('Concurrent increments in any order fit, the same value twice does not', () => {
  const one = call(0, 10, 'INCR k', 1);
  assert.equal(violation([one, call(1, 5, 'INCR k', 2)], stringSpec), null);
  assert.equal(violation([call(0, 10, 'INCR k', 2), call(1, 5, 'INCR k', 1)], stringSpec), null);
  assert.notEqual(violation([one, call(1, 5, 'INCR k', 1)], stringSpec), null);
});

test('A read of a value that was replaced before the read began fits no order', () => {
  const writes = [call(0, 1, 'SET k a', '+OK'), call(2, 3, 'SET k b', '+OK')];
  assert.equal(violation([...writes, call(4, 5, 'GET k', '$b')], stringSpec), null);
  assert.notEqual(violation([...writes, call(4, 5, 'GET k', '$a')], stringSpec), null);
  assert.equal(violation([...writes, call(2.5, 5, 'GET k', '$a')], stringSpec), null);
});

test('A command whose reply was lost takes effect late, or never, but not twice', () => {
  const lost = call(0, Infinity, 'RPUSH l x');
  assert.equal(violation([lost, call(5, 6, 'LLEN l', 0), call(7, 8, 'LPOP l', '$x')], listSpec), null);
  assert.equal(violation([lost, call(5, 6, 'LLEN l', 0)], listSpec), null);
  assert.notEqual(violation([lost, call(5, 6, 'LPOP l', '$x'), call(7, 8, 'LPOP l', '$x')], listSpec), null);
});

test('An element that two clients popped fits no order', () => {
  const push = call(0, 1, 'RPUSH l x y', 2);
  assert.equal(violation([push, call(2, 5, 'LPOP l', '$y'), call(2, 5, 'LPOP l', '$x')], listSpec), null);
  assert.notEqual(violation([push, call(2, 5, 'LPOP l', '$x'), call(2, 5, 'LPOP l', '$x')], listSpec), null);
});

test('The rest of a history is checked from each value that its beginning may have left', () => {
  const both = [call(0, 5, 'SET k a', '+OK'), call(0, 5, 'SET k b', '+OK')];
  for (const last of ['$a', '$b']) assert.equal(violation([...both, call(6, 7, 'GET k', last)], stringSpec), null);
  assert.notEqual(violation([...both, call(6, 7, 'GET k', '$a'), call(8, 9, 'GET k', '$b')], stringSpec), null);
});
