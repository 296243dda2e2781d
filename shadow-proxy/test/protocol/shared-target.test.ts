/** Several shards of one plan that keep their keys on one target. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pino } from 'pino';
import { StageError } from '../../src/control/status.js';
import { launch, type Launched } from '../../src/launch.js';
import { startRedis } from '../../src/local/servers.js';
import { planFrom } from '../../src/plan/load.js';
import { keyspace } from '../support/keyspace.js';
import { needsKeydb, withServers } from '../support/servers.js';
import { until } from '../support/shard.js';
import { withWire, Wire } from '../support/wire.js';

interface Shards {
  readonly shards: readonly Launched[];
  keys(): Promise<{ sources: string[][]; target: string[] }>;
}

/** Two shards with a source each and one target; `owns` of each, where given. */
async function withTwoShards(owns: readonly (readonly string[] | undefined)[], body: (shards: Shards) => Promise<void>): Promise<void> {
  await withServers(async ({ source, target }) => {
    const second = await startRedis();
    const state = mkdtempSync(join(tmpdir(), 'shared-'));
    const sources = [source, second];
    const shards = sources.map(({ url }, i) => ({ name: `s${i}`, listen: 'redis://127.0.0.1:0', source: url, target: target.url, ...(owns[i] && { owns: owns[i] }) }));
    const plan = planFrom({ version: 1, name: 'shared', shards, default: { stage: 'shadow' }, admin: { listen: '127.0.0.1:0' }, state }, 'the test', { directory: state, env: {} });
    const launched: Launched[] = [];
    const sorted = async (server: typeof source): Promise<string[]> => [...(await keyspace(server)).keys()].sort();
    try {
      for (const shard of plan.shards) launched.push(await launch(plan, shard, pino({ level: 'silent' })));
      await body({ shards: launched, keys: async () => ({ sources: await Promise.all(sources.map(sorted)), target: await sorted(target) }) });
    } finally {
      for (const each of launched) await each.stop();
      await second.stop();
      rmSync(state, { recursive: true });
    }
  });
}

const settled = (shards: readonly Launched[]): Promise<void> =>
  until(() => shards.every(({ shard }) => shard.snapshot().mirror.queuedEffects === 0 && shard.snapshot().suspects.total === 0));

test('the keys of both are on the target, and what would take the other’s is refused', async (t) => {
  if (!(await needsKeydb(t))) return;
  await withTwoShards([], async ({ shards, keys }) => {
    const [one, two] = await Promise.all(shards.map(({ shard }) => Wire.open({ port: shard.port })));
    await Promise.all([one, two].map((wire, i) => wire.pipeline(Array.from({ length: 200 }, (_, n) => ['SET', `s${i}:${n}`, n]))));
    await Promise.all([one, two].map((wire, i) => wire.pipeline([['SELECT', 1], ['LPUSH', `s${i}:list`, 1], ['SELECT', 0]])));
    await settled(shards);
    const before = await keys();
    assert.equal(before.target.length, 402);
    assert.deepEqual(before.target, before.sources.flat().sort());
    for (const args of [['FLUSHALL'], ['FLUSHDB'], ['FLUSHALL', 'ASYNC'], ['SWAPDB', '0', '1']]) {
      assert.match(await one.ask(...args), /^-ERR shadow-proxy: (FLUSHALL|FLUSHDB|SWAPDB) is refused: other shards keep their keys on the same target/);
    }
    const inMulti = await two.pipeline([['MULTI'], ['FLUSHALL'], ['EXEC']]);
    assert.match(inMulti[2], /^-EXECABORT/);
    for (const keys of [[0], [1, 's1:1']]) {
      const script = ['EVAL', "return redis.call('FLUSHALL')", ...keys];
      const refused = /^-ERR shadow-proxy: EVAL of a script with FLUSHALL, FLUSHDB or SWAPDB is refused/;
      assert.match(await two.ask(...script), refused);
      assert.match((await two.pipeline([['MULTI'], script, ['EXEC']]))[2], refused);
    }
    assert.deepEqual(await keys(), before);
    assert.equal(await one.ask('DEL', 's0:1'), ':1');
    assert.equal(await two.ask('MOVE', 's1:2', 2), ':1');
    await settled(shards);
    const after = await keys();
    assert.deepEqual(after.target, after.sources.flat().sort());
    for (const wire of [one, two]) wire.destroy();
  });
});

test('no stage beyond shadow without a word on which keys each shard owns', async (t) => {
  if (!(await needsKeydb(t))) return;
  await withTwoShards([['a:*'], undefined], async ({ shards }) => {
    const [owner, silent] = shards;
    await assert.rejects(silent.shard.changeStage({ workload: 'default', stage: 'live' }), (error: unknown) => error instanceof StageError && error.code === 'refused' && /owns/.test(error.message));
    assert.equal(silent.shard.snapshot().workloads[0].stage, 'shadow');
    await silent.shard.changeStage({ workload: 'default', stage: 'dualwrite' });
    await withWire(owner.shard.port, async (wire) => assert.equal(await wire.ask('SET', 'a:1', 1), '+OK'));
  });
  await withTwoShards([['a:*'], ['b:*']], async ({ shards, keys }) => {
    for (const [i, { shard }] of shards.entries()) {
      await withWire(shard.port, (wire) => wire.ask('SET', `${'ab'[i]}:1`, 1));
      await settled(shards);
      await shard.changeStage({ workload: 'default', stage: 'live' });
      await withWire(shard.port, (wire) => wire.ask('INCR', `${'ab'[i]}:1`));
    }
    await settled(shards);
    assert.deepEqual((await keys()).target, ['0:a:1', '0:b:1']);
    assert.deepEqual(shards.map(({ shard }) => shard.snapshot().mismatches), [{}, {}]);
  });
});
