/** The drill's verdict, over made-up rounds; and that it says so where it cannot run. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { failuresOf, notesOf, render, rowsOf } from '../counters/report.js';
import { situationsOf, type Outcome } from '../counters/rounds.js';

const outcome = (change: Partial<Outcome> = {}): Outcome => ({
  layout: 'INCR',
  situation: 'full',
  round: 1,
  attempted: 2500,
  acknowledged: 2500,
  counted: { a: 2500, b: 2500 },
  ...change,
});

test('lost is what the node that has least lacks, invented what the one that has most has too many', () => {
  const [row] = rowsOf([outcome({ counted: { a: 2500, b: 1000 } }), outcome({ counted: { a: 2600, b: 2500 } })]);
  assert.deepEqual(
    [row.lost, row.invented, row.losing, row.rounds, row.overAdmitted],
    [[0, 1500], [0, 100], 1, 2, null],
  );
  assert.deepEqual(rowsOf([outcome({ admitted: 174 }), outcome({ admitted: 90 })])[0].overAdmitted, [0, 74]);
});

test('of three nodes the one that has least counts, and each has its column', () => {
  const rows = rowsOf([outcome({ counted: { a: 2500, b: 2501, c: 1000 } })]);
  assert.deepEqual(
    [rows[0].lost, rows[0].invented, rows[0].counted.c],
    [
      [1500, 1500],
      [1, 1],
      [1000, 1000],
    ],
  );
  const text = render({ keydb: 'KeyDB 6.3.4', driver: 'memtier_benchmark', rows, failures: [], notes: [] });
  assert.match(text, /, three active-active nodes\.\n[^]*\backed +on A +on B +on C +lost/);
  assert.ok(
    text.split('\n').every((line) => line.length <= 80),
    text,
  );
  assert.deepEqual(situationsOf(2), ['connected', 'partial', 'full', 'asymmetric']);
  assert.deepEqual(situationsOf(3), ['connected', 'partial', 'full', 'isolated', 'link']);
});

test('the library must lose nothing, and invent nothing', () => {
  const library = (counted: Outcome['counted']) =>
    failuresOf(
      rowsOf([outcome({ layout: 'the library, counter' }), outcome({ layout: 'the library, counter', counted })]),
    );
  assert.deepEqual(library({ a: 2500, b: 2500 }), []);
  assert.deepEqual(library({ a: 2500, b: 2499 }), ['the library, counter, full: up to 1 lost and 0 invented']);
  assert.deepEqual(library({ a: 2501, b: 2500 }), ['the library, counter, full: up to 0 lost and 1 invented']);
  assert.deepEqual(failuresOf(rowsOf([outcome({ counted: { a: 0, b: 0 } })])), [], 'what is not protected may lose');
});

test('an expected loss that did not occur is reported as a note', () => {
  assert.match(notesOf(rowsOf([outcome()])).join(), /^INCR, full: nothing was lost in 1 rounds, though/);
  assert.deepEqual(notesOf(rowsOf([outcome({ counted: { a: 1500, b: 1500 } })])), []);
  assert.match(
    notesOf(rowsOf([outcome({ layout: 'Lua limiter', situation: 'connected', admitted: 100 })])).join(),
    /nobody was let pass beyond the limit/,
  );
});

test('the table fits 80 columns, and says what it has not shown', () => {
  const rows = rowsOf([outcome({ counted: { a: 1500, b: 1500 } }), outcome({ layout: 'the library, counter' })]);
  const text = render({ keydb: 'KeyDB 6.3.4', driver: 'memtier_benchmark', rows, failures: [], notes: [] });
  assert.ok(
    text.split('\n').every((line) => line.length <= 80),
    text,
  );
  assert.match(text, /HOLDS: in 1 rounds of each, the library and the proxy’s rewriting lost 0\nof 2,500$/);
});

const run = (...args: string[]): Promise<{ code: unknown; stderr: string }> =>
  new Promise((resolve) => {
    const main = join(dirname(fileURLToPath(import.meta.url)), '..', 'counters', 'main.js');
    execFile(process.execPath, [main, ...args], { env: { PATH: '/nonexistent' } }, (error, _stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stderr }),
    );
  });

test('without KeyDB it says that it cannot run', async () => {
  const { code, stderr } = await run();
  assert.equal(code, 3);
  assert.match(stderr, /^drill:counters cannot run: it needs an installed keydb-server/);
});

test('wrong options end it with 2, and are named', async () => {
  const wrong: [args: string[], says: RegExp][] = [
    [['--nodes', '4'], /'4' is invalid\. Allowed are 2 and 3/],
    [['--nodes', '3', '--situation', 'asymmetric'], /asymmetric is not there with --nodes 3\. Allowed are connected, /],
    [['--situation', 'x'], /Allowed are connected, partial/],
  ];
  for (const [args, says] of wrong) {
    const { code, stderr } = await run(...args);
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, says);
  }
});
