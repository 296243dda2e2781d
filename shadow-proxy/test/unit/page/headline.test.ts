/** The headline and the title of the status page. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Attention } from '../../../src/page/attention.js';
import { headlineOf, titleOf } from '../../../src/page/headline.js';

const act: Attention = { level: 'act', text: 'The target is down.', command: 'status', runbook: 'MirrorDisconnected' };
const look: Attention = { level: 'look', text: 'The mirror is 1,200 ms behind.' };
const shard = (name: string, ...attention: Attention[]) => ({ shard: name, attention });

test('all clear only where nothing is to do and nothing to watch', () => {
  assert.deepEqual(headlineOf([shard('a'), shard('b')]), { kind: 'yes', text: 'All clear', first: null });
  assert.deepEqual(headlineOf([shard('a', look)]), {
    kind: 'unknown',
    text: 'Nothing to do now, 1 thing to watch',
    first: null,
  });
  assert.equal(headlineOf([]).kind, 'unknown', 'no shard is not all clear');
});

test('otherwise the headline is the first thing to do, and counts the rest', () => {
  assert.deepEqual(headlineOf([shard('a', act)]), { kind: 'no', text: 'The target is down.', first: act });
  assert.equal(
    headlineOf([shard('a', look), shard('b', act, act, look)]).text,
    'Shard b: The target is down. (1 more thing to do, 2 things to watch)',
  );
});

test('the title has the name of the migration, and what is to do before it', () => {
  assert.equal(titleOf('checkout-cache', [shard('a')], false), 'All clear – checkout-cache');
  assert.equal(titleOf('checkout-cache', [shard('a', look)], false), 'Watch – checkout-cache');
  assert.equal(titleOf('checkout-cache', [shard('a', act, act)], false), '(2) Act now – checkout-cache');
  assert.equal(titleOf('checkout-cache', [], false), 'No shard – checkout-cache');
  assert.equal(titleOf('checkout-cache', [shard('a')], true), 'Token needed – checkout-cache');
  assert.equal(titleOf(null, [], false), 'migration status');
});
