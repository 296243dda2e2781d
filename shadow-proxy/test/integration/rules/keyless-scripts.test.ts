/**
 * Rules 9 and 10, scripts that declare no keys: they run alone, and their writes are on both servers, or suspect.
 *
 * Needs real servers: Lua: what both servers run of scripts without keys, and NOSCRIPT.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { withRig, type Rig } from '../../support/rig.js';
import { until } from '../../support/shard.js';
import { needs } from '../../support/needs.js';

const sha = (script: string): string => createHash('sha1').update(script).digest('hex');
const stages = ['shadow', 'live'] as const;
const suspects = ({ shard }: Rig): (string | null)[] => shard.snapshot().workloads.map(({ suspect }) => suspect);
const confirmed = ({ shard }: Rig): Promise<void> => until(() => shard.snapshot().mirror.queuedEffects === 0);

for (const stage of stages) {
  test(`a script without declared keys is repeated in its place among the commands of others, in ${stage}`, async () => {
    await withRig({ default: { stage } }, async (rig) => {
      const [one, two, three] = [await rig.wire(), await rig.wire(), await rig.wire()];
      await three.ask('HELLO', 3);
      const append = "return redis.call('APPEND', 'k:' .. ARGV[1], ARGV[2])";
      const named = "return redis.call('RPUSH', 'list', ARGV[1])";
      for (let round = 0; round < 15; round++) {
        const scripts = one.pipeline([
          ['EVAL', append, 0, round % 3, 's'],
          ['APPEND', 'k:0', 'a'],
          ['EVAL', named, 0, round],
          ['EVALSHA', sha(append), 0, 1, 'x'],
        ]);
        const others = [two, three].map((wire, i) =>
          wire.pipeline(
            Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? ['APPEND', `k:${n % 3}`, i] : ['RPUSH', 'list', n])),
          ),
        );
        const replies = (await Promise.all([scripts, ...others])).flat();
        assert.deepEqual(
          replies.filter((reply) => !reply.startsWith(':')),
          [],
        );
      }
      await rig.assertEqual();
      assert.ok(rig.shard.snapshot().workloads[0].clean);
    });
  });
}

test('keys that a script without declared keys may have written are copied where its text or the authority names them; otherwise all keys are suspect', async () => {
  const random = "redis.call('TIME') ";
  const cases: readonly [script: string, suspect: boolean][] = [
    [`${random} return redis.call('SET', 'named', redis.call('TIME')[2])`, false],
    [`${random} return redis.call('SET', ARGV[1], redis.call('TIME')[2])`, false],
    [`local key = ARGV[1]; return redis.call('SET', key, redis.call('TIME')[2])`, false],
    [`return redis.call('TIME')`, false],
    [`return {redis.call('KEYS', '*'), redis.call('GET', 'a' .. ARGV[1])}`, false],
    // It fails, and keeps what it has written.
    [`redis.call('SET', 'named', 'x') return redis.call('INCR', 'named')`, false],
    [`${random} return redis.call('SET', 'prefix:' .. ARGV[1], redis.call('TIME')[2])`, false],
    [`${random} ARGV[1] = 'other'; return redis.call('SET', ARGV[1], redis.call('TIME')[2])`, false],
    [`for _, key in ipairs(redis.call('KEYS', 'a*')) do redis.call('DEL', key) end return 1`, false],
    [`redis.call('SELECT', 1) return redis.call('SET', 'named', redis.call('TIME')[2])`, true],
    [`redis.call('TIME') return redis.call('FLUSHDB')`, true],
    [`redis.call('SET', 'prefix:' .. ARGV[1], 'x') return redis.call('INCR', 'prefix:' .. ARGV[1])`, false],
    // Repeated, it would end KeyDB.
    [`local a = {} setmetatable(a, {__index = function() redis.call('SET', 'named', '1') end}) return a`, false],
    // Repeated.
    [`return redis.call('SET', 'prefix:' .. ARGV[1], 1)`, false],
  ];
  for (const inside of [false, true]) {
    await withRig({ workloads: [{ name: 'other', keys: ['other:*'], stage: 'shadow' }] }, async (rig) => {
      const proxy = await rig.wire();
      for (const [script, suspect] of cases) {
        const shown = `${script}${inside ? ' in a transaction' : ''}`;
        if (suspect) continue;
        const evaluate = ['EVAL', script, 0, 'argument', 'x'];
        if (inside)
          assert.equal(
            (await proxy.pipeline([['MULTI'], ['INCR', 'n'], evaluate, ['EXEC']])).at(-1)!.slice(0, 2),
            '*2',
            shown,
          );
        else assert.ok(!/shadow-proxy/.test(await proxy.ask(...evaluate)), shown);
        await confirmed(rig);
        assert.deepEqual(suspects(rig), [null, null], shown);
      }
      await rig.assertEqual();
    });
    await Promise.all(
      cases
        .filter(([, suspect]) => suspect)
        .map(([script]) =>
          withRig(
            {
              workloads: [
                { name: 'other', keys: ['other:*'], stage: 'dualwrite' },
                { name: 'quiet', keys: ['off:*'], stage: 'off' },
              ],
            },
            async (rig) => {
              const proxy = await rig.wire();
              const evaluate = ['EVAL', script, 0, 'argument', 'x'];
              const replies = inside
                ? await proxy.pipeline([['MULTI'], evaluate, ['EXEC']])
                : [await proxy.ask(...evaluate)];
              // The target may have keys under the workload that is off.
              if (script.includes('FLUSHDB'))
                return assert.match(
                  replies.join(),
                  /-ERR shadow-proxy: EVAL of a script with FLUSHALL, FLUSHDB or SWAPDB is refused: the target may hold keys/,
                );
              await until(() => suspects(rig)[0] !== null);
              const [other, quiet, rest] = suspects(rig);
              for (const why of [other, rest]) assert.match(String(why), /unknown keys/, script);
              assert.equal(quiet, null);
            },
          ),
        ),
    );
  }
});

test('EVALSHA with an unknown digest and no declared keys makes all keys suspect if the script ran, and none if it did not', async () => {
  await withRig({}, async (rig) => {
    const script = "return redis.call('INCR', 'hidden')";
    const proxy = await rig.wire();
    assert.match(await proxy.ask('EVALSHA', sha(script), 0), /^-NOSCRIPT/);
    assert.match(await proxy.ask('EVALSHA', sha(script), 'x'), /^-ERR value is not an integer/);
    assert.deepEqual(suspects(rig), [null]);
    await rig.client({ of: rig.source }).script('LOAD', script);
    assert.equal(await proxy.ask('EVALSHA', sha(script), 0), ':1');
    await until(() => suspects(rig)[0] !== null);
    assert.match(suspects(rig)[0]!, /unknown keys/);
  });
});

test('what only reads is answered by the authority, and nothing follows', async (t) => {
  if (!(await needs(t, 'redis>=7.0', 'target<7.0'))) return;
  await withRig({}, async (rig) => {
    const proxy = await rig.wire();
    await proxy.ask('SET', 'k', 'v');
    await until(() => rig.shard.snapshot().mirror.connected);
    assert.equal(await proxy.ask('EVAL_RO', "return redis.call('GET', 'k')", 0), '$1\r\nv');
    assert.equal(await proxy.ask('EVALSHA_RO', sha("return redis.call('GET', 'k')"), 0), '$1\r\nv');
    assert.match(
      await proxy.ask('EVAL_RO', "return redis.call('SET', 'k', 1)", 0),
      /^-ERR Write commands are not allowed/,
    );
    await rig.assertEqual();
    assert.deepEqual(rig.shard.snapshot().unsupported, { eval_ro: 2, evalsha_ro: 1 });
  });
});

test('the keys of a script that only Redis 7 compiles are copied, and the script is reported as unsupported', async (t) => {
  if (!(await needs(t, 'redis>=7.0', 'target<7.0'))) return;
  await withRig({}, async (rig) => {
    const proxy = await rig.wire();
    await proxy.ask('SET', 'k', 'v');
    await until(() => rig.shard.snapshot().mirror.connected);
    assert.equal(await proxy.ask('EVAL', "#!lua\nreturn redis.call('INCR', KEYS[1])", 1, 'n'), ':1');
    assert.equal(await proxy.ask('EVAL', "#!lua\nreturn redis.call('INCR', ARGV[1])", 0, 'n'), ':2');
    await rig.assertEqual();
    assert.deepEqual(rig.shard.snapshot().unsupported, { 'eval #!lua': 2 });
  });
});

test('a script without declared keys is refused while workloads have different authorities, unless it touches none', async () => {
  await withRig({ workloads: [{ name: 'moved', keys: ['live:*'], stage: 'live' }] }, async (rig) => {
    const proxy = await rig.wire();
    const refused =
      /^-ERR shadow-proxy: EVAL without declared keys is refused while workloads have different authorities: pass the keys/;
    for (const script of [
      "return redis.call('SET', 'k', 1)",
      "return redis.call('GET', 'k')",
      "return redis.call('SET', ARGV[1], 1)",
    ]) {
      assert.match(await proxy.ask('EVAL', script, 0, 'k'), refused);
      const [, queued, exec] = await proxy.pipeline([['MULTI'], ['EVAL', script, 0, 'k'], ['EXEC']]);
      assert.equal(queued, '+QUEUED');
      assert.match(exec, refused);
    }
    assert.match(await proxy.ask('EVAL', "return redis.call('TIME')", 0), /^\*2/);
    assert.equal(await proxy.ask('EVAL', 'return ARGV[1]', 0, 'x'), '$1\r\nx');
    assert.equal(await proxy.ask('PING'), '+PONG');
    await rig.assertEqual();
  });
});

test('a script with unknown keys reads the right values on the mirror, although keys were suspect just before', async () => {
  await withRig({}, async (rig) => {
    const [proxy, other] = [await rig.wire(), await rig.wire()];
    const copied = "return redis.call('SET', KEYS[1], redis.call('TIME')[2])";
    const blind =
      "local v = redis.call('GET', 'from:' .. ARGV[1]); return redis.call('APPEND', 'to:' .. ARGV[1], v or '-')";
    for (let round = 0; round < 20; round++) {
      const busy = other.pipeline(Array.from({ length: 20 }, (_, i) => ['EVAL', copied, 1, `from:${i % 3}`]));
      const replies = await proxy.pipeline([
        ['EVAL', copied, 1, 'from:1'],
        ['EVAL', blind, 0, 1],
        ['MULTI'],
        ['EVAL', blind, 0, 2],
        ['EXEC'],
      ]);
      assert.deepEqual(
        replies.filter((reply) => reply.startsWith('-')),
        [],
      );
      await busy;
    }
    assert.deepEqual(suspects(rig), [null]);
    await rig.assertEqual();
  });
});

test('a lost connection leaves nothing of such a script unseen', async () => {
  await withRig({}, async (rig) => {
    const proxy = await rig.wire();
    await proxy.ask('PING');
    proxy.send('EVAL', "redis.call('SET', 'x:' .. ARGV[1], 1) while true do end", 0, 'a');
    // The server runs the script by then: it can tell nobody.
    await new Promise((resolve) => setTimeout(resolve, 200));
    await rig.source.kill('SIGKILL');
    await proxy.closed;
    await until(() => suspects(rig)[0] !== null);
    assert.match(suspects(rig)[0]!, /unknown keys/);
  });
});
