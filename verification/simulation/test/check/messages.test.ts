/** The checker of pub/sub: which messages may come, and in which order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Messages } from '../../check/messages.js';

function published(): Messages {
  const messages = new Messages();
  messages.subscribed('listener', 0);
  messages.sent('ch', 'first', 1);
  messages.answered('first', 2);
  messages.sent('ch', 'second', 3);
  return messages;
}

test('Messages in the order of their publishing are right', () => {
  const messages = published();
  assert.equal(messages.receive('listener', 'ch', 'first'), null);
  assert.equal(messages.receive('listener', 'ch', 'second'), null);
});

test('A message behind one that was sent after its reply is wrong', () => {
  const messages = published();
  assert.equal(messages.receive('listener', 'ch', 'second'), null);
  assert.match(messages.receive('listener', 'ch', 'first')!, /behind a later message/);
});

test('Messages that were published at the same time come in any order', () => {
  const messages = published();
  messages.sent('ch', 'third', 3);
  assert.equal(messages.receive('listener', 'ch', 'third'), null);
  assert.equal(messages.receive('listener', 'ch', 'second'), null);
});

test('A message that arrives twice, or before the subscription, is wrong', () => {
  const messages = published();
  assert.equal(messages.receive('listener', 'ch', 'first'), null);
  assert.match(messages.receive('listener', 'ch', 'first')!, /twice/);
  messages.cutOff('listener');
  assert.match(messages.receive('listener', 'ch', 'second')!, /before it was subscribed/);
});

test('A message that a subscriber never got is missed, unless its reply is open or it was sent before', () => {
  const messages = published();
  assert.match(messages.missed('ch')!, /listener never got first/);
  messages.subscribed('listener', 2.5);
  assert.equal(messages.missed('ch'), null);
});
