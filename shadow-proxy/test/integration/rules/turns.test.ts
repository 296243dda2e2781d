/**
 * Rules 3 and 6 under load: a client that waits for keys gets its turn, however busy other clients keep them.
 *
 * Not simulated yet: users who send to a key without a pause, so that another client's turn may never come.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeCommand, type Argument } from '../../../src/resp/encode.js';
import { withRig, type Rig } from '../../support/rig.js';
import type { Wire } from '../../support/wire.js';

const USER = 'app on >app-password ~* &* +@all';
const SERVERS = { source: { config: { user: USER } }, target: { config: { user: USER } } };
const CONNECTIONS = 30;
/** Without an order a turn may never come. */
const TURN_MS = 10_000;
const TURNS = 8;
const AT_LEAST_MS = 1_500;

type Command = readonly Argument[];

/** Commands of those who fire that were answered so far. */
let answered = 0;

async function open({ wire }: Rig, user: 'default' | 'app'): Promise<Wire> {
  const client = await wire();
  if (user === 'app') assert.equal(await client.ask('AUTH', 'app', 'app-password'), '+OK');
  return client;
}

/** Runs `body` while connections of two users send these commands without a rest. */
async function underFire(
  rig: Rig,
  depth: number,
  command: (connection: number, round: number) => Command,
  body: () => Promise<void>,
): Promise<void> {
  let over = false;
  const sent = Array.from({ length: CONNECTIONS }, () => 0);
  const fire = async (connection: number): Promise<void> => {
    const wire = await open(rig, connection % 2 === 0 ? 'default' : 'app');
    const send = (): void =>
      wire.sendBytes(
        Buffer.concat(Array.from({ length: depth }, () => encodeCommand(command(connection, sent[connection]++)))),
      );
    // Each has more under way, so that the next ones are there when the last ones are answered.
    send();
    while (!over) {
      send();
      await wire.frames(depth, TURN_MS);
      answered += depth;
    }
    await wire.frames(depth, TURN_MS);
  };
  const firing = Promise.all(sent.map((_, connection) => fire(connection)));
  // A failure is reported at once.
  await Promise.race([body(), firing]).finally(() => (over = true));
  await firing;
  assert.ok(Math.min(...sent) * 6 > Math.max(...sent), `one of those who fired was starved: ${sent.join(' ')}`);
}

/**
 * Has `one` take its turn again and again. As a rule others have no more answered until it comes than what they have
 * under way, twice: a turn may be two questions to the server.
 * @param depth as of `underFire`; 0 where what comes has no place in the queue for keys
 */
async function turns(
  t: { diagnostic(message: string): void },
  depth: number,
  one: (turn: number) => Promise<void>,
): Promise<void> {
  const took: number[] = [];
  const meanwhile: number[] = [];
  const began = performance.now();
  for (let turn = 0; turn < TURNS || performance.now() - began < AT_LEAST_MS; turn++) {
    const since = performance.now();
    const before = answered;
    await one(turn);
    meanwhile.push(answered - before);
    took.push(Math.round(performance.now() - since));
  }
  const longest = Math.max(...took);
  const median = meanwhile.sort((a, b) => a - b)[meanwhile.length >> 1];
  t.diagnostic(
    `${took.length} turns, of which the longest took ${longest} ms to come; others had ${median} commands answered meanwhile, ${Math.max(...meanwhile)} at most`,
  );
  const underWay = CONNECTIONS * 2 * depth;
  if (depth > 0) assert.ok(median <= 2 * underWay, `others had ${median} commands answered before a turn came`);
}

test('a command that blocks gets its keys while two users keep them busy', async (t) => {
  await withRig({ servers: SERVERS }, async (rig) => {
    const client = await open(rig, 'app');
    const hot = (connection: number, round: number): Command =>
      round % 2 === 0 ? ['RPUSH', 'hot', `${connection}:${round}`] : ['LPOP', 'hot'];
    await underFire(rig, 40, hot, () =>
      turns(t, 40, async (turn) => {
        client.send('BLPOP', 'hot', 'hot2', turn % 2 === 0 ? 1 : 0.001);
        assert.match(await client.frame(TURN_MS), /^\*/);
      }),
    );
    await rig.assertEqual();
  });
});

test('an EXEC that watched gets its keys while two users keep them busy', async (t) => {
  await withRig({ servers: SERVERS }, async (rig) => {
    const client = await open(rig, 'default');
    await underFire(
      rig,
      40,
      (connection) => ['INCR', `n:${connection % 3}`],
      () =>
        turns(t, 40, async () => {
          const replies = await client.pipeline(
            [['WATCH', 'calm'], ['MULTI'], ['INCR', 'n:0'], ['INCR', 'n:1'], ['INCR', 'n:2'], ['EXEC']],
            TURN_MS,
          );
          assert.match(replies[5], /^\*3/);
        }),
    );
    await rig.assertEqual();
  });
});

test('a push gets the key that many clients poll by blocking for a moment', async (t) => {
  await withRig({ servers: SERVERS }, async (rig) => {
    const client = await open(rig, 'default');
    await underFire(
      rig,
      1,
      (connection) => ['BLPOP', 'jobs', `jobs:${connection}`, '0.002'],
      () =>
        turns(t, 1, async (turn) => {
          client.send('RPUSH', 'jobs', turn);
          assert.match(await client.frame(TURN_MS), /^:/);
        }),
    );
    await rig.assertEqual();
  });
});

test('a command gets several keys of which another user keeps each busy', async (t) => {
  await withRig({ servers: SERVERS }, async (rig) => {
    const client = await open(rig, 'app');
    const keys = Array.from({ length: 6 }, (_, i) => `key:${i}`);
    const fire = (connection: number, round: number): Command => [
      'APPEND',
      keys[(connection + round) % keys.length],
      'x',
    ];
    await underFire(
      rig,
      40,
      (connection, round) => (connection % 2 === 0 ? fire(connection, round) : ['GET', keys[round % keys.length]]),
      () =>
        turns(t, 40, async (turn) => {
          client.send('MSET', ...keys.flatMap((key) => [key, turn]));
          assert.equal(await client.frame(TURN_MS), '+OK');
        }),
    );
    await rig.assertEqual();
  });
});

test('what runs alone begins while clients block, watch and push', async (t) => {
  await withRig({ servers: SERVERS }, async (rig) => {
    const client = await open(rig, 'default');
    const busy = (connection: number, round: number): Command =>
      connection % 3 === 0
        ? ['BLPOP', 'jobs', 'jobs2', '0.002']
        : connection % 3 === 1
          ? ['LMOVE', 'jobs', 'jobs2', 'LEFT', 'RIGHT']
          : ['RPUSH', round % 2 === 0 ? 'jobs' : 'jobs2', round];
    await underFire(rig, 1, busy, () =>
      turns(t, 0, async () => {
        client.send('FLUSHDB');
        assert.equal(await client.frame(TURN_MS), '+OK');
        // They are not in the queue for keys: one behind the other without a rest, they would leave others little.
        await sleep(10);
      }),
    );
    await rig.assertEqual();
  });
});
