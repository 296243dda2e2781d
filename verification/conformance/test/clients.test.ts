/**
 * What the client suites print is read: tests that passed, failed and were left out, by the runner of each language.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildGinkgo, parseGinkgo } from '../suites/ginkgo.js';
import { parseMocha } from '../suites/mocha.js';

test('Mocha: passed, failed and skipped tests are distinguished; a failed hook does not count as a test', () => {
  const [passed, failed, skipped, hook] = [
    { fullTitle: 'cluster works', err: {} },
    { fullTitle: 'cluster fails', err: { message: 'expected 1', stack: 'at …' } },
    { fullTitle: 'cluster is left out', err: {} },
    { fullTitle: 'cluster "before all" hook', err: { message: 'no node' } },
  ];
  const json = JSON.stringify({
    tests: [passed, failed, skipped],
    pending: [skipped],
    failures: [failed, hook],
    passes: [passed],
  });
  assert.deepEqual(parseMocha(json), {
    tests: [
      { name: 'cluster works', status: 'ok' },
      { name: 'cluster fails', status: 'failed', detail: 'expected 1' },
      { name: 'cluster is left out', status: 'skipped' },
    ],
    aborts: ['cluster "before all" hook: no node'],
    cutShort: null,
  });
});

test('Ginkgo: likewise, and a panic is what failed', () => {
  const spec = (text: string, State: string, more: object = {}): object => ({
    ContainerHierarchyTexts: ['ClusterClient'],
    LeafNodeText: text,
    LeafNodeType: 'It',
    State,
    ...more,
  });
  const SpecReports = [
    spec('GETs', 'passed'),
    spec('SETs', 'failed', { Failure: { Message: 'Timed out' } }),
    spec('swaps', 'panicked', { Failure: { Message: 'Test Panicked', ForwardedPanic: 'nil pointer' } }),
    spec('waits', 'pending'),
    { LeafNodeText: '', LeafNodeType: 'BeforeSuite', State: 'failed', Failure: { Message: 'refused' } },
  ];
  assert.deepEqual(parseGinkgo(JSON.stringify([{ SpecReports }])), {
    tests: [
      { name: 'ClusterClient GETs', status: 'ok' },
      { name: 'ClusterClient SETs', status: 'failed', detail: 'Timed out' },
      { name: 'ClusterClient swaps', status: 'failed', detail: 'nil pointer' },
      { name: 'ClusterClient waits', status: 'skipped' },
    ],
    aborts: ['BeforeSuite: refused'],
    cutShort: null,
  });
});

test('a go-redis whose tests look otherwise is refused, with what is missing', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'go-redis-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, 'main_test.go'), 'package redis_test\n');
  assert.throws(() => buildGinkgo(dir, dir), /main_test\.go is not as in go-redis 9: nothing in it matches ports/);
});
