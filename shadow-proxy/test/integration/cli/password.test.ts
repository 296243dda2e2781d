/**
 * A server that wants a password which the plan does not give: said at once, tried again, and never a hang.
 *
 * Needs real servers: NOAUTH, WRONGPASS and logins, in the words of both servers.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { startTestShard, until } from '../../support/shard.js';
import { scratch } from '../../support/plans.js';
import { withServers } from '../../support/servers.js';
import { Program, runCommand, runProgram } from './process.js';
import { planFor } from './running.js';

const LOCKED = { source: { config: { requirepass: 'pw' } } } as const;

test('the daemon says that the source wants a password, is not ready, and starts as soon as the plan gives it', async (t) => {
  await withServers(async (servers) => {
    const plan = await planFor(servers);
    const admin = `http://${plan.admin.listen}`;
    const file = join(scratch(t), 'plan.yaml');
    writeFileSync(file, stringify(plan));
    const began = performance.now();
    const daemon = new Program(t, 'shadow-proxy', ['--plan', file]);
    await daemon.prints(
      /the source redis:\/\/127\.0\.0\.1:\d+ requires a password, and the plan has none \(NOAUTH [^)]*\): add it to the URL, or set passwordFile.*retrying every second/,
    );
    t.diagnostic(`said after ${Math.round(performance.now() - began)} ms with the start of the program`);
    const ready = await fetch(`${admin}/readyz`);
    assert.deepEqual([ready.status, await ready.json()], [503, { ready: false, notReady: ['a'], starting: ['a'] }]);
    const { stdout } = await runCommand('status', '--admin', admin);
    assert.match(
      stdout,
      /^shard a\nNOT STARTED, next try in 1 s: shard a cannot start: the source .* requires a password/,
    );
    plan.shards[0].source = servers.source.url.replace('//', '//:pw@');
    writeFileSync(file, stringify(plan));
    await daemon.prints(/"listening"/);
    assert.equal((await fetch(`${admin}/readyz`)).status, 200);
    assert.doesNotMatch(daemon.stdout, /:pw@/);
  }, LOCKED);
});

test('a run ends at once, with 3, where a password is missing or wrong', async (t) => {
  await withServers(async ({ source, target }) => {
    for (const [url, text] of [
      [source.url, /requires a password, and the plan has none/],
      [source.url.replace('//', '//:wrong@'), /WRONGPASS/],
    ] as const) {
      const { code, stderr } = await runProgram(t, 'shadow-compare', [
        'run',
        '--source',
        url,
        '--target',
        target.url,
        '--listen',
        '127.0.0.1:0',
        '--for',
        '3s',
      ]);
      assert.equal(code, 3);
      assert.match(stderr, text);
    }
  }, LOCKED);
});

test('a target that refuses the login is named in the status, and not used', async () => {
  await withServers(
    async ({ source, target }) => {
      for (const url of [target.url, target.url.replace('//', '//:wrong@')]) {
        const shard = await startTestShard({ source, target: url });
        try {
          await until(() => shard.snapshot().target.problem !== null, 5_000);
          assert.match(
            shard.snapshot().target.problem!,
            url.includes('@')
              ? /^the target .* refuses: WRONGPASS/
              : /^the target .* requires a password, and the plan has none/,
          );
          assert.notEqual(shard.snapshot().target.up, true);
          assert.equal(shard.snapshot().workloads[0].stage, 'off', 'nothing is written to it');
        } finally {
          await shard.stop();
        }
      }
    },
    { target: { config: { requirepass: 'pw' } } },
  );
});
