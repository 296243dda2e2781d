/** When the servers' clocks are taken to differ, and one of them to have been set. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Clocks, type ClocksContext } from '../../../src/health/clocks.js';
import { ServerClock } from '../../../src/upstream/server-clock.js';
import { FakeClock } from '../../support/fake-clock.js';

const clock = FakeClock.install();

interface Pair {
  /** A look that finds the target ahead of the source by so many ms; each look is wrong by 1 ms at most. */
  look(aheadMs: number): number;
  /** How often a difference was logged. */
  readonly warnings: number;
  /** How often a new difference was to be remembered. */
  readonly notes: number;
  readonly suspicions: readonly string[];
  /** Since when the mirrors know by how much the clocks differ. */
  readonly knownFrom: number;
}

/** @param knownAheadMs by how much the target was ahead when the last process looked */
function pair(knownAheadMs: number | null = null): Pair {
  const at = { source: { unixTimeAtZero: 1e12, errorMs: 1 }, target: { unixTimeAtZero: 1e12, errorMs: 1 } };
  const mirrors = {
    source: { clockAheadMs: 0, clockKnownFrom: 0 },
    target: { clockAheadMs: 0, clockKnownFrom: 0 },
  };
  let warnings = 0;
  let notes = 0;
  const suspicions: string[] = [];
  const clocks = new Clocks({
    servers: { source: { clock: at.source }, target: { clock: at.target } },
    mirrors,
    logger: { warn: () => warnings++ },
    knownAheadMs,
    changed: () => notes++,
    suspectWorkloads: { markAll: (why: string) => suspicions.push(why) },
  } as unknown as ClocksContext);
  return {
    get warnings() {
      return warnings;
    },
    get notes() {
      return notes;
    },
    suspicions,
    get knownFrom() {
      assert.equal(mirrors.source.clockKnownFrom, mirrors.target.clockKnownFrom);
      return mirrors.target.clockKnownFrom;
    },
    look(aheadMs) {
      at.target.unixTimeAtZero = 1e12 + aheadMs;
      clocks.compare();
      assert.equal(mirrors.source.clockAheadMs + mirrors.target.clockAheadMs, 0);
      return mirrors.target.clockAheadMs;
    },
  };
}

test('clocks differ from 500 ms on at once, and below that when every look says so for 2,500 ms', async () => {
  assert.deepEqual([pair().look(499), pair().look(500), pair().look(-500)], [0, 500, -500]);
  const servers = pair();
  assert.equal(servers.look(499), 0);
  await clock.advance(2_499);
  assert.equal(servers.look(499), 0);
  await clock.advance(1);
  assert.equal(servers.look(499), 499);
});

test('from the first look that contradicts what is known until one agrees, the mirrors do not know by how much', async () => {
  const servers = pair();
  servers.look(0);
  assert.equal(servers.knownFrom, 0);
  servers.look(300);
  assert.equal(servers.knownFrom, Infinity);
  await clock.advance(1_000);
  servers.look(0);
  assert.equal(servers.knownFrom, clock.now);
  servers.look(300);
  await clock.advance(2_500);
  assert.deepEqual([servers.look(300), servers.knownFrom], [300, clock.now]);
  servers.look(0);
  await clock.advance(1);
  assert.deepEqual([servers.look(5_000), servers.knownFrom], [5_000, clock.now]);
});

test('22 ms are the error of both looks and what is tolerated; 23 are a difference', async () => {
  for (const [ms, ahead] of [
    [22, 0],
    [23, 23],
    [-23, -23],
  ]) {
    const servers = pair();
    servers.look(ms);
    await clock.advance(2_500);
    assert.deepEqual([servers.look(ms), servers.warnings], [ahead, Math.sign(Math.abs(ahead))]);
    // Nor is anything left of a larger difference.
    servers.look(10_000);
    assert.equal(servers.look(ms), ahead);
  }
});

test('what the last process knew is believed from the start, and what contradicts it by more than 500 ms is a clock that was set', () => {
  const servers = pair(300);
  assert.deepEqual([servers.look(300), servers.notes, servers.suspicions], [300, 0, []]);
  assert.deepEqual([pair(300).look(802), pair(-300).look(202), pair(0).look(502)], [802, 202, 502]);
  for (const [known, ahead, set] of [
    [300, 802, 0],
    [300, 803, 503],
    [0, -503, -503],
    [null, 60_000, 0],
  ] as const) {
    const each = pair(known);
    each.look(ahead);
    assert.deepEqual(
      each.suspicions.map((why) => Number(/by (-?\d+) ms/.exec(why)![1])),
      set === 0 ? [] : [set],
    );
    // A later look is judged by what is believed now.
    each.look(ahead + 1_000);
    assert.equal(each.suspicions.length, set === 0 ? 0 : 1);
    assert.equal(each.notes, 2);
  }
});

test('one look without the difference starts the time from zero', async () => {
  const servers = pair();
  servers.look(100);
  await clock.advance(2_000);
  servers.look(0);
  await clock.advance(500);
  assert.equal(servers.look(100), 0);
  await clock.advance(2_499);
  assert.equal(servers.look(100), 0);
  await clock.advance(1);
  assert.equal(servers.look(100), 100);
});

test('what is believed ends where the clocks agree again', async () => {
  const servers = pair();
  assert.equal(servers.look(1_000), 1_000);
  assert.equal(servers.look(0), 0);
  // By less than 500 ms, after a while.
  assert.equal(servers.look(600), 600);
  assert.equal(servers.look(200), 200 + 400);
  await clock.advance(2_500);
  assert.equal(servers.look(200), 200);
});

test('a clock was set where it moved by more than 500 ms beyond the error of two looks', () => {
  for (const [by, setBy] of [
    [510, 0],
    [511, 511],
    [-510, 0],
    [-511, -511],
  ]) {
    const server = new ServerClock();
    assert.equal(server.read(1e12, 0, 10), 0, 'the first look tells nothing');
    // Each look is wrong by 5 ms at most.
    assert.equal(server.read(1e12 + 100 + by, 100, 110), setBy);
    assert.equal(server.errorMs, 5);
  }
});

test('a server that does not tell its time is taken to be wrong by a second', () => {
  const server = new ServerClock();
  server.read(NaN, 0, 10);
  assert.equal(server.errorMs, 1_000);
});
