/** The report in a real browser: it can be read at each width, and no word of it is cut. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Report } from '../../../src/report/contents.js';
import { toHtml } from '../../../src/report/html.js';
import { openBrowser, openPage } from '../../support/browser.js';
import { layoutsOf } from '../../support/layout.js';
import { jobSnapshot, nextStage, shardEvidence, shardSnapshot, workloadSnapshot } from '../../support/snapshots.js';

const verified = { endedAt: '2026-11-21T11:00:00.000Z', keys: 493, differences: 0, failed: 0, unsure: 0 };
const shadow = nextStage();
const evidence = shardEvidence({
  workloads: [
    { ...shadow, evidence: { ...shadow.evidence, verified } },
    nextStage({ workload: 'leaderboards', class: 'leaderboard' }),
    nextStage({
      workload: 'feature-flags',
      from: { stage: 'dualwrite', percent: 100 },
      to: { stage: 'shadow', percent: 100 },
    }),
  ],
});
const workloads = evidence.workloads.map(({ workload, from }) => workloadSnapshot({ name: workload, ...from }));
const REPORT: Report = {
  version: 1,
  at: '2026-11-21T12:00:00.000Z',
  plan: 'practice',
  recommendation: {
    answer: 'not yet',
    summary: '0 of 3 workloads are ready for the next stage.',
    workloads: evidence.workloads.map(({ workload, gates }) => ({
      shard: 'practice',
      workload,
      next: 'live 1 %',
      answer: 'not yet',
      because: gates.filter(({ answer }) => answer !== 'yes').map(({ name, evidence: seen }) => `${name}: ${seen}`),
    })),
  },
  shards: [
    {
      shard: 'practice',
      from: 'proxy',
      problem: null,
      snapshot: shardSnapshot({ name: 'practice', workloads }),
      evidence,
      job: jobSnapshot({ state: 'done' }),
      history: [],
      notCovered: ['default is in off: nothing is compared.'],
    },
  ],
};

test('the report can be read at each width and in both colours', async (t) => {
  const browser = await openBrowser(t);
  if (browser === null) return;
  const directory = mkdtempSync(join(tmpdir(), 'report-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'report.html');
  writeFileSync(
    file,
    toHtml(REPORT, (command) => `npx --no-install shadow-compare ${command}`),
  );
  const { page } = await openPage(browser);
  await page.goto(pathToFileURL(file).href);
  for (const { look, faults, words, commands } of await layoutsOf(page, process.env.PICTURES, 'report')) {
    assert.deepEqual(faults, [], look);
    assert.ok(words > 200 && commands >= 6, `${words} words, ${commands} commands`);
  }
});
