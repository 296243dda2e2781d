/** What waits for the mirror. Real servers answer too fast for a test to choose the moment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld, type KeptClient } from '../../kept/world.js';
import type { KeyName } from '../../world/server-host.js';

const HELD_MS = 500;
const SOON_MS = 100;
const SMALL = { limits: { queueBytes: '8KiB' } };

const NOTHING = '-';
/** Replaces the element of a set that only the server can name. */
const HIDES = `if ARGV[2] == '${NOTHING}' then return 0 end
redis.call('DEL', KEYS[1] .. ARGV[1]) redis.call('SADD', KEYS[1] .. ARGV[1], ARGV[2]) return 1`;

const addScript = ({ source, target }: KeptWorld): void => {
  for (const { model } of [source, target])
    model.addScript(HIDES, ({ call, keys, args }) => {
      if (args[1] === NOTHING) return 0;
      call('DEL', keys[0] + args[0]);
      call('SADD', keys[0] + args[0], args[1]);
      return 1;
    });
};

async function untilBoth(kept: KeptWorld, key: KeyName, value: string | null): Promise<void> {
  const since = kept.world.events.now;
  await kept.until(() => kept.values(key).every((each) => each === value), `both have ${key}`);
  assert.ok(kept.world.events.now - since < SOON_MS, 'soon');
  await kept.pass(10);
}

test('What was written while the mirror could not be reached is sent as soon as it is connected', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    const { network } = kept.world;
    const way = `${kept.proxy.host.address} ${kept.target.address.host}`;
    await client.ask('SET k first');
    await untilBoth(kept, '0 k', 'first');
    network.blocked.add(way);
    for (const connection of network.connections) if (connection.to.host === kept.target.address.host) connection.cut();
    await kept.pass(50);
    await client.ask('SET k second');
    network.blocked.delete(way);
    await untilBoth(kept, '0 k', 'second');
  }));

test('FLUSHALL is sent to a mirror whose queue is full', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    for (const key of ['k', 'other']) {
      await client.ask(`SET ${key} first`);
      await untilBoth(kept, `0 ${key}`, 'first');
    }
    kept.holdCommands(kept.target, HELD_MS);
    for (let i = 0; i < 20; i++) await client.ask(`SET k ${'x'.repeat(200)}`);
    assert.equal(await client.ask('FLUSHALL'), '+OK');
    await kept.pass(HELD_MS);
    await untilBoth(kept, '0 other', null);
  }, SMALL));

test('A transaction waits for the mirror only if there is room for all of it', () =>
  KeptWorld.run(async (kept) => {
    const client = await kept.client();
    await client.ask('SET k first');
    await untilBoth(kept, '0 k', 'first');
    kept.holdCommands(kept.target, HELD_MS);
    await client.ask('SET k second');
    for (const command of ['MULTI', ...Array<string>(20).fill(`SET k ${'x'.repeat(200)}`), 'SET k third', 'EXEC'])
      await client.ask(command);
    assert.ok(kept.proxy.parts!.sequencer.mirrors.target.queuedBytes <= 8_192);
    await kept.pass(HELD_MS);
    await untilBoth(kept, '0 k', 'third');
  }, SMALL));

test('A stage change waits for the mirror in all databases', () =>
  KeptWorld.run(async (kept) => {
    const databases = [0, 1, 2, 3];
    const clients = await Promise.all(databases.map(() => kept.client()));
    const ports: (() => number | null)[] = [];
    for (const db of databases) {
      ports.push(kept.portOf(kept.target, ([name]) => name === 'SET'));
      await clients[db].ask(`SELECT ${db}`);
      await clients[db].ask('SET k first');
      await untilBoth(kept, `${db} k`, 'first');
    }
    for (const db of databases) {
      kept.holdCommands(kept.target, (HELD_MS * (db + 2)) / 5, ports[db]());
      await clients[db].ask('SET k second');
    }
    const isOver = kept.beginChange('live');
    await kept.pass(10);
    await clients[3].ask('SET k third');
    await kept.until(isOver, 'the stage has changed');
    await kept.pass(HELD_MS);
    assert.deepEqual(kept.values('3 k'), ['third', 'third']);
  }));

/** A client, when the names of the keys that its next script writes come late. */
async function holdNames(kept: KeptWorld): Promise<KeptClient> {
  const client = await kept.client();
  await client.ask(['EVAL', HIDES, '1', 'set', ':', 'one']);
  await kept.until(() => kept.isClean, 'the workload is clean');
  kept.holdReplies(kept.source, HELD_MS, ([name]) => name === 'PING');
  return client;
}

test('Nothing is sent to the mirror before it is known what a script has written', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await holdNames(kept);
      client.send(['EVAL', HIDES, '1', 'set', ':', 'two']);
      await kept.pass(5);
      client.send('SUNIONSTORE copy set:');
      await kept.until(() => client.replies.length === 3, 'both are answered');
      await kept.pass(HELD_MS + 10);
      await kept.until(() => kept.isClean, 'the workload is clean');
      assert.deepEqual(kept.values('0 copy'), Array(2).fill(new Set(['two'])));
    },
    {},
    addScript,
  ));

test('What waited to know what a script has written is sent as soon as that is known', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await holdNames(kept);
      client.send(['EVAL', HIDES, '1', 'set', ':', NOTHING]);
      await kept.pass(HELD_MS / 2);
      client.send('SET k value');
      await kept.pass(HELD_MS / 2);
      await untilBoth(kept, '0 k', 'value');
    },
    {},
    addScript,
  ));
