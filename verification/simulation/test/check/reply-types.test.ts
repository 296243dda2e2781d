/** The checker of the types of replies. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wrongType, wrongTypesOfExec } from '../../check/reply-types.js';

test('A reply of a type that the command never has is wrong, an error is not', () => {
  assert.equal(wrongType(['INCR', 'k'], 3), null);
  assert.equal(wrongType(['INCR', 'k'], '-ERR value is not an integer or out of range'), null);
  assert.match(wrongType(['INCR', 'k'], '$3')!, /^INCR k got "\$3"$/);
  assert.match(wrongType(['INCR', 'k'], null)!, /got null$/);
});

test('EXEC has a reply of its type for each command that was queued', () => {
  const queued = [
    ['INCR', 'k'],
    ['GET', 'k'],
  ];
  assert.equal(wrongTypesOfExec(queued, [1, '$1']), null);
  assert.equal(wrongTypesOfExec(queued, ['-WRONGTYPE', null]), null);
  assert.equal(wrongTypesOfExec(queued, null), null);
  assert.match(wrongTypesOfExec(queued, [1])!, /EXEC of 2 commands got 1 replies/);
  assert.match(wrongTypesOfExec(queued, ['$1', 1])!, /^in EXEC, INCR k got/);
});
