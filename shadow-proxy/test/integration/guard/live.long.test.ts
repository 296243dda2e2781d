/**
 * `shadow-compare guard` on two real active replicas: what it says, and that what it advises makes it say otherwise.
 *
 * Needs real servers: INFO and replication of two active KeyDB nodes, as guard reads them.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import type { Guard } from '../../../src/cli/guard.js';
import { ActivePair, RESYNCS, SIDES } from '../../../src/local/active-pair.js';
import { startRedis } from '../../../src/local/servers.js';
import { Program, runProgram } from '../cli/process.js';
import { planFor, start } from '../cli/running.js';
import { scratch, type PlanObject } from '../../support/plans.js';
import { needs } from '../../support/needs.js';

/** A plan whose two shards have the pair as their targets; their sources are never asked. */
const planOf = ({ nodes }: ActivePair, change: PlanObject): PlanObject => ({
  version: 1,
  name: 'test',
  shards: SIDES.map((region, i) => ({
    name: region,
    region,
    listen: `redis://127.0.0.1:${6500 + i}`,
    source: `redis://127.0.0.1:${6600 + i}`,
    target: nodes[region].url,
  })),
  topology: { mode: 'active-active', regions: ['a', 'b'] },
  ...change,
});

async function guard(
  t: TestContext,
  plan: PlanObject,
  ...args: readonly string[]
): Promise<{ code: number | null; said: Guard; stdout: string }> {
  const file = join(scratch(t), 'plan.yaml');
  writeFileSync(file, stringify(plan));
  const { code, stdout, stderr } = await runProgram(t, 'shadow-compare', [
    'guard',
    '--plan',
    file,
    '--no-proxy',
    '--for',
    '500ms',
    ...args,
  ]);
  assert.equal(stderr, '');
  return { code, stdout, said: args.includes('--json') ? (JSON.parse(stdout) as Guard) : (null as never) };
}

test('guard on two active replicas', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const pair = await ActivePair.start();
  t.after(() => pair.stop());
  const pinned = planOf(pair, { workloads: [{ name: 'rl', keys: ['rl:*'], class: 'counter', writer: 'a' }] });

  await t.test('a single writer of small numbers is unsafe, until each key has a time of its own', async () => {
    const before = await guard(t, pinned, '--json');
    assert.equal(before.code, 1);
    assert.match(before.said.workloads[0].why, /keep one modification time for all keys with the same number/);
    assert.deepEqual(
      before.said.hazards.map(({ about }) => about),
      ['integers'],
    );
    for (const side of SIDES)
      await pair.clients[side]
        .config('SET', 'maxmemory', '100mb')
        .then(() => pair.clients[side].config('SET', 'maxmemory-policy', 'volatile-lru'));
    const after = await guard(t, pinned, '--json');
    assert.deepEqual(
      [after.code, after.said.verdict, after.said.workloads[0].why, after.said.hazards],
      [0, 'safe', 'one writer: a', []],
    );
    assert.equal(after.said.clusters.length, 1, 'two targets, one topology');
    assert.deepEqual(
      after.said.clusters[0].nodes.map(({ role }) => role),
      ['active-replica', 'active-replica'],
    );
  });

  await t.test('a client that counts at the other node is seen', async () => {
    await pair.clients.b.client('SETNAME', 'api');
    await pair.clients.b.incr('rl:1');
    const { code, said } = await guard(t, pinned, '--json');
    assert.equal(code, 3);
    assert.match(said.workloads[0].why, /api writes at 127\.0\.0\.1:\d+ \(incr\), bypassing the proxy/);
    await pair.clients.b.ping();
  });

  await t.test('a plan that knows of one writer only, and nodes that take two', async () => {
    const plan = planOf(pair, { topology: {}, workloads: [{ name: 'rl', keys: ['rl:*'], class: 'counter' }] });
    for (const shard of plan.shards) delete shard.region;
    const { code, stdout } = await guard(t, plan);
    assert.equal(code, 1);
    assert.match(stdout, /UNSAFE/);
    assert.match(stdout.replace(/[\s│]+/g, ' '), /the plan says primary-replica, but .* accept writes/);
    assert.ok(
      stdout.split('\n').every((line) => line.length <= 80),
      'fits 80 columns',
    );
  });

  await t.test('guard warns of an AOF, and of a replication backlog that is too small for the load', async () => {
    await pair.clients.a.config('SET', 'appendonly', 'yes');
    // It is refused where the backlog that is set below leaves it no memory.
    const writing = setInterval(() => void pair.clients.a.set('big', 'x'.repeat(10_000)).catch(() => undefined), 10);
    try {
      const { said } = await guard(t, { ...pinned, topology: { ...pinned.topology, outageMinutes: 600 } }, '--json');
      assert.deepEqual([...new Set(said.hazards.map(({ about }) => about))].sort(), ['aof', 'backlog']);
      const backlog = said.hazards.find(({ about }) => about === 'backlog')!;
      const [, bytes] = /CONFIG SET repl-backlog-size (\d+)/.exec(backlog.todo)!;
      assert.equal(
        await pair.clients.a.config('SET', 'repl-backlog-size', bytes),
        'OK',
        'KeyDB takes the size that is computed',
      );
    } finally {
      clearInterval(writing);
    }
  });
});

test('guard --watch alerts on a full resync, once, and on a verdict that changes', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const pair = await ActivePair.start({
    backlogBytes: 16_384,
    config: { maxmemory: '100mb', 'maxmemory-policy': 'volatile-lru' },
  });
  t.after(() => pair.stop());
  const file = join(scratch(t), 'plan.yaml');
  writeFileSync(
    file,
    stringify(planOf(pair, { workloads: [{ name: 'rl', keys: ['rl:*'], class: 'counter', writer: 'a' }] })),
  );
  const program = new Program(t, 'shadow-compare', [
    'guard',
    '--plan',
    file,
    '--no-proxy',
    '--watch',
    '--for',
    '100ms',
  ]);
  await program.prints(/one writer: a/);
  await pair.cut();
  assert.deepEqual(await pair.rejoin(RESYNCS.full), RESYNCS.full);
  await program.prints(/ALERT: 127\.0\.0\.1:\d+ has served 1 full resync \(sync_full \d+\)[^\n]*\n[^\n]*ALERT/, 60_000);
  await pair.clients.a.config('SET', 'maxmemory-policy', 'noeviction');
  await program.prints(/UNSAFE: rl: its writer is a, but/, 60_000);
  assert.equal(program.stdout.match(/ALERT/g)?.length, 2, 'one for each node');
});

test('guard asks the running proxy for counters that the plan does not know, and promote asks guard', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const [pair, source] = [await ActivePair.start(), await startRedis()];
  t.after(() => Promise.all([pair.stop(), source.stop()]));
  const plan = await planFor({ source, target: pair.nodes.a }, (file) => {
    file.topology = { mode: 'active-active', regions: ['a', 'b'] };
    file.shards[0].region = 'a';
  });
  // The nodes hold the keys by which the pair is seen to replicate.
  const { file, connect } = await start(t, plan, undefined, ['--first-start']);
  const ask = (...args: readonly string[]) => runProgram(t, 'shadow-compare', [...args, '--plan', file]);
  const nobody = await ask('guard', '--for', '100ms');
  assert.equal(nobody.code, 3);
  assert.match(nobody.stdout, /UNKNOWN: the proxy has seen no client command yet/);
  const client = connect();
  await client.set('session:1', 'x');
  assert.equal((await ask('guard', '--for', '100ms')).code, 0, 'nothing counts yet');
  assert.equal((await ask('promote', 'sessions', '--dry-run')).code, 0);
  for (let i = 0; i < 3; i++) await client.incr(`session:${i}:hits`);
  const { code, stdout } = await ask('guard', '--for', '100ms', '--json');
  const { workloads } = JSON.parse(stdout) as Guard;
  assert.deepEqual(
    [code, workloads.map(({ workload, verdict }) => [workload, verdict])],
    [1, [['sessions', 'unsafe']]],
  );
  assert.match(workloads[0].why, /accept writes; seen: session:\* incr 3/);
  const promote = await ask('promote', 'sessions', '--dry-run');
  assert.equal(promote.code, 1);
  assert.match(promote.stdout, /NO\s+│ counters/);
  assert.match((await ask('status')).stdout, /counters +session:\* incr 3/);
});

test('guard reports UNREAD if a node does not answer', async (t) => {
  const plan = {
    version: 1,
    name: 't',
    shards: [
      { name: 'a', listen: 'redis://127.0.0.1:6500', source: 'redis://127.0.0.1:6600', target: 'redis://127.0.0.1:1' },
    ],
    workloads: [{ name: 'rl', keys: ['rl:*'], class: 'counter' }],
  };
  const { code, stdout } = await guard(t, plan);
  assert.equal(code, 3);
  assert.match(stdout, /UNREAD/);
});

test('guard needs a plan, and a proxy unless --no-proxy is given', async (t) => {
  const without = await runProgram(t, 'shadow-compare', ['guard']);
  assert.equal(without.code, 2);
  assert.match(without.stderr, /--plan is missing/);
  const file = join(scratch(t), 'plan.yaml');
  writeFileSync(
    file,
    stringify({
      version: 1,
      name: 't',
      shards: [
        {
          name: 'a',
          listen: 'redis://127.0.0.1:6500',
          source: 'redis://127.0.0.1:6600',
          target: 'redis://127.0.0.1:1',
        },
      ],
      admin: { listen: '127.0.0.1:2' },
    }),
  );
  const { code, stdout } = await runProgram(t, 'shadow-compare', ['guard', '--plan', file, '--for', '1ms']);
  assert.equal(code, 3);
  assert.match(stdout, /UNKNOWN: no proxy answers at .*--no-proxy/);
});
