/**
 * What the journal names when the process is killed while the mirror has confirmed nothing: exactly the keys that were
 * written, so that nothing differs when the next process has repaired them, and nothing else is copied.
 *
 * Needs real processes: SIGKILL, and the bytes that the journal then has on a real disk.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { Relay } from '../../../src/local/relay.js';
import type { Argument } from '../../../src/resp/encode.js';
import { readJournal } from '../../../src/storage/journal-reader.js';
import { StateStore } from '../../../src/storage/state.js';
import { clientsOf, type Clients } from '../../support/clients.js';
import { differences } from '../../support/keyspace.js';
import { scratch } from '../../support/plans.js';
import { type Pair, redisSince, withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { tapOf, type Tap } from '../../support/taps.js';
import { planFor, start, status, type Running } from '../cli/running.js';

interface Crashes extends Clients {
  readonly servers: Pair;
  readonly toSource: Relay;
  readonly toTarget: Relay;
  /** Starts the daemon on what the previous one left. */
  start(): Promise<Running>;
  /** Kills the daemon, and returns what its journal says. */
  kill(): Promise<{
    readonly keys: readonly string[];
    readonly whole: readonly string[];
    readonly everything: string | null;
  }>;
  /** Starts it once more, and asserts that both servers hold the same when nothing is suspect. */
  assertRepaired(): Promise<void>;
}

async function withCrashes(
  t: TestContext,
  body: (crashes: Crashes) => Promise<void>,
  workloads: readonly object[] = [],
): Promise<void> {
  await withServers(async (servers) => {
    const [toSource, toTarget] = [await Relay.start(servers.source), await Relay.start(servers.target)];
    const directory = scratch(t);
    const plan = await planFor({ source: toSource, target: toTarget } as unknown as Pair, (each) => {
      each.workloads = workloads;
      each.default = { stage: 'shadow' };
      each.limits = { silentMs: 60_000 };
      each.state = join(directory, 'state');
    });
    const state = join(directory, 'state', 'a');
    let running!: Running;
    let isFirst = true;
    const { closeAll, ...clients } = clientsOf(() => running.port);
    const crashes: Crashes = {
      ...{ servers, toSource, toTarget, ...clients },
      async start() {
        running = await start(t, plan, directory, isFirst ? ['--first-start'] : []);
        isFirst = false;
        return running;
      },
      async kill() {
        running.daemon.signal('SIGKILL');
        await running.daemon.exit();
        const { current } = await StateStore.open(join(directory, 'state'), 'a');
        const { keys, workloads, everything } = readJournal(state, current);
        return {
          keys: keys.map(({ db, key }) => `${db}:${key.toString('latin1')}`).sort(),
          whole: [...workloads.keys()],
          everything,
        };
      },
      async assertRepaired() {
        for (const relay of [toSource, toTarget]) {
          relay.cut();
          relay.release();
          relay.up();
        }
        const { admin } = await crashes.start();
        for (;;) {
          const [{ suspects, undecided, mirror, workloads }] = await status(admin);
          const isClean = mirror.connected && mirror.queuedEffects === 0 && workloads.every(({ clean }) => clean);
          if (isClean && suspects.total === 0 && undecided === 0) break;
          await sleep(20);
        }
        assert.deepEqual(await differences(servers.source, servers.target), []);
      },
    };
    try {
      await body(crashes);
    } finally {
      closeAll();
      await Promise.all([toSource.close(), toTarget.close()]);
    }
  });
}

const SCRIPT = "redis.call('SET', KEYS[1], ARGV[1]); return redis.call('INCR', KEYS[2])";
const LIBRARY = "#!lua name=lib\nredis.register_function('f', function(keys) return redis.call('INCR', keys[1]) end)";

/** Commands, and the keys that they may write. */
const WRITES: readonly (readonly [command: readonly Argument[], ...keys: readonly string[]])[] = [
  [['SET', 'plain', 1], 'plain'],
  [['GET', 'read']],
  [['STRLEN', 'read']],
  [['APPEND', 'list-to-be', 1], 'list-to-be'],
  [['DEL', 'list-to-be', 'never-there'], 'list-to-be', 'never-there'],
  [['PEXPIRE', 'lasting', 600_000], 'lasting'],
  [['RENAME', 'old', 'new'], 'old', 'new'],
  [['MSET', 'm:1', 1, 'm:2', 2], 'm:1', 'm:2'],
  [['SUNIONSTORE', 'union', 'set:1', 'only:read'], 'union'],
  [['XADD', 'x', 'MAXLEN', '~', 10, '*', 'f', 'v'], 'x'],
  [['SPOP', 'set:1'], 'set:1'],
  [['SMOVE', 'set:2', 'set:3', 'b'], 'set:2', 'set:3'],
  [['LMOVE', 'l', 'l:2', 'LEFT', 'RIGHT'], 'l', 'l:2'],
];

/** What they find. */
const PREPARED: readonly (readonly Argument[])[] = [
  ['SET', 'lasting', 1],
  ['SET', 'old', 1],
  ['SADD', 'set:1', 'a'],
  ['SADD', 'set:2', 'b', 'c'],
  ['RPUSH', 'l', 1, 2, 3],
];

test('plain writes: the keys of each, of those with several all that it may write, and of reads none', (t) =>
  withCrashes(t, async (crashes) => {
    await crashes.start();
    const client = await crashes.wire();
    await client.pipeline(PREPARED);
    crashes.toTarget.hold('up');
    const replies = await client.pipeline(WRITES.map(([command]) => command));
    assert.deepEqual(
      replies.filter((reply) => reply.startsWith('-')),
      [],
    );
    await client.pipeline([
      ['SELECT', 3],
      ['SET', 'elsewhere', 1],
      ['MOVE', 'elsewhere', 4],
    ]);
    const { keys, whole, everything } = await crashes.kill();
    const expected = new Set(WRITES.flatMap(([, ...each]) => each.map((key) => `0:${key}`)));
    assert.deepEqual(keys, [...expected, '3:elsewhere', '4:elsewhere'].sort());
    assert.deepEqual([whole, everything], [[], null]);
    await crashes.assertRepaired();
  }));

test('transactions, splits, and all that scripts and functions declare', (t) =>
  withCrashes(
    t,
    async (crashes) => {
      await crashes.start();
      const client = await crashes.wire();
      const hasFunctions = await redisSince(7, 0);
      if (hasFunctions) assert.equal(await client.ask('FUNCTION', 'LOAD', LIBRARY), '$3\r\nlib');
      const taps: Tap[] = [];
      for (const [mirror, key] of [
        [crashes.toTarget, 'here:0'],
        [crashes.toSource, 'there:0'],
      ] as const)
        taps.push(await tapOf(mirror, `SET ${key} 0`, () => client.ask('SET', key, 0)));
      for (const { link } of taps) link.hold('up');
      const [, , , , exec] = await client.pipeline([
        ['MULTI'],
        ['SET', 't:1', 1],
        ['GET', 't:read'],
        ['INCR', 't:2'],
        ['EXEC'],
      ]);
      assert.match(exec, /^\*3\r\n/);
      assert.equal(await client.ask('EVAL', SCRIPT, 2, 's:1', 's:2', 'v'), ':1');
      assert.equal(await client.ask('EVAL', "return redis.call('GET', KEYS[1])", 1, 's:read'), '$-1');
      if (hasFunctions) assert.equal(await client.ask('FCALL', 'f', 1, 'f:1'), ':1');
      assert.match(await client.ask('MSET', 'here:1', 1, 'there:1', 1), /^-ERR shadow-proxy: MSET spans/);
      assert.equal(await client.ask('DEL', 'here:0', 'there:2', 'here:3', 'there:0'), ':2');
      assert.match(await client.ask('MGET', 'here:read', 'there:read'), /^\*2/);
      const { keys, whole, everything } = await crashes.kill();
      assert.deepEqual([whole, everything], [[], null]);
      assert.deepEqual(
        keys,
        [
          't:1',
          't:2',
          's:1',
          's:2',
          's:read',
          ...(hasFunctions ? ['f:1'] : []),
          'here:0',
          'here:3',
          'there:0',
          'there:2',
        ]
          .map((key) => `0:${key}`)
          .sort(),
      );
      await crashes.assertRepaired();
    },
    [
      { name: 'there', keys: ['there:*'], stage: 'live' },
      { name: 'here', keys: ['here:*'], stage: 'shadow' },
    ],
  ));

test('a script that hides its keys leaves every key suspect', (t) =>
  withCrashes(t, async (crashes) => {
    await crashes.start();
    const client = await crashes.wire();
    crashes.toTarget.hold('up');
    await client.ask('EVAL', "return redis.call('SET', 'hid' .. 'den', ARGV[1])", 1, 'declared', 'v');
    const { everything, keys } = await crashes.kill();
    assert.match(everything ?? '', /a script was in flight that may write undeclared keys/);
    assert.ok(keys.includes('0:declared'));
  }));

test('pops: what a client blocks on, before it takes anything, and after', (t) =>
  withCrashes(t, async (crashes) => {
    await crashes.start();
    const [client, first, second] = [await crashes.wire(), await crashes.wire(), await crashes.wire()];
    first.send('BLPOP', 'q:1', 'q:2', 0);
    second.send('BLMOVE', 'from', 'to', 'LEFT', 'RIGHT', 0);
    const server = crashes.client({ of: crashes.servers.source });
    await until(async () => {
      const list = (await server.client('LIST')) as string;
      return /cmd=blpop/.test(list) && /cmd=blmove/.test(list);
    });
    crashes.toTarget.hold('up');
    await client.ask('RPUSH', 'q:1', 'a', 'b');
    assert.match(await first.frame(), /q:1\r\n\$1\r\na$/);
    await client.ask('ZADD', 'z', 1, 'm');
    await client.ask('ZPOPMIN', 'z');
    const { keys, whole, everything } = await crashes.kill();
    assert.deepEqual([whole, everything], [[], null]);
    assert.deepEqual(
      keys,
      ['from', 'q:1', 'q:2', 'to', 'z'].map((key) => `0:${key}`),
    );
    await crashes.assertRepaired();
  }));

test('two ends in a row: the second journal names the keys of both', (t) =>
  withCrashes(t, async (crashes) => {
    await crashes.start();
    const client = await crashes.wire();
    crashes.toTarget.hold('up');
    await client.pipeline([
      ['SET', 'first', 1],
      ['SELECT', 2],
      ['SET', 'first', 2],
    ]);
    assert.deepEqual((await crashes.kill()).keys, ['0:first', '2:first']);
    // Nothing can be repaired before the next end.
    crashes.toTarget.down();
    crashes.toTarget.release();
    await crashes.start();
    assert.equal(await (await crashes.wire()).ask('SET', 'second', 1), '+OK');
    const { keys, whole, everything } = await crashes.kill();
    assert.deepEqual([keys, whole, everything], [['0:first', '0:second', '2:first'], [], null]);
    await crashes.assertRepaired();
    // And what was repaired is named no more than what is written since.
    assert.deepEqual((await crashes.kill()).everything, null);
  }));
