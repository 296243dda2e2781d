/**
 * A job is changed while it runs, from the CLI and by the admin API.
 *
 * Needs real processes: a job that was paused stays paused after SIGKILL of its proxy.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { JobSnapshot } from '../../../src/telemetry/snapshot.js';
import { startTarget } from '../../../src/local/servers.js';
import { differences } from '../../support/keyspace.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { Program, runCommand } from './process.js';
import { planFor, start, status } from './running.js';

const KEYS = 3_000;

async function fill(url: string): Promise<void> {
  const source = new Redis(url);
  const pipeline = source.pipeline();
  for (let i = 0; i < KEYS; i++) pipeline.set(`session:${i}`, `secret ${i}`);
  await pipeline.exec();
  source.disconnect();
}

const DUAL = [{ name: 'sessions', keys: ['session:*'], stage: 'dualwrite' }] as const;

for (const kind of ['backfill', 'verify'] as const)
  test(`a ${kind} that runs is paused, stays paused after the proxy was killed, and goes on faster`, async (t) => {
    await withServers(async (servers) => {
      await fill(servers.source.url);
      const plan = await planFor(servers, (planned) => void (planned.workloads = [...DUAL]));
      const first = await start(t, plan);
      const { admin } = first;
      const job = async (): Promise<JobSnapshot> => (await status(admin))[0].job!;
      const tell = async (code: number, ...args: string[]): Promise<string> => {
        const ended = await runCommand('job', ...args, '--admin', admin);
        assert.equal(ended.code, code, ended.stdout + ended.stderr);
        return ended.stdout + ended.stderr;
      };
      assert.match(await tell(0), /^No backfill and no verify runs\n$/);
      assert.match(await tell(1, '--pause'), /^no backfill or verification is running: nothing was changed/);

      const followed = new Program(t, 'shadow-compare', [kind, '--keys-per-second', '50', '--admin', admin]);
      await until(async () => (await status(admin))[0].job?.state === 'running' && (await job()).seen > 0);
      assert.match(
        await tell(0, '--pause', '--reason', 'a sale'),
        new RegExp(`^a: ${kind} running: .*paused by \\S+: a sale\\n {2}limits: at most 50 keys a second\\n$`),
      );
      const done = ({ copied, verified }: JobSnapshot): number => copied + verified;
      // What had begun ends; then only time can show that nothing more begins.
      const stands = async (): Promise<void> => {
        for (let before = -1; before !== done(await job());) {
          before = done(await job());
          await sleep(500);
        }
        assert.ok(done(await job()) < KEYS / 2, `${done(await job())} keys`);
      };
      await stands();
      const { paused, keysPerSecond, etaSeconds, state } = await job();
      assert.deepEqual([paused!.reason, keysPerSecond, etaSeconds, state], ['a sale', 0, null, 'running']);
      const busy = await runCommand(kind === 'verify' ? 'backfill' : 'verify', '--admin', admin);
      assert.equal(busy.code, 1);
      assert.match(busy.stderr, new RegExp(`^a ${kind} is paused: let it go on \\(job --resume\\), or stop it`));

      first.daemon.signal('SIGKILL');
      await first.daemon.exit();
      await start(t, plan, first.directory);
      await until(async () => (await job()).paused !== null);
      assert.equal((await job()).limits.keysPerSecond, 50);
      await stands();
      assert.match(
        await tell(0, '--keys-per-second', 'none', '--bytes-per-second', '50000000', '--resume'),
        /limits: no limit of keys a second, at most 50000000 bytes a second\n$/,
      );
      assert.equal(await followed.exit(), kind === 'backfill' ? 0 : 1, followed.stderr);
      assert.equal((await job()).state, 'done');
      if (kind === 'backfill') assert.deepEqual(await differences(servers.source, servers.target), []);
      const { stdout } = await runCommand('history', '--admin', admin);
      assert.match(
        stdout.replace(/\s+/g, ' '),
        new RegExp(
          `${kind} of sessions: paused, by \\S+: a sale.*${kind} of sessions: goes on, no limit of keys a second, at most 50000000 bytes a second, by `,
        ),
      );
    });
  });

test('a change that names nothing, or a limit that is none, is refused by name', async (t) => {
  await withServers(async (servers) => {
    const { admin } = await start(t, await planFor(servers));
    const tell = async (...args: string[]): Promise<string> => {
      const { code, stderr } = await runCommand('job', ...args, '--admin', admin);
      return `${code} ${stderr.split('\n')[0]}`;
    };
    assert.match(await tell('--keys-per-second', '0'), /^2 .*--keys-per-second.*Give a number above 0, or none/);
    assert.match(await tell('--pause', '--resume'), /^2 .*--pause.*cannot be used with.*--resume/);
    assert.match(await tell('--reason', 'none'), /^2 --reason goes with a change: add --pause, --resume, or a limit/);
    assert.match(await tell('--pause', '--shard', 'b'), /^2 there is no shard b here\. The shards: a/);
    const patch = async (body: object): Promise<string> => {
      const answer = await fetch(`${admin}/api/jobs`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return `${answer.status} ${((await answer.json()) as { error: { message: string } }).error.message}`;
    };
    assert.match(
      await patch({}),
      /^400 .*give state \(pause or resume\), or limits with at least one of keysPerSecond,/,
    );
    assert.match(await patch({ limits: { keysPerSecond: -1 } }), /^400 limits\.keysPerSecond: /);
    assert.match(await patch({ limits: { keysPerHour: 1 } }), /^400 limits: .*keysPerHour/);
    assert.match(await patch({ state: 'stop' }), /^400 state: /);
    assert.match(await patch({ state: 'pause' }), /^409 no backfill or verification is running/);
  });
});

test('a backfill waits while a replica of the target is behind, as the plan says, and goes on when it is not', async (t) => {
  await withServers(async (servers) => {
    await fill(servers.source.url);
    const target = new Redis(servers.target.url);
    t.after(() => target.disconnect());
    const plan = await planFor(servers, (planned) => {
      planned.workloads = [...DUAL];
      Object.assign(planned, { jobs: { maxReplicaLagBytes: '1KiB' } });
    });
    const { admin } = await start(t, plan);
    const job = async (): Promise<JobSnapshot | null> => (await status(admin))[0].job;
    const replica = await startTarget({ config: { replicaof: `127.0.0.1 ${servers.target.port}` } });
    t.after(() => replica.stop());
    await until(async () => /slave0:.*state=online/.test(await target.info('replication')));
    await replica.kill('SIGSTOP');
    const followed = new Program(t, 'shadow-compare', ['backfill', '--keys-per-second', '1000', '--admin', admin]);
    await until(async () => /a replica of the target is behind: /.test((await job())?.reason ?? ''));
    assert.equal((await job())!.state, 'running');
    await replica.kill('SIGCONT');
    assert.equal(await followed.exit(), 0, followed.stderr);
    assert.deepEqual(await differences(servers.source, servers.target), []);
  });
});
