/**
 * Operators' commands over shards that have a process each, which only real processes with addresses of their own show:
 * every shard is asked, all are moved or none, and a proxy that does not answer is named.
 *
 * Needs real processes: a process for each shard, one of which is stopped and does not answer.
 */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import { freePort } from '../../../src/local/port.js';
import { scratch } from '../../support/plans.js';
import { withPairs, type Pair } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import type { Ended } from './many-commands.js';
import { Program, runCommand } from './process.js';
import { type status } from './running.js';

const NAMES = ['s0', 's1', 's2'];

interface Fleet {
  readonly file: string;
  readonly admins: readonly string[];
  readonly proxies: readonly Program[];
  readonly pairs: readonly Pair[];
  /** Runs a command with `--plan`. */
  tool(...args: readonly string[]): Promise<Ended>;
  /** The stage of `sessions` on each shard that answers. */
  stages(): Promise<string>;
}

/** Three shards, each with its servers and its process. */
async function withFleet(t: TestContext, stage: string, body: (fleet: Fleet) => Promise<void>): Promise<void> {
  await withPairs(NAMES.length, async (pairs) => {
    const directory = scratch(t);
    const admins: string[] = [];
    const shards = [];
    for (const [i, name] of NAMES.entries()) {
      admins.push(`127.0.0.1:${await freePort()}`);
      shards.push({
        name,
        listen: `redis://127.0.0.1:${await freePort()}`,
        source: pairs[i].source.url,
        target: pairs[i].target.url,
        admin: { listen: admins[i], tokenFile: 'secrets/token' },
      });
    }
    const plan = {
      version: 1,
      name: 'moving',
      shards,
      workloads: ['sessions', 'carts'].map((name) => ({ name, keys: [`${name}:*`], stage })),
      admin: { listen: `127.0.0.1:${await freePort()}`, tokenFile: 'secrets/token' },
    };
    mkdirSync(join(directory, 'secrets'));
    writeFileSync(join(directory, 'secrets', 'token'), 'the-token\n');
    const file = join(directory, 'plan.yaml');
    writeFileSync(file, stringify(plan));
    const proxies = NAMES.map((name) => new Program(t, 'shadow-proxy', ['--plan', file, '--shard', name]));
    for (const proxy of proxies) await proxy.prints(/"listening"/);
    const tool = (...args: readonly string[]): Promise<Ended> => runCommand(...args, '--plan', file);
    await body({
      ...{ file, admins, proxies, pairs, tool },
      async stages() {
        const { stdout } = await tool('status', '--json');
        const shown = JSON.parse(stdout) as Awaited<ReturnType<typeof status>>;
        return shown.map(({ name, workloads }) => `${name} ${workloads[0].stage}`).join(', ');
      },
    });
  });
}

test('each command reaches every shard, and a named shard alone', async (t) => {
  await withFleet(t, 'dualwrite', async ({ tool, stages, file }) => {
    const shown = await tool('status');
    assert.equal(shown.code, 0, shown.stderr);
    assert.match(shown.stdout, /^moving: 3 of 3 shards served, 3 workloads, 0 clients\n/);
    assert.match(shown.stdout, /\nsessions +dualwrite +0 +0 +0 +0 /);
    assert.ok(
      shown.stdout.split('\n').every((line) => line.length <= 80 || line.startsWith('One shard:')),
      shown.stdout,
    );
    const each = await tool('status', '--each');
    for (const name of NAMES) assert.match(each.stdout, new RegExp(`^shard ${name}$`, 'm'));
    const one = await tool('status', '--shard', 's1');
    assert.match(one.stdout, /^shard s1$/m);
    assert.doesNotMatch(one.stdout, /^shard s0$/m);
    const unknown = await tool('status', '--shard', 's9');
    assert.deepEqual(
      [unknown.code, /--shard s9: there is no such shard\. The shards: s0, s1, s2/.test(unknown.stderr)],
      [2, true],
    );

    const copied = await tool('backfill');
    assert.equal(copied.code, 3, 'there are no keys yet');
    for (const name of NAMES) assert.match(copied.stdout, new RegExp(`^${name}: backfill done`, 'm'));
    const moved = await tool('promote', 'sessions', '--force', '--reason', 'to see it');
    assert.equal(moved.code, 0, moved.stderr);
    assert.equal(await stages(), 's0 shadow, s1 shadow, s2 shadow');
    const back = await tool('rollback', 'sessions', '--shard', 's1');
    assert.equal(back.code, 0, back.stderr);
    assert.equal(await stages(), 's0 shadow, s1 dualwrite, s2 shadow');
    assert.match((await tool('status')).stdout, /look {2}sessions is in dualwrite on s1\./);
    const history = await tool('history');
    for (const name of NAMES) assert.match(history.stdout, new RegExp(`${name}: sessions dualwrite → shadow`));
    const report = await tool('report', '--format', 'json');
    assert.equal(report.code, 0, report.stderr);
    assert.deepEqual(
      (JSON.parse(report.stdout) as { shards: { from: string }[] }).shards.map(({ from }) => from),
      ['proxy', 'proxy', 'proxy'],
    );
    // On a machine without the secrets of the plan the token comes from an option.
    renameSync(join(file, '../secrets'), join(file, '../moved'));
    const refused = await tool('status');
    assert.equal(refused.code, 2);
    assert.match(
      refused.stderr,
      /requires its admin token \(admin\.tokenFile is .*\/secrets\/token, which cannot be read here \(ENOENT\)\): set SHADOW_PROXY_TOKEN/,
    );
    assert.equal((await tool('status', '--token-file', join(file, '../moved/token'))).code, 0);
  });
});

test('no shard is moved where one refuses; what one has done already is taken back', async (t) => {
  await withFleet(t, 'shadow', async ({ tool, stages, admins, pairs }) => {
    // Judged, every shard may go, for the gates are forced. Then the second one refuses.
    await pairs[1].target.kill('SIGKILL');
    const force = ['--force', '--force-users', '--reason', 'to see it'];
    const stopped = await tool('promote', 'sessions', '--percent', '100', ...force);
    assert.equal(stopped.code, 1, stopped.stdout);
    assert.match(stopped.stderr, /s1: the target cannot be reached.*; s0 went back to the stage before/);
    assert.equal(await stages(), 's0 shadow, s1 shadow, s2 shadow');
    assert.match((await tool('history')).stdout, /s0: sessions live → shadow.*\n/);
    await pairs[1].target.start();
    const isClean = async (): Promise<boolean> =>
      (JSON.parse((await tool('status', '--json')).stdout) as Awaited<ReturnType<typeof status>>).every(
        ({ target, workloads }) => target.up === true && workloads.every(({ clean }) => clean),
      );
    await until(isClean, 20_000);
    const live = await tool('promote', 'sessions', '--percent', '100', '--force', '--reason', 'to see it');
    assert.equal(live.code, 0, live.stderr);
    assert.equal(await stages(), 's0 live, s1 live, s2 live');
    // The last shard is in another stage: judged, it refuses, and nothing is changed.
    assert.equal((await tool('rollback', 'sessions', '--shard', 's2')).code, 0);
    const refused = await tool('rollback', 'sessions', '--to', 'shadow');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /s2: "sessions" is in shadow: shadow is not an earlier stage/);
    assert.equal(await stages(), 's0 live, s1 live, s2 shadow');

    const call = async (path: string, body: object): Promise<[status: number, text: string]> => {
      const response = await fetch(`http://${admins[0]}${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json', authorization: 'Bearer the-token' },
      });
      return [response.status, await response.text()];
    };
    const from = { stage: 'shadow', percent: 100 };
    assert.deepEqual(await call('/api/take-back', { shard: 's0', workload: 'sessions', from, why: 's2 refused' }), [
      200,
      '{"takenBack":[{"shard":"s0"}]}\n',
    ]);
    assert.equal(await stages(), 's0 shadow, s1 live, s2 shadow');
    const [code, text] = await call('/api/take-back', {
      ...{ shard: 's0', workload: 'carts', why: 's2 refused' },
      from: { stage: 'live', percent: 100 },
    });
    assert.equal(code, 409);
    assert.match(text, /\\"carts\\" was not in live during the last 5 minutes/);
  });
});

test('a shard whose proxy does not answer is named, and hides no other', async (t) => {
  await withFleet(t, 'shadow', async ({ tool, stages, proxies, admins }) => {
    assert.equal((await tool('promote', 'sessions', '--percent', '100', '--force', '--reason', 'to see it')).code, 0);
    proxies[1].signal('SIGKILL');
    await until(async () => (await tool('status')).code === 3);
    const shown = await tool('status');
    assert.match(shown.stdout, /^moving: 2 of 3 shards served/);
    assert.match(shown.stdout, new RegExp(`^ACT {3}no proxy answers at http://${admins[1]}/api/status`, 'm'));
    assert.match(shown.stdout, /^ACT {3}s1: No proxy serves it\.$/m);
    assert.equal(await stages(), 's0 live, s2 live');

    const refused = await tool('promote', 'carts', '--percent', '100', '--force', '--reason', 'to see it');
    assert.equal(refused.code, 3);
    assert.match(
      refused.stderr,
      /"carts" keeps its stage on every shard: no proxy answers for s1 \(no proxy answers at /,
    );
    assert.equal((await tool('promote', 'carts', '--shard', 's0', '--force', '--reason', 'to see it')).code, 0);

    // The emergency rollback goes on with those that answer.
    const back = await tool('rollback', '--all');
    assert.equal(back.code, 1);
    assert.match(back.stderr, /no proxy answers for s1/);
    assert.match(back.stderr, /s0: carts was rolled back/);
    assert.match(back.stderr, /s2: sessions was rolled back/);
    assert.equal(await stages(), 's0 shadow, s2 shadow');
    const jobs = await tool('backfill', '--json');
    assert.match(jobs.stderr, /Not begun on s1: no proxy answers/);
  });
});

test('runbook --fleet moves every workload on every shard, stops where one is not as expected, and goes on', async (t) => {
  await withFleet(t, 'off', async ({ tool, pairs, stages }) => {
    await pairs[2].target.kill('SIGKILL');
    const stopped = await tool('runbook', 'week-1', '--fleet', '--yes', '--until', 'verify');
    assert.notEqual(stopped.code, 0, stopped.stdout);
    assert.match(stopped.stdout, /✗ dualwrite-gates:sessions: .*\n/);
    assert.match(stopped.stdout, /s2: sessions off → dualwrite[\s\S]*servers/, 'it shows what the step printed');
    assert.match(stopped.stdout, /The same command continues with this step\.\n$/);
    assert.equal(await stages(), 's0 off, s1 off, s2 off');

    await pairs[2].target.start();
    await until(
      async () =>
        (JSON.parse((await tool('status', '--json')).stdout) as Awaited<ReturnType<typeof status>>).every(
          ({ target }) => target.up !== false,
        ),
      20_000,
    );
    const began = performance.now();
    const done = await tool('runbook', 'week-1', '--fleet', '--yes', '--until', 'dualwrite');
    assert.equal(done.code, 0, done.stdout + done.stderr);
    const perStep = (performance.now() - began) / 5;
    t.diagnostic(`${Math.round(perStep)} ms a step`);
    assert.deepEqual(
      done.stdout.split('\n').filter((line) => line.startsWith('✓')),
      ['dualwrite-gates:sessions', 'dualwrite-gates:carts', 'dualwrite:sessions', 'dualwrite:carts'].map(
        (id) => `✓ ${id}`,
      ),
    );
    assert.doesNotMatch(done.stdout, /│/, 'what is as expected is one line');
    assert.equal(await stages(), 's0 dualwrite, s1 dualwrite, s2 dualwrite');
    const again = await tool('runbook', 'week-1', '--fleet', '--yes', '--until', 'dualwrite');
    assert.match(again.stdout, /dualwrite:carts is done already: nothing was run\./);
    const history = await tool('history');
    for (const name of NAMES)
      assert.match(history.stdout, new RegExp(`${name}: runbook week-1-shadow: dualwrite:carts run`));
    const both = await tool('runbook', 'week-1', '--fleet', '--check');
    assert.deepEqual([both.code, both.stderr], [2, '--fleet and --check: give one of them\n']);
  });
});
