/**
 * Rule 6: what a blocked client takes follows the write that woke it; and a client that blocks leaves nothing behind.
 *
 * Needs real servers: replies of every blocking command, on Redis and KeyDB, in both protocols.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Argument } from '../../../src/resp/encode.js';
import { redisSince } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { spinFor } from '../../support/spin.js';
import type { Wire } from '../../support/wire.js';
import { withScene, type Scene } from './scene.js';
import { needs } from '../../support/needs.js';

type Command = readonly Argument[];

const SEED: readonly Command[] = [
  ['RPUSH', 'l', 'a', 'b', 'c'],
  ['ZADD', 'z', 1, 'a', 2.5, 'b'],
  ['XADD', 'x', '1-1', 'f', 'v'],
  ['XGROUP', 'CREATE', 'x', 'g', 0],
];

/** What finds something at once. */
const READY: readonly Command[] = [
  ['BLPOP', 'nosuch', 'l', 0],
  ['brpop', 'l', 'l2', 0],
  ['BLMOVE', 'l', 'l2', 'LEFT', 'RIGHT', 0],
  ['BRPOPLPUSH', 'l', 'l2', 0],
  ['BZPOPMIN', 'z', 0],
  ['BZPOPMAX', 'z', 0],
  ['XREAD', 'COUNT', 1, 'BLOCK', 0, 'STREAMS', 'x', '0'],
  ['XREADGROUP', 'GROUP', 'g', 'c', 'block', 0, 'STREAMS', 'x', '>'],
];
const ONLY_REDIS: readonly Command[] = [
  ['BLMPOP', 0, 2, 'nosuch', 'l', 'LEFT', 'COUNT', 2],
  ['BZMPOP', 0, 1, 'z', 'MIN'],
];
/** What finds nothing in time, or is wrong. */
const NOTHING: readonly Command[] = [
  ['BLPOP', 'none', 0.05],
  ['BLMOVE', 'none', 'l2', 'LEFT', 'RIGHT', 0.05],
  ['BRPOPLPUSH', 'none', 'l2', 0.05],
  ['BZPOPMIN', 'none', 'none2', 0.05],
  ['XREAD', 'BLOCK', 20, 'STREAMS', 'x', '$'],
  ['XREADGROUP', 'GROUP', 'g', 'c', 'BLOCK', 20, 'STREAMS', 'x', '>'],
  ['BLPOP', 'none', -1],
  ['BLPOP', 'none', 'soon'],
  ['BLPOP', 'none'],
  ['BLPOP', 'z', 0],
  ['XREADGROUP', 'GROUP', 'nosuch', 'c', 'BLOCK', 0, 'STREAMS', 'x', '>'],
  ['XREAD', 'BLOCK', 0, 'STREAMS', 'x'],
  ['WAIT', 0, 0],
  ['WAIT', 1, 20],
];

for (const stage of ['shadow', 'live', 'off'] as const) {
  for (const protocol of [2, 3] as const) {
    test(`blocking commands answer as the authority does, in and outside MULTI, in stage ${stage} and RESP${protocol}`, async () => {
      await withScene({ default: { stage } }, async (scene) => {
        const direct = await scene.wire(stage === 'live' ? scene.target : scene.source);
        const wire = await scene.wire();
        const ready = [...READY, ...(stage !== 'live' && (await redisSince(7, 0)) ? ONLY_REDIS : [])];
        const said: string[][] = [];
        // First the one server by itself, in a database that the proxy does not use here.
        for (const each of [direct, wire]) {
          const replies: string[] = [];
          await each.ask('HELLO', protocol);
          if (each === direct) await each.ask('SELECT', 5);
          for (const command of ready)
            replies.push(
              ...(await each.pipeline([
                ['DEL', 'l', 'l2', 'z', 'x'],
                ...SEED,
                command,
                ['ECHO', 'after'],
                ['LRANGE', 'l', 0, -1],
              ])),
            );
          // One by one: KeyDB does not look at what came behind a command that blocked until more comes.
          for (const command of [...NOTHING, ['CLIENT', 'UNBLOCK', 9_999_999]])
            replies.push(await each.ask(...command), await each.ask('ECHO', 'after'));
          for (const command of [...ready, ...NOTHING])
            replies.push(
              ...(await each.pipeline([
                ['DEL', 'l', 'l2', 'z', 'x'],
                ...SEED,
                ['MULTI'],
                ['INCR', 'n'],
                command,
                ['EXEC'],
                ['ECHO', 'after'],
              ])),
            );
          said.push(replies);
        }
        assert.deepEqual(said[1], said[0]);
        await direct.ask('FLUSHDB');
        if (stage !== 'off') await scene.assertEqual();
        assert.deepEqual(scene.shard.snapshot().mismatches, {});
      });
    });
  }
}

test('a client that blocks for 1 ms or less is answered, also on a KeyDB that would block forever itself; and the wait is counted', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const brief = [
    ['BLPOP', 'none', 0.001],
    ['BRPOP', 'none', 'none2', '1e-3'],
    ['BLMOVE', 'none', 'l2', 'LEFT', 'RIGHT', 0.0001],
    ['BZPOPMIN', 'none', '0.001'],
  ];
  for (const stage of ['shadow', 'live'] as const) {
    await withScene({ default: { stage } }, async (scene) => {
      const wire = await scene.wire();
      for (const command of brief) assert.match(await wire.ask(...command), /^(\*|\$)-1$/, command.join(' '));
      const counted = { 'blpop 0.001': 1, 'brpop 0.001': 1, 'blmove 0.001': 1, 'bzpopmin 0.001': 1 };
      assert.deepEqual(scene.shard.snapshot().unsupported, stage === 'shadow' ? counted : {});
    });
  }
  await withScene({}, async (scene) => {
    const direct = await scene.wire(scene.target);
    direct.send('BRPOP', 'none', '0.001');
    // It must go on blocking: the time that was asked for is long over.
    await sleep(500);
    assert.deepEqual(direct.unread, [], 'KeyDB rounds: no need for another time any more');
    direct.destroy();
  });
});

/** How many connections block at the authority. */
async function blockedAt(server: Redis): Promise<number> {
  return Number(/blocked_clients:(\d+)/.exec(await server.info('clients'))?.[1]);
}

async function blocks(scene: Scene, authority: Redis, command: Command, count = 1): Promise<Wire[]> {
  const wires: Wire[] = [];
  for (let i = 0; i < count; i++) {
    const wire = await scene.wire();
    wire.send(...command);
    wires.push(wire);
  }
  await until(async () => (await blockedAt(authority)) === count);
  return wires;
}

test('a push that one command makes for several blocked clients is taken on both servers', async () => {
  await withScene({}, async (scene) => {
    const authority = scene.client({ of: scene.source });
    const writer = await scene.wire();
    const left = await blocks(scene, authority, ['BLPOP', 'l', 0], 3);
    await writer.pipeline([
      ['RPUSH', 'l', 'a', 'b', 'c', 'a', 'd', 'e'],
      ['LRANGE', 'l', 0, -1],
      ['RPUSH', 'l', 'f'],
    ]);
    const taken = await Promise.all(left.map((wire) => wire.frame()));
    assert.deepEqual(taken.map((reply) => reply.slice(-1)).sort(), ['a', 'b', 'c']);
    await blocks(scene, authority, ['BZPOPMIN', 'z', 0], 2);
    await writer.ask('ZADD', 'z', 1, 'a', 2, 'b', 3, 'c');
    assert.equal(await writer.ask('ZRANGE', 'z', 0, -1), '*1\r\n$1\r\nc');
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('a reader that blocks on several streams gets the stream that woke it, on both servers', async () => {
  const runsAgain = await redisSince(7, 2);
  for (const stage of ['shadow', 'live'] as const) {
    await withScene({ default: { stage } }, async (scene) => {
      const authority = scene.client({ of: stage === 'live' ? scene.target : scene.source });
      const pusher = await scene.wire();
      for (const key of ['x', 'y']) await pusher.ask('XGROUP', 'CREATE', key, 'streams', '$', 'MKSTREAM');
      const commands: Command[] = [
        ['XREAD', 'COUNT', 5, 'BLOCK', 0, 'STREAMS', 'x', 'y', 0, 0],
        ['XREAD', 'BLOCK', 0, 'STREAMS', 'y', 'y', 'x', 0, '9-9', 0],
        ['XREADGROUP', 'GROUP', 'streams', 'streams', 'BLOCK', 0, 'STREAMS', 'y', 'x', '>', '>'],
      ];
      // One by one: the reads and writes of another reader would make the comparison inconclusive.
      for (const [i, command] of [...commands, ...commands].entries()) {
        const reader = await scene.wire();
        await reader.ask('HELLO', 2 + (i % 2));
        const reply = reader.ask(...command);
        await until(async () => (await blockedAt(authority)) === 1);
        await pusher.pipeline([
          ['MULTI'],
          ...['x', 'y'].map((key): Command => ['XADD', key, `${i + 1}-1`, 'f', 'v']),
          ['EXEC'],
        ]);
        // Since Redis 7.2 a client that is woken runs its command again.
        assert.match(await reply, stage === 'shadow' && runsAgain ? /^[*%]2\r/ : /^[*%]1\r/);
        await scene.assertEqual();
        await pusher.pipeline([
          ['XTRIM', 'x', 'MAXLEN', 0],
          ['XTRIM', 'y', 'MAXLEN', 0],
        ]);
      }
      assert.deepEqual(scene.shard.snapshot().mismatches, {});
    });
  }
});

test('one blocked client may wake the next', async () => {
  await withScene({}, async (scene) => {
    const authority = scene.client({ of: scene.source });
    const writer = await scene.wire();
    const [first] = await blocks(scene, authority, ['BLMOVE', 'k1', 'k2', 'LEFT', 'RIGHT', 0]);
    const second = await scene.wire();
    second.send('BRPOPLPUSH', 'k2', 'k3', 0);
    const third = await scene.wire();
    third.send('BLPOP', 'k3', 0);
    await until(async () => (await blockedAt(authority)) === 3);
    assert.deepEqual(
      await writer.pipeline([
        ['RPUSH', 'k1', 'v', 'w'],
        ['LLEN', 'k2'],
        ['LLEN', 'k3'],
        ['LRANGE', 'k1', 0, -1],
      ]),
      [':2', ':0', ':0', '*1\r\n$1\r\nw'],
    );
    assert.deepEqual(await Promise.all([first, second, third].map((wire) => wire.frame())), [
      '$1\r\nv',
      '$1\r\nv',
      '*2\r\n$2\r\nk3\r\n$1\r\nv',
    ]);
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('a transaction, a script and a command that runs alone wake blocked clients too', async () => {
  await withScene({}, async (scene) => {
    const authority = scene.client({ of: scene.source });
    const writer = await scene.wire();
    const wake: Readonly<Record<string, readonly Command[]>> = {
      transaction: [['MULTI'], ['RPUSH', 'l', 'a', 'b'], ['LPOP', 'l'], ['EXEC']],
      script: [['EVAL', "redis.call('RPUSH', KEYS[1], 'x', 'y') return redis.call('RPUSH', KEYS[1], 'z')", 1, 'l']],
      SWAPDB: [
        ['SELECT', 1],
        ['RPUSH', 'l', 'p', 'q'],
        ['SWAPDB', 0, 1],
        ['SELECT', 0],
      ],
      MOVE: [
        ['SELECT', 1],
        ['DEL', 'l'],
        ['RPUSH', 'l', 'm', 'n'],
        ['MOVE', 'l', 0],
        ['SELECT', 0],
      ],
      RENAME: [
        ['RPUSH', 'other', 'r'],
        ['RENAME', 'other', 'l'],
      ],
    };
    for (const [name, commands] of Object.entries(wake)) {
      await writer.ask('DEL', 'l');
      const [wire] = await blocks(scene, authority, ['BLPOP', 'l', 0]);
      await writer.pipeline(commands);
      assert.match(await wire.frame(), /^\*2/, name);
      await writer.ask('LRANGE', 'l', 0, -1);
    }
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('clients that push, pop and look at a few queues at once see one order on both servers', async (t) => {
  await withScene({}, async (scene) => {
    const wires = await Promise.all(Array.from({ length: 12 }, () => scene.wire()));
    const deadline = Date.now() + 4_000;
    let took = 0;
    const queue = (): string => `q:${Math.floor(Math.random() * 3)}`;
    const stream = (): string => `x:${Math.floor(Math.random() * 2)}`;
    for (const key of ['x:0', 'x:1'])
      for (const group of ['g', 'h']) await wires[0].ask('XGROUP', 'CREATE', key, group, '$', 'MKSTREAM');
    const commands = (n: number, i: number): Command => {
      const dice = Math.random();
      if (n < 4) {
        if (dice < 0.3) return ['BLPOP', queue(), queue(), 0.05];
        if (dice < 0.45) return ['BRPOP', queue(), 0.05];
        if (dice < 0.55) return ['BLMOVE', queue(), queue(), 'LEFT', 'RIGHT', 0.05];
        if (dice < 0.7) return ['BZPOPMIN', 'z', 0.05];
        if (dice < 0.8) return ['XREAD', 'BLOCK', 30, 'STREAMS', stream(), '0'];
        return ['XREADGROUP', 'GROUP', n % 2 === 0 ? 'g' : 'h', `c${n}`, 'BLOCK', 30, 'STREAMS', stream(), '>'];
      }
      if (dice < 0.3) return ['RPUSH', queue(), `${n}-${i}`, ...(dice < 0.1 ? [`${n}-${i}+`, 'same'] : [])];
      if (dice < 0.4) return ['LPUSH', queue(), `${n}-${i}`];
      if (dice < 0.5) return ['ZADD', 'z', i, `m${i % 9}`, i + 1, `n${i % 7}`];
      if (dice < 0.6) return ['XADD', stream(), 'MAXLEN', '~', 50, '*', 'f', i];
      if (dice < 0.7) return ['LRANGE', queue(), 0, -1];
      if (dice < 0.75) return ['LLEN', queue()];
      if (dice < 0.8) return ['LPOP', queue(), 2];
      if (dice < 0.85) return ['ZRANGE', 'z', 0, -1];
      if (dice < 0.9) return ['DEL', queue()];
      if (dice < 0.95)
        return ['EVAL', "redis.call('RPUSH', KEYS[1], 'a') return redis.call('LPUSH', KEYS[1], 'b')", 1, queue()];
      return ['RENAME', queue(), queue()];
    };
    await Promise.all(
      wires.map(async (wire, n) => {
        for (let i = 0; Date.now() < deadline; i++) {
          const reply = await wire.ask(...commands(n, i));
          if (n < 4 && !/^(\*-1|\$-1|_|-)/.test(reply)) took++;
        }
      }),
    );
    await scene.assertEqual();
    const { mismatches, inconclusive, matched } = scene.shard.snapshot();
    t.diagnostic(JSON.stringify({ took, matched, inconclusive }));
    assert.deepEqual(mismatches, {});
    assert.ok(took > 50, `only ${took} were taken`);
  });
});

test('a client that disconnects while it blocks leaves nothing behind, and other clients get later elements', async () => {
  await withScene({}, async (scene) => {
    const authority = scene.client({ of: scene.source });
    const writer = await scene.wire();
    for (const wire of await blocks(scene, authority, ['BLPOP', 'l', 0], 5)) wire.destroy();
    await until(async () => (await blockedAt(authority)) === 0);
    assert.equal(await writer.ask('RPUSH', 'l', 'a'), ':1');
    assert.equal(await writer.ask('LLEN', 'l'), ':1');
    // Just as they leave: whatever is popped is popped on both.
    for (let round = 0; round < 20; round++) {
      await writer.ask('DEL', 'l');
      const wires = await blocks(scene, authority, ['BLPOP', 'l', 0], 3);
      writer.send('RPUSH', 'l', 'a', 'b');
      for (const wire of wires) wire.destroy();
      await writer.frame();
      await until(async () => (await blockedAt(authority)) === 0);
    }
    await scene.assertEqual();
    assert.deepEqual(scene.shard.snapshot().mismatches, {});
  });
});

test('a client that disconnects before its command is sent leaves the keys free', async () => {
  await withScene({}, async (scene) => {
    const [busy, leaving, queued, writer] = await Promise.all([1, 2, 3, 4].map(() => scene.wire()));
    // Their connections to the server are kept for the next command.
    await Promise.all([leaving, queued].map((wire) => wire.ask('BLPOP', 'none', 0.01)));
    // While its reply does not come, the next one has its keys and waits.
    await scene.source.kill('SIGSTOP');
    // The source is stopped: nothing shows that a command has come to the proxy.
    const arrival = (): Promise<void> => sleep(20);
    busy.send('EVAL', 'return 1', 1, 'other');
    await arrival();
    leaving.send('BLPOP', 'l', 0);
    await arrival();
    writer.send('RPUSH', 'l', 'v');
    await arrival();
    queued.send('BLPOP', 'l', 'l2', 0);
    await arrival();
    assert.deepEqual([busy.unread, writer.unread], [[], []]);
    leaving.destroy();
    await scene.source.kill('SIGCONT');
    assert.equal(await writer.frame(), ':1');
    assert.equal(await queued.frame(), '*2\r\n$1\r\nl\r\n$1\r\nv');
    assert.match(await busy.frame(), /^:/);
    assert.equal(await writer.ask('LLEN', 'l'), ':0');
    await scene.assertEqual();
  });
});

test('CLIENT UNBLOCK, LIST and KILL are about the proxy’s clients', async () => {
  await withScene({}, async (scene) => {
    const authority = scene.client({ of: scene.source });
    const other = await scene.wire();
    const wire = await scene.wire();
    const id = Number((await wire.ask('CLIENT', 'ID')).slice(1));
    const block = async (): Promise<void> => {
      wire.send('BLPOP', 'l', 0);
      await until(async () => (await blockedAt(authority)) === 1);
    };
    await block();
    assert.match(await other.ask('CLIENT', 'LIST', 'ID', id), /flags=b /);
    assert.equal(await other.ask('CLIENT', 'UNBLOCK', id), ':1');
    assert.equal(await wire.frame(), '*-1');
    await block();
    assert.equal(await other.ask('CLIENT', 'UNBLOCK', id, 'ERROR'), ':1');
    assert.equal(await wire.frame(), '-UNBLOCKED client unblocked via CLIENT UNBLOCK');
    assert.equal(await other.ask('CLIENT', 'UNBLOCK', id), ':0');
    await block();
    assert.equal(await other.ask('CLIENT', 'KILL', 'ID', id), ':1');
    await until(async () => (await blockedAt(authority)) === 0);
  });
});

test('a push that did not go through the proxy wakes a client, and is found out', async () => {
  await withScene({}, async (scene) => {
    const authority = scene.client({ of: scene.source });
    const [wire] = await blocks(scene, authority, ['BLPOP', 'l', 0]);
    await authority.rpush('l', 'a', 'b');
    assert.equal(await wire.frame(), '*2\r\n$1\r\nl\r\n$1\r\na');
    await scene.assertEqual();
  });
});

/** It does not declare what it pushes to, and is not repeated. */
const HIDDEN_PUSH: Command = [
  'EVAL',
  "redis.call('ZADD', ARGV[1] .. ':marker', 0, 'm') return redis.call('XADD', KEYS[1], '*', 'f', 'v')",
  1,
  'x',
  'hidden',
];

for (const [next, push] of Object.entries<Command>({
  'another such push': HIDDEN_PUSH,
  'a plain one': ['ZADD', 'hidden:marker', 0, 'm'],
})) {
  test(`what is taken of a push that no command declared is taken once, however late the proxy hears of it; before ${next}`, async () => {
    await withScene({}, async (scene) => {
      const authority = scene.client({ of: scene.source });
      const writer = await scene.wire();
      const [wire] = await blocks(scene, authority, ['BZPOPMIN', 'hidden:marker', 0]);
      const blocked = String(await authority.client('LIST'))
        .split('\n')
        .find((line) => /flags=b/.test(line))!;
      const own = scene.toSource.links.find(({ server }) => blocked.includes(` addr=127.0.0.1:${server.localPort} `))!;
      own.hold('down');
      await writer.ask(...HIDDEN_PUSH);
      await until(() => own.waiting('down') > 0);
      // That it was taken is in the copy: what comes now is another one.
      await scene.shard.settled();
      await writer.ask(...push);
      await until(() => scene.shard.snapshot().suspects.total === 0);
      own.release();
      assert.match(await wire.frame(), /hidden:marker/);
      assert.equal(await writer.ask('ZCARD', 'hidden:marker'), ':1');
      await scene.assertEqual();
      assert.deepEqual(scene.shard.snapshot().mismatches, {});
    });
  });
}

test('a connection that is lost while a client blocks on it closes that client, and its keys are repaired', async () => {
  await withScene({}, async (scene) => {
    const authority = scene.client({ of: scene.source });
    const other = await scene.wire();
    await other.ask('RPUSH', 'kept', 'a');
    const [wire] = await blocks(scene, authority, ['BLPOP', 'l', 'kept2', 0]);
    await authority.rpush('kept2:not', 'x');
    await authority.del('kept2:not');
    const lines = String(await authority.client('LIST')).split('\n');
    const id = /\bid=(\d+)/.exec(lines.find((line) => /flags=b/.test(line))!)![1];
    await authority.client('KILL', 'ID', id);
    await wire.closed;
    assert.equal(await other.ask('RPUSH', 'l', 'a'), ':1');
    await sleep(20);
    await scene.assertEqual();
  });
});

test('what is pushed after a blocked client has left stays, also where the server is busy with a script meanwhile', async () => {
  for (const stage of ['off', 'shadow'] as const) {
    await withScene({ default: { stage } }, async (scene) => {
      const authority = scene.client({ of: scene.source });
      await authority.config('SET', 'lua-time-limit', 50);
      const writer = await scene.wire();
      for (const [block, push, left] of [
        [
          ['BLPOP', 'q', 0],
          ['RPUSH', 'q', 'kept'],
          ['LRANGE', 'q', 0, -1],
        ],
        [
          ['BZPOPMAX', 'z', 0],
          ['ZADD', 'z', 1, 'kept'],
          ['ZRANGE', 'z', 0, -1],
        ],
        [
          ['BLMOVE', 'from', 'to', 'LEFT', 'LEFT', 0],
          ['LPUSH', 'from', 'kept'],
          ['LRANGE', 'from', 0, -1],
        ],
      ] as const) {
        const [reader] = await blocks(scene, authority, block);
        writer.send('EVAL', spinFor(0.25), 1, 'other');
        // By then the server answers others that it is busy.
        await sleep(120);
        reader.destroy();
        await until(() => scene.shard.snapshot().clients === 1);
        writer.send(...push);
        writer.send(...left);
        assert.deepEqual(await writer.frames(3), ['$4\r\nspun', ':1', '*1\r\n$4\r\nkept'], `${block[0]} in ${stage}`);
      }
      if (stage !== 'off') await scene.assertEqual();
      assert.deepEqual(scene.shard.snapshot().mismatches, {});
    });
  }
});
