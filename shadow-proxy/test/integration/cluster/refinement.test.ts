/**
 * The shards of a cluster whose target has other slot ranges.
 *
 * Needs real servers: a Redis Cluster and a KeyDB cluster with other slot ranges, from copy to rollback.
 */
import { test } from 'node:test';
import { moveThere } from '../../support/cluster-move.js';

test('a KeyDB cluster with other ranges: copied, written twice, live, and back; both hold the same', async () => {
  await moveThere({ source: { masters: 2 }, target: { masters: 2, ranges: [[[0, 3000]], [[3001, 16383]]] } });
});
