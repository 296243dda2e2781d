/**
 * Rule 10: commands that touch more than their keys say, among everything that others do at the same time.
 *
 * Needs real servers: SWAPDB, FLUSHALL, MOVE and COPY of KeyDB, alone and in MULTI, in databases that others use.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import type { Argument } from '../../../src/resp/encode.js';
import { differences } from '../../support/keyspace.js';
import { withRig, type Rig } from '../../support/rig.js';
import type { Wire } from '../../support/wire.js';

const DATABASES = 3;
const AT_ONCE = 40;
/** So many barriers pass, at least, among so many commands of others. */
const [BARRIERS, COMMANDS] = [60, 3_000];
const pick = <T>(items: readonly T[]): T => items[Math.floor(Math.random() * items.length)];
const key = (): string => `k:${Math.floor(Math.random() * 40)}`;

/** Commands that leave their trace in the order in which they ran. */
const write = (): Argument[] =>
  pick<() => Argument[]>([
    () => ['APPEND', key(), Math.floor(Math.random() * 10)],
    () => ['SET', key(), Math.random()],
    () => ['INCR', `n:${Math.floor(Math.random() * 5)}`],
    () => ['RPUSH', `l:${Math.floor(Math.random() * 10)}`, Math.random()],
    () => ['DEL', key()],
    () => ['RENAME', key(), key()],
    () => ['GET', key()],
    () => ['SPOP', 's'],
    () => ['SADD', 's', Math.random()],
    () => ['MSET', key(), 1, key(), 2],
  ])();

/** @param isEnough is called with the number of commands that were just answered */
async function load(rig: Rig, number: number, isEnough: (more: number) => boolean): Promise<void> {
  const wire = await rig.wire();
  await wire.ask('HELLO', 2 + (number % 2));
  for (let answered = 0; !isEnough(answered); answered = AT_ONCE) {
    await wire.ask('SELECT', Math.floor(Math.random() * DATABASES));
    const commands = Array.from({ length: AT_ONCE }, write);
    const dice = Math.random();
    if (dice < 0.2) await wire.pipeline([['MULTI'], ...commands, ['EXEC']]);
    else if (dice < 0.4)
      await wire.pipeline([
        ['MULTI'],
        ...commands.flatMap((args, i) => (i % 15 === 7 ? [['SELECT', database()], args] : [args])),
        ['EXEC'],
      ]);
    else await wire.pipeline(commands);
  }
}

const expectOk = async (wire: Wire, ...args: Argument[]): Promise<void> => assert.equal(await wire.ask(...args), '+OK');
const database = (): number => Math.floor(Math.random() * DATABASES);

test('commands on whole databases, in transactions, too, leave both servers equal among the commands of others', async () => {
  const barrier = async (wire: Wire, n: number): Promise<void> => {
    switch (n % 10) {
      case 0:
        return expectOk(wire, ...(n % 20 === 0 ? ['FLUSHALL', 'ASYNC'] : ['FLUSHDB']));
      case 1:
      case 6:
        return expectOk(wire, 'SWAPDB', database(), database());
      case 3:
        return assert.match((await wire.pipeline([['MULTI'], ['MOVE', key(), 1], ['EXEC']]))[2], /^\*1\r\n:[01]$/);
      case 4:
        return assert.match(await wire.ask('COPY', key(), key(), 'DB', 1 + (n % 2), 'REPLACE'), /^:[01]$/);
      case 5: {
        const commands = [['MULTI'], ['SELECT', database()], ['FLUSHDB'], ['SELECT', 0], ['EXEC']];
        return assert.equal((await wire.pipeline(commands))[4], '*3\r\n+OK\r\n+OK\r\n+OK');
      }
      default:
        return assert.match(await wire.ask('MOVE', key(), 1 + (n % 2)), /^:[01]$/);
    }
  };
  await withRig({}, async (rig) => {
    let [passed, answered] = [0, 0];
    const isEnough = (): boolean => passed >= BARRIERS && answered >= COMMANDS;
    const loads = Array.from({ length: 6 }, (_, i) => load(rig, i, (more) => ((answered += more), isEnough())));
    const passing = [await rig.wire(), await rig.wire()].map(async (wire) => {
      while (!isEnough()) {
        await sleep(Math.random() * 5);
        await barrier(wire, passed++);
      }
    });
    await Promise.all([...passing, ...loads]);
    await rig.assertEqual();
  });
});

test('a suspect of one database is a suspect of the other after SWAPDB, and is repaired there', async () => {
  await withRig({ limits: { queueBytes: 30_000 } }, async (rig) => {
    const wire = await rig.wire();
    for (let db = 0; db < 2; db++) {
      await wire.ask('SELECT', db);
      await wire.pipeline(Array.from({ length: 50 }, (_, i) => ['SET', `k:${i}`, `old ${db}`]));
    }
    await rig.shard.settled();
    await rig.target.kill('SIGSTOP');
    await wire.ask('SELECT', 0);
    await wire.pipeline(Array.from({ length: 400 }, (_, i) => ['SET', `k:${i % 50}`, `new ${'x'.repeat(200)} ${i}`]));
    await expectOk(wire, 'SWAPDB', 0, 1);
    await wire.pipeline([
      ['MOVE', 'k:1', 5],
      ['COPY', 'k:2', 'copied', 'DB', 5],
      ['MOVE', 'k:49', 5],
      ['RENAME', 'k:48', 'renamed'],
    ]);
    await wire.ask('SELECT', 1);
    await wire.pipeline([
      ['MOVE', 'k:1', 6],
      ['COPY', 'k:47', 'copied', 'DB', 6],
      ['MOVE', 'k:46', 6],
      ['RENAME', 'k:45', 'renamed'],
    ]);
    assert.ok(rig.shard.snapshot().mirror.dropped > 0);
    await rig.target.kill('SIGCONT');
    await rig.assertEqual();
  });
});

test('a mismatch that is found after SWAPDB, for a command before it, is repaired in the database where the key is now', async () => {
  await withRig({}, async (rig) => {
    const wire = await rig.wire();
    await wire.ask('SET', 'k', 'value');
    await rig.shard.settled();
    await rig.client({ of: rig.target }).set('k', 'another');
    await rig.target.kill('SIGSTOP');
    await wire.ask('APPEND', 'k', '!');
    await expectOk(wire, 'SWAPDB', 0, 1);
    await rig.target.kill('SIGCONT');
    await rig.assertEqual();
    assert.equal(await rig.client({ of: rig.target, db: 1 }).get('k'), 'value!');
  });
});

test('a FLUSHALL that finds no room in the queue is not lost', async () => {
  await withRig({ limits: { queueBytes: 10_000 } }, async (rig) => {
    const wire = await rig.wire();
    await wire.pipeline(Array.from({ length: 50 }, (_, i) => ['SET', `old:${i}`, i]));
    await rig.shard.settled();
    await rig.target.kill('SIGSTOP');
    await wire.pipeline(Array.from({ length: 400 }, (_, i) => ['SET', `k:${i % 50}`, 'x'.repeat(200)]));
    await expectOk(wire, 'FLUSHALL');
    await wire.ask('SET', 'after', 1);
    await rig.target.kill('SIGCONT');
    await rig.assertEqual();
  });
});

test('COPY and MOVE between databases keep to the workloads of their keys', async () => {
  const workloads = [
    { name: 'quiet', keys: ['off:*'], stage: 'off' as const },
    { name: 'moved', keys: ['live:*'], stage: 'live' as const },
  ];
  await withRig({ workloads }, async ({ wire, shard, source, target, client }) => {
    const proxy = await wire();
    await proxy.pipeline([
      ['SET', 'off:a', 1],
      ['SET', 'b', 2],
      ['SET', 'live:c', 3],
    ]);
    assert.match(
      await proxy.ask('COPY', 'b', 'live:b', 'DB', 1),
      /^-ERR shadow-proxy: COPY spans workload "default" .* and workload "moved"/,
    );
    assert.equal(await proxy.ask('COPY', 'off:a', 'a', 'DB', 1), ':1');
    assert.equal(await proxy.ask('COPY', 'b', 'off:b', 'DB', 1), ':1');
    assert.equal(await proxy.ask('MOVE', 'live:c', 1), ':1');
    assert.match(await proxy.ask('FLUSHALL'), /^-ERR shadow-proxy: FLUSHALL is refused/);
    await shard.settled();
    assert.equal(await client({ of: target, db: 1 }).get('a'), '1');
    assert.equal(await client({ of: target, db: 1 }).get('live:c'), '3');
    assert.deepEqual(await differences(source, target), [
      '0:off:a is not on the target: "1"',
      '1:off:b is not on the target: "2"',
    ]);
    assert.deepEqual(shard.snapshot().mismatches, {});
  });
});
