/**
 * Lettuce finds a Redis Cluster at the proxies, by CLUSTER NODES. `LETTUCE` names the folder with its jar files.
 *
 * Needs real processes: Lettuce, a client in Java, reads CLUSTER NODES of the proxies.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { countSlots } from '../../../src/plan/cluster-shards.js';
import { ClusterRig } from '../../support/cluster-rig.js';

const JARS = process.env.LETTUCE ?? null;
const PROGRAM = fileURLToPath(new URL('../../../../../shadow-proxy/test/support/Lettuce.java', import.meta.url));
const skip = JARS === null && 'NOT TESTED WITH LETTUCE: set LETTUCE to the folder with the jar files of lettuce-core';

test('Lettuce writes and reads through the proxies, and reads from replicas', { skip }, async () => {
  const rig = await ClusterRig.start({
    source: { replicas: 1 },
    replicas: true,
    plan: { default: { stage: 'shadow' } },
  });
  const run = async (...args: string[]): Promise<string[]> => {
    const command = ['-cp', join(JARS!, '*'), PROGRAM, String(rig.port), ...args];
    return (await promisify(execFile)('java', command, { timeout: 60_000 })).stdout.trim().split('\n');
  };
  try {
    const nodes = rig.plan.shards.flatMap(({ slots }, i) => [
      `REPLICA ${rig.replicaPort + i} 0`,
      `UPSTREAM ${rig.port + i} ${countSlots(slots!)}`,
    ]);
    assert.deepEqual(await run('600'), [nodes.sort().join(', '), '600 equal, 7, 3']);
    await rig.settled();
    assert.deepEqual(await rig.differences(), []);
    assert.deepEqual(rig.compared().mismatches, {});
    for (const stage of ['dualwrite', 'off'] as const) await rig.changeStage(stage);
    const [, read] = await run('600', 'replica');
    assert.match(read, /^\d+ equal, 14, 3$/);
    const reads = rig.shards.reduce((sum, shard) => sum + shard.snapshot().replicaReads, 0);
    assert.ok(reads > 300, `${reads} reads on replicas`);
  } finally {
    await rig.stop();
  }
});
