/** Which keys a command makes suspect, and what is written to the journal before the command is sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandTable } from '../../../src/command/table.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { Router } from '../../../src/route/router.js';
import { Scripts } from '../../../src/script/catalog.js';
import { FrameKeys } from '../../../src/script/frame-keys.js';
import { Suspects } from '../../../src/suspects/suspects.js';
import { SuspectTracker } from '../../../src/suspects/tracker.js';

const table = new CommandTable();
const frame = (command: string | readonly string[]): Buffer =>
  encodeCommand(typeof command === 'string' ? command.split(' ') : command);

function made() {
  const scripts = new Scripts();
  const router = new Router([{ name: 'off', keys: ['off:*'], stage: 'off', percent: 100 }], {
    stage: 'shadow',
    percent: 100,
  });
  const suspects = new Suspects(router, () => undefined);
  const journal: string[] = [];
  const tracker = new SuspectTracker({
    sequencer: { router, table, scripts, keys: new FrameKeys(table, scripts) },
    suspects,
    adjudicator: { undecided: 0, asksAbout: () => false, written: () => undefined, keysAsked: () => [] },
    journal: {
      noteKey: (db, bytes, start, end) => void journal.push(`${db}:${bytes.toString('latin1', start, end)}`),
      noteWorkload: (name) => void journal.push(`workload ${name}`),
      noteEverything: () => void journal.push('everything'),
      noteHidden: () => void journal.push('hidden'),
    },
  });
  return {
    tracker,
    journal,
    router,
    /** The suspects after the command had this reason. */
    after: (command: string | readonly string[], reason = 'overflow', db = 0) => {
      tracker.frame(db, frame(command), 0, reason);
      return [...suspects.all()].map((each) => `${each.db}:${String(each.key)}`).sort();
    },
    suspects,
  };
}
const script = (text: string, ...rest: readonly string[]): readonly string[] => ['EVAL', text, ...rest];

test('what a command writes becomes suspect, what it reads does not', () => {
  assert.deepEqual(made().after('SET a 1'), ['0:a']);
  assert.deepEqual(made().after('SUNIONSTORE d a b', 'overflow', 3), ['3:d']);
  assert.deepEqual(made().after('GET a'), []);
  assert.deepEqual(made().after('MOVE a 2'), ['0:a', '2:a']);
  assert.deepEqual(made().after('COPY a b DB 5 REPLACE'), ['5:b']);
});

test('a key that is not written twice becomes no suspect', () => {
  assert.deepEqual(made().after('MSET off:1 x a y'), ['0:a']);
});

test('a write with unknown keys makes the workloads suspect whose writes go to both servers', () => {
  const { after, router, suspects, journal } = made();
  assert.deepEqual(after(script("redis.call('SET', 'x' .. ARGV[1], 1)", '0', 'y')), []);
  assert.deepEqual(
    router.workloads.map((workload) => [workload.name, suspects.workloads.of(workload)]),
    [
      ['off', null],
      ['default', 'a write with unknown keys (overflow)'],
    ],
  );
  assert.deepEqual(journal, ['workload default']);
  const unknown = made();
  unknown.after('NOSUCH a');
  assert.notEqual(unknown.suspects.workloads.of(unknown.router.default), null);
  const known = made();
  known.after('SET a 1');
  assert.equal(known.suspects.workloads.of(known.router.default), null);
});

test('of a script, the keys that it declares or names are suspect, and all where it may write others', () => {
  const of = (text: string, ...rest: readonly string[]) => {
    const { after, router, suspects } = made();
    return [after(script(text, ...rest)), suspects.workloads.of(router.default) !== null];
  };
  assert.deepEqual(of("redis.call('SET', 'b', 1)", '0'), [['0:b'], false]);
  assert.deepEqual(of("return redis.call('GET', KEYS[1])", '1', 'a'), [[], false]);
  assert.deepEqual(of("redis.call('SET', KEYS[1], 1)", '1', 'a'), [['0:a'], false]);
  assert.deepEqual(of("redis.call('SET', KEYS[1] .. 'x', 1)", '1', 'a'), [['0:a'], true]);
});

test('a script that is late by its time to live alone makes its declared keys suspect', () => {
  const { after, router, suspects } = made();
  assert.deepEqual(after(script("redis.call('SET', KEYS[1] .. 'x', 1)", '1', 'a'), 'ttl-lag'), ['0:a']);
  assert.equal(suspects.workloads.of(router.default), null);
});

test('before a command is sent, the journal has its keys, or that it may write any', () => {
  const noted = (command: string | readonly string[]): readonly string[] => {
    const { tracker, journal } = made();
    tracker.note(1, frame(command), 0);
    return journal;
  };
  assert.deepEqual(noted('MSET a 1 b 2'), ['1:a', '1:b']);
  assert.deepEqual(noted('GET a'), []);
  assert.deepEqual(noted('FLUSHALL'), ['everything']);
  assert.deepEqual(noted('NOSUCH a'), ['everything']);
  assert.deepEqual(noted(script("redis.call('SET', KEYS[1], 1)", '1', 'a')), ['1:a']);
  assert.deepEqual(noted(script("redis.call('SET', KEYS[1] .. 'x', 1)", '1', 'a')), ['1:a', 'hidden']);
  assert.deepEqual(noted(script("redis.call('SET', 'x' .. ARGV[1], 1)", '0', 'y')), ['everything']);
});

test('a swap of databases makes the suspects of either suspect in both', () => {
  const { tracker, after, suspects, router } = made();
  after('SET a 1', 'overflow', 1);
  after('SET b 1', 'overflow', 2);
  after('SET c 1', 'overflow', 3);
  suspects.workloads.mark(router.default, 'a list was too long');
  tracker.swapped(frame('SWAPDB 1 2'), 0);
  assert.deepEqual([...suspects.all()].map(({ db, key }) => `${db}:${String(key)}`).sort(), [
    '1:a',
    '1:b',
    '2:a',
    '2:b',
    '3:c',
  ]);
  assert.equal(suspects.workloads.times(router.default), 1, 'a verification that is under way goes on');
  const other = made();
  other.after('SET a 1', 'overflow', 2);
  other.tracker.swapped(frame('SWAPDB 1 2'), 0);
  assert.equal(other.suspects.size, 2);
});

test('a command that reads a suspect is recognized, until a copy of the key is on its way', () => {
  const { tracker, after, suspects, router } = made();
  const reads = (command: string, db = 0): boolean => tracker.isReadBy(db, frame(command), 0);
  assert.equal(tracker.any, false);
  assert.equal(reads('GET a'), false);
  after('SET a 1');
  assert.equal(tracker.any, true);
  assert.deepEqual(
    [reads('GET a'), reads('GET a', 1), reads('GET b'), reads('SET a 1'), reads('RENAME a b'), reads('NOSUCH')],
    [true, false, false, false, true, true],
  );
  assert.deepEqual([tracker.isIn(0, frame('SET a 1'), 0), tracker.isIn(0, frame('SET b 1'), 0)], [true, false]);
  const suspect = suspects.get('0:a')!;
  suspect.copied = suspect.generation;
  assert.deepEqual([reads('GET a'), tracker.isIn(0, frame('GET a'), 0)], [false, true]);
  suspects.workloads.mark(router.default, 'lost');
  assert.equal(reads('GET b'), true, 'all keys of the workload are suspect');
});
