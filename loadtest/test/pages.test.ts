/** The pages and the picture that are filled from docs/figures.json. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { docsFrom, filled, readRuns } from '../proxy/pages/fill.js';
import { plotOf } from '../proxy/pages/plot.js';
import { textOfRuns, type RecordedRun, type Runs } from '../proxy/pages/runs.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

const bench: RecordedRun = {
  ...{ command: 'npm run bench', date: '2026-01-31', machine: 'a machine' },
  figures: {
    'direct@1': { 'ops/s': 80_000 },
    'direct@1 threads': { first: 8, second: 0, third: 0, further: 0 },
    'shadow@1': { 'ops/s': 61_234, 'p50 ms': 0.5, 'CPU s per million': 6.1, 'of the sequencing thread': 4 },
    'shadow@1 threads': { first: 4, second: 1.5, third: 0.5, further: 0.1 },
    'shadow@1 thread/redis': { median: 0.5, lowest: 0.4, highest: 0.625 },
    'direct@1 at 15000/s': { 'ops/s': 12_000, 'p99 ms': 1 },
    'shadow@1 at 15000/s': { 'ops/s': 15_000, 'p99 ms': 1.2 },
    'shadow@1 at 15000/s p99/redis': { median: 1.2, lowest: 1.2, highest: 1.2 },
  },
};
const soak: RecordedRun = { ...bench, figures: { memory: { 'highest RSS MiB': 200 } } };
const runs: Runs = { bench, soak };
const table = (name: string, from = runs): string =>
  filled(`<!-- figures: bench ${name} -->\n\n| old |\n| --- |\n\nmore\n`, from);

test('every page with figures, and the picture, are those of docs/figures.json', async () => {
  const docs = await docsFrom(readRuns());
  assert.ok(docs.has('docs/capacity.md') && docs.has('README.md'));
  for (const [name, text] of docs)
    assert.equal(readFileSync(ROOT + name, 'utf8'), text, `${name}: npm run docs:figures`);
});

test('docs/figures.json is written as the bench writes it', () => {
  const text = readFileSync(`${ROOT}docs/figures.json`, 'utf8');
  assert.equal(textOfRuns(JSON.parse(text) as object), text);
});

test('a marked number becomes that of the run; one that is in no run stays', () => {
  const said = (key: string): string => filled(`It was 1,000\n<!-- figure: ${key} --> a second.`, runs);
  assert.equal(said('bench.shadow@1.ops/s'), 'It was 61,234\n<!-- figure: bench.shadow@1.ops/s --> a second.');
  assert.equal(said('bench.shadow@1.p50 ms'), 'It was 0.5\n<!-- figure: bench.shadow@1.p50 ms --> a second.');
  assert.equal(said('bench.shadow@2.ops/s'), 'It was 1,000\n<!-- figure: bench.shadow@2.ops/s --> a second.');
});

test('a marked table is replaced, and what stands behind it stays', () => {
  assert.match(table('measures'), /\| shadow proxy \| 1 \| 50 \| 61,234 \|[^]*\n\nmore\n$/);
  assert.doesNotMatch(table('measures'), /old/);
  assert.throws(() => table('nonsense'), /no table "bench nonsense"/);
});

test('the leading table has the ratio of the sequencing thread for each load', () => {
  assert.match(table('leading'), /\| sequencing thread \/ Redis \| pipeline 1, 50 clients \|/);
  assert.match(table('leading'), /\| shadow proxy \| 0\.50 \(0\.40 – 0\.63\) \|/);
});

test('a requirement holds, is missed, or was not measured; a rate that was not kept is named', () => {
  const front: RecordedRun = {
    ...bench,
    figures: {
      ...bench.figures,
      'shadow-1@1': { 'ops/s': 60_000 },
      'shadow-1@1 thread/redis': { median: 0.5, lowest: 0.4, highest: 0.625 },
    },
  };
  const required = table('required', { bench: front, soak });
  assert.match(required, /Redis saturates before the sequencing thread\. \|.*\| ≤ 0\.8 \| 0\.50 .*\| holds \|/);
  assert.match(required, /costs less CPU than Envoy\. \|.*\| – \| – \| not measured \|/);
  assert.match(required, /\| ≤ 1\.3 \| 1\.20 [^|]*\| – \| rate not kept \|/);
  assert.match(required, /\| highest RSS \|.*\| < 200 MiB \| 200 MiB \| – \| missed \|/);
  assert.match(table('latency'), /\| direct to Redis \| 15,000 \| 12,000 \|.*\| not kept \|/);
  assert.match(table('latency'), /\| shadow proxy \| 15,000 \| 15,000 \|.*\| kept \|/);
});

test('a throughput that no proxy could reach on the cores of the machine is out of reach', () => {
  const figures = {
    'envoy@16': { 'ops/s': 400_000 },
    'shadow@16': { 'ops/s': 700_000 },
    'shadow@16 ops/envoy': { median: 1.75, lowest: 1.7, highest: 1.8 },
    'shadow@16 costs': { load: 1, redis: 0.5, keydb: 1, proxy: 0.9 },
  };
  const required = table('required', { bench: { ...bench, machine: '2 × a machine', figures }, soak });
  assert.match(
    required,
    /throughput \/ Envoy \| pipeline 16, 50 clients \| ≥ 2\.5 \| 1\.75 [^|]*\| 2\.00 \| out of reach \|/,
  );
});

test('the picture has a bar for each thread, as long as its CPU time', () => {
  const svg = plotOf(bench);
  const widths = [...svg.matchAll(/<rect class="t(\d)" x="[\d.]+" width="([\d.]+)"/g)].map(([, , width]) =>
    Number(width),
  );
  assert.deepEqual(widths, [200, 0, 0, 0, 100, 37.5, 12.5, 2.5], 'Redis has the longest bar');
  assert.match(svg, /6\.10<\/text>/);
  assert.doesNotMatch(svg, /<script|href/);
});
