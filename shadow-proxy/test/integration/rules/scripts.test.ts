/**
 * Rule 9, scripts: what a script did is on both servers, whether or not it can be repeated.
 *
 * Needs real servers: Lua: errors, random and server-dependent results, NOSCRIPT of both servers.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { encodeCommand } from '../../../src/resp/encode.js';
import { answers } from '../../support/dialogue.js';
import { until } from '../../support/shard.js';
import { redisSince } from '../../support/servers.js';
import { withRig } from '../../support/rig.js';
import { needs } from '../../support/needs.js';

test('a script that fails keeps its earlier writes on both servers', async () => {
  await withRig({}, async ({ wire, source, client, assertEqual }) => {
    const proxy = await wire();
    const failing =
      "redis.call('SET', KEYS[1], ARGV[1]) redis.call('INCR', KEYS[2]) return redis.call('LPUSH', KEYS[1], 'x')";
    for (let i = 0; i < 20; i++)
      assert.match(await proxy.ask('EVAL', failing, 2, `f:${i}`, 'f:count', i), /^-.*WRONGTYPE/);
    const own = "redis.call('HSET', KEYS[1], 'a', 1) return redis.error_reply('OWN stop here')";
    assert.match(await proxy.ask('EVAL', own, 1, 'f:own'), /OWN stop here/);
    await assertEqual();
    assert.equal(await client({ of: source }).get('f:count'), '20');
    assert.equal(await client({ of: source }).hget('f:own', 'a'), '1');
  });
});

test('what a script did that does not do the same twice is copied', async () => {
  await withRig({}, async ({ wire, source, client, assertEqual }) => {
    const proxy = await wire();
    await proxy.ask('SADD', 's', ...Array.from({ length: 200 }, (_, i) => `m${i}`));
    const scripts = [
      "return redis.call('SET', KEYS[1], redis.call('TIME')[2])",
      "return redis.call('SET', KEYS[1], math.random(1000000) + KEYS[1]:len())",
      "return redis.call('SPOP', 's')",
      "redis.call('SET', KEYS[1], redis.call('SRANDMEMBER', 's')) return 1",
      "return redis.call('SPOP', 's', 3)",
      "local key = KEYS[1]; return redis.call('SET', key, redis.call('TIME')[2])",
      "return redis.call('XADD', KEYS[3], '*', 'f', 'v')",
      ...((await redisSince(7, 0)) ? ["return redis.call('EXPIRE', KEYS[1], 100, 'NX')"] : []),
    ];
    for (const [i, script] of scripts.entries()) {
      for (let n = 0; n < 10; n++) {
        const reply = await proxy.ask('EVAL', script, 3, `r:${i}:${n}`, 's', `r:${i}:${n}:x`);
        assert.ok(!reply.startsWith('-'), reply);
      }
    }
    await assertEqual();
    assert.ok((await client({ of: source }).scard('s')) < 200);
  });
});

test('what a script stores that depends on the server is copied', async () => {
  await withRig({}, async ({ wire, source, client, assertEqual }) => {
    const proxy = await wire();
    await proxy.pipeline([
      ['ZADD', 'z', '-0', 'm', 1.5, 'n'],
      ['RPUSH', 'l', 'a', 'b'],
      ['SADD', 's', 1, 2, 'x'],
    ]);
    const values = [
      "redis.call('LPOP', 'l', 0) and 'array' or 'nil'",
      "redis.pcall('INCR', 'l', 'x').err",
      "redis.pcall('EXPIRE', 'l', 1, 'XY').err",
      "select(2, pcall(redis.call, 'NOSUCH'))",
      "redis.call('COMMAND', 'COUNT')",
      "redis.call('ACL', 'WHOAMI')",
      "redis.call('ZSCORE', 'z', 'm')",
      'tostring({})',
      'tostring(redis.call)',
      "collectgarbage('count')",
      "tostring(redis.call('ZRANGE', 'z', 0, 0))",
      'os.clock()',
      'redis.REDIS_VERSION or redis.replicate_commands() and 1',
      "redis.sha1hex(redis.call('INFO', 'server'))",
    ];
    const scripts = [
      ...values.map((value) => `redis.call('SET', KEYS[1], ${value}) return 1`),
      "local t = {} for i = 1, 40 do t[i .. 'k'] = i end for k in pairs(t) do redis.call('RPUSH', KEYS[1], k) end return 1",
      "for _, m in ipairs(redis.call('SMEMBERS', 's')) do redis.call('RPUSH', KEYS[1], m) end return 1",
    ];
    for (const [i, script] of scripts.entries()) {
      // Redis 7 knows no such name: then it fails on both.
      for (let n = 0; n < 3; n++) await proxy.ask('EVAL', script, 1, `d:${i}:${n}`);
    }
    // The sign of a zero score is not compared.
    await proxy.ask('DEL', 'z');
    await assertEqual();
    assert.ok((await client({ of: source }).keys('d:*')).length >= 36);
  });
});

test('a script whose text seems to declare its keys, and does not, leaves the same on both servers', async () => {
  await withRig({}, async ({ wire, source, client, shard, assertEqual }) => {
    const proxy = await wire();
    const time = "local now = redis.call('TIME')[2]";
    const scripts = [
      `local s = '--' ${time} redis.call('SET', s .. KEYS[1], now) return 1`,
      `${time} redis.call('SET', KEYS[1]:gsub('k', 'g'), now) return 1`,
      `${time} table.insert(KEYS, 1, 'inserted') redis.call('SET', KEYS[1], now) return 1`,
      `${time} local K = KEYS K[1] = 'aliased' redis.call('SET', KEYS[1], now) return 1`,
      `${time} local function f(KEYS) redis.call('SET', KEYS[1], now) end f({'parameter'}) return 1`,
      `${time} local unpack = function() return 'unpacked' end redis.call('SET', unpack(KEYS), now) return 1`,
      `${time} redis['call']('SET', 'indexed', now) return 1`,
      `${time} loadstring("redis.call('SET', 'loaded', '" .. now .. "')")() return 1`,
      `${time} redis.call('XGROUP', 'CREATE', 'stream', 'g', '$', 'MKSTREAM') return 1`,
      `${time} redis.call('SET', KEYS[1], now) redis.call('SORT', 'set', 'BY', 'nosort', 'STORE', 'sorted') return 1`,
    ];
    await proxy.ask('SADD', 'set', 'a', 'b', 'c');
    for (const script of scripts) assert.equal(await proxy.ask('EVAL', script, 1, 'k'), ':1', script);
    await assertEqual();
    assert.equal(shard.snapshot().workloads[0].suspect, null);
    const keys = ['--k', 'g', 'inserted', 'aliased', 'parameter', 'unpacked', 'indexed', 'loaded', 'stream', 'sorted'];
    assert.equal(await client({ of: source }).exists(...keys), keys.length);
  });
});

test('a group that a script without declared keys creates is on both servers', async () => {
  await withRig({}, async ({ wire, assertEqual, client, target }) => {
    const proxy = await wire();
    assert.equal(
      await proxy.ask('EVAL', "redis.call('XGROUP', 'CREATE', 'stream', 'g', '$', 'MKSTREAM') return 1", 0),
      ':1',
    );
    await assertEqual();
    assert.equal(await client({ of: target }).exists('stream'), 1);
  });
});

test('what a digest whose text was never seen writes besides its declared keys is copied', async () => {
  await withRig({}, async ({ wire, client, source, target, assertEqual }) => {
    const sha = (await client({ of: source }).script(
      'LOAD',
      "redis.call('SET', KEYS[1] .. ':hidden', 1) return redis.call('INCR', KEYS[1])",
    )) as string;
    const proxy = await wire();
    assert.equal(await proxy.ask('EVALSHA', sha, 1, 'n'), ':1');
    assert.match((await proxy.pipeline([['MULTI'], ['EVALSHA', sha, 1, 'm'], ['EXEC']]))[2], /^\*1\r\n:1$/);
    await assertEqual();
    assert.equal(await client({ of: target }).exists('n:hidden', 'm:hidden'), 2);
  });
});

test('EVALSHA runs on a mirror that never received the script', async () => {
  await withRig({}, async ({ wire, client, source, target, shard, assertEqual }) => {
    const script = "return redis.call('INCRBY', KEYS[1], ARGV[1])";
    const behind = client({ of: source });
    const sha = (await behind.script('LOAD', script)) as string;
    const proxy = await wire();
    await proxy.pipeline(Array.from({ length: 50 }, (_, i) => ['EVALSHA', sha, 1, `c:${i % 5}`, i]));
    await assertEqual();
    assert.deepEqual(await client({ of: target }).mget('c:0', 'c:4'), await behind.mget('c:0', 'c:4'));
    assert.equal(await behind.get('c:4'), String(4 + 9 + 14 + 19 + 24 + 29 + 34 + 39 + 44 + 49));
    // A script whose text came through the proxy is replicated as it is: no key is copied.
    const seen = "return redis.call('APPEND', KEYS[1], ARGV[1])";
    const seenSha = (await proxy.ask('SCRIPT', 'LOAD', seen)).split('\r\n')[1];
    await proxy.pipeline(Array.from({ length: 50 }, (_, i) => ['EVALSHA', seenSha, 1, 'told', i]));
    assert.equal(shard.snapshot().suspects.total, 0);
    await assertEqual();
  });
});

test('EVALSHA runs on a mirror that restarted without its scripts, and on one that missed the EVAL', async () => {
  await withRig({ limits: { queueBytes: 20_000 } }, async ({ wire, target, shard, assertEqual }) => {
    const proxy = await wire();
    const script = "return redis.call('APPEND', KEYS[1], ARGV[1])";
    await target.kill('SIGSTOP');
    // The queue is filled by others, so that the text of the script never gets there.
    await proxy.pipeline(Array.from({ length: 300 }, (_, i) => ['SET', `fill:${i % 10}`, 'x'.repeat(200)]));
    await proxy.ask('EVAL', script, 1, 'late', 'a');
    const sha = createHash('sha1').update(script).digest('hex');
    await target.kill('SIGCONT');
    await shard.settled();
    for (let i = 0; i < 20; i++) assert.equal(await proxy.ask('EVALSHA', sha, 1, 'late', 'b'), `:${i + 2}`);
    await assertEqual();
  });
});

test('a script flushed from both servers is unknown to both, and a script without text is refused as Redis does', async () => {
  await withRig({}, async ({ wire, source, assertEqual }) => {
    const [one, two] = [await wire(), await wire()];
    const script = "return redis.call('INCR', KEYS[1])";
    const [unknown] = await answers(source.port, [['EVALSHA', '0'.repeat(40), 1, 'n']]);
    assert.match(unknown, /^-NOSCRIPT No matching script\./);
    await one.ask('EVAL', script, 1, 'n');
    const sha = (await one.ask('SCRIPT', 'LOAD', script)).split('\r\n')[1];
    for (let i = 0; i < 5; i++) {
      assert.equal(await one.ask('SCRIPT', 'FLUSH'), '+OK');
      assert.equal(await two.ask('EVALSHA', sha, 1, 'n'), unknown);
      assert.match(await two.ask('EVAL', script, 1, 'n'), /^:/);
      assert.match(await two.ask('EVALSHA', sha, 1, 'n'), /^:/);
    }
    await assertEqual();
  });
});

test('one script after another while another user flushes the scripts', async () => {
  await withRig({}, async ({ wire, assertEqual, shard }) => {
    const [one, two] = [await wire(), await wire()];
    await two.ask('HELLO', 3);
    const scripts = Array.from({ length: 5 }, (_, i) => `return redis.call('RPUSH', KEYS[1], '${i}')`);
    const shas: string[] = [];
    for (const script of scripts) shas.push((await one.ask('SCRIPT', 'LOAD', script)).split('\r\n')[1]);
    for (let round = 0; round < 20; round++) {
      two.sendBytes(Buffer.concat(shas.map((sha, i) => encodeCommand(['EVALSHA', sha, 1, `l:${i}`]))));
      one.sendBytes(
        Buffer.concat([
          encodeCommand(['SCRIPT', 'FLUSH']),
          ...scripts.map((script) => encodeCommand(['SCRIPT', 'LOAD', script])),
        ]),
      );
      await two.frames(5);
      await one.frames(6);
    }
    await until(() => shard.snapshot().mirror.queuedEffects === 0);
    await assertEqual();
  });
});

test('keys that a script writes without declaring them are copied where the authority reports them, or the script is replicated', async () => {
  const random = "redis.call('TIME') ";
  // True where the authority is asked.
  const cases: readonly [script: string, hides: boolean][] = [
    [`${random} return redis.call('SET', KEYS[1], 1)`, false],
    [
      `${random} local key = KEYS[1]; local now = 5; redis.call('INCR', key); return redis.call('EXPIRE', key, 100)`,
      false,
    ],
    [`${random} return redis.call('SET', 'declared', tonumber(ARGV[1]) + 1)`, false],
    [`${random} return redis.call('DEL', unpack(KEYS))`, false],
    [`${random} return redis.call('DEL', KEYS[1], 'declared')`, false],
    [`${random} local v = redis.call('GET', KEYS[1] .. ':read'); return redis.call('SET', KEYS[1], v or 1)`, false],
    [`${random} return redis.call('SET', KEYS[1] .. ':hidden', 1)`, true],
    [`${random} return redis.call('SET', 'hidden', 1)`, true],
    [`${random} return redis.call('SET', ARGV[1], 1)`, true],
    [`${random} local key = KEYS[1]; key = key .. ':hidden'; return redis.call('SET', key, 1)`, true],
    [`${random} local key = KEYS[1] .. ':hidden'; return redis.call('SET', key, 1)`, true],
    [`${random} for i, key in ipairs({'hidden'}) do redis.call('SET', key, 1) end return 1`, true],
    [`${random} return redis.call('DEL', KEYS[1], 'hidden')`, true],
    [`local c = redis.call; return c('SET', 'hidden', c('TIME')[1])`, true],
    [`redis.call('SET', 'hidden', 1); return redis.call('LPUSH', KEYS[1], 'fails')`, true],
    // Repeated, and so is what it hides; it might have failed.
    [`return redis.call('SET', KEYS[1] .. ':hidden', 1)`, true],
  ];
  for (const inside of [false, true]) {
    await Promise.all(
      cases.map(([script, hides]) =>
        withRig({}, async (rig) => {
          const proxy = await rig.wire();
          await proxy.ask('SET', 'k', 'v');
          const evaluate = ['EVAL', script, 2, 'k', 'declared', '7'];
          if (inside) await proxy.pipeline([['MULTI'], evaluate, ['EXEC']]);
          else await proxy.ask(...evaluate);
          assert.equal(rig.shard.snapshot().workloads[0].suspect, null, script);
          await rig.assertEqual();
          const listens = /flags=\w*t/.test(String(await rig.client({ of: rig.source }).client('LIST')));
          assert.equal(listens, hides, `${script}${inside ? ' in a transaction' : ''}`);
        }),
      ),
    );
  }
});

test('the keys of a script whose calls may have more arguments than KeyDB survives are copied, and the script is reported', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await withRig({}, async (rig) => {
    const proxy = await rig.wire();
    const before = await rig.client({ of: rig.target }).info('server');
    const many = Array.from({ length: 7_990 }, (_, i) => i);
    assert.equal(
      await proxy.ask(
        'EVAL',
        "local a = {} for i = 1, 7999 do a[i] = i end return redis.call('RPUSH', KEYS[1], unpack(a))",
        1,
        'l',
      ),
      ':7999',
    );
    assert.equal(
      await proxy.ask(
        'EVAL',
        "return redis.call('RPUSH', KEYS[1], 'a', 'b', 'c', 'd', 'e', unpack(ARGV))",
        1,
        'm',
        ...many,
      ),
      ':7995',
    );
    // As most do: these are repeated.
    for (const script of [
      "return redis.call('DEL', unpack(KEYS))",
      "for i = 1, #ARGV, 5000 do redis.call('RPUSH', KEYS[1], unpack(ARGV, i, math.min(i + 4999, #ARGV))) end return 1",
    ]) {
      assert.match(await proxy.ask('EVAL', script, 2, 'n', 'o', 'x'), /^:/);
    }
    await rig.assertEqual();
    assert.match(
      String(await rig.client({ of: rig.target }).info('server')),
      new RegExp(/run_id:\w+/.exec(before)![0]),
    );
    assert.deepEqual(Object.keys(rig.shard.snapshot().unsupported), ['eval unpack']);
  });
});
