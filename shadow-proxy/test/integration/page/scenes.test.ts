/**
 * The status page in a real browser, over what a shard may say: the headline, the title, and that it can be read.
 *
 * Needs real processes: Chromium: what the status page shows, and that no word is cut.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Admin } from '../../../src/admin/admin-server.js';
import type { ShardControl } from '../../../src/admin/shard-control.js';
import { pageFile } from '../../../src/page/files.js';
import type { HistoryEvent } from '../../../src/storage/state.js';
import type { SeriesSnapshot } from '../../../src/telemetry/series.js';
import { COLUMNS } from '../../../src/telemetry/series.js';
import { NOT_COPIED, type ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import { openBrowser, openPage } from '../../support/browser.js';
import { layoutsOf, watchLabels } from '../../support/layout.js';
import { jobSnapshot, nextStage, shardEvidence, shardSnapshot, workloadSnapshot } from '../../support/snapshots.js';

/** The folder for screenshots that a developer wants to look at. */
const { PICTURES } = process.env;
const EMPTY: SeriesSnapshot = seriesOf([]);

function seriesOf(at: readonly number[]): SeriesSnapshot {
  const value = (name: string, i: number): number =>
    name.endsWith('P99')
      ? 900 + 300 * Math.sin(i / 9)
      : name.endsWith('P50')
        ? 150 + 20 * Math.cos(i / 7)
        : 40 + (i % 7);
  return {
    at,
    columns: Object.fromEntries(
      COLUMNS.map((name) => [name, at.map((_, i) => value(name, i))]),
    ) as unknown as SeriesSnapshot['columns'],
  };
}

interface Scene {
  readonly name: string;
  readonly snapshot: ShardSnapshot;
  readonly series?: SeriesSnapshot;
  readonly history?: readonly HistoryEvent[];
  readonly kind: 'yes' | 'no' | 'unknown';
  readonly headline: RegExp;
  readonly title: string;
}

const NOW = Date.now();
const HOUR: readonly number[] = Array.from({ length: 600 }, (_, i) => NOW - (600 - i) * 5_000);
const done = {
  state: 'done',
  endedAt: new Date(NOW - 600_000).toISOString(),
  differences: {},
  seen: 1000,
  scanned: 1000,
} as const;
const jobs = {
  job: jobSnapshot({ ...done, verified: 1000 }),
  earlierJobs: [jobSnapshot({ ...done, kind: 'backfill', copied: 1000, bytes: 4_000_000 })],
};
const workloads = [
  workloadSnapshot(),
  workloadSnapshot({ name: 'leaderboards', class: 'leaderboard', stage: 'dualwrite' }),
  workloadSnapshot({ name: 'feature-flags', class: 'critical', stage: 'off', operations: 40 }),
];
const at = shardSnapshot();
const stage = (minutes: number, workload: string, to: object): HistoryEvent => ({
  event: 'stage',
  time: new Date(NOW - minutes * 60_000).toISOString(),
  workload,
  from: { stage: 'shadow', percent: 100 },
  to,
});

const SCENES: readonly Scene[] = [
  {
    name: 'all-clear',
    snapshot: shardSnapshot({ workloads, ...jobs }),
    kind: 'yes',
    headline: /^All clear$/,
    title: 'All clear – checkout-cache',
  },
  {
    name: 'mismatch',
    snapshot: shardSnapshot({
      workloads: [workloadSnapshot({ mismatches: 2 }), ...workloads.slice(1)],
      mismatches: { value: 2 },
      clientErrors: { source: { WRONGTYPE: 12 }, target: {} },
      ...jobs,
    }),
    kind: 'no',
    headline:
      /^2 mismatches since the proxy started: 2 value\..*npx --no-install shadow-compare verify --workload sessions .*runbook MismatchFound/,
    title: '(1) Act now – checkout-cache',
  },
  {
    name: 'frozen',
    snapshot: shardSnapshot({
      workloads,
      frozen: 'the source was restarted or replaced (run ID changed)',
      suspects: { total: 412, byReason: { 'reply-lost': 400, bypass: 12 } },
    }),
    kind: 'no',
    headline: /^Repairs are frozen: .*npx --no-install shadow-compare accept --dry-run .*runbook RepairsFrozen/,
    title: '(1) Act now – checkout-cache',
  },
  {
    name: 'suspects',
    snapshot: shardSnapshot({
      workloads: [workloadSnapshot({ suspects: 3 }), workloadSnapshot({ name: 'flags', suspect: NOT_COPIED })],
      suspects: { total: 3, byReason: { 'reply-lost': 3 } },
    }),
    kind: 'unknown',
    headline: /^Nothing to do now, 2 things to watch$/,
    title: 'Watch – checkout-cache',
  },
  {
    name: 'target-down',
    snapshot: shardSnapshot({
      workloads,
      target: { ...at.target, up: false },
      mirror: { ...at.mirror, connected: false, lagMs: 61_000, queuedEffects: 1_234 },
    }),
    kind: 'no',
    headline: /^The target is down\. Clients are not affected\..*runbook MirrorDisconnected/,
    title: '(1) Act now – checkout-cache',
  },
  {
    name: 'live',
    snapshot: shardSnapshot({
      workloads: [workloadSnapshot({ stage: 'live', percent: 10 }), ...workloads.slice(1)],
      ...jobs,
    }),
    series: seriesOf(HOUR),
    history: [
      stage(40, 'sessions', { stage: 'live', percent: 1 }),
      stage(39, 'leaderboards', { stage: 'dualwrite', percent: 100 }),
      stage(3, 'sessions', { stage: 'live', percent: 10 }),
    ],
    kind: 'yes',
    headline: /^All clear$/,
    title: 'All clear – checkout-cache',
  },
];

const reply = { type: '$', bytes: 12, hash: '044663febfbafdfb' };
/** Closed gates with a command, a name that is as long as a plan allows, and a mismatch. */
const EVIDENCE = shardEvidence({
  workloads: [
    nextStage(),
    nextStage({ workload: 'leaderboards', class: 'leaderboard' }),
    nextStage({ workload: 'feature-flags', from: { stage: 'off', percent: 100 } }),
  ],
  mismatches: {
    total: 1,
    notWritten: 0,
    latest: [
      {
        time: '2026-11-21T12:00:00.000Z',
        shard: 'cache-0',
        db: 0,
        authority: 'source',
        differsAt: 3,
        workload: 'leaderboards',
        pattern: 'board:*',
        command: 'zrangebyscore',
        kind: 'value',
        key: { hash: 'd49e30b117bf8f11', bytes: 13 },
        source: reply,
        target: reply,
      },
    ],
  },
});

const nobody = (): never => {
  throw new Error('the page is read-only');
};

async function serve(t: TestContext, { snapshot, series = EMPTY, history = [] }: Omit<Scene, 'kind'>): Promise<string> {
  const shard: ShardControl = {
    name: snapshot.name,
    snapshot: () => snapshot,
    scrape: nobody,
    ready: () => true,
    evidence: () => Promise.resolve(EVIDENCE),
    series: (since) => (since < (series.at.at(-1) ?? 0) ? series : EMPTY),
    history: () => Promise.resolve(history),
    ...{
      changeStage: nobody,
      promote: nobody,
      rollback: nobody,
      note: nobody,
      fence: nobody,
      automate: nobody,
      acceptAuthority: nobody,
    },
    ...{ startJob: nobody, changeJob: nobody, stopJob: nobody },
  };
  const admin = await Admin.start({
    host: '127.0.0.1',
    port: 0,
    token: () => null,
    migration: () => 'checkout-cache',
    shards: () => [shard],
    page: pageFile,
  });
  t.after(() => admin.stop());
  return `http://127.0.0.1:${admin.port}`;
}

for (const scene of SCENES)
  test(`${scene.name}: the first line and the title say what to do`, async (t) => {
    const browser = await openBrowser(t);
    if (browser === null) return;
    const url = await serve(t, scene);
    const { page } = await openPage(browser);
    await page.goto(url);
    const headline = await page.waitForSelector(`[data-headline="${scene.kind}"]`);
    assert.match((await headline.innerText()).replace(/\s+/g, ' '), scene.headline);
    assert.equal(await page.title(), scene.title);
    await page.context().close();
  });

test('at each width and in both colours no word is cut, nothing is too wide, and labels are off the curves', async (t) => {
  const browser = await openBrowser(t);
  if (browser === null) return;
  for (const scene of SCENES) {
    const { page, complaints } = await openPage(browser);
    await watchLabels(page);
    await page.goto(await serve(t, scene));
    await page.waitForSelector('[data-headline]');
    await page.waitForSelector('.gates .command');
    await page.waitForSelector('plot-view canvas');
    for (const { faults, words, commands, labels, look } of await layoutsOf(page, PICTURES, scene.name)) {
      assert.deepEqual(faults, [], `${scene.name}, ${look}`);
      assert.ok(words > 200 && commands >= 4, `${words} words, ${commands} commands`);
      if (scene.history !== undefined) assert.ok(labels >= 8, `${labels} labels`);
    }
    assert.deepEqual(complaints, []);
    await page.context().close();
  }
});

test('a plot begins at its first point, without dates before it, and has none where nothing is measured', async (t) => {
  const browser = await openBrowser(t);
  if (browser === null) return;
  /** The x axis of the first plot, as it is drawn. */
  const labels = async (series: SeriesSnapshot): Promise<string[]> => {
    const { page } = await openPage(browser);
    await page.addInitScript(() => {
      const drawn: string[] = ((globalThis as unknown as { drawn: string[] }).drawn = []);
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...more) {
        drawn.push(text);
        fillText.call(this, text, ...more);
      };
    });
    await page.goto(await serve(t, { name: '', snapshot: shardSnapshot(), series, headline: /./, title: '' }));
    await page.waitForSelector('plot-view canvas');
    await page.waitForTimeout(300);
    const drawn = await page.evaluate(() => (globalThis as unknown as { drawn: string[] }).drawn);
    await page.context().close();
    return drawn.filter((text) => /^\d\d[:-]\d\d/.test(text));
  };
  const first = Date.parse('2026-11-21T12:00:00.000Z');
  assert.deepEqual(await labels(EMPTY), []);
  for (const points of [[first], [first, first + 5_000]]) {
    const times = await labels(seriesOf(points));
    assert.ok(times.length > 0);
    for (const time of times) assert.match(time, /^12:0[0-5]/, `${points.length} points: ${times.join(' ')}`);
  }
});
