/**
 * The report of a running proxy, and of one that was killed: the same evidence, and what is not known any more is said.
 *
 * Needs real processes: a report of a proxy that runs, and of one that was killed.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import type { Report } from '../../../src/report/contents.js';
import { toHtml } from '../../../src/report/html.js';
import { toMarkdown } from '../../../src/report/markdown.js';
import { runCommand, type runProgram } from '../cli/process.js';
import { planFor, start, status } from '../cli/running.js';
import { openBrowser, openPage, overflow } from '../../support/browser.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';

const PASSWORD = 'p4ssw0rd-of-nobody';
const typedAs = (command: string): string => `shadow-compare ${command}`;
const GATES = { minCompared: 50, minMinutes: 2, maxMismatches: 5, maxP99Ratio: 1000 };

const post = async (admin: string, what: string, body: object): Promise<number> =>
  (
    await fetch(`${admin}/api/${what}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  ).status;

test('the report has the evidence in three forms, while the proxy runs and after it was killed', async (t) => {
  await withServers(
    async (servers) => {
      const plan = await planFor(servers, (planned) => {
        Object.assign(planned, { gates: GATES, ledger: { redact: false } });
        Object.assign(planned.shards[0], { target: `redis://kit:${PASSWORD}@127.0.0.1:${servers.target.port}` });
        planned.workloads = [{ name: 'sessions', keys: ['session:*'], class: 'read-mostly', stage: 'shadow' }];
      });
      const running = await start(t, plan);
      const make = (...args: string[]): ReturnType<typeof runProgram> => runCommand(...args, '--plan', running.file);
      const [client, direct] = [
        running.connect(),
        new Redis(servers.target.port, { username: 'kit', password: PASSWORD }),
      ];
      for (let i = 0; i < 100; i++) await client.set(`session:${i}`, `v${i}`);
      await client.set('session:secret-of-alice', 'the right value');
      await until(async () => (await direct.get('session:secret-of-alice')) !== null);
      await direct.set('session:secret-of-alice', 'another value');
      await client.get('session:secret-of-alice');
      await until(
        async () =>
          (await status(running.admin))[0].suspects.total === 0 && (await status(running.admin))[0].compared > 100,
        60_000,
      );
      await post(running.admin, 'jobs', { kind: 'verify' });
      await until(async () => (await status(running.admin))[0].job?.state === 'done', 60_000);
      await until(
        async () => (await post(running.admin, 'rollback', { workload: 'sessions', drill: true })) === 200,
        60_000,
      );
      assert.equal(
        await post(running.admin, 'promote', {
          workload: 'sessions',
          force: true,
          by: 'somebody',
          reason: 'the meeting of redis://u:hunter2@10.0.0.1 said so',
        }),
        200,
      );
      direct.disconnect();

      const live = await make('report', '--format', 'json');
      assert.equal(live.code, 0, live.stderr);
      const report = JSON.parse(live.stdout) as Report;
      const [shard] = report.shards;
      assert.deepEqual([report.plan, shard.shard, shard.from, shard.problem], ['test', 'a', 'proxy', null]);
      const sessions = shard.evidence.workloads.find(({ workload }) => workload === 'sessions')!;
      assert.deepEqual(
        [sessions.from, sessions.to],
        [
          { stage: 'live', percent: 1 },
          { stage: 'live', percent: 10 },
        ],
      );
      assert.deepEqual(
        [sessions.evidence.verified?.keys, sessions.evidence.verified?.differences, sessions.evidence.drill?.percent],
        [101, 0, 1],
      );
      assert.equal(shard.evidence.mismatches.latest.length, 1);
      assert.ok(
        shard.notCovered.some((line) =>
          /sessions is in live 1 %: clients get the source's replies for the other keys/.test(line),
        ),
        shard.notCovered.join('\n'),
      );
      assert.ok(shard.notCovered.some((line) => /default is in off: nothing is compared/.test(line)));

      const markdown = toMarkdown(report, typedAs);
      assert.match(markdown, /^# Migration report: test$/m);
      // The minute that the gates ask for is not over.
      const advised = report.recommendation.workloads.find(({ workload }) => workload === 'sessions')!;
      assert.deepEqual(
        [report.recommendation.answer, advised.answer, advised.next],
        ['not yet', 'not yet', 'live 10 %'],
      );
      assert.match(advised.because.join('\n'), /^time: replies compared in \d of 2 min/m);
      assert.match(
        markdown,
        /^## Recommendation: not yet\n\n\d of 1 workload is ready for the next stage\. Keys that no workload names \(default\) stay on the source\.\n\n- a: sessions → live 10 %: not yet, because .*time: replies/m,
      );
      assert.match(toHtml(report, typedAs), /<h1>[^]*?<section data-recommendation="not yet">[^]*?<table/);
      assert.match(markdown, /^\| a \| sessions \| live 1 % \| live 10 % \| \d+ of \d+ \| 0 \|$/m);
      assert.match(
        markdown,
        /^- [\d:.TZ-]+: sessions shadow → live 1 %, FORCED with closed gates, by somebody: the meeting of redis:\/\/u:\\\*\\\*\\\*@10\.0\.0\.1 said so$/m,
      );

      const page = join(running.directory, 'report.html');
      writeFileSync(page, toHtml(report, typedAs));
      running.daemon.signal('SIGKILL');
      await running.daemon.exit();

      const dead = join(running.directory, 'dead.html');
      const after = await make('report', '--out', dead);
      assert.equal(after.code, 3);
      assert.match(
        after.stderr,
        /a: from the durable state, not from a running proxy: no proxy answers at http:\/\/127\.0\.0\.1/,
      );
      const left = JSON.parse((await make('report', '--format', 'json')).stdout) as Report;
      const then = left.shards[0].evidence.workloads.find(({ workload }) => workload === 'sessions')!;
      assert.deepEqual(
        [left.shards[0].from, left.shards[0].snapshot, then.from, then.to],
        ['state', null, sessions.from, sessions.to],
      );
      assert.deepEqual(
        then.gates
          .filter(({ name }) => ['suspects', 'unsupported', 'bypass', 'evictions'].includes(name))
          .map(({ name, answer }) => `${name} ${answer}`)
          .sort(),
        ['bypass unknown', 'evictions unknown', 'suspects unknown', 'unsupported yes'],
      );
      assert.deepEqual(left.shards[0].history, shard.history);
      assert.deepEqual(left.shards[0].evidence.mismatches.latest, shard.evidence.mismatches.latest);
      assert.match(left.shards[0].notCovered[0], /No running proxy was asked/);
      assert.deepEqual(
        left.recommendation.workloads.map(({ answer }) => answer),
        ['not yet'],
        'what only a running proxy reports is unknown, and so not ready',
      );
      assert.match(left.recommendation.workloads[0].because[0], /^no running proxy was asked: no proxy answers at/);
      assert.match(toMarkdown(left, typedAs), /\*\*From the durable state, not from a running proxy\*\*/);

      for (const text of [
        live.stdout,
        markdown,
        readFileSync(page, 'utf8'),
        readFileSync(dead, 'utf8'),
        JSON.stringify(left),
        running.daemon.stdout,
      ]) {
        for (const secret of [PASSWORD, 'hunter2', 'alice', 'right value', 'another value'])
          assert.ok(!text.includes(secret), secret);
      }

      const browser = await openBrowser(t);
      if (browser === null) return;
      for (const [file, says] of [
        [page, /sessions/],
        [dead, /From the durable state, not from a running proxy/],
      ] as const) {
        const opened = await openPage(browser, { width: 360 });
        await opened.page.goto(pathToFileURL(file).href);
        assert.match(await opened.page.innerText('main'), says);
        assert.equal(await overflow(opened.page), 0);
        assert.deepEqual([opened.complaints, opened.requests], [[], [pathToFileURL(file).href]]);
        if (process.env.PICTURES !== undefined)
          await opened.page.screenshot({
            path: join(process.env.PICTURES, file === page ? 'report-phone.png' : 'report-dead-phone.png'),
            fullPage: true,
          });
        await opened.page.setViewportSize({ width: 1280, height: 900 });
        if (process.env.PICTURES !== undefined)
          await opened.page.screenshot({
            path: join(process.env.PICTURES, file === page ? 'report.png' : 'report-dead.png'),
            fullPage: true,
          });
      }
    },
    { target: { config: { user: [`kit on >${PASSWORD} ~* &* +@all`] } } },
  );
});
