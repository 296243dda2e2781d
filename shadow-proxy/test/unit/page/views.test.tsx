/** Parts of the page as HTML, without a browser. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderToStaticMarkup } from 'preact-render-to-string';
import { pageFile } from '../../../src/page/files.js';
import { stageMarks } from '../../../src/page/plots.js';
import { Servers } from '../../../src/page/shard.js';
import { Jobs } from '../../../src/page/tables.js';
import { Glossary } from '../../../src/page/term.js';
import { WorkloadCard } from '../../../src/page/workload.js';
import { STAGES } from '../../../src/route/stage.js';
import { Series } from '../../../src/telemetry/series.js';
import { jobSnapshot, shardSnapshot, workloadSnapshot } from '../../support/snapshots.js';

const card = (change: Parameters<typeof workloadSnapshot>[0]): string =>
  renderToStaticMarkup(<WorkloadCard figures={workloadSnapshot(change)} outlook={null} now={0} />);

test('a workload in stage off shows no percent and no comparison; one in live shows its share', () => {
  const off = card({ stage: 'off', percent: 100 });
  assert.doesNotMatch(off.replace(/title="[^"]*"/g, ''), /%/);
  assert.doesNotMatch(off, /data-figure="compared"/);
  assert.match(off, /data-figure="commands">1,000</);
  assert.match(card({ stage: 'live', percent: 10 }), /aria-current="step"[^>]*>live 10 %</);
});

test('the last backfill stands beside the last verify, and a missing one is said to be missing', () => {
  const [verify, backfill] = [jobSnapshot({ state: 'done' }), jobSnapshot({ kind: 'backfill', state: 'done' })];
  const shown = (change: Parameters<typeof shardSnapshot>[0]): string =>
    renderToStaticMarkup(<Jobs snapshot={shardSnapshot(change)} />);
  const both = shown({ job: verify, earlierJobs: [backfill] });
  assert.match(both, /data-job="backfill".*data-job="verify"/s);
  assert.doesNotMatch(shown({ job: verify }), /data-job="backfill"/);
  assert.match(shown({ job: verify }), /No .*backfill.* since the proxy started/);
});

test('errors that clients got are shown by server and code', () => {
  const shown = (source: object): string =>
    renderToStaticMarkup(
      <Servers snapshot={shardSnapshot({ clientErrors: { source: { ...source }, target: {} } })} rate={null} />,
    ).replace(/<[^>]*>/g, '');
  assert.match(shown({ WRONGTYPE: 3, ERR: 1 }), /client errors: from the source 3 WRONGTYPE, 1 ERR/);
  assert.match(shown({}), /client errors: none/);
  const setinfo = { side: 'source', kind: 'ERR', command: 'client setinfo', client: '10.0.0.7', count: 5 } as const;
  const clientErrors = { source: { ERR: 5 }, target: {} };
  assert.match(
    renderToStaticMarkup(
      <Servers snapshot={shardSnapshot({ clientErrors, clientErrorOrigins: [setinfo] })} rate={null} />,
    ),
    /from the source 5 ERR \(5 CLIENT SETINFO of 10\.0\.0\.7\. Harmless, clients work without it: CLIENT SETINFO: Redis before 7\.2/,
  );
});

test('each term that is used refers to its meaning', () => {
  const page = [
    ...STAGES.map((stage) => card({ stage, newErrors: { lmpop: 1 } })),
    renderToStaticMarkup(<Servers snapshot={shardSnapshot()} rate={1} />),
    renderToStaticMarkup(<Jobs snapshot={shardSnapshot()} />),
  ].join('');
  const meanings = renderToStaticMarkup(<Glossary />);
  const used = new Set([...page.matchAll(/aria-describedby="([^"]+)"/g)].map(([, id]) => id));
  assert.ok(used.size >= 15, `${used.size} terms`);
  for (const id of used) assert.ok(meanings.includes(`id="${id}"`), id);
});

test('changes of stage within the points of a plot are marked, and nothing else of the history', () => {
  const series = new Series();
  const quiet = { p50: 0, p99: 0, p999: 0, count: 0 };
  const at = Date.parse('2026-11-21T12:00:00.000Z');
  for (const ms of [0, 5_000]) series.add(at + ms, shardSnapshot(), { source: quiet, target: quiet });
  const move = { event: 'stage', workload: 'sessions', from: { stage: 'shadow', percent: 100 } };
  const live = { stage: 'live', percent: 10 };
  assert.deepEqual(
    stageMarks(
      [
        { ...move, to: live, time: '2026-11-21T11:59:59.000Z' },
        { ...move, to: live, time: '2026-11-21T12:00:02.000Z' },
        { event: 'owner', process: 'p', time: '2026-11-21T12:00:03.000Z' },
      ],
      series.since(0),
    ),
    [{ at: at / 1000 + 2, label: 'sessions → live 10 %' }],
  );
  assert.deepEqual(stageMarks([{ ...move, to: live, time: '2026-11-21T12:00:02.000Z' }], new Series().since(0)), []);
});

test('the proxy serves the runbooks that the page links to, and no other file', () => {
  const page = String(pageFile('/runbooks/RepairsFrozen.md')?.content);
  assert.match(page, /<h1>RepairsFrozen<\/h1>/);
  assert.doesNotMatch(page, /href="\.\.\//, 'no link leads out of the runbooks');
  assert.match(String(pageFile('/runbooks/MismatchFound.md')?.content), /<a href="BypassingWrites\.md">/);
  for (const path of ['/runbooks/../package.json', '/runbooks/nothing.md', '/runbooks/'])
    assert.equal(pageFile(path), null, path);
});
