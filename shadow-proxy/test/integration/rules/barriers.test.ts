/**
 * Rule 10: commands that touch more than their keys say, among everything that others do at the same time.
 *
 * Needs real servers: SWAPDB, FLUSHALL, MOVE and COPY of KeyDB, among commands of others in several databases.
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

/** Runs `barriers` one after the other while six connections work in all databases. */
async function underLoad(barriers: readonly ((wire: Wire, n: number) => Promise<void>)[]): Promise<void> {
  await withRig({}, async (rig) => {
    let [passed, answered] = [0, 0];
    const isEnough = (): boolean => passed >= BARRIERS && answered >= COMMANDS;
    const loads = Array.from({ length: 6 }, (_, i) => load(rig, i, (more) => ((answered += more), isEnough())));
    const wires = await Promise.all(barriers.map(() => rig.wire()));
    const passing = barriers.map(async (barrier, i) => {
      for (; !isEnough(); passed++) {
        await sleep(Math.random() * 5);
        await barrier(wires[i], passed);
      }
    });
    await Promise.all([...passing, ...loads]);
    await rig.assertEqual();
  });
}

const expectOk = async (wire: Wire, ...args: Argument[]): Promise<void> => assert.equal(await wire.ask(...args), '+OK');
const database = (): number => Math.floor(Math.random() * DATABASES);

test('FLUSHALL and FLUSHDB among the commands of others leave both servers equal', async () => {
  await underLoad([
    (wire) => expectOk(wire, 'FLUSHALL', 'ASYNC'),
    async (wire) => (await wire.ask('SELECT', database()), expectOk(wire, 'FLUSHDB')),
  ]);
});

test('SWAPDB among the commands of others leaves both servers equal', async () => {
  await underLoad([(wire) => expectOk(wire, 'SWAPDB', database(), database())]);
});

test('MOVE and COPY between databases among the commands of others leave both servers equal', async () => {
  const other = async (wire: Wire, n: number): Promise<void> => {
    const db = database();
    await wire.ask('SELECT', db);
    const to = (db + 1 + (n % 2)) % DATABASES;
    const args = n % 3 === 0 ? ['COPY', key(), key(), 'DB', to, ...(n % 2 ? ['REPLACE'] : [])] : ['MOVE', key(), to];
    const reply = n % 4 === 0 ? (await wire.pipeline([['MULTI'], args, ['EXEC']]))[2] : await wire.ask(...args);
    assert.match(reply, /^(\*1\r\n)?:[01]$/);
  };
  await underLoad([other, other, other]);
});

test('all of them at once, from several connections', async () => {
  const any = (wire: Wire, n: number): Promise<void> => {
    if (n % 10 === 0) return expectOk(wire, 'FLUSHDB');
    if (n % 10 === 5)
      return wire
        .pipeline([['MULTI'], ['SELECT', database()], ['FLUSHDB'], ['SELECT', 0], ['EXEC']])
        .then((replies) => assert.equal(replies[4], '*3\r\n+OK\r\n+OK\r\n+OK'));
    if (n % 5 === 1) return expectOk(wire, 'SWAPDB', database(), database());
    return wire.ask('MOVE', key(), 1 + (n % 2)).then((reply) => assert.match(reply, /^:[01]$/));
  };
  await underLoad([any, any]);
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
