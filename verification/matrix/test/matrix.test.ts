/** What the matrix finds, counts and shows. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { renderPage } from '../page.js';
import { formatted, PAGE, readCells, withCell } from '../results.js';
import { operationsIn } from '../run.js';
import { missingIn, serversIn } from '../servers.js';
import { STEPS } from '../steps.js';

test('the programs of a folder are found by their names, and those that are missing are named', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'matrix-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const file of ['valkey-9.1.2', 'redis-7.2.6', 'redis-6.2', 'redis-cli', 'notes.txt', 'keydb-6.3.4'])
    writeFileSync(join(folder, file), '');
  const servers = serversIn(folder);
  assert.deepEqual(
    servers.map(({ name, version }) => `${name} ${version}`),
    ['redis 6.2', 'redis 7.2.6', 'valkey 9.1.2'],
  );
  assert.deepEqual(
    missingIn(servers).map(({ name, version }) => `${name} ${version}`),
    ['redis 7.0', 'redis 7.4', 'redis 8.0', 'redis 8.2', 'redis 8.6', 'valkey 8.1'],
  );
});

test('operations are read from the reports of trials and rehearsals', () => {
  assert.equal(operationsIn('{"sent":9,"operations":12345,"compared":7}'), 12_345);
  assert.equal(
    operationsIn('attempted 900, acknowledged 850, confirmed by the mirror 840; lost of 7 acknowledged'),
    850,
  );
  assert.equal(operationsIn('seed 7: RANDOM_SEED=7 repeats it'), 0);
});

test('a run replaces the cells that it has run, and the page shows what failed', () => {
  const outcome = {
    passed: 2,
    failed: 1,
    skipped: 0,
    operations: 5_000,
    seconds: 3,
    failures: ['a test'],
    on: '2026-01-31',
  };
  const server = { name: 'redis', version: '7.2.6', path: '' } as const;
  const before = { 'redis-7.2.6': { copy: outcome }, 'redis-8.0.2': { random: outcome } };
  const cells = withCell(before, server, STEPS[0], { ...outcome, failed: 0, failures: [] });
  assert.deepEqual(Object.keys(cells['redis-7.2.6']), ['copy', 'random']);
  const page = renderPage(cells);
  assert.match(
    page,
    /\| Redis 7\.2\.6 \| 2 passed, 5,000 operations \| \*\*1 failed\*\*, 2 passed, 5,000 operations \|/,
  );
  assert.match(page, /- Redis 8\.0\.2: `a test`/);
});

test('the page is that of the results', async () => {
  assert.equal(readFileSync(PAGE, 'utf8'), await formatted(readCells()), 'run npm run matrix');
});
