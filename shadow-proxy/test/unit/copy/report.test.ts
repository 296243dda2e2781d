/** The list of differences of a job. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Report } from '../../../src/copy/job/report.js';
import type { ReportedKey } from '../../../src/copy/job/chooser.js';

const reported = (name: string): ReportedKey => ({
  kind: 'contested',
  workload: { name: 'default' } as ReportedKey['workload'],
  db: 0,
  key: Buffer.from(name),
  holders: {},
});

test('a disk that takes no line ends the list, and not the job', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'report-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, 'differences.jsonl');
  const problems: string[] = [];
  const report = new Report(
    path,
    () => ({ maxBytes: 1_000_000 }),
    (key) => key.toString(),
    ({ message }) => problems.push(message),
  );
  report.begin();
  report.list(reported('listed'));
  assert.equal(JSON.parse(readFileSync(path, 'utf8')).key, 'listed');
  rmSync(directory, { recursive: true });
  report.list(reported('not listed'));
  report.list(reported('nor this'));
  assert.equal(problems.length, 1, 'said once');
  assert.match(problems[0], /ENOENT/);
});
