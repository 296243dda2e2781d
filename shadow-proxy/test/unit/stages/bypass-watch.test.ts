/** Writes that bypass the proxy, by the server's own counts: decisions over made-up counts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foreignWrites, parseCalls, type CallCounts } from '../../../src/stages/bypass-watch.js';

const at = (
  calls: Record<string, number>,
  sent: Record<string, number>,
  more: Partial<CallCounts> = {},
): CallCounts => {
  const counts = new Map(Object.entries(sent));
  return {
    runId: 'a',
    calls: new Map(Object.entries(calls)),
    sentBefore: counts,
    sentAfter: counts,
    inFlight: 0,
    scripts: 0,
    mayRunScripts: false,
    ...more,
  };
};

test('writes that the server counts beyond those of the proxy are another client’s', () => {
  assert.deepEqual(foreignWrites(at({ set: 100 }, { set: 5 }), at({ set: 110, incr: 2 }, { set: 12 })), {
    set: 3,
    incr: 2,
  });
  assert.deepEqual(foreignWrites(at({ set: 100 }, { set: 5 }), at({ set: 107 }, { set: 12 })), {});
});

test('writes that were in flight are not counted as foreign, whenever they ran', () => {
  // Sent before the first look, run after it; sent before the answer to the second one.
  assert.deepEqual(foreignWrites(at({ set: 100 }, { set: 8 }, { inFlight: 3 }), at({ set: 107 }, { set: 12 })), {});
  assert.deepEqual(
    foreignWrites(at({ set: 100 }, { set: 5 }), at({ set: 107 }, { set: 9 }, { sentAfter: new Map([['set', 12]]) })),
    {},
  );
});

test('nothing is reported after a restart, after counts were reset, while scripts run, and of pops', () => {
  const before = at({ set: 100 }, {});
  assert.equal(foreignWrites(before, at({ set: 105 }, {}, { runId: 'b' })), null);
  assert.equal(foreignWrites(before, at({ set: 5 }, {})), null);
  assert.equal(foreignWrites(before, at({ set: 105 }, {}, { scripts: 1 })), null);
  // A script that was sent before the first look, and may have run since.
  assert.equal(foreignWrites(at({ set: 100 }, {}, { mayRunScripts: true }), at({ set: 105 }, {})), null);
  assert.deepEqual(foreignWrites(before, at({ set: 100, lpop: 4 }, {})), {});
});

test('the server’s counts are read by command, subcommands that write together', () => {
  const stats = new Map([
    ['cmdstat_set', 'calls=7,usec=9'],
    ['cmdstat_xgroup|create', 'calls=2,usec=1'],
    ['cmdstat_xgroup|destroy', 'calls=1,usec=1'],
    ['cmdstat_function|list', 'calls=2,usec=1'],
    ['cmdstat_function|load', 'calls=1,usec=1'],
    ['cmdstat_get', 'calls=9,usec=1'],
    ['other', 'calls=1'],
  ]);
  assert.deepEqual(
    [...parseCalls(stats, new Set(['set', 'xgroup', 'function']), (name) => name === 'function|list')],
    [
      ['set', 7],
      ['xgroup', 3],
      ['function', 1],
    ],
  );
});
