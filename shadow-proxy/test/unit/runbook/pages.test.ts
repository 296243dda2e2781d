/**
 * The runbooks that come with the kit: each parses, and has what a runbook must have. What they name is held by
 * docs/commands.test.ts and docs/pages.test.ts.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openRunbook, runbookNames, SHELF } from '../../../src/runbook/shelf.js';

const names = runbookNames();
const RUN_PAGES = [
  'week-0-decide-and-build',
  'week-1-shadow',
  'week-2-read-only',
  'week-3-read-write',
  'week-4-critical-path-and-retire',
  'rollback',
  'emergency-rollback',
  'abort-the-migration',
  'active-active-counters',
  'upgrade-keydb',
  'leave-keydb',
  'cluster',
];
const text = (name: string): string => readFileSync(join(SHELF, `${name}.md`), 'utf8');

test('every page parses; its steps have ids of their own, and each that changes something an undo', () => {
  for (const name of RUN_PAGES) assert.ok(names.includes(name), `there is no ${name}.md`);
  for (const name of names) openRunbook(name);
  for (const name of RUN_PAGES) {
    const { steps } = openRunbook(name);
    assert.ok(steps.length > 0, `${name} has no steps`);
    for (const { id, changes, undo, irreversible } of steps)
      assert.ok(changes === undefined || (undo ?? irreversible) !== undefined, `${name} ${id}`);
  }
  assert.equal(openRunbook('week-1').name, 'week-1-shadow', 'the beginning of a name is enough');
  assert.throws(() => openRunbook('week'), /week is ambiguous\. Allowed: week-0.*week-4/);
  assert.throws(
    () => openRunbook('weak-1'),
    /is not a runbook \(did you mean week-1-shadow\?\)\. The command `runbook` alone lists them/,
  );
});

test('every page that a test runs says when to stop, how to go back, whom to inform, how long it takes', () => {
  for (const name of RUN_PAGES) {
    const page = text(name);
    for (const [what, pattern] of [
      ['time', /^\| time \|/m],
      ['preconditions', /^\| you need \|/m],
      ['stop', /^## Stop when/m],
      ['back', /go back/i],
      ['inform', /^## .*inform|^\| inform first \|/im],
    ] as const) {
      assert.match(page, pattern, `${name}: ${what}`);
    }
  }
});

test('every step of the weeks shows what it printed, or asks for JSON', () => {
  for (const name of RUN_PAGES.filter((each) => each.startsWith('week-'))) {
    for (const { id, sample, run } of openRunbook(name).steps)
      assert.ok(sample !== null || /--json|--format/.test(run), `${name} ${id}`);
  }
});

test('every command of every page names the plan, or the port and the user of a server', () => {
  const lines = readdirSync(SHELF)
    .filter((file) => file.endsWith('.md'))
    .flatMap((file) =>
      text(file.slice(0, -'.md'.length))
        .split('\n')
        .map((line, i) => [`${file}:${i + 1}: `, line]),
    );
  const wrong = lines.filter(
    ([, line]) =>
      (/\b(keydb|redis)-cli -/.test(line) && !/-p \d+ .*--user \w+/.test(line)) ||
      /shadow-compare (status|history|backfill|verify|promote|rollback|report|accept|guard|ask)\b(?!.*--plan)[^`]* --/.test(
        line,
      ) ||
      /npx --no-install shadow-compare (status|history|backfill|verify|report|guard)`/.test(line),
  );
  assert.deepEqual(
    wrong.map((each) => each.join('')),
    [],
  );
});
