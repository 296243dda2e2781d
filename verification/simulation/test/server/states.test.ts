/**
 * States in which servers refuse commands, a replica, a restart.
 *
 * Needs real servers: LOADING, READONLY, OOM and restarts, beside those of the model.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { LocalServer } from '../../../../shadow-proxy/src/local/servers.js';
import { needs } from '../../../../shadow-proxy/test/support/needs.js';
import { Wire } from '../../../../shadow-proxy/test/support/wire.js';
import { dump } from '../../server/dump.js';
import { ModelServer } from '../../server/server.js';
import type { Engine } from '../../server/state.js';
import { ENGINES, ModelWire, REAL, startReal, type Words } from './duel.js';

/** Commands of every kind: reads, writes, those that need memory, and those that always run. */
const COMMANDS: readonly Words[] = [
  ['GET', 'k'],
  ['SET', 'k', 'v'],
  ['DEL', 'k'],
  ['LPOP', 'l'],
  ['RPUSH', 'l', 'e'],
  ['PING'],
  ['ECHO', 'text'],
  ['EXISTS', 'k'],
  ['EXPIRE', 'k', '100'],
  ['XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', 's', '>'],
  ['PUBLISH', 'news', 'text'],
  ['SELECT', '0'],
  ['MULTI'],
  ['GET', 'k'],
  ['EXEC'],
  ['MULTI'],
  ['SET', 'k', 'v'],
  ['EXEC'],
  ['MULTI'],
  ['DEL', 'k'],
  ['EXEC'],
  ['EXEC'],
  ['WATCH', 'k'],
  ['UNWATCH'],
  ['NOSUCH'],
  ['GET'],
  ['CLIENT', 'GETNAME'],
  ['SCRIPT', 'EXISTS', 'x'],
  ['RESET'],
];

interface Sides {
  readonly real: LocalServer;
  readonly wire: Wire;
  readonly model: ModelServer;
  readonly modelled: ModelWire;
}

function states(
  title: string,
  config: Readonly<Record<string, string>>,
  enter: (sides: Sides) => Promise<unknown>,
  leave: (sides: Sides) => Promise<unknown> = async () => undefined,
): void {
  for (const engine of ENGINES)
    test(`the model of ${engine} refuses what the server refuses ${title}`, async (t) => {
      await beside(t, engine, config, async (sides) => {
        await enter(sides);
        try {
          const replies = await sides.wire.pipeline(COMMANDS);
          COMMANDS.forEach((words, i) => assert.equal(sides.modelled.ask(words), replies[i], words.join(' ')));
        } finally {
          await leave(sides);
        }
      });
    });
}

async function beside(
  t: TestContext,
  engine: Engine,
  config: Readonly<Record<string, string>>,
  body: (sides: Sides) => Promise<void>,
): Promise<void> {
  if (!(await needs(t, engine === 'redis' ? 'redis=7.0' : 'keydb'))) return;
  const real = await startReal(engine, config);
  const wire = await Wire.open({ port: real.port });
  const model = new ModelServer(engine, REAL, { config });
  const modelled = new ModelWire(model);
  try {
    await body({ real, wire, model, modelled });
  } finally {
    wire.destroy();
    model.stopTimers();
    await real.stop();
  }
}

states('without memory', {}, async ({ wire, model }) => {
  assert.equal(await wire.ask('CONFIG', 'SET', 'maxmemory', '1'), '+OK');
  model.troubles.outOfMemory = true;
});

states('after a save that failed', { save: '3600 1000000', dbfilename: 'folder' }, async ({ real, wire, model }) => {
  mkdirSync(join(real.dir, 'folder', 'inside'), { recursive: true });
  await wire.ask('BGSAVE');
  while (!(await wire.ask('INFO', 'persistence')).includes('rdb_last_bgsave_status:err'));
  model.troubles.cannotSave = true;
});

states('as a replica', {}, async ({ wire, model }) => {
  await wire.ask('REPLICAOF', '127.0.0.1', '1');
  model.becomeReplica('127.0.0.1', 1);
});

states('as a replica without its primary', { 'replica-serve-stale-data': 'no' }, async ({ wire, model }) => {
  await wire.ask('REPLICAOF', '127.0.0.1', '1');
  model.becomeReplica('127.0.0.1', 1);
});

states(
  'while a script runs',
  { 'lua-time-limit': '1' },
  async ({ real, model }) => {
    const busy = await Wire.open({ port: real.port });
    busy.send('EVAL', 'while true do end', '0');
    busy.socket.unref();
    const other = await Wire.open({ port: real.port });
    while (!(await other.ask('PING')).startsWith('-BUSY'));
    other.destroy();
    model.troubles.busy = true;
  },
  async ({ real }) => {
    const other = await Wire.open({ port: real.port });
    await other.ask('SCRIPT', 'KILL');
    other.destroy();
  },
);

const SCRIPT = "redis.call('SET', KEYS[1], 'v') return 1";
/** Some fail, some are refused, and some are queued. */
const COUNTED: readonly Words[] = [
  ['SET', 'k', 'v'],
  ['SET', 'k', 'v', 'ZZ'],
  ['SET'],
  ['LPUSH', 'k', 'e'],
  ['MULTI'],
  ['SET', 'k', 'v'],
  ['INCR', 'k'],
  ['EXEC'],
  ['MULTI'],
  ['DEL', 'k'],
  ['DISCARD'],
  ['EVAL', SCRIPT, '1', 'k'],
  ['RPUSH', 'l', 'e'],
  ['BLPOP', 'l', '1'],
  ['CLIENT', 'SETNAME', 'me'],
  ['NOSUCH'],
  ['ACL', 'SETUSER', 'u', 'on', '>pw', '~*', '+@all', '-set'],
  ['AUTH', 'u', 'pw'],
  ['SET', 'k', 'refused'],
];

/** Calls by command, as `INFO commandstats` shows them. */
const callsIn = (info: string): readonly string[] => [...info.matchAll(/cmdstat_[^:]+:calls=\d+/g)].map(String).sort();

for (const engine of ENGINES)
  test(`the model of ${engine} counts calls as the server does`, (t) =>
    beside(t, engine, {}, async ({ wire, model, modelled }) => {
      model.addScript(SCRIPT, ({ call, keys }) => {
        call('SET', keys[0], 'v');
        return 1;
      });
      await wire.ask('CONFIG', 'RESETSTAT');
      modelled.ask(['CONFIG', 'RESETSTAT']);
      for (const words of COUNTED) {
        await wire.ask(...words);
        modelled.ask(words);
      }
      const [expected, counted] = [await wire.ask('INFO', 'commandstats'), modelled.ask(['INFO', 'commandstats'])!];
      assert.deepEqual(callsIn(counted), callsIn(expected));
    }));

test('a model refuses the commands that a world wants refused', () => {
  const model = new ModelServer('redis', REAL);
  const client = new ModelWire(model);
  model.refuse((_client, name) => (name === 'set' ? 'NOPERM not now' : null));
  assert.equal(client.ask(['SET', 'k', 'v']), '-NOPERM not now');
  assert.equal(client.ask(['GET', 'k']), '$-1');
});

test('a replica has what its primary has, refuses writes, and keeps the keys as a primary', () => {
  const [primary, replica] = [new ModelServer('redis', REAL), new ModelServer('keydb', REAL)];
  const client = new ModelWire(primary);
  client.ask(['SET', 'before', '1']);
  replica.becomeReplica('127.0.0.1', 6379);
  const stop = primary.feed((change) => replica.replicate(change));
  for (const words of [
    ['RPUSH', 'l', 'a', 'b'],
    ['LPOP', 'l'],
    ['SET', 'gone', 'x'],
    ['DEL', 'gone'],
    ['SET', 'timed', 'x', 'EX', '1000'],
    ['XADD', 's', '1-1', 'f', 'v'],
    ['XGROUP', 'CREATE', 's', 'g', '0'],
    ['XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', 's', '>'],
    ['SELECT', '1'],
    ['ZADD', 'z', '1', 'm'],
    ['SWAPDB', '1', '2'],
  ])
    client.ask(words);
  const held = (model: ModelServer): unknown =>
    [...model.keyspace()].map(([id, keys]) => [
      id,
      [...keys].map(([key, entry]) => [key, entry.expireAt, dump(entry, 'redis')]).sort(),
    ]);
  assert.deepEqual(held(replica), held(primary));
  const reader = new ModelWire(replica);
  assert.equal(reader.ask(['LRANGE', 'l', '0', '-1']), '*1\r\n$1\r\nb');
  assert.equal(reader.ask(['SET', 'k', 'v']), "-READONLY You can't write against a read only replica.");
  stop();
  replica.promote();
  assert.equal(reader.ask(['SET', 'k', 'v']), '+OK');
  assert.equal(reader.ask(['GET', 'before']), '$1\r\n1');
  for (const model of [primary, replica]) model.stopTimers();
});

test('a model that restarts ends all connections, and keeps its keys where they were saved', () => {
  const model = new ModelServer('redis', REAL);
  const client = new ModelWire(model);
  client.ask(['SET', 'k', 'v']);
  const { runId } = model;
  model.restart(true);
  assert.deepEqual([client.ended, model.runId === runId], [true, false]);
  assert.equal(new ModelWire(model).ask(['GET', 'k']), '$1\r\nv');
  model.restart(false);
  assert.equal(new ModelWire(model).ask(['GET', 'k']), '$-1');
  model.stopTimers();
});

for (const engine of ENGINES)
  test(`the model of ${engine} and the server restore what the other dumps, and delete keys whose time is over`, async (t) => {
    await beside(t, engine, {}, async ({ wire, modelled }) => {
      for (const words of [
        ['SET', 'string', '\0\xff'],
        ['RPUSH', 'list', 'a', '1', ''],
        ['HSET', 'hash', 'f', 'v', 'g', '2'],
        ['SADD', 'set', 'a', '1'],
        ['ZADD', 'zset', '1.5', 'm', '-inf', 'n'],
        ['XADD', 'stream', '1-1', 'f', 'v'],
        ['XGROUP', 'CREATE', 'stream', 'g', '0'],
        ['XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', 'stream', '>'],
      ]) {
        await wire.ask(...words.map((word) => Buffer.from(word, 'latin1')));
        modelled.ask(words);
      }
      const bytesOf = (bulk: string): string => bulk.slice(bulk.indexOf('\n') + 1);
      for (const key of ['string', 'list', 'hash', 'set', 'zset', 'stream']) {
        const [fromReal, fromModel] = [bytesOf(await wire.ask('DUMP', key)), bytesOf(modelled.ask(['DUMP', key])!)];
        assert.equal(modelled.ask(['RESTORE', `${key}2`, '0', fromReal]), '+OK', key);
        assert.equal(await wire.ask('RESTORE', `${key}2`, 0, Buffer.from(fromModel, 'latin1')), '+OK', key);
      }
      for (const words of [
        ['GET', 'string2'],
        ['LRANGE', 'list2', '0', '-1'],
        ['HGET', 'hash2', 'g'],
        ['SISMEMBER', 'set2', '1'],
        ['ZRANGE', 'zset2', '0', '-1', 'WITHSCORES'],
        ['XRANGE', 'stream2', '-', '+'],
        ['XPENDING', 'stream2', 'g'],
      ])
        assert.equal(modelled.ask(words), await wire.ask(...words), words.join(' '));
      for (const words of [['FLUSHALL'], ['SET', 'k', 'v', 'PX', '1']]) {
        await wire.ask(...words);
        modelled.ask(words);
      }
      while ((await wire.ask('DBSIZE')) !== ':0' || modelled.ask(['DBSIZE']) !== ':0')
        await new Promise((resolve) => setTimeout(resolve, 10));
    });
  });
