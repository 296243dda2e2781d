/**
 * Rule 9: keys that neither a script's text nor its caller names are reported by the authority, in their place in the
 * order.
 *
 * Needs real servers: keyspace notifications: which keys each server names for a script, and when.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Link } from '../../../src/local/relay.js';
import { withRig, type Rig } from '../../support/rig.js';
import { until } from '../../support/shard.js';
import { withScene, type Scene } from './scene.js';
import { needs } from '../../support/needs.js';

/** Nobody can tell from the text what it writes, nor do it again. */
const HIDING = `local rcall = redis.call; local now = rcall('TIME'); local key = KEYS[1] .. ':' .. ARGV[1]
rcall('HSET', key, 'at', now[2], 'n', ARGV[2]); rcall('RPUSH', KEYS[1] .. ':log', key .. now[2]); rcall('LTRIM', KEYS[1] .. ':log', -5, -1)
if tonumber(ARGV[2]) % 7 == 0 then rcall('DEL', key) end
if tonumber(ARGV[2]) % 11 == 0 then return redis.error_reply('OWN after it wrote') end
return rcall('HGETALL', key)`;

/** Of each client: half of them run a script in each. */
const ROUNDS = 60;

const suspectOf = ({ shard }: Rig): string | null => shard.snapshot().workloads[0].suspect;

for (const stage of ['shadow', 'live'] as const) {
  test(`what scripts hide is copied while others write and read the same keys, in ${stage}`, async (t) => {
    await withRig({ default: { stage } }, async (rig) => {
      const wires = await Promise.all(Array.from({ length: 8 }, () => rig.wire()));
      await Promise.all(
        wires.map(async (wire, n) => {
          for (let i = 0; i < ROUNDS; i++) {
            const [base, field] = [`k:${i % 3}`, i % 5];
            const script = ['EVAL', HIDING, 1, base, field, i];
            if (n < 3) await wire.ask(...script);
            else if (n === 3)
              await wire.pipeline([
                ['MULTI'],
                ['INCR', 'n'],
                script,
                ['RENAME', `${base}:${field}`, `${base}:moved`],
                ['EXEC'],
              ]);
            else
              await wire.pipeline([
                ['HGETALL', `${base}:${field}`],
                ['LRANGE', `${base}:log`, 0, -1],
                ['RPUSH', `${base}:log`, `own ${n}`],
                ['HSET', `${base}:${field}`, `own${n}`, i],
                ['COPY', `${base}:${field}`, `${base}:copy`, 'REPLACE'],
              ]);
          }
        }),
      );
      assert.equal(suspectOf(rig), null);
      await rig.assertEqual();
      t.diagnostic(JSON.stringify({ inconclusive: rig.shard.snapshot().inconclusive }));
    });
  });
}

/** Declares a key of one workload, and writes to another's. */
const STRAYING = "redis.call('INCR', KEYS[1]) return redis.call('SET', 'a:' .. ARGV[1], redis.call('TIME')[2])";
const TWO = { workloads: [{ name: 'a', keys: ['a:*'], stage: 'shadow' as const }] };

test('where the authority does not name them, every workload is suspect', async (t) => {
  if (!(await needs(t, 'redis>=7.0'))) return;
  await withRig(TWO, async (rig) => {
    const direct = rig.client({ of: rig.source });
    await direct.acl('SETUSER', 'default', '-client|tracking');
    const wire = await rig.wire();
    await wire.ask('EVAL', STRAYING, 1, 'k', 'x');
    const suspects = (): (string | null)[] => rig.shard.snapshot().workloads.map(({ suspect }) => suspect);
    await until(() => suspects().every((suspect) => suspect !== null && /unknown keys/.test(suspect)));
    await until(() => suspects().every((suspect) => suspect === null));
    await rig.assertEqual();
    assert.equal(await rig.client({ of: rig.target }).exists('a:x'), 1);
  });
});

test('what a script whose reply was lost wrote to another workload is on both servers', async () => {
  await withScene(TWO, async (scene) => {
    const [wire, direct] = [await scene.wire(), scene.client({ of: scene.source })];
    await wire.ask('EVAL', STRAYING, 1, 'k', 'x');
    await scene.shard.settled();
    scene.toSource.hold('down');
    wire.send('EVAL', STRAYING, 1, 'k', 'y');
    await until(async () => (await direct.exists('a:y')) === 1);
    scene.toSource.cut();
    scene.toSource.release();
    await wire.closed;
    await until(() => scene.shard.snapshot().workloads.every(({ clean }) => clean));
    await scene.assertEqual();
    assert.equal(await scene.client({ of: scene.target }).exists('a:y'), 1);
  });
});

test('if a connection is lost while a script runs, the keys of the script become suspects', async () => {
  await withRig({}, async (rig) => {
    const direct = rig.client({ of: rig.source });
    const wire = await rig.wire();
    await wire.ask('EVAL', HIDING, 1, 'k', 1, 1);
    const listening = async (): Promise<string[]> =>
      String(await direct.client('LIST'))
        .split('\n')
        .filter((line) => /flags=\w*t/.test(line));
    const [line] = await listening();
    wire.send(
      'EVAL',
      `${HIDING} -- slow\n`.replace('local now', 'for i = 1, 2000000 do local x = i end local now'),
      1,
      'k',
      2,
      1,
    );
    await direct.client('KILL', 'ID', /\bid=(\d+)/.exec(line)![1]);
    await wire.frame();
    await until(() => suspectOf(rig) !== null || rig.shard.snapshot().suspects.total === 0);
    // Either the script had ended before, or all keys are suspect: no difference is missed.
    if (suspectOf(rig) === null) await rig.assertEqual();
    assert.equal((await wire.ask('EVAL', HIDING, 1, 'k', 3, 1)).slice(0, 1), '*');
    await until(async () => (await listening()).length === 1);
  });
});

/** What the authority says of the connection on which it names what changes. */
const NAMES = / flags=\w*t/;

/** The connection to the source of which its CLIENT LIST says that. */
async function linkOf(scene: Scene, what: RegExp): Promise<Link> {
  const lines = String(await scene.client({ of: scene.source }).client('LIST')).split('\n');
  const ports = lines.filter((line) => what.test(line)).map((line) => Number(/ addr=\S+:(\d+) /.exec(line)![1]));
  return scene.toSource.links.find(({ server }) => ports.includes(server.localPort!))!;
}

test('a change that is reported while the reply of a copy is still under way is not taken for part of the copy', async () => {
  await withScene({}, async (scene) => {
    const [first, second] = [await scene.wire(), await scene.wire()];
    await second.ask('HELLO', 3);
    // From now on there is a lane for each protocol, and the authority names what changes.
    for (const wire of [first, second]) await wire.ask('EVAL', HIDING, 1, 'k', 1, 1);
    await scene.shard.settled();
    const [lane, names] = [await linkOf(scene, / cmd=(dump|pttl) /), await linkOf(scene, NAMES)];
    names.hold('up');
    await first.ask('EVAL', HIDING, 1, 'k', 1, 2);
    lane.hold('down');
    names.release();
    // The state that the first script left has been read, and nobody knows.
    await until(() => lane.waiting('down') > 0);
    await second.ask('EVAL', HIDING, 1, 'k', 1, 3);
    await until(() => scene.shard.snapshot().undecided === 0);
    lane.release();
    await scene.assertEqual();
  });
});

/** Sets the key that is its argument, which the text does not show. */
const LOOPING = "for i = 1, 1 do redis.call('SET', ARGV[i], 'abc') end";

test('what a transaction reads after its own script has changed it is compared once the authority has named it', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await wire.pipeline([
      ['SET', 'k', 'old'],
      ['EVAL', LOOPING, 0, 'other'],
    ]);
    await scene.shard.settled();
    const names = await linkOf(scene, NAMES);
    names.hold('down');
    const replies = await wire.pipeline([['MULTI'], ['EVAL', LOOPING, 0, 'k'], ['GET', 'k'], ['EXEC']]);
    assert.match(replies.at(-1)!, /abc/);
    // Time for the mirror to answer what it must not have got yet.
    await sleep(100);
    names.release();
    await scene.assertEqual();
    const { mismatches, inconclusive } = scene.shard.snapshot();
    assert.deepEqual([mismatches, inconclusive], [{}, {}]);
  });
});

test('what a transaction takes to another database after its own script has changed it is copied there', async () => {
  await withRig({}, async (rig) => {
    const wire = await rig.wire();
    for (const script of [
      ['EVAL', LOOPING, 0, 'k'],
      ['EVAL', LOOPING, 1, 'declared', 'k'],
    ]) {
      await wire.pipeline([
        ['SET', 'k', 'old'],
        ['SELECT', 1],
        ['DEL', 'k'],
        ['SELECT', 0],
      ]);
      await rig.shard.settled();
      const replies = await wire.pipeline([
        ['MULTI'],
        script,
        ['COPY', 'k', 'copy', 'DB', 1, 'REPLACE'],
        ['MOVE', 'k', 1],
        ['EXEC'],
      ]);
      assert.equal(replies.at(-1), '*3\r\n$-1\r\n:1\r\n:1');
      await rig.assertEqual();
    }
  });
});

test('a process that ends while a script may write to keys that nobody names leaves every key suspect, and has it verified', async () => {
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    await wire.ask('EVAL', HIDING, 1, 'k', 1, 1);
    await scene.shard.settled();
    scene.toSource.hold('down');
    wire.send('EVAL', HIDING, 1, 'k', 2, 2);
    const direct = scene.client({ of: scene.source });
    await until(async () => (await direct.exists('k:2')) === 1);
    await scene.stopShard();
    scene.toSource.release();
    await scene.startShard();
    assert.match(
      scene.shard.snapshot().workloads[0].suspect ?? '',
      /a script was in flight that may write undeclared keys/,
    );
    await until(() => scene.shard.snapshot().workloads[0].suspect === null);
    await scene.assertEqual();
    assert.equal(await scene.client({ of: scene.target }).exists('k:2'), 1);
  });
});

test('a process that ends when scripts that hide their keys are long over leaves nothing suspect', async () => {
  await withScene({}, async (scene) => {
    await (await scene.wire()).ask('EVAL', HIDING, 1, 'k', 1, 1);
    await scene.shard.settled();
    // The journal forgets it when its files take turns, a second later.
    await sleep(2_500);
    await scene.stopShard();
    await scene.startShard();
    assert.equal(scene.shard.snapshot().workloads[0].suspect, null);
    await scene.assertEqual();
  });
});
