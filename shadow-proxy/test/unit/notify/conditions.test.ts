/** When a condition is a notice, and when it is over. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Conditions, TIMING } from '../../../src/notify/conditions.js';
import type { OutageSnapshot, ShardSnapshot, WatchSnapshot } from '../../../src/telemetry/snapshot.js';
import { scrapedShard, watchSnapshot, workloadSnapshot } from '../../support/snapshots.js';

const SECOND = 1000;

/** Looks at one shard after another; each line is `event.state workload: summary`. */
function looker(): (seconds: number, change?: Partial<ShardSnapshot>, watch?: Partial<WatchSnapshot>) => string[] {
  const conditions = new Conditions('cache-0');
  return (seconds, change = {}, watch = {}) =>
    conditions
      .update(scrapedShard(change, watch), seconds * SECOND)
      .map(({ event, state, workload, summary }) => `${event}.${state} ${workload ?? '-'}: ${summary}`);
}

const mismatches = (n: number): Partial<ShardSnapshot> => ({ workloads: [workloadSnapshot({ mismatches: n })] });
const suspects = (n: number): Partial<ShardSnapshot> => ({ workloads: [workloadSnapshot({ suspects: n })] });
const gates = (since: number, answers: Readonly<Record<string, string>>): Partial<WatchSnapshot> => ({
  workloads: [{ ...watchSnapshot().workloads[0], since, gates: answers }],
});

describe('conditions', () => {
  test('mismatches are one notice, then one for all further ones in ten minutes, and over after half an hour', () => {
    const look = looker();
    assert.deepEqual(look(0, mismatches(7)), [], 'those from before the first look are not news');
    assert.match(
      look(5, mismatches(8)).join('|'),
      /^mismatch\.firing sessions: 1 mismatch in workload sessions \(shadow\)/,
    );
    const every = TIMING.mismatchEveryMs / SECOND;
    for (let at = 10; at < 5 + every; at += 5) assert.deepEqual(look(at, mismatches(8 + at)), [], `${at} s`);
    const total = 8 + every;
    assert.match(
      look(5 + every, mismatches(total)).join('|'),
      new RegExp(`^mismatch\\.firing sessions: ${total - 7} mismatches`),
    );
    const quiet = TIMING.mismatchQuietMs / SECOND;
    assert.deepEqual(look(every + quiet - 5, mismatches(total)), []);
    assert.match(look(every + quiet, mismatches(total)).join('|'), /^mismatch\.resolved sessions: Over: /);
    assert.match(look(5 + every + quiet, mismatches(total + 1)).join('|'), /^mismatch\.firing sessions: 1 mismatch /);
  });

  test('suspects that increase over five minutes without ever being none are a notice, until they get fewer', () => {
    const look = looker();
    const window = TIMING.suspectsMs / SECOND;
    const said: string[] = [];
    for (let at = 0; at <= window; at += 5) said.push(...look(at, suspects(1 + at)));
    assert.equal(said.length, 1);
    assert.match(said[0], /^suspects\.firing sessions: Suspect keys of workload sessions increase: 301 now/);
    assert.deepEqual(look(window + 5, suspects(301)), [], 'it still holds');
    assert.match(look(window + 10, suspects(0)).join('|'), /^suspects\.resolved/);
  });

  test('suspects that are repaired in between are none', () => {
    const look = looker();
    for (let at = 0; at <= 900; at += 5) assert.deepEqual(look(at, suspects(at % 60 === 0 ? 0 : at)), [], `${at} s`);
  });

  test('a gate that was open and stays closed for a minute is a notice; one that never was open is none', () => {
    const look = looker();
    const hold = TIMING.gateHoldMs / SECOND;
    const closed = { compared: 'no', suspects: 'no', bypass: 'unknown' };
    assert.deepEqual(look(0, {}, gates(1, { compared: 'no', suspects: 'yes', bypass: 'yes' })), []);
    assert.deepEqual(look(5, {}, gates(1, closed)), []);
    assert.deepEqual(look(10, {}, gates(1, { ...closed, suspects: 'yes' })), [], 'it opened again');
    assert.deepEqual(look(15, {}, gates(1, closed)), []);
    assert.deepEqual(look(10 + hold, {}, gates(1, closed)), []);
    assert.match(
      look(15 + hold, {}, gates(1, closed)).join('|'),
      /^gate\.firing sessions: Workload sessions \(shadow\) would not be promoted any more\. .*closed: suspects$/,
    );
    assert.deepEqual(look(20 + hold, {}, gates(1, { ...closed, suspects: 'unknown' })), [], 'unknown opens nothing');
    assert.match(
      look(25 + hold, {}, gates(1, { ...closed, suspects: 'yes' })).join('|'),
      /^gate\.resolved sessions: Over/,
    );
  });

  test('gates begin again with each stage', () => {
    const look = looker();
    look(0, {}, gates(1, { minutes: 'yes' }));
    look(5, {}, gates(1, { minutes: 'no' }));
    assert.equal(look(100, {}, gates(1, { minutes: 'no' })).length, 1);
    assert.match(look(105, {}, gates(2, { minutes: 'no' })).join('|'), /^gate\.resolved/);
    assert.deepEqual(look(500, {}, gates(2, { minutes: 'no' })), []);
  });

  test('an authority that is down is a notice, another when the failover is decided, and over when it answers', () => {
    const look = looker();
    const outage = (change: Partial<OutageSnapshot>): Partial<ShardSnapshot> => ({
      outage: {
        side: 'source',
        url: 'redis://127.0.0.1:1',
        since: new Date(0).toISOString(),
        endedAt: null,
        workloads: [],
        ...change,
      },
    });
    const workload = {
      name: 'sessions',
      policy: 'manual',
      from: { stage: 'shadow', percent: 100 },
      movedTo: null,
      why: 'failover is manual',
      next: 'start the source again',
      instead: { text: 'continue on the target', command: 'promote sessions --to live' },
      unanswered: 0,
      keys: [],
    } as const;
    assert.deepEqual(look(0), []);
    assert.match(
      look(5, outage({})).join('|'),
      /^outage\.firing -: The source of shard cache-0 is down: its clients wait$/,
    );
    assert.match(
      look(10, outage({ workloads: [workload] })).join('|'),
      /get errors \(failover is manual\)\. Next: start the source again; or continue on the target: shadow-compare promote sessions --to live$/,
    );
    assert.deepEqual(look(15, outage({ workloads: [workload] })), []);
    const moved = { ...workload, movedTo: { stage: 'live', percent: 100 }, why: null } as const;
    assert.match(look(20, outage({ workloads: [moved] })).join('|'), /its clients were moved to the mirror$/);
    assert.match(look(25, outage({ endedAt: new Date(1).toISOString() })).join('|'), /^outage\.resolved/);
  });

  test('frozen repairs are a notice until an operator decides', () => {
    const look = looker();
    assert.match(
      look(0, { frozen: 'the source restarted' }).join('|'),
      /^frozen\.firing -: .*until you decide: the source restarted$/,
    );
    assert.deepEqual(look(5, { frozen: 'the source restarted' }), []);
    assert.match(look(10).join('|'), /^frozen\.resolved/);
  });
});
