/** COPY and MOVE answer differently where a key stands in their way on one server only: that is a mismatch, and healed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needsKeydb } from '../support/servers.js';
import { withRig } from '../support/rig.js';
import { sum } from '../../src/record/snapshot.js';
import { differences } from '../support/keyspace.js';

const CASES: Readonly<Record<string, { readonly command: readonly (string | number)[]; readonly standsIn: readonly [db: number, key: string] }>> = {
  COPY: { command: ['COPY', 'key', 'copy'], standsIn: [0, 'copy'] },
  'COPY to another database': { command: ['COPY', 'key', 'copy', 'DB', 2], standsIn: [2, 'copy'] },
  MOVE: { command: ['MOVE', 'key', 2], standsIn: [2, 'key'] },
};

for (const [name, { command, standsIn }] of Object.entries(CASES)) {
  for (const side of ['target', 'source'] as const) {
    test(`${name}, with a key in its way on the ${side} alone`, async (t) => {
      if (!(await needsKeydb(t))) return;
      await withRig({}, async (rig) => {
        const proxy = rig.client();
        await proxy.set('key', 'value');
        await rig.assertEqual();
        await rig.client({ of: rig[side], db: standsIn[0] }).set(standsIn[1], 'in the way');
        assert.equal(await proxy.call(String(command[0]), ...command.slice(1)), side === 'target' ? 1 : 0);
        await rig.shard.settled();
        const { mismatches, inconclusive } = rig.shard.snapshot();
        assert.deepEqual([sum(mismatches), inconclusive], [1, {}], JSON.stringify(rig.shard.findings()));
        assert.deepEqual(await differences(rig.source, rig.target), []);
      });
    });
  }
}
