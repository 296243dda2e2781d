/**
 * Rule 8: times to live on the mirror are what is left of the authority's, however late they come.
 *
 * Needs real servers: PTTL, PEXPIREAT and RESTORE of both servers, by their own clocks.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Argument } from '../../../src/resp/encode.js';
import { redisSince } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import type { Wire } from '../../support/wire.js';
import { withScene, type Scene } from './scene.js';

const STALL_MS = 1_500;
/** By how much the servers' times to live may differ here: the proxy allows 50 ms, the questions take some. */
const TOLERANCE_MS = 90;

/** Less than the proxy allows, and more than half of it. */
const LITTLE_MS = 40;

const FILLER = 'x'.repeat(1 << 20);
const SCRIPT = "redis.call('SET', KEYS[1], 'v') redis.call('EXPIRE', KEYS[1], ARGV[1]) return 1";

/** Redis 6.2 knows no option of EXPIRE. */
const OPTION = (await redisSince(7, 0)) ? ['NX'] : [];

/** Every way to give a key a time to live that counts from now; each takes its key from `key(name)`. */
function timed(key: (name: string) => string): Argument[][] {
  const given = (name: string, ...command: Argument[]): Argument[][] => [
    ['SET', key(name), 'v'],
    command.map((arg) => (arg === 'KEY' ? key(name) : arg)),
  ];
  return [
    ['SETEX', key('setex'), 100, 'v'],
    ['PSETEX', key('psetex'), 100_000, 'v'],
    ['SET', key('set-ex'), 'v', 'EX', 100],
    ['SET', key('set-px'), 'v', 'px', 100_000],
    ['SET', key('set-nx-ex'), 'v', 'NX', 'EX', 100],
    ...given('expire', 'EXPIRE', 'KEY', 100),
    ...given('pexpire', 'PEXPIRE', 'KEY', 100_000),
    ...given('expire-nx', 'EXPIRE', 'KEY', 100, ...OPTION),
    ...given('getex', 'GETEX', 'KEY', 'EX', 100),
    ...given('getex-px', 'GETEX', 'KEY', 'PX', 100_000),
    ...given('set-get', 'SET', 'KEY', 'w', 'EX', 100, 'GET'),
    ['EVAL', SCRIPT, 1, key('script'), 100],
    ['MULTI'],
    ['INCR', key('n')],
    ['SETEX', key('multi-setex'), 100, 'v'],
    ['SET', key('multi-set'), 'v'],
    ['EXPIRE', key('multi-set'), 100],
    ['EVAL', SCRIPT, 1, key('multi-script'), 100],
    ['EXEC'],
  ];
}

const NAMES = timed((name) => name).flatMap((command) =>
  command[0] === 'EVAL'
    ? [String(command[3])]
    : command.length > 1 && command[0] !== 'INCR'
      ? [String(command[1])]
      : [],
);

async function assertTimesEqual({ client, source, target }: Scene, prefixes: readonly string[]): Promise<void> {
  const keys = prefixes.flatMap((prefix) => [...new Set(NAMES)].map((name) => prefix + name));
  const ask = (of: typeof source): Promise<number[]> =>
    client({ of })
      .pipeline(keys.map((key) => ['pttl', key]))
      .exec()
      .then((all) => all!.map(([, pttl]) => Number(pttl)));
  await Promise.all([client({ of: source }).ping(), client({ of: target }).ping()]);
  const [here, there] = await Promise.all([ask(source), ask(target)]);
  const apart = keys.flatMap((key, i) =>
    here[i] > 0 && Math.abs(here[i] - there[i]) <= TOLERANCE_MS ? [] : [`${key}: ${here[i]} ≠ ${there[i]}`],
  );
  assert.deepEqual(apart, []);
}

async function send(scene: Scene, prefix: string, wire?: Wire): Promise<void> {
  const replies = await (wire ?? (await scene.wire())).pipeline(timed((name) => prefix + name));
  assert.deepEqual(
    replies.filter((reply) => reply.startsWith('-') || reply.includes('\n-')),
    [],
  );
}

test('a mirror that is stopped while TTLs are set has what is left of them afterwards', async () => {
  await withScene({}, async (scene) => {
    await send(scene, 'before:');
    await scene.shard.settled();
    await scene.target.kill('SIGSTOP');
    // The first are in the server's receive buffer, the last still with the proxy.
    await send(scene, 'received:');
    await until(() => scene.shard.snapshot().mirror.queuedEffects > 10);
    const wire = await scene.wire();
    for (let i = 0; i < 16; i++) await wire.ask('SET', `filler:${i}`, FILLER);
    await send(scene, 'queued:');
    assert.ok(scene.shard.snapshot().mirror.queuedBytes > 2 * FILLER.length);
    // Times to live run on meanwhile.
    await sleep(STALL_MS);
    await scene.target.kill('SIGCONT');
    await scene.shard.settled();
    await assertTimesEqual(scene, ['before:', 'received:', 'queued:']);
    // What was still with the proxy was sent with the rest of its time: a SETEX as a PSETEX, of which there were three.
    const sent = /cmdstat_psetex:calls=(\d+)/.exec(await scene.client({ of: scene.target }).info('commandstats'));
    assert.ok(Number(sent?.[1]) > 3, `${sent?.[1]} times PSETEX`);
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('replies of the authority that come late do not lengthen times to live on the mirror', async () => {
  // Late is not silent.
  await withScene({ limits: { silentMs: 20_000 } }, async (scene) => {
    await send(scene, 'before:');
    await scene.shard.settled();
    // A new client's first command waits for the server, which is asked whether it needs a password.
    const wire = await scene.wire();
    await wire.ask('PING');
    for (const link of scene.toSource.links) link.hold('down');
    const sent = send(scene, 'late:', wire);
    await until(async () => (await scene.client({ of: scene.source }).exists('late:multi-script')) === 1);
    // Times to live run on meanwhile.
    await sleep(500);
    scene.toSource.release();
    await sent;
    await scene.shard.settled();
    await assertTimesEqual(scene, ['before:', 'late:']);
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('a reply of the authority and a confirmation of the mirror that are both a little late do not add up', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await wire.ask('SET', 'k', 'v');
    await scene.shard.settled();
    for (let round = 0; round < 5; round++) {
      scene.toTarget.hold('up');
      for (const link of scene.toSource.links) link.hold('down');
      const answered = wire.ask('SET', 'k', 'v', 'PX', 100_000);
      await sleep(LITTLE_MS);
      scene.toSource.release();
      await answered;
      await sleep(LITTLE_MS);
      scene.toTarget.release();
      await scene.shard.settled();
      await wire.ask('PTTL', 'k');
    }
    await scene.shard.settled();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('a copy that is late for the mirror carries the rest of its time to live', async () => {
  await withScene({}, async (scene) => {
    await send(scene, 'copied:');
    await scene.shard.settled();
    await scene.client({ of: scene.target }).flushall();
    const wire = await scene.wire();
    await scene.target.kill('SIGSTOP');
    for (let i = 0; i < 16; i++) await wire.ask('SET', `filler:${i}`, FILLER);
    // What is lost with the connection is copied; the copies wait behind the filler.
    for (const name of NAMES) await wire.ask('PERSIST', `copied:${name}`);
    await send(scene, 'copied:');
    await scene.toTarget.cutClients();
    await scene.target.kill('SIGCONT');
    await until(() => scene.shard.snapshot().mirror.connected && scene.shard.snapshot().suspects.total === 0);
    await scene.target.kill('SIGSTOP');
    await scene.client({ of: scene.source }).set('copied:n', 'differs');
    for (const name of NAMES)
      await wire.ask('EVAL', "redis.call('TIME') redis.call('EXPIRE', KEYS[1], 50)", 1, `copied:${name}`);
    await until(() => scene.shard.snapshot().suspects.total >= NAMES.length / 2);
    // Times to live run on meanwhile.
    await sleep(STALL_MS);
    await scene.target.kill('SIGCONT');
    await scene.shard.settled();
    await assertTimesEqual(scene, ['copied:']);
  });
});

test('a key that has expired, or has less than 1 ms left, is not copied forever', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await wire.ask('PING');
    for (let round = 0; round < 3; round++) {
      const keys = Array.from({ length: 2_000 }, (_, i) => `k:${round}:${i}`);
      scene.toTarget.hold('up');
      await wire.pipeline(keys.map((key, i) => ['SET', key, 'v', 'PX', 30 + (i % 200)]));
      await until(() => scene.toTarget.waiting('up') > 0);
      const lost = await scene.toTarget.cutClients();
      for (const link of lost) link.cut();
      scene.toTarget.release();
      await scene.shard.settled();
    }
    const source = scene.client({ of: scene.source });
    await until(async () => (await source.dbsize()) === 0);
    await scene.shard.settled();
    const target = scene.client({ of: scene.target });
    await until(
      async () => (await target.dbsize()) === 0,
      5_000,
      () => 'keys that were copied with a time to live of 0 are there for ever',
    );
  });
});
