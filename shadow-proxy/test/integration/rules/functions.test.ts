/**
 * Rules 9 and 10, functions: only Redis 7 has them. Keys that they wrote are copied, or all are suspect.
 *
 * Needs real servers: FUNCTION and FCALL of Redis 7, which KeyDB lacks.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startRedis } from '../../../src/local/servers.js';
import { differences } from '../../support/keyspace.js';
import { withRig, type Rig } from '../../support/rig.js';
import { startTestShard, until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';
import { needs } from '../../support/needs.js';

const library = (name: string, body: string): string => `#!lua name=${name}\n${body}`;
const PLAIN = library(
  'plain',
  `local function put(keys, args) return redis.call('SET', keys[1], args[1] .. redis.call('TIME')[2]) end
   local function now() return redis.call('TIME') end
   redis.register_function('put', put)
   redis.register_function{function_name='get', callback=function(keys, args) return redis.call('GET', keys[1]) end, flags={'no-writes'}}
   redis.register_function('named', function(keys, args) now() return redis.call('INCR', 'counter') end)`,
);
const HIDING = library(
  'hiding',
  "redis.register_function('hide', function(keys, args) return redis.call('SET', keys[1] .. ':hidden', 1) end)",
);

const suspect = ({ shard }: Rig): string | null => shard.snapshot().workloads[0].suspect;
const confirmed = ({ shard }: Rig): Promise<void> => until(() => shard.snapshot().mirror.queuedEffects === 0);

test('the declared keys that a function wrote are copied, and the report says that the target has no functions', async (t) => {
  if (!(await needs(t, 'redis>=7.0', 'target<7.0'))) return;
  await withRig({}, async (rig) => {
    const proxy = await rig.wire();
    await until(() => rig.shard.snapshot().mirror.connected);
    assert.equal(await proxy.ask('FUNCTION', 'LOAD', PLAIN), '$5\r\nplain');
    for (let i = 0; i < 20; i++) assert.equal(await proxy.ask('FCALL', 'put', 1, `k:${i % 5}`, i), '+OK');
    assert.match(await proxy.ask('FCALL_RO', 'get', 1, 'k:1'), /^\$/);
    assert.match(await proxy.ask('FCALL', 'get', 0), /^-ERR/);
    assert.match(
      (await proxy.pipeline([['MULTI'], ['FCALL', 'put', 1, 'inside', 1], ['FCALL', 'get', 1, 'inside'], ['EXEC']])).at(
        -1,
      )!,
      /^\*2\r\n\+OK\r\n\$/,
    );
    assert.match(await proxy.ask('FCALL', 'missing', 1, 'k'), /^-ERR Function not found/);
    assert.match(await proxy.ask('FUNCTION', 'LIST'), /^\*1/);
    await rig.assertEqual();
    const { unsupported: unsupportedCommands } = rig.shard.snapshot();
    assert.ok(
      unsupportedCommands.fcall >= 20 &&
        unsupportedCommands.fcall_ro === 1 &&
        unsupportedCommands['function load'] === 1,
      JSON.stringify(unsupportedCommands),
    );
    assert.equal(await proxy.ask('FUNCTION', 'DELETE', 'plain'), '+OK');
    assert.match(await proxy.ask('FCALL', 'put', 1, 'k:1', 1), /^-ERR Function not found/);
    assert.equal(await proxy.ask('FUNCTION', 'FLUSH'), '+OK');
    await rig.assertEqual();
  });
});

test('undeclared keys that a function may have written are copied, where the authority reports its text', async (t) => {
  if (!(await needs(t, 'redis>=7.0'))) return;
  const cases: readonly [code: string, call: (string | number)[], suspect: boolean][] = [
    [PLAIN, ['put', 1, 'k', 'v'], false],
    [PLAIN, ['get', 1, 'k'], false],
    [PLAIN, ['named', 0], false],
    [HIDING, ['hide', 1, 'k'], true],
    [
      library('l', "local function f(k, a) return redis.call('SET', k[1], 1) end redis.register_function('f', f)"),
      ['f', 1, 'k'],
      false,
    ],
    [
      library('l', "redis.register_function('f', function(keys) return redis.call('DEL', unpack(keys)) end)"),
      ['f', 1, 'k'],
      false,
    ],
    [
      library('l', "redis.register_function('f', function(keys) return redis.call('INCR', 'named') end)"),
      ['f', 0],
      false,
    ],
    [
      library('l', "redis.register_function('f', function(keys, args) return redis.call('INCR', args[1]) end)"),
      ['f', 0, 'named'],
      false,
    ],
    [
      library(
        'l',
        "redis.register_function('f', function(keys) keys[1] = 'hidden' return redis.call('INCR', keys[1]) end)",
      ),
      ['f', 1, 'k'],
      true,
    ],
    [
      library(
        'l',
        "local function put(keys) return redis.call('INCR', keys[1]) end redis.register_function('f', function(keys) return put({'hidden'}) end)",
      ),
      ['f', 1, 'k'],
      true,
    ],
    [
      library(
        'l',
        "local function put(keys) return redis.call('INCR', keys[1]) end redis.register_function('p', put) redis.register_function('f', function(keys) return put({'hidden'}) end)",
      ),
      ['f', 1, 'k'],
      true,
    ],
    [
      library(
        'l',
        "redis.register_function('f', function(keys) redis.call('SET', keys[1], 1) return redis.call('INCR', 'x' .. keys[1] .. redis.call('LPUSH', keys[1], 1)) end)",
      ),
      ['f', 1, 'k'],
      true,
    ],
    [
      library(
        'l',
        "redis.register_function{function_name='f', flags={'no-writes'}, callback=function(keys, args) return redis.call('GET', args[1] .. 'x') end}",
      ),
      ['f', 0, 'k'],
      false,
    ],
  ];
  await withRig({}, async (rig) => {
    const proxy = await rig.wire();
    const expectClean = async (code: string, call: (string | number)[]): Promise<void> => {
      await proxy.ask('FUNCTION', 'FLUSH');
      assert.match(await proxy.ask('FUNCTION', 'LOAD', code), /^\$/, code);
      const reply = await proxy.ask('FCALL', ...call);
      assert.ok(!reply.startsWith('-'), reply);
      await confirmed(rig);
      assert.equal(suspect(rig), null, `${code} ${call.join(' ')}`);
    };
    for (const [code, call, doubtful] of cases) if (!doubtful) await expectClean(code, call);
    await rig.assertEqual();
  });
  await Promise.all(
    cases
      .filter(([, , doubtful]) => doubtful)
      .map(([code, call]) =>
        withRig({}, async (rig) => {
          const proxy = await rig.wire();
          await proxy.pipeline([
            ['SET', 'k', 'v'],
            ['FUNCTION', 'LOAD', code],
          ]);
          await proxy.ask('FCALL', ...call);
          assert.equal(suspect(rig), null, `${code} ${call.join(' ')}`);
          await rig.assertEqual();
        }),
      ),
  );
});

test('functions go to both servers where both have them, and are the target’s after the change of authority', async (t) => {
  if (!(await needs(t, 'redis>=7.0'))) return;
  const [source, target] = await Promise.all([startRedis(), startRedis()]);
  const shard = await startTestShard({ source, target });
  const wire = await Wire.open({ port: shard.port });
  try {
    await wire.ask('FUNCTION', 'LOAD', PLAIN);
    const dump = await wire.ask('FUNCTION', 'DUMP');
    assert.match(dump, /^\$/);
    for (let i = 0; i < 10; i++) await wire.ask('FCALL', 'put', 1, `k:${i}`, i);
    await shard.settled();
    await shard.shard.changeStage({ workload: 'default', stage: 'live' });
    for (let i = 0; i < 10; i++) assert.equal(await wire.ask('FCALL', 'put', 1, `k:${i}`, i), '+OK');
    await shard.settled();
    assert.deepEqual(await differences(source, target), []);
    assert.deepEqual(shard.snapshot().mismatches, {});
    assert.deepEqual(shard.snapshot().unsupported, {});
  } finally {
    wire.destroy();
    await shard.stop();
    await Promise.all([source.stop(), target.stop()]);
  }
});

test('after the change to KeyDB a client gets the words of KeyDB', async (t) => {
  if (!(await needs(t, 'target<7.0'))) return;
  await withRig({ default: { stage: 'live' } }, async (rig) => {
    const proxy = await rig.wire();
    for (const call of [
      ['FCALL', 'put', 1, 'k', 'v'],
      ['FCALL', 'put', 0],
      ['FCALL_RO', 'put', 0],
      ['FUNCTION', 'LOAD', PLAIN],
      ['FUNCTION', 'LIST'],
    ]) {
      assert.match(await proxy.ask(...call), /^-ERR unknown command/, call.join(' '));
    }
    await rig.assertEqual();
    assert.equal(suspect(rig), null);
  });
});
