/** The simulated network: order, cuts, silence, slow readers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Events, WORLD } from '../../world/events.js';
import { Network, type End } from '../../world/network.js';
import { Random } from '../../world/random.js';

const A = { host: '10.0.0.1', port: 7000 };

interface Pair {
  readonly events: Events;
  readonly network: Network;
  readonly near: End;
  far(): End;
  readonly seen: { near: string; far: string; closed: string[] };
}

/** Two ends of a connection that is being made. */
function pair(seed: number, splitShare = 0): Pair {
  const events = new Events();
  const options = { delayMs: [0.1, 1] as const, lateShare: 0.1, lateMs: 20, splitShare };
  const network = new Network(events, new Random(seed), options);
  const seen = { near: '', far: '', closed: [] as string[] };
  let far: End | undefined;
  network.listen({
    ...A,
    owner: WORLD,
    accept(end) {
      far = end;
      end.received = (bytes) => (seen.far += bytes.toString());
      end.closed = (problem) => seen.closed.push(`far ${problem?.code}`);
    },
  });
  const near = network.connect(WORLD, '10.0.0.9', A, () => undefined);
  near.received = (bytes) => (seen.near += bytes.toString());
  near.closed = (problem) => seen.closed.push(`near ${problem?.code}`);
  return { events, network, near, far: () => far!, seen };
}

const never = (): boolean => false;

test('What an end sends arrives whole and in order, in however many pieces', async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const { events, near, seen } = pair(seed, 0.5);
    await events.run(never, 5);
    for (let i = 0; i < 100; i++) near.send(Buffer.from(`<${i}>`));
    await events.run(never, 100);
    assert.equal(seen.far, Array.from({ length: 100 }, (_, i) => `<${i}>`).join(''));
  }
});

test('A cut loses the end of what was sent, and resets both ends', async () => {
  const kept = new Set<number>();
  for (let seed = 1; seed <= 30; seed++) {
    const { events, network, near, seen } = pair(seed);
    await events.run(never, 5);
    const sent = '0123456789'.repeat(10);
    near.send(Buffer.from(sent));
    for (const connection of network.connections) connection.cut();
    near.send(Buffer.from('behind the cut'));
    await events.run(never, 100);
    assert.ok(sent.startsWith(seen.far), seen.far);
    assert.deepEqual(seen.closed.sort(), ['far ECONNRESET', 'near ECONNRESET']);
    kept.add(seen.far.length);
  }
  assert.ok(kept.has(0) && kept.size > 5, `bytes that arrived: ${[...kept].join(' ')}`);
});

test('An end that is silent in one direction gets everything afterwards, and the other direction goes on', async () => {
  const { events, near, far, seen } = pair(1);
  await events.run(never, 5);
  far().silence(1_000);
  near.send(Buffer.from('request'));
  far().send(Buffer.from('push'));
  await events.run(never, 900);
  assert.deepEqual([seen.far, seen.near], ['', 'push']);
  await events.run(never, 200);
  assert.equal(seen.far, 'request');
});

test('An end that does not read makes the other wait, until it reads', async () => {
  const { events, near, far, seen } = pair(1);
  await events.run(never, 5);
  far().pause();
  let drained = 0;
  near.drained = () => drained++;
  assert.equal(near.send(Buffer.alloc(1024 * 1024, 'x')), false);
  await events.run(never, 1_000);
  assert.deepEqual([seen.far.length, drained], [0, 0]);
  far().resume();
  await events.run(never, 100);
  assert.deepEqual([seen.far.length, drained], [1024 * 1024, 1]);
});

test('Nobody listens: the connection is refused; an address is opened once', async () => {
  const { events, network } = pair(1);
  let problem: NodeJS.ErrnoException | null = null;
  const end = network.connect(WORLD, '10.0.0.9', { host: '10.0.0.1', port: 1 }, () => assert.fail());
  end.closed = (why) => (problem = why);
  await events.run(never, 10);
  assert.equal((problem as NodeJS.ErrnoException | null)?.code, 'ECONNREFUSED');
  assert.throws(() => network.listen({ ...A, owner: WORLD, accept: () => undefined }), { code: 'EADDRINUSE' });
});
