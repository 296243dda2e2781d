/** The picture of a dashboard that is drawn without Grafana. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Panel } from '@grafana/grafana-foundation-sdk/dashboard';
import { filledIn, nameOf, queriesOf, rateInterval } from '../rig/ask.js';
import type { Series } from '../rig/prometheus.js';
import { badFrom, lines, rows, SIDES, states, tile, words } from '../src/panel.js';
import { withUnit } from '../preview/units.js';
import { viewOf, type Answered } from '../preview/view.js';

const SPAN = { from: 100, to: 104, step: 1, scrape: 1 };
const asked = { title: 'x', description: 'x', width: 4 };

const series = (labels: Record<string, string>, ...values: readonly number[]): Series => ({
  labels,
  points: values.map((value, at) => [100 + at, value]),
});
const answered = (panel: Panel, ...answers: readonly (readonly Series[])[]): Answered[] =>
  queriesOf(panel).map((query, at) => ({ query, series: answers[at] }));

describe('the preview', () => {
  test('shows a tile in the colour of the highest threshold that its value has reached', () => {
    const panel = tile({ ...asked, unit: 's', queries: { '{{shard}}': 'q' }, thresholds: badFrom(10, 1) }).build();
    const view = viewOf(
      panel,
      answered(panel, [series({ shard: 'a' }, 0), series({ shard: 'b' }, 1), series({ shard: 'c' }, 90)]),
      SPAN,
    );
    assert.deepEqual(view, {
      kind: 'stat',
      solid: true,
      values: [
        { name: 'a', text: '0 s', color: 'green' },
        { name: 'b', text: '1 s', color: 'orange' },
        { name: 'c', text: '1.5 min', color: 'red' },
      ],
    });
  });

  test('makes one row of the answers that agree in their labels, with a gap where one lacks', () => {
    const panel = rows({
      ...asked,
      rows: ['shard'],
      columns: [
        { name: 'up', query: 'q', mappings: words({ 1: ['yes', 'green'] }) },
        { name: 'keys', query: 'r' },
      ],
    }).build();
    const view = viewOf(
      panel,
      answered(panel, [series({ shard: 'b' }, 1)], [series({ shard: 'b' }, 7), series({ shard: 'a' }, 1500)]),
      SPAN,
    );
    assert.equal(view.kind, 'table');
    assert.deepEqual(view.kind === 'table' && [view.head, ...view.rows.map((row) => row.map(({ text }) => text))], [
      ['shard', 'up', 'keys'],
      ['a', '', '1.50 K'],
      ['b', 'yes', '7'],
    ]);
  });

  test('joins points that say the same to one band, and leaves a gap where nothing was said', () => {
    const panel = states({
      ...asked,
      queries: { '{{shard}}': 'q' },
      mappings: words({ 0: ['down', 'red'], 1: ['up', 'green'] }),
    }).build();
    const broken: Series = {
      labels: { shard: 'a' },
      points: [
        [100, 1],
        [101, 1],
        [102, 0],
        [110, 0],
      ],
    };
    const view = viewOf(panel, answered(panel, [broken]), SPAN);
    assert.deepEqual(view.kind === 'state-timeline' && view.bands[0].spans, [
      { text: 'up', color: 'green', from: 100, to: 102 },
      { text: 'down', color: 'red', from: 102, to: 102 },
      { text: 'down', color: 'red', from: 110, to: 110 },
    ]);
  });

  test('draws a line with gaps where there is no number, and each side in its colour', () => {
    const panel = lines({ ...asked, colors: SIDES, queries: { '{{side}}': 'q' }, thresholds: badFrom(5) }).build();
    const view = viewOf(
      panel,
      answered(panel, [series({ side: 'target' }, 1, NaN, 3), series({ side: 'source' }, 2)]),
      SPAN,
    );
    assert.equal(view.kind, 'timeseries');
    if (view.kind !== 'timeseries') return;
    assert.deepEqual(
      view.lines.map(({ name, values }) => [name, values]),
      [
        ['target', [1, null, 3, null, null]],
        ['source', [2, null, null, null, null]],
      ],
    );
    assert.notEqual(view.lines[0].color, view.lines[1].color);
    assert.deepEqual(view.thresholds, [{ color: 'red', value: 5 }]);
  });

  test('refuses a panel and a unit that it does not know', () => {
    assert.throws(
      () => viewOf({ ...tile({ ...asked, queries: {} }).build(), type: 'geomap' }, [], SPAN),
      /does not draw panels of type geomap/,
    );
    assert.throws(() => withUnit(1, 'furlong'), /unit furlong/);
  });

  test('writes values as Grafana does', () => {
    const written = (
      [
        [0.00012, 's'],
        [0.25, 'percentunit'],
        [1536, 'bytes'],
        [12_345, 'ops'],
        [0, 'short'],
        [2_500_000, 'short'],
        [100, 'percent'],
        [NaN, 's'],
      ] as const
    ).map(([value, unit]) => withUnit(value, unit));
    assert.deepEqual(written, ['120 µs', '25 %', '1.50 KiB', '12.3 K ops/s', '0', '2.50 Mil', '100 %', 'no value']);
  });
});

describe('a query', () => {
  test('has its variables and its interval filled in', () => {
    assert.equal(rateInterval({ step: 30, scrape: 15 }), 60);
    assert.equal(rateInterval({ step: 300, scrape: 15 }), 315);
    assert.equal(
      filledIn('rate(x{shard=~"$shard",y="$other"}[$__rate_interval])', { shard: 'a|b' }, { step: 1, scrape: 1 }),
      'rate(x{shard=~"a|b",y="$other"}[4s])',
    );
  });

  test('names its series by their labels', () => {
    assert.equal(nameOf('{{side}} {{ shard }} {{lacks}}', series({ side: 'source', shard: 'a' })), 'source a');
  });
});
