/**
 * Three shards of one plan, of which the second refuses: no shard is moved alone. And how long a rollback takes under
 * load: the test reports it, and checks it against the promised limit.
 *
 * Needs real processes: three proxies under load, and how long a rollback of all takes.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { withPairs, type Pair } from '../../support/servers.js';
import { moveRequest } from '../../support/move.js';
import { until } from '../../support/shard.js';
import { lostOn, startWriters, type Writers } from '../faults/outage.js';
import { runProgram } from './process.js';
import { planFor, start, status, type Running } from './running.js';

async function startAll(t: TestContext, pairs: readonly Pair[], stage: string): Promise<Running> {
  const plans = [];
  for (const pair of pairs) plans.push(await planFor(pair));
  const workloads = ['sessions', 'carts', 'flags'].map((name) => ({ name, keys: [`${name}:*`], stage }));
  const plan = { ...plans[0], workloads, shards: plans.map(({ shards }, i) => ({ ...shards[0], name: `s${i}` })) };
  const running = await start(t, plan);
  await running.daemon.prints(new RegExp(`"shard":"s${pairs.length - 1}".*"listening"`));
  return running;
}

test('of three shards none goes where the second refuses, at its gates or at its flip', async (t) => {
  await withPairs(3, async (pairs) => {
    const running = await startAll(t, pairs, 'off');
    const tool = (...args: string[]) => runProgram(t, 'shadow-compare', [...args, '--admin', running.admin]);
    const stages = async (): Promise<string> =>
      (await status(running.admin)).map(({ workloads }) => workloads[0].stage).join(' ');
    const beside = new Redis(pairs[1].source.port);
    await beside.ping();
    const closed = await tool('promote', 'sessions');
    assert.equal(closed.code, 1);
    assert.match(
      closed.stdout,
      /s0: sessions off → dualwrite[^]*s1: sessions off → dualwrite[^]*NO +│ bypass[^]*s2: sessions off → dualwrite/,
      'every shard is told',
    );
    assert.equal(await stages(), 'off off off');
    beside.disconnect();
    await until(async () => (await tool('promote', 'sessions')).code === 0, 20_000);
    assert.equal((await tool('promote', 'sessions')).code, 0);
    assert.equal(await stages(), 'shadow shadow shadow');
    // The target of s1 is down: whether users can log in there is unknown, and --force alone does not skip that check.
    await pairs[1].target.kill('SIGKILL');
    assert.equal((await tool('promote', 'sessions', '--force', '--reason', 'to see it')).code, 3);
    assert.equal(await stages(), 'shadow shadow shadow');
    const refused = await tool('promote', 'sessions', '--force', '--force-users', '--reason', 'to see it');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /s1: the target cannot be reached.*s0 went back to the stage before/);
    assert.equal(await stages(), 'shadow shadow shadow');
    await pairs[1].target.start();
    await until(
      async () => (await status(running.admin)).every(({ workloads }) => workloads[0].suspect === null),
      20_000,
    );
    assert.equal((await tool('promote', 'sessions', '--force', '--percent', '100', '--reason', 'to see it')).code, 0);
    assert.equal(await stages(), 'live live live');
    // One shard alone.
    assert.equal((await tool('rollback', 'sessions', '--shard', 's2')).code, 0);
    assert.equal(await stages(), 'live live shadow');
    assert.equal(
      (await tool('promote', 'sessions', '--shard', 's2', '--force', '--percent', '100', '--reason', 'to see it')).code,
      0,
    );
    // The second shard cannot be rolled back: its source is down.
    await pairs[1].source.kill('SIGKILL');
    const stuck = await tool('rollback', 'sessions');
    assert.equal(stuck.code, 1);
    assert.match(stuck.stderr, /s1: the source cannot be reached.*s0 went back to the stage before/);
    assert.equal(await stages(), 'live live live');
    // The emergency rollback takes back what it can, and says what it could not.
    const red = await tool('rollback', '--all');
    assert.equal(red.code, 1);
    assert.match(red.stderr, /s1: the source cannot be reached/);
    assert.equal(await stages(), 'shadow live shadow');
    const lines = (await tool('verify', '--workload', 'sessions', '--shard', 's0')).stdout;
    assert.match(lines, /s0/);
  });
});

const ROUNDS = 7;

test('going back under load: from the command to the last flip, and for how long commands are held', async (t) => {
  await withPairs(1, async (pairs) => {
    const running = await startAll(t, pairs, 'shadow');
    const writers = await Promise.all(['sessions', 'carts', 'flags'].map((name) => startWriters(running.port, name)));
    const ask = async (path: string, body: object): Promise<{ ms: number; held: number[] }> => {
      const began = performance.now();
      const response = await fetch(`${running.admin}${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      });
      const answer = (await response.json()) as {
        rollbacks?: { changes: { heldMs: number }[] }[];
        promotions?: { change: { heldMs: number } }[];
      };
      const ms = performance.now() - began;
      assert.ok(response.ok, JSON.stringify(answer));
      return {
        ms,
        held: [
          ...(answer.promotions ?? []).map(({ change }) => change),
          ...(answer.rollbacks ?? []).flatMap(({ changes }) => changes),
        ].map(({ heldMs }) => heldMs),
      };
    };
    try {
      const [one, all, there]: { ms: number; held: number[] }[][] = [[], [], []];
      for (let round = 0; round < ROUNDS; round++) {
        await until(() => writers.every(({ acknowledged }) => acknowledged.size > 200 * (round + 1)), 30_000);
        for (const workload of ['sessions', 'carts', 'flags'])
          there.push(await ask(...moveRequest(workload, 'shadow', 'live')));
        one.push(await ask('/api/rollback', { workload: 'sessions' }));
        there.push(await ask(...moveRequest('sessions', 'shadow', 'live')));
        all.push(await ask('/api/rollback', {}));
        assert.equal(all.at(-1)!.held.length, 3);
      }
      await Promise.all(writers.map((each) => each.stop()));
      for (const each of writers) assert.deepEqual(each.errors, []);
      const lost = async (each: Writers): Promise<string[]> => [
        ...(await lostOn(pairs[0].source, each)),
        ...(await lostOn(pairs[0].target, each)),
      ];
      await until(async () => (await status(running.admin))[0].mirror.queuedEffects === 0);
      for (const each of writers) assert.deepEqual(await lost(each), []);
      const tell = (what: string, values: number[]): string =>
        `${what}: median ${median(values).toFixed(1)} ms, most ${Math.max(...values).toFixed(1)} ms of ${values.length}`;
      t.diagnostic(
        tell(
          'rollback of one workload, command to last flip',
          one.map(({ ms }) => ms),
        ),
      );
      t.diagnostic(
        tell(
          'rollback --all, three workloads',
          all.map(({ ms }) => ms),
        ),
      );
      t.diagnostic(
        tell(
          'held by a promotion',
          there.flatMap(({ held }) => held),
        ),
      );
      t.diagnostic(
        tell(
          'held by a rollback',
          [...one, ...all].flatMap(({ held }) => held),
        ),
      );
      assert.ok(median(one.map(({ ms }) => ms)) < 1_000 && median(all.map(({ ms }) => ms)) < 1_000);
    } finally {
      for (const each of writers) each.kill();
    }
  });
});

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1];
