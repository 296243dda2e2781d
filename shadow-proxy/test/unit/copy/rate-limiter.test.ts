/** How fast keys are copied: a decision over the clock, clients and latencies. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RateLimiter, type RateLimits } from '../../../src/copy/job/rate-limiter.js';
import { Latencies } from '../../../src/io/latency.js';

const limiter = (limits: RateLimits, latencies: Latencies, mirror = new Latencies()): RateLimiter =>
  new RateLimiter(() => limits, latencies, mirror);

/** Keys that go in one second, asked every ms, each of which ends at once. */
function keysInASecond(pace: RateLimiter, from: number, clients = 0): number {
  let keys = 0;
  for (let now = from; now < from + 1_000; now++) {
    const room = Math.floor(pace.room(now, 0, clients));
    if (room <= 0) continue;
    pace.spent(now, room, 0);
    keys += room;
  }
  return keys;
}

test('without a limit, and without clients, as many as may be under way', () => {
  const pace = limiter({}, new Latencies());
  assert.equal(pace.room(1_000, 0, 0), 2_048);
  assert.equal(pace.room(1_000, 2_000, 0), 48);
  assert.ok(pace.room(1_000, 2_048, 0) <= 0);
});

test('keys a second and bytes a second are kept to', () => {
  for (const limit of [10, 200, 5_000]) {
    const keys = keysInASecond(limiter({ keysPerSecond: limit }, new Latencies()), 1_000);
    assert.ok(keys >= limit * 0.9 && keys <= limit * 1.15 + 1, `${keys} for ${limit}`);
  }
  const pace = limiter({ bytesPerSecond: 1_000_000 }, new Latencies());
  pace.spent(1_000, 1, 500_000);
  assert.ok(pace.room(1_400, 0, 0) <= 0);
  assert.ok(pace.waitMs(1_400) > 0);
  assert.ok(pace.room(1_500, 0, 0) > 0);
});

test('beside clients that keep the authority busy, half as many keys as they get commands answered, and some in any case', () => {
  const latencies = new Latencies();
  const pace = limiter({}, latencies);
  for (let now = 0; now < 200; now++) pace.room(now, 0, 50);
  assert.ok(pace.room(200, 0, 50) <= 256);
  const slow = keysInASecond(pace, 300, 50);
  assert.ok(slow > 4_200 && slow < 6_500, `${slow} where clients get nothing`);
  // 30,000 a second.
  let keys = 0;
  for (let now = 1_300; now < 2_300; now++) {
    latencies.record(1, 30);
    const room = Math.floor(pace.room(now, 0, 50));
    if (room <= 0) continue;
    pace.spent(now, room, 0);
    latencies.record(1, 1);
    keys += room;
  }
  assert.ok(keys > 11_000 && keys < 18_500, String(keys));
});

test('a p99 above the limit halves what is under way, down to pauses; one below lets it grow again', () => {
  const latencies = new Latencies();
  const pace = limiter({ maxP99Ms: 2 }, latencies);
  let now = 0;
  const look = (ms: number): number => {
    latencies.record(ms, 1_000);
    now += 100;
    return pace.room(now, 0, 0);
  };
  assert.equal(look(5), 1_024);
  assert.equal(look(5), 512);
  while (look(5) > 2);
  assert.equal(look(5), 0);
  assert.ok(pace.waitMs(now) > 0);
  assert.equal(look(1), 3);
  for (let i = 0; i < 100; i++) look(1);
  assert.equal(look(1), 2_048);
  pace.close();
  const ended = pace.room(now + 100, 0, 0);
  latencies.record(50, 1_000);
  assert.equal(pace.room(now + 200, 0, 0), ended, 'what is closed watches no more');
});

test('a p99 of the mirror above its limit slows down as the authority does, and both must hold to go faster', () => {
  const [latencies, mirror] = [new Latencies(), new Latencies()];
  const pace = limiter({ maxP99Ms: 2, maxMirrorP99Ms: 10 }, latencies, mirror);
  let now = 0;
  const look = (authorityMs: number, mirrorMs: number): number => {
    latencies.record(authorityMs, 1_000);
    mirror.record(mirrorMs, 1_000);
    now += 100;
    return pace.room(now, 0, 0);
  };
  assert.equal(look(1, 20), 1_024);
  assert.equal(look(5, 5), 512);
  assert.equal(look(1, 20), 256);
  assert.equal(look(1, 5), 288);
  pace.close();
});

test('limits change under way: what was owed to the old ones is forgiven, and one that ends limits no more', () => {
  let limits: RateLimits = { keysPerSecond: 1, maxP99Ms: 2 };
  const latencies = new Latencies();
  const pace = new RateLimiter(() => limits, latencies, new Latencies());
  latencies.record(50, 1_000);
  assert.ok(pace.room(1_000, 0, 0) > 0);
  pace.spent(1_000, 100, 0);
  assert.ok(pace.waitMs(1_000) > 90_000, 'a hundred keys at one a second');
  limits = { keysPerSecond: null, maxP99Ms: null };
  pace.changed();
  assert.equal(pace.waitMs(1_000), 0);
  assert.equal(pace.room(1_100, 0, 0), 2_048, 'the window is whole again');
  limits = { maxP99Ms: 2 };
  pace.changed();
  latencies.record(50, 1_000);
  assert.equal(pace.room(1_200, 0, 0), 1_024, 'a limit that begins under way holds');
  pace.close();
});
