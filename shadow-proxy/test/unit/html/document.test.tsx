/** Documents in one file, in a real browser. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { htmlDocument } from '../../../src/html/document.js';
import { Plot, type PlotSpec } from '../../../src/html/plot.js';
import { openBrowser, openPage, overflow, plotsDrawn } from '../../support/browser.js';

const HOUR: PlotSpec = {
  kind: 'time',
  x: Array.from({ length: 60 }, (_, minute) => 1_790_000_000 + minute * 60),
  series: [
    { label: 'source p99', values: Array.from({ length: 60 }, (_, at) => 0.2 + 0.1 * Math.sin(at / 5)) },
    {
      label: 'target p99',
      values: Array.from({ length: 60 }, (_, at) => (at === 30 ? null : 0.3 + 0.2 * Math.cos(at / 7))),
    },
  ],
  unit: 'ms',
};
const PERCENTILES: PlotSpec = {
  kind: 'percentiles',
  x: [0, 0.5, 0.9, 0.99, 0.999, 0.9999],
  series: [
    { label: 'direct', values: [0.05, 0.1, 0.2, 0.5, 1.5, 9] },
    { label: 'proxy', values: [0.08, 0.15, 0.3, 0.8, 2.5, 30], dashed: true },
  ],
  unit: 'ms',
  log: true,
};
const NASTY = '<script>alert(1)</script>&"\'';

function written(t: TestContext, text: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'document-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'report.html');
  writeFileSync(file, text);
  return pathToFileURL(file).href;
}

test('what is put into a document is escaped', () => {
  const text = htmlDocument({ title: NASTY, body: <p title={NASTY}>{NASTY}</p> });
  assert.doesNotMatch(text, /<script>alert/);
  assert.match(text, /<title>&lt;script>alert\(1\)&lt;\/script>&amp;/);
  assert.match(text, /script-src 'none'/);
});

test('a document with plots is drawn from its one file, light and dark, on a phone, and asks for nothing', async (t) => {
  const browser = await openBrowser(t);
  if (browser === null) return;
  const body = (
    <main>
      <h1>{NASTY}</h1>
      <div class="plots">
        <Plot title="Latency" spec={HOUR} note="60 minutes" />
        <Plot title="Percentiles" spec={PERCENTILES} />
        <Plot
          title={NASTY}
          spec={{ kind: 'number', x: [], series: [{ label: NASTY, values: [] }], unit: 'commands/s' }}
        />
      </div>
      <img src="http://203.0.113.1/beacon.png" alt="" />
    </main>
  );
  const url = written(t, htmlDocument({ title: NASTY, body }));
  const looks = [];
  for (const dark of [false, true]) {
    const { page, complaints, requests } = await openPage(browser, { width: 375, dark });
    await page.goto(url);
    await page.waitForFunction(() => document.querySelectorAll('plot-view canvas').length === 3);
    assert.deepEqual(await plotsDrawn(page), [true, true, true]);
    assert.equal(await page.title(), NASTY);
    assert.equal(await page.textContent('h1'), NASTY);
    assert.equal(await overflow(page), 0);
    // The picture is refused by the document itself; nothing else is complained of.
    assert.deepEqual(requests, [url]);
    assert.equal(complaints.length, 1, complaints.join('\n'));
    assert.match(complaints[0], /beacon\.png.*Content Security Policy/s);
    looks.push(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    if (process.env.PICTURES !== undefined)
      await page.screenshot({
        path: join(process.env.PICTURES, `document-${dark ? 'dark' : 'light'}.png`),
        fullPage: true,
      });
    await page.context().close();
  }
  assert.deepEqual(looks, ['rgb(255, 255, 255)', 'rgb(18, 21, 26)']);
});
