/**
 * The fence: while the target answers clients, a client that bypasses the proxy cannot write to the source.
 *
 * Needs real servers: ACL SETUSER and CLIENT KILL at a source, and what its own clients then get.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startRedis, startTarget, type LocalServer } from '../../../src/local/servers.js';
import { rollBackOffline } from '../../../src/stages/offline-rollback.js';
import { describeEvent } from '../../../src/storage/history.js';
import { needs } from '../../support/needs.js';
import { startTestTarget } from '../../support/servers.js';
import { startTestShard, until, type TestShard, type TestShardOptions } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';

const USERS: readonly (readonly string[])[] = [
  ['kit', 'on', '>kit', '~*', '&*', '+@all'],
  ['app', 'on', '>app', '~app:*', '~q', '&*', '+@all', '-@admin', '+acl|whoami'],
  ['reader', 'on', '>reader', '~*', '&*', '-@all', '+@read', '+auth', '+hello', '+ping'],
];

const as = ({ port }: LocalServer, user: string): string => `redis://${user}:${user}@127.0.0.1:${port}`;

async function direct({ port }: { readonly port: number }, user?: string): Promise<Wire> {
  const wire = await Wire.open({ port });
  if (user !== undefined) assert.equal(await wire.ask('AUTH', user, user), '+OK');
  return wire;
}

const users = async (server: LocalServer): Promise<string[]> => {
  const wire = await direct(server);
  try {
    const lines = await wire.ask('ACL', 'LIST');
    return lines
      .split('\r\n')
      .filter((line) => line.startsWith('user '))
      .sort();
  } finally {
    wire.destroy();
  }
};

interface FenceRig {
  readonly source: LocalServer;
  readonly target: LocalServer;
  readonly shard: TestShard;
  readonly options: TestShardOptions;
}

/** Both servers have the same users, and the plan a fence. */
async function withFence(
  body: (rig: FenceRig) => Promise<void>,
  { plan, ...more }: Partial<TestShardOptions> = {},
  start: () => Promise<LocalServer> = startRedis,
): Promise<void> {
  const source = await start();
  const target = await startTestTarget();
  try {
    for (const server of [source, target]) await makeUsers(server);
    const urls = { source: as(source, 'kit'), target: as(target, 'kit') };
    const options = { ...urls, workloads: WORKLOADS, ...more, plan: { fence: 'acl', ...plan } };
    const shard = await startTestShard(options);
    try {
      await body({ source, target, shard, options });
    } finally {
      await shard.stop();
    }
  } finally {
    await Promise.all([source.stop(), target.stop()]);
  }
}

async function makeUsers(server: LocalServer): Promise<void> {
  const wire = await direct(server);
  for (const each of USERS) assert.equal(await wire.ask('ACL', 'SETUSER', ...each), '+OK');
  wire.destroy();
}

const WORKLOADS = [
  { name: 'app', keys: ['app:*'], stage: 'shadow' as const },
  { name: 'queue', keys: ['q'], stage: 'shadow' as const },
];

async function drill({ source, target, shard: { shard, port, state, settled } }: FenceRig): Promise<void> {
  const before = await users(source);
  const [nobody, app, reader] = [await direct(source), await direct(source, 'app'), await direct(source, 'reader')];
  const [client, waiting] = [await direct({ port }, 'app'), await direct({ port }, 'app')];
  assert.equal(await client.ask('SET', 'app:a', '1'), '+OK');
  const unnamed = await direct({ port });
  assert.equal(await unnamed.ask('SET', 'mine', '1'), '+OK');
  const popped = waiting.ask('BLPOP', 'q', '0');
  popped.catch(() => undefined);
  assert.equal(await nobody.ask('PING'), '+PONG');

  const { since, problem, users: losing, clients } = await shard.fence('show');
  assert.deepEqual([since, problem, [...losing].sort()], [null, null, ['app', 'default']]);
  assert.deepEqual(clients.map(({ user, command }) => `${user} ${command}`).sort(), ['app auth', 'default ping']);
  assert.deepEqual(await users(source), before, 'showing it changes nothing');

  // Another workload stays: its clients write to the source as before, with the same rights.
  await shard.changeStage({ workload: 'app', stage: 'live', percent: 100 });
  for (const wire of [nobody, app]) assert.match(await wire.ask('SET', 'app:a', 'past'), /^-NOPERM/);
  for (const wire of [app, reader]) assert.equal(await wire.ask('GET', 'app:a'), '$1\r\n1');
  assert.equal(await client.ask('SET', 'app:a', '2'), '+OK');
  assert.equal(await client.ask('RPUSH', 'q', 'x'), ':1');
  assert.equal(await popped, '*2\r\n$1\r\nq\r\n$1\r\nx');
  assert.equal(await unnamed.ask('EVAL', "return redis.call('INCR', KEYS[1])", '1', 'mine'), ':2');
  assert.equal(await unnamed.ask('ACL', 'WHOAMI'), '$7\r\ndefault');
  assert.match(await client.ask('SET', 'other', '1'), /^-NOPERM/);
  assert.equal(await client.ask('ACL', 'WHOAMI'), '$3\r\napp');
  const late = await direct({ port }, 'app');
  assert.equal(await late.ask('RPUSH', 'q', 'y'), ':1');
  assert.equal(shard.snapshot().fence?.problem, null);
  assert.deepEqual((await state()).fence!.users.map(({ name }) => name).sort(), ['app', 'default']);
  await settled();
  const there = await direct(target);
  assert.equal(await there.ask('GET', 'app:a'), '$1\r\n2');
  assert.equal(await there.ask('LRANGE', 'q', '0', '-1'), '*1\r\n$1\r\ny');

  await shard.rollback({ workload: 'app' });
  assert.deepEqual(await users(source), before);
  assert.deepEqual([(await state()).fence, shard.snapshot().fence], [null, null]);
  assert.equal(await unnamed.ask('INCR', 'mine'), ':3');
  for (const wire of [app, client, late]) assert.equal(await wire.ask('SET', 'app:b', '1'), '+OK');
  for (const wire of [nobody, app, reader, client, waiting, late, unnamed, there]) wire.destroy();
}

test('a client that bypasses the proxy gets an error while the target answers, and writes again after the rollback', async () => {
  await withFence(drill);
});

test('the same where KeyDB is the source', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await withFence(drill, {}, () => startTarget());
});

test('a source that restarts without its fence is fenced again, and clients of the proxy write on', async () => {
  await withFence(
    async ({ source, shard: { shard, port } }) => {
      await shard.changeStage({ workload: 'app', stage: 'live', percent: 100 });
      const client = await direct({ port }, 'app');
      assert.equal(await client.ask('RPUSH', 'q', 'x'), ':1');
      await source.kill('SIGKILL');
      await source.restart();
      await makeUsers(source);
      await until(async () => (await users(source)).some((line) => line.startsWith('user shadow-proxy:app ')));
      await until(async () => (await refusedTo(source, 'app')) && refusedTo(source));
      await until(async () => /^:\d/.test(await client.ask('RPUSH', 'q', 'y')));
      client.destroy();
    },
    { onAuthorityChange: 'accept' },
  );
});

async function refusedTo(server: LocalServer, user?: string): Promise<boolean> {
  const wire = await direct(server, user);
  try {
    return (await wire.ask('SET', 'app:z', '1')).startsWith('-NOPERM');
  } finally {
    wire.destroy();
  }
}

test('a process that ends without a word leaves the fence to the next one, which lifts it after an offline rollback', async (t) => {
  const stateDir = mkdtempSync(join(tmpdir(), 'fence-'));
  t.after(() => rmSync(stateDir, { recursive: true }));
  await withFence(
    async ({ source, shard, options }) => {
      const before = await users(source);
      await shard.shard.changeStage({ workload: 'app', stage: 'live', percent: 100 });
      await shard.stop();
      const next = await startTestShard(options);
      const client = await direct(next, 'app');
      assert.equal(await client.ask('RPUSH', 'q', 'x'), ':1');
      assert.equal(await refusedTo(source, 'app'), true);
      client.destroy();
      await next.stop();
      const note = { reason: 'a test' };
      await rollBackOffline(next.plan, next.plan.shards[0], { workload: null, force: false, note });
      assert.equal(await refusedTo(source, 'app'), true);
      const last = await startTestShard(options);
      assert.deepEqual(await users(source), before);
      await last.stop();
    },
    { stateDir },
  );
});

test('a promotion that fails after the source was fenced lifts the fence again', async () => {
  const hooks = [{ name: 'broken', when: 'before', command: ['sh', '-c', 'exit 1'] }];
  await withFence(
    async ({ source, shard: { shard, state } }) => {
      const before = await users(source);
      const refused = shard.changeStage({ workload: 'app', stage: 'live', percent: 100 });
      await assert.rejects(refused, { code: 'refused', message: /hook broken failed/ });
      assert.deepEqual([await users(source), (await state()).fence], [before, null]);
      const events = (await shard.history()).filter(({ event }) => event === 'fence');
      assert.deepEqual(
        events.map((each) => describeEvent(each)),
        ['fence raised: app, default', 'fence lifted: app, default'],
      );
    },
    { plan: { hooks } },
  );
});

test('what a client writes directly until the source is fenced is found, and the promotion is refused', async () => {
  await withFence(async ({ source, shard: { shard } }) => {
    const before = await users(source);
    await until(() => shard.scrape().watch.passedWritesKnown);
    const writer = await direct(source);
    let [writes, stop] = [0, false];
    const written = (async () => {
      while (!stop) if ((await writer.ask('SET', 'app:past', '1')) === '+OK') writes++;
    })();
    written.catch(() => undefined);
    await until(() => writes > 10);
    const change = shard.changeStage({ workload: 'app', stage: 'live', percent: 100 });
    await assert.rejects(change, { code: 'refused', message: /clients wrote to the source directly just before/ });
    const [then, ever] = [writes, await users(source)];
    assert.deepEqual(ever, before);
    await until(() => writes > then);

    // Kept out by hand, it can be repaired what it has written, and the workload goes on.
    const applied = await shard.fence('apply', { by: 'ada', reason: 'a job still writes' });
    assert.deepEqual([applied.hand, applied.problem, applied.since !== null], ['applied', null, true]);
    assert.match(await writer.ask('PING'), /^\+PONG|^-NOPERM/);
    shard.startJob({
      ...{ kind: 'verify', workloads: null, repair: true, dryRun: false, again: false, deletes: 0 },
      ...{ sample: 100, limits: {}, automatic: false },
    });
    await until(() => shard.snapshot().job?.state === 'done');
    assert.equal(shard.snapshot().job!.repaired, 1);
    await shard.changeStage({ workload: 'app', stage: 'live', percent: 100 });
    await shard.rollback({ workload: 'app' });
    assert.equal(await refusedTo(source), true, 'it was applied by hand');
    const lifted = await shard.fence('lift');
    assert.deepEqual([lifted.since, lifted.hand, await users(source)], [null, null, before]);
    stop = true;
    await written;
    writer.destroy();
  });
});

test('the gate names who loses writes, and why a source cannot be fenced', async () => {
  await withFence(async ({ source, target, shard: { shard }, options }) => {
    const gate = async (name: string, of = shard): Promise<string> => {
      const { gates } = await of.promote({ workload: 'app', dryRun: true });
      const { answer, evidence } = gates.find((each) => each.name === name)!;
      return `${answer}: ${evidence}`;
    };
    const nobody = await direct(source);
    await nobody.ask('CLIENT', 'SETNAME', 'nightly');
    assert.match(
      await gate('fence'),
      /^yes: app, default will lose their writes .*: nightly at 127\.0\.0\.1:\d+ \(user default, client\|setname\)$/,
    );
    const users = await gate('users');
    await shard.fence('apply');
    assert.match(await gate('fence'), /^yes: the source is fenced since .*: app, default may not write there$/);
    assert.equal(await gate('users'), users, 'the users are compared as they were');
    await shard.fence('lift');
    await nobody.ask('ACL', 'SETUSER', 'kit', '-acl|setuser');
    assert.match(await gate('fence'), /^no: the kit's user may not change users of the source \(NOPERM/);
    await assert.rejects(shard.changeStage({ workload: 'app', stage: 'live', percent: 100 }), {
      code: 'refused',
      message: /^"app" keeps its stage: the source cannot be fenced: the kit's user may not/,
    });
    nobody.destroy();
    const as = { source: source.url, target: target.url, name: 'other', port: undefined };
    const other = await startTestShard({ ...options, ...as });
    assert.match(await gate('fence', other.shard), /^no: the kit logs in to the source as default/);
    await other.stop();
  });
});

test('a replica of the source goes on behind the fence', async (t) => {
  await withFence(async ({ source, shard: { shard, port } }) => {
    const replica = await startRedis();
    t.after(() => replica.stop());
    const [reader, client] = [await direct(replica), await direct({ port }, 'app')];
    await reader.ask('REPLICAOF', '127.0.0.1', source.port);
    await shard.changeStage({ workload: 'app', stage: 'live', percent: 100 });
    assert.equal(await client.ask('RPUSH', 'q', 'x'), ':1');
    await until(async () => (await reader.ask('LRANGE', 'q', 0, -1)) === '*1\r\n$1\r\nx');
    for (const wire of [reader, client]) wire.destroy();
  });
});
