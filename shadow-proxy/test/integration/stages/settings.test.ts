/**
 * The gate `servers` compares the settings of both servers: a difference that clients can see must be accepted.
 *
 * Needs real servers: CONFIG GET of both servers, and the defaults of each release.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Gate } from '../../../src/stages/gates.js';
import { withRig, type Rig } from '../../support/rig.js';

const OFF = { default: { stage: 'off' } } as const;
const accepting = (...acceptSettings: string[]) => ({ ...OFF, plan: { gates: { acceptSettings } } });
const source = (config: Record<string, string | number>) => ({ servers: { source: { config } } });

const gate = async ({ shard }: Pick<Rig, 'shard'>): Promise<Gate> =>
  (await shard.shard.promote({ workload: 'default', dryRun: true })).gates.find(({ name }) => name === 'servers')!;

test('servers with their own defaults differ in nothing that clients can see', async () => {
  await withRig(OFF, async (rig) => {
    const { answer, evidence } = await gate(rig);
    assert.deepEqual([answer, evidence], ['yes', 'two different servers, both masters; the target accepts writes']);
  });
});

test('each setting that clients can see closes the gate with both values, and the command to type opens it', async () => {
  await withRig({ ...OFF, ...source({ 'notify-keyspace-events': 'KEA' }) }, async (rig) => {
    const [redis, keydb] = [rig.client({ of: rig.source }), rig.client({ of: rig.target })];
    for (const [name, value] of [
      ['hash-max-ziplist-entries', '7'],
      ['hash-max-ziplist-value', '8'],
      ['hll-sparse-max-bytes', '100'],
      ['lua-time-limit', '70'],
      ['maxmemory-policy', 'allkeys-lru'],
      ['proto-max-bulk-len', '1048576'],
      ['set-max-intset-entries', '9'],
      ['stop-writes-on-bgsave-error', 'no'],
      ['stream-node-max-bytes', '512'],
      ['stream-node-max-entries', '10'],
      ['timeout', '1000'],
      ['zset-max-ziplist-entries', '11'],
      ['zset-max-ziplist-value', '12'],
      ['client-query-buffer-limit', '2147483648'],
    ])
      await redis.config('SET', name, value);
    await keydb.config('SET', 'maxclients', 50);
    await keydb.config('SET', 'client-output-buffer-limit', 'pubsub 1mb 0 0');
    const { answer, evidence } = await gate(rig);
    assert.equal(answer, 'no');
    assert.match(
      evidence,
      /^settings that clients can see differ, set them on the target: .*; notify-keyspace-events \(source "AKE", target ""\): CONFIG SET notify-keyspace-events "AKE"; .*; or list in gates\.acceptSettings which may differ$/,
    );
    assert.match(
      evidence,
      /client-output-buffer-limit \(source "pubsub 33554432 8388608 60", target "pubsub 1048576 0 0"\)/,
    );
    const commands = [...evidence.matchAll(/CONFIG SET (\S+) ("[^"]*")/g)];
    assert.equal(commands.length, 17, evidence);
    for (const [, name, value] of commands) await keydb.config('SET', name, JSON.parse(value) as string);
    assert.deepEqual(await gate(rig).then((open) => [open.answer, open.evidence]), [
      'yes',
      'two different servers, both masters; the target accepts writes',
    ]);
  });
});

test('databases are set in the file, and what the plan accepts by name opens the gate and is shown', async () => {
  const databases = source({ databases: 64 });
  await withRig({ ...OFF, ...databases }, async (rig) => {
    await assert.rejects(rig.shard.shard.promote({ workload: 'default' }), { code: 'gates-closed' });
    const { answer, evidence } = await gate(rig);
    assert.equal(answer, 'no');
    assert.match(
      evidence,
      /databases \(source "64", target "16"\): databases 64 in the target's configuration file, and restart it;/,
    );
  });
  await withRig({ ...accepting('databases'), ...databases }, async (rig) => {
    const { answer, evidence } = await gate(rig);
    assert.equal(answer, 'yes');
    assert.match(evidence, /settings that differ and are accepted: databases \(source "64", target "16"\)$/);
    await rig.client({ of: rig.source }).config('SET', 'timeout', 900);
    assert.match((await gate(rig)).evidence, /^settings that clients can see differ.*: timeout \(source "900"/);
  });
});

test('tuning is shown, and closes nothing', async () => {
  await withRig(OFF, async (rig) => {
    const target = rig.client({ of: rig.target });
    await target.config('SET', 'hz', 50);
    await target.config('SET', 'lazyfree-lazy-expire', 'yes');
    const { answer, evidence } = await gate(rig);
    assert.equal(answer, 'yes');
    assert.match(
      evidence,
      /; settings that differ without effect on replies: hz \(source "10", target "50"\), lazyfree-lazy-expire \(source "no", target "yes"\)$/,
    );
  });
});

test('a server that hides its settings makes the gate unknown, and INFO shows its policy all the same', async () => {
  const hidden = (policy: string) => source({ 'rename-command': 'CONFIG ""', 'maxmemory-policy': policy });
  await withRig({ ...OFF, ...hidden('noeviction') }, async (rig) => {
    const { answer, evidence } = await gate(rig);
    assert.equal(answer, 'unknown');
    assert.match(
      evidence,
      /^the source refuses CONFIG GET \(ERR unknown command .*\), which hides 18 settings that clients can see: client-output-buffer-limit, .*; allow CONFIG GET to the proxy's user, or compare them yourself and list unreadable in gates\.acceptSettings$/,
    );
    assert.doesNotMatch(evidence, /maxmemory-policy/);
  });
  await withRig({ ...accepting('unreadable'), ...hidden('noeviction') }, async (rig) => {
    const { answer, evidence } = await gate(rig);
    assert.equal(answer, 'yes');
    assert.match(evidence, /; accepted without a comparison: the source refuses CONFIG GET/);
  });
  await withRig({ ...accepting('unreadable'), ...hidden('volatile-lru') }, async (rig) => {
    const { answer, evidence } = await gate(rig);
    assert.equal(answer, 'no');
    assert.match(evidence, /maxmemory-policy \(source "volatile-lru", target "noeviction"\)/);
  });
});

test('a user of the proxy that may not CONFIG is named as the reason', async () => {
  const config = { user: ['default on nopass ~* &* +@all -config'] };
  await withRig({ ...OFF, servers: { source: { config } } }, async (rig) => {
    const { answer, evidence } = await gate(rig);
    assert.equal(answer, 'unknown');
    assert.match(evidence, /^the source refuses CONFIG GET \(NOPERM .*config/);
  });
});
