/** No verdict of `guard` without anything that was looked at. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sawNothing } from '../../../src/cli/guard.js';
import { cluster, node, pair } from '../../integration/guard/nodes.js';

test('two nodes that take writes are not called safe for having no counters while no client was seen', () => {
  assert.equal(sawNothing({ workloads: [], operations: 0, clusters: [pair()] }), true);
  assert.equal(sawNothing({ workloads: [], operations: 1, clusters: [pair()] }), false);
  assert.equal(
    sawNothing({ workloads: [], operations: 0, clusters: [cluster([node('eu')])] }),
    false,
    'one node cannot lose what another one has',
  );
});
