/**
 * Other shapes of clusters: three masters to one KeyDB, one master whose slots several proxies have.
 *
 * Needs real servers: clusters of several shapes: slots, node IDs and the logins of their nodes.
 */
import { test } from 'node:test';
import { moveThere } from '../../support/cluster-move.js';

test('three masters to one KeyDB: copied, written twice, live, and back; both hold the same', async () => {
  await moveThere({ target: 'standalone' });
});

test('three masters to a KeyDB cluster of two: copied, written twice, live, and back; both hold the same', async () => {
  await moveThere({ target: { masters: 2 } });
});

test('one master that three proxies share: copied, written twice, live, and back; both hold the same', async () => {
  await moveThere({ source: { masters: 1 }, target: { masters: 1 }, cuts: [4000, 9000] });
});
