/** The list of faults cannot rot: each entry can be put in, and names tests that exist. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problemsOf, roomOf, type Fault } from '../fault.js';
import { FAULTS } from '../faults/index.js';
import { sourceOf, testFiles } from '../root.js';
import { shortcomings, table, type Trial } from '../try-faults.js';

const FILES = testFiles();

test('every fault can be put into its file, and the tests that must notice it exist', () => {
  assert.ok(FAULTS.length > 0);
  const problems = FAULTS.flatMap((fault) =>
    problemsOf(fault, sourceOf(fault.file), FILES).map((problem) => `${fault.id}: ${problem}`),
  );
  assert.deepEqual(problems, []);
});

test('every fault has an id of its own', () => {
  const ids = FAULTS.map(({ id }) => id);
  assert.deepEqual(
    ids.filter((id, at) => ids.indexOf(id) !== at),
    [],
  );
});

const FAULT: Fault = { id: 'one', file: 'shadow-proxy/src/io/ring.ts', from: 'a + b', to: 'a - b', tests: ['unit/'] };

test('an entry that cannot be tried is named with its reason', () => {
  const problems = (change: Partial<Fault>, source: string | null = 'const c = a + b;'): readonly string[] =>
    problemsOf({ ...FAULT, ...change }, source, ['shadow-proxy/test/unit/io/ring.test.ts']);
  assert.deepEqual(problems({}), []);
  assert.deepEqual(problems({}, null), ['there is no shadow-proxy/src/io/ring.ts']);
  assert.deepEqual(problems({}, 'a + b; a + b;'), [
    'its "from" occurs 2 times in shadow-proxy/src/io/ring.ts, not once',
  ]);
  assert.deepEqual(problems({ from: 'b + a' }), ['its "from" occurs 0 times in shadow-proxy/src/io/ring.ts, not once']);
  assert.deepEqual(problems({ to: 'a + b' }), ['its "from" is its "to"']);
  assert.deepEqual(problems({ to: 'a +' }), ['the faulty file does not parse']);
  assert.deepEqual(problems({ tests: [] }), ['it names no test']);
  assert.deepEqual(problems({ tests: ['unit/io', 'unit/nowhere'] }), ['no test file has "unit/nowhere" in its path']);
});

test('a run succeeds with 100 faults, 95 % of them noticed and the rest explained', () => {
  const trials = (noticed: number, explained: number, unexplained = 0): Trial[] => [
    ...Array.from({ length: noticed }, () => ({ fault: FAULT, noticedBy: 'a test', seconds: 1 })),
    ...Array.from({ length: explained }, () => ({ fault: { ...FAULT, survives: 'x' }, noticedBy: null, seconds: 1 })),
    ...Array.from({ length: unexplained }, () => ({ fault: FAULT, noticedBy: null, seconds: 1 })),
  ];
  assert.deepEqual(shortcomings(trials(95, 5), true), []);
  assert.deepEqual(shortcomings(trials(99, 0), true), ['the list has 99 faults of at least 100']);
  assert.deepEqual(shortcomings(trials(94, 6), true), ['94 of 100 faults are noticed: fewer than 95 %']);
  assert.deepEqual(shortcomings(trials(99, 0, 1), true), ['no test has noticed one']);
  assert.deepEqual(shortcomings(trials(1, 1), false), []);
  assert.deepEqual(shortcomings(trials(1, 0, 1), false), ['no test has noticed one']);
  assert.equal(roomOf(FAULT), 'io');
  assert.match(table(trials(3, 1)), /^io +4 +3 +1 +75 %$/m);
});
