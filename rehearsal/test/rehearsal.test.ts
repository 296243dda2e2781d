import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedOf, changedTasks } from '../playbooks.js';
import { Timeline } from '../timeline.js';
import { KINDS, put, seeded, step, valueOf, KEYS } from '../traffic/model.js';

const OUTPUT = `PLAY [KeyDB] ****
TASK [keydb : Write the unit] ****
ok: [keydb-0-2]
changed: [keydb-0-1]

TASK [keydb : Start KeyDB] ****
ok: [keydb-0-1]

RUNNING HANDLER [keydb : Load the users] ****
changed: [keydb-0-1] => (item=x)

PLAY RECAP ****
keydb-0-1                  : ok=42   changed=2    unreachable=0    failed=0
keydb-0-2                  : ok=42   changed=0    unreachable=0    failed=0
`;

test('what a playbook changed is read from its recap and its tasks', () => {
  assert.deepEqual(changedOf(OUTPUT), { 'keydb-0-1': 2, 'keydb-0-2': 0 });
  assert.deepEqual(changedTasks(OUTPUT), ['keydb : Write the unit', 'keydb : Load the users']);
});

test('a rehearsal holds only where something was checked and nothing failed', () => {
  const timeline = new Timeline(() => undefined);
  assert.equal(timeline.holds, false);
  timeline.check('a', true, '');
  assert.equal(timeline.holds, true);
  timeline.check('b', false, 'why');
  assert.equal(timeline.holds, false);
  assert.match(timeline.verdict(), /does NOT hold: 1 of 2 checks .*\n {2}b: why/);
});

test('a key tells the value that was written, and nothing else', () => {
  const replies = { session: ['u3', '41'], rl: '41', board: ['first', '41', 'second', '42'], misc: 'text-41' } as const;
  for (const kind of KINDS) assert.equal(valueOf(kind, 3, replies[kind]), 41, kind);
  assert.equal(valueOf('session', 4, replies.session), null, 'the value of another key');
  assert.equal(valueOf('board', 3, ['first', '41', 'second', '41']), null, 'half a write');
  assert.equal(valueOf('rl', 3, null), null, 'a key that is gone');
  assert.deepEqual(step('rl', 3, 40), ['INCR', 'rl:3']);
  assert.deepEqual(step('misc', 3, 40), put('misc', 3, 41));
  assert.equal(Object.keys(seeded()).length, KEYS * KINDS.length);
});
