/** How far the run of a runbook is, and which steps hold: pure. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRunbook } from '../../../src/runbook/document.js';
import { misses } from '../../../src/runbook/expect.js';
import { smallGates } from '../../../src/runbook/guise.js';
import { checksOf, doneOf, layOut, nextOf, type LogEntry } from '../../../src/runbook/place.js';
import { smallPlan, toPlan } from '../../support/plans.js';

const PAGE = `# P
${['id: look\nrun: x\nexpect: {}\nonce: true', 'id: move\neach: [counter, critical]\nrun: x\nexpect: {}\nchanges: it\nundo: y', 'id: see\neach: all\nrun: x\nexpect: {}', 'id: end\nrun: x\nexpect: {}'].map((text) => `\`\`\`yaml step\n${text}\n\`\`\``).join('\n\n')}
`;
const book = parseRunbook('p', PAGE);
const { workloads, gates } = toPlan({
  ...smallPlan(),
  workloads: [
    { name: 'a', keys: ['a:*'], class: 'counter' },
    { name: 'b', keys: ['b:*'], class: 'general' },
    { name: 'c', keys: ['c:*'], class: 'critical' },
  ],
});
const stops = layOut(book, workloads, null);
const entry = (
  stop: string | null,
  kind: LogEntry['kind'] = 'run',
  failed: readonly string[] = [],
  runbook = 'p',
): LogEntry => ({ at: '', runbook, stop, kind, by: 'me', command: null, exit: 0, failed });
const next = (...log: readonly LogEntry[]): string | undefined => nextOf(stops, doneOf('p', stops, log))?.id;

test('a step is laid out over the workloads of its classes, in the order of the plan', () => {
  assert.deepEqual(
    stops.map(({ id }) => id),
    ['look', 'move:a', 'move:c', 'see:a', 'see:b', 'see:c', 'end'],
  );
  assert.deepEqual(
    layOut(book, workloads, ['b']).map(({ id }) => id),
    ['look', 'see:b', 'end'],
  );
});

test('the next stop is the first that was not done, whatever was checked, failed or undone since', () => {
  assert.equal(next(), 'look');
  assert.equal(next(entry('look')), 'move:a');
  assert.equal(next(entry('look', 'run', ['no'])), 'look');
  assert.equal(next(entry('look', 'check')), 'look');
  assert.equal(next(entry('look', 'run', [], 'other')), 'look');
  assert.equal(next(entry('look'), entry('move:a'), entry('move:c'), entry('see:a')), 'see:b');
  const all = stops.map(({ id }) => entry(id));
  assert.equal(next(...all), undefined);
  assert.equal(next(...all, entry('move:a', 'undo', ['no'])), undefined, 'an undo that failed undid nothing');
  assert.deepEqual(
    [...doneOf('p', stops, [...all, entry('move:a', 'undo')])],
    ['look', 'move:c', 'see:b', 'see:c'],
    'what came after, of the same workload or of none, is undone with it',
  );
  assert.equal(next(...all, entry(null, 'again')), 'look');
  assert.equal(next(entry('gone-from-the-page')), 'look');
});

test('a check runs the steps that change nothing, as far as the run has come', () => {
  const checks = (...log: readonly LogEntry[]): string[] =>
    checksOf(stops, doneOf('p', stops, log)).map(({ id }) => id);
  assert.deepEqual(checks(), ['look'], 'before it has begun: what comes before the first change');
  assert.deepEqual(
    checks(entry('look'), entry('move:a'), entry('move:c'), entry('see:a')),
    ['see:a'],
    'look held only at its place',
  );
  assert.deepEqual(checks(...stops.map(({ id }) => entry(id))), ['see:a', 'see:b', 'see:c', 'end']);
});

test('what was expected and did not come is said, one by one', () => {
  const expect = (given: Partial<Parameters<typeof misses>[0]>): Parameters<typeof misses>[0] => ({
    exit: 0,
    output: [],
    json: {},
    ...given,
  });
  const outcome = (stdout: string, exit: number | null = 0, stderr = ''): Parameters<typeof misses>[1] => ({
    exit,
    stdout,
    printed: stdout + stderr,
  });
  const none = {};
  assert.deepEqual(misses(expect({}), outcome(''), none), []);
  assert.deepEqual(misses(expect({ exit: [0, 3] }), outcome('', 1), none), ['exit code 1, expected 0 or 3']);
  assert.deepEqual(misses(expect({}), outcome('', null), none), ['the command was killed, or could not be started']);
  assert.deepEqual(
    misses(
      expect({ output: ['yes bypass no client', 'late'] }),
      outcome('│ yes │ bypass │ no    │\n│     │        │ client │\n', 0, 'late'),
      none,
    ),
    [],
    'a table wraps; standard error counts',
  );
  assert.deepEqual(misses(expect({ output: 'done$' }), outcome('done, not'), none), [
    'the output does not match /done$/',
  ]);
  assert.deepEqual(misses(expect({ output: '^$WORKLOAD$' }), outcome('a.b'), { WORKLOAD: 'a.b' }), []);
  assert.equal(
    misses(expect({ output: '^$WORKLOAD$' }), outcome('axb'), { WORKLOAD: 'a.b' }).length,
    1,
    'a name is no pattern',
  );
  const json = JSON.stringify([
    {
      workloads: [
        { name: 'a', stage: 'live', n: 0 },
        { name: 'b', stage: 'off', n: 1 },
      ],
    },
  ]);
  const path = "$[*].workloads[?@.name == '$WORKLOAD'].stage";
  assert.deepEqual(misses(expect({ json: { [path]: 'live' } }), outcome(json, 0, 'progress'), { WORKLOAD: 'a' }), []);
  assert.deepEqual(misses(expect({ json: { [path]: 'live' } }), outcome(json), { WORKLOAD: 'b' }), [
    `$[*].workloads[?@.name == 'b'].stage is "off", expected "live"`,
  ]);
  assert.deepEqual(misses(expect({ json: { [path]: 'live' } }), outcome(json), { WORKLOAD: 'c' }), [
    `$[*].workloads[?@.name == 'c'].stage is missing, expected "live"`,
  ]);
  assert.equal(
    misses(expect({ json: { '$[*].workloads[*].n': 0 } }), outcome(json), none).length,
    1,
    'each value counts',
  );
  assert.deepEqual(misses(expect({ json: { $: 1 } }), outcome('no'), none), ['the output is not JSON']);
});

test('gates that ask for less than the defaults are listed', () => {
  assert.deepEqual(smallGates(gates), []);
  assert.deepEqual(smallGates({ ...gates, minCompared: 500, maxP99Ratio: 20, drill: false, minMinutes: 90 }), [
    'minCompared 500 (default 100000)',
    'maxP99Ratio 20 (default 1.2)',
    'drill false (default true)',
  ]);
});
