/**
 * A whole shard in a world of its own, between real servers: it takes nothing from Node past `io/`.
 *
 * Needs real processes: calls of Node's own clock, timers, sockets and files, which are counted during a whole run.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';
import { startRedis } from '../../../src/local/servers.js';
import { monotonicMs } from '../../../src/io/clock.js';
import { useWorld, type Timer, type World } from '../../../src/io/world.js';
import { BEGINS_AT, OtherWorld } from '../../support/other-world.js';
import { watchRawUses, type RawUses } from '../../support/raw-uses.js';
import { startOn } from '../../support/rig.js';
import { startTestTarget } from '../../support/servers.js';

const STATE = '/state-of-the-other-world';
/** Its monotonic clock is so far from Node's. */
const AHEAD_MS = 1e9;

/** Time that runs, another year, and sockets to real servers; random numbers and files as in `OtherWorld`. */
function runningWorld(): World & Pick<OtherWorld, 'files'> {
  const other = new OtherWorld();
  const now = performance.now.bind(performance);
  const { connect, createServer } = net;
  const { setTimeout, setInterval, setImmediate, clearTimeout } = globalThis;
  const monotonicMs = (): number => now() + AHEAD_MS;
  return {
    ...other,
    monotonicMs,
    listenedMs: monotonicMs,
    unixMs: () => BEGINS_AT + Math.floor(now()),
    unixMsAtZero: () => BEGINS_AT - AHEAD_MS,
    after: (ms, run) => setTimeout(run, ms),
    every: (ms, run) => setInterval(run, ms),
    clearTimer: (timer: Timer) => clearTimeout(timer as NodeJS.Timeout),
    nextTurn: (run) => void setImmediate(run),
    connectTcp: (to) => connect({ ...to, noDelay: true }),
    createTcpServer: (connected) => createServer({ noDelay: true }, connected),
  };
}

/** `local`, which no shard calls, chooses the port of the rig. */
const ofProduct = ({ calls }: RawUses): readonly string[] =>
  [...calls.keys()].filter((use) => / of shadow-proxy\/src\/(?!local\/)/.test(use));

test('a shard in a world of its own takes no time, timer, random number, socket or file from Node', async (t) => {
  const source = await startRedis();
  t.after(() => source.stop());
  const target = await startTestTarget();
  t.after(() => target.stop());
  const world = runningWorld();
  useWorld(world);
  const uses = watchRawUses();
  try {
    const rig = await startOn({ source, target, threads: 0, sockets: 'node', stateDir: STATE });
    const client = rig.client();
    await client.set('k', 'v', 'EX', 100);
    await client.rpush('list', 'a', 'b');
    assert.equal(await client.eval("return redis.call('INCR', KEYS[1])", 1, 'counter'), 1);
    assert.equal(await client.blpop('empty', 0.05), null);
    await rig.assertEqual();
    const state = await rig.shard.state();
    assert.match(state.source!.seenAt, /^2040-01-01T/);
    await rig.stop();
    assert.deepEqual(ofProduct(uses), []);
    // What would be seen, had a room asked Node.
    useWorld(null);
    monotonicMs();
    assert.deepEqual(ofProduct(uses), ['performance.now of shadow-proxy/src/io/world.js']);
  } finally {
    uses.stop();
    useWorld(null);
  }
  assert.ok(world.files.has(`${STATE}/test/state.json`), [...world.files.keys()].join(', '));
  assert.ok(!existsSync(STATE));
});
