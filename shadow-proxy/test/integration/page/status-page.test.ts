/**
 * The status page in a real browser, on a real proxy between a Redis and a KeyDB that clients use meanwhile.
 *
 * Needs real processes: Chromium: what the status page of a running proxy shows and does.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Browser, Page } from 'playwright-core';
import type { ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import { planFor, start, status, type Running } from '../cli/running.js';
import { openBrowser, openPage, overflow, plotsDrawn } from '../../support/browser.js';
import { withServers, type Pair } from '../../support/servers.js';
import { until } from '../../support/shard.js';

/** The folder for screenshots that a developer wants to look at, and after how many seconds of load they are taken. */
const { PICTURES, PICTURES_AFTER = '0' } = process.env;
const PASSWORD = 'p4ssw0rd-of-nobody';

function work(t: TestContext, { port }: Running): () => Promise<void> {
  const client = new Redis(port, { retryStrategy: null });
  client.on('error', () => undefined);
  let running = true;
  const loop = (async () => {
    for (let i = 0; running; i++) {
      await Promise.all([
        client.set(`session:${i % 500}`, `v${i}`, 'EX', 600),
        client.get(`session:${(i * 7) % 500}`),
        client.incr(`rl:${i % 20}`),
        client.zincrby('board:day', 1, `p${i % 90}`),
        client.hgetall(`flag:${i % 9}`),
      ]);
      if (i % 50 === 0) await sleep(1);
    }
  })().catch(() => undefined);
  t.after(() => (running = false));
  return async () => {
    running = false;
    await loop;
    client.disconnect();
  };
}

/** One key that only KeyDB has otherwise, and a client that reads it. */
async function makeMismatch({ target }: Pair, { port }: Running): Promise<void> {
  const [direct, client] = [new Redis(target.port, { password: PASSWORD }), new Redis(port)];
  await client.set('session:secret-of-alice', 'the right value');
  await until(async () => (await direct.get('session:secret-of-alice')) !== null);
  await direct.set('session:secret-of-alice', 'another value');
  await client.get('session:secret-of-alice');
  direct.disconnect();
  client.disconnect();
}

async function scene(
  t: TestContext,
  body: (running: Running, servers: Pair, browser: Browser) => Promise<void>,
  admin: object = {},
): Promise<void> {
  const browser = await openBrowser(t);
  if (browser === null) return;
  await withServers(
    async (servers) => {
      const plan = await planFor(servers, (planned) => {
        Object.assign(planned.admin, admin);
        Object.assign(planned.shards[0], { target: `redis://:${PASSWORD}@127.0.0.1:${servers.target.port}` });
        planned.workloads = [
          { name: 'sessions', keys: ['session:*'], class: 'read-mostly', stage: 'shadow' },
          { name: 'rate-limits', keys: ['rl:*'], class: 'counter', stage: 'shadow' },
          { name: 'leaderboards', keys: ['board:*'], class: 'leaderboard', stage: 'dualwrite' },
          { name: 'feature-flags', keys: ['flag:*'], class: 'critical' },
        ];
      });
      await body(await start(t, plan), servers, browser);
    },
    { target: { config: { requirepass: PASSWORD } } },
  );
}

/** What the page shows of a workload, by the words above its figures. */
const figures = (page: Page, workload: string): Promise<Record<string, string>> =>
  page.$$eval(
    `[data-workload="${workload}"] [data-figure]`,
    (cells) =>
      Object.fromEntries(cells.map((cell) => [cell.getAttribute('data-figure'), cell.textContent])) as Record<
        string,
        string
      >,
  );

const expectedFigures = ({ workloads }: ShardSnapshot, name: string): Record<string, string> => {
  const { stage, operations, compared, matched, allowed, mismatches, inconclusive, suspects } = workloads.find(
    (each) => each.name === name,
  )!;
  const comparisons = {
    compared,
    match: matched,
    allowed,
    mismatch: mismatches,
    inconclusive,
    'suspect keys': suspects,
  };
  const counts = { commands: operations, ...(stage !== 'off' && comparisons) };
  return Object.fromEntries(Object.entries(counts).map(([word, count]) => [word, count.toLocaleString('en-US')]));
};

test('the page shows what the proxy says, asks nobody else, and gives nothing away', async (t) => {
  await scene(t, async (running, servers, browser) => {
    const { admin } = running;
    const stop = work(t, running);
    await makeMismatch(servers, running);
    await until(async () => (await status(admin))[0].compared > 2_000, 60_000);
    // For pictures of a proxy that has run for a while; no time in a test.
    await sleep(Number(PICTURES_AFTER) * 1_000);
    const { page, complaints, requests } = await openPage(browser);
    await page.goto(admin);
    await page.waitForSelector('[data-gate="compared"]', { state: 'attached' });
    if (PICTURES !== undefined) {
      await fetch(`${admin}/api/jobs`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"kind":"verify"}',
      });
      await takePictures(browser, admin, PICTURES);
    }

    // Without load, figures do not change: the page shows what the API reports.
    await stop();
    await until(async () =>
      (await status(admin)).every(
        ({ mirror, workloads }) =>
          mirror.queuedEffects === 0 && workloads.every(({ suspect, suspects }) => suspect !== null || suspects === 0),
      ),
    );
    const [snapshot] = await status(admin);
    for (const { name } of snapshot.workloads.filter(({ suspect }) => suspect === null)) {
      await page.waitForFunction(
        ([workload, commands]) =>
          document.querySelector(`[data-workload="${workload}"] [data-figure="commands"]`)?.textContent === commands,
        [name, expectedFigures(snapshot, name).commands],
      );
      assert.deepEqual(await figures(page, name), expectedFigures(snapshot, name));
    }
    assert.equal(await page.textContent('[data-workload="rate-limits"] .track [aria-current]'), 'shadow');
    assert.equal(await page.title(), '(1) Act now – test');
    assert.match(
      await page.innerText('[data-headline="no"]'),
      /1 mismatch since the proxy started: 1 value\.[^]*npx --no-install shadow-compare verify --workload sessions --admin/,
    );
    const runbook = (await page.getAttribute('[data-headline] a', 'href'))!;
    assert.match(await (await fetch(admin + runbook)).text(), /<h1>MismatchFound<\/h1>/);
    assert.match(
      (await page.textContent('[data-workload="sessions"] [data-gate="mismatches"]'))!,
      /CLOSED mismatches 1 \(value 1\), at most 0/,
    );
    assert.match(
      await page.innerText('.cards tbody'),
      /sessions\s+session:\*\s+get\s+value\s+[0-9a-f]{16} 23 B\s+string [0-9a-f]{16} \d+ B\s+string/i,
    );

    // Two points make a line.
    await page.waitForFunction(
      () => JSON.parse(document.querySelector('plot-view')?.getAttribute('spec') ?? '{"x":[]}').x.length > 1,
    );
    assert.deepEqual(await plotsDrawn(page), [true, true, true, true]);

    const text = await page.content();
    for (const secret of [PASSWORD, 'alice', 'right value', 'another value']) assert.ok(!text.includes(secret), secret);
    assert.deepEqual(complaints, []);
    assert.deepEqual(
      requests.filter((url) => !url.startsWith(`${admin}/`) && url !== 'data:,'),
      [],
    );
  });
});

test('the page fits a phone, and is dark where its reader’s system is', async (t) => {
  await scene(t, async (running, servers, browser) => {
    await makeMismatch(servers, running);
    for (const dark of [false, true]) {
      const { page, complaints } = await openPage(browser, { width: 360, dark });
      await page.goto(running.admin);
      await page.waitForSelector('[data-gate="compared"]', { state: 'attached' });
      await page.waitForSelector('.cards tbody tr');
      assert.equal(await overflow(page), 0);
      assert.equal(
        await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
        dark ? 'rgb(18, 21, 26)' : 'rgb(255, 255, 255)',
      );
      assert.deepEqual(complaints, []);
      await page.context().close();
    }
  });
});

test('with a token, the page asks for it once a tab, and shows nothing before', async (t) => {
  const token = 't0ken-of-nobody';
  await scene(
    t,
    async ({ admin }, _, browser) => {
      const { page, complaints, requests } = await openPage(browser);
      await page.goto(admin);
      await page.waitForSelector('form.token');
      assert.equal(await page.locator('[data-shard]').count(), 0);
      await page.fill('#token', 'wrong');
      await page.click('button');
      await page.waitForSelector('text=This is not the admin token');
      await page.fill('#token', token);
      await page.click('button');
      await page.waitForSelector('[data-workload="sessions"]');
      await page.reload();
      await page.waitForSelector('[data-workload="sessions"]');
      assert.equal(await page.locator('form.token').count(), 0);
      assert.ok(!(await page.content()).includes(token));
      assert.ok(!requests.some((url) => url.includes(token)));
      // Of the questions without the right token, and of nothing else.
      assert.ok(
        complaints.every((text) => text.includes('401')),
        complaints.join('\n'),
      );
    },
    { token },
  );
});

async function takePictures(browser: Browser, admin: string, directory: string): Promise<void> {
  for (const [name, width] of [
    ['desktop', 1280],
    ['phone', 390],
  ] as const) {
    for (const dark of [false, true]) {
      const { page } = await openPage(browser, { width, dark });
      await page.goto(admin);
      await page.waitForSelector('[data-gate="compared"]', { state: 'attached' });
      await page.waitForSelector('plot-view canvas');
      await sleep(3_000);
      await page.screenshot({ path: join(directory, `page-${name}-${dark ? 'dark' : 'light'}.png`), fullPage: true });
      await page.context().close();
    }
  }
}

test('a job that runs is paused, limited and let go on from the page, and a limit that is none is refused', async (t) => {
  await scene(t, async ({ admin }, servers, browser) => {
    const source = new Redis(servers.source.url);
    t.after(() => source.disconnect());
    for (let i = 0; i < 1_000; i++) await source.set(`session:${i}`, i);
    await fetch(`${admin}/api/jobs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"kind":"verify","limits":{"keysPerSecond":10}}',
    });
    const job = async () => (await status(admin))[0].job!;
    const { page, complaints } = await openPage(browser);
    await page.goto(admin);
    const controls = '[data-job="verify"] form.controls';
    await page.click(`${controls} >> text=Pause`);
    await until(async () => (await job()).paused !== null);
    assert.equal((await job()).paused!.by, 'the status page');
    await page.waitForSelector(`${controls} >> text=Let it go on`);
    assert.match(
      await page.innerText('.attention, [data-headline]'),
      /verify waits: paused by the status page|to watch/,
    );
    await page.fill(`${controls} [name=keysPerSecond]`, '-5');
    await page.click(`${controls} >> text=Change the limits`);
    await page.waitForSelector(`${controls} >> text=Not changed: "-5" is no number above 0, nor none`);
    await page.fill(`${controls} [name=keysPerSecond]`, '5000');
    await page.click(`${controls} >> text=Change the limits`);
    await until(async () => (await job()).limits.keysPerSecond === 5_000);
    assert.notEqual((await job()).paused, null, 'a limit does not let it go on');
    assert.equal(await overflow(page), 0);
    await page.click(`${controls} >> text=Let it go on`);
    await until(async () => (await job()).state === 'done');
    await page.waitForSelector(controls, { state: 'detached' });
    assert.match(await page.innerText('.history'), /verify of .*: at most 5000 keys a second, by the status page/);
    assert.deepEqual(complaints, []);
  });
});
