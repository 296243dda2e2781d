/**
 * COPY and MOVE answer differently when their destination exists on one server only: this is a mismatch, and repaired.
 *
 * Needs real servers: replies of COPY and MOVE whose destination exists on one server.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withRig } from '../../support/rig.js';
import { sum } from '../../../src/telemetry/snapshot.js';
import { differences } from '../../support/keyspace.js';

const CASES: Readonly<
  Record<
    string,
    { readonly command: readonly (string | number)[]; readonly standsIn: readonly [db: number, key: string] }
  >
> = {
  COPY: { command: ['COPY', 'key', 'copy'], standsIn: [0, 'copy'] },
  'COPY to another database': { command: ['COPY', 'key', 'copy', 'DB', 2], standsIn: [2, 'copy'] },
  MOVE: { command: ['MOVE', 'key', 2], standsIn: [2, 'key'] },
};

for (const [name, { command, standsIn }] of Object.entries(CASES)) {
  for (const [side, inMulti] of [
    ['target', false],
    ['source', false],
    ['target', true],
  ] as const) {
    test(`${name}${inMulti ? ' in MULTI' : ''}, with a key in its way on the ${side} alone`, async () => {
      await withRig({}, async (rig) => {
        const proxy = rig.client();
        await proxy.set('key', 'value');
        await rig.assertEqual();
        await rig.client({ of: rig[side], db: standsIn[0] }).set(standsIn[1], 'in the way');
        const expected = side === 'target' ? 1 : 0;
        if (inMulti)
          assert.deepEqual(
            await proxy
              .multi()
              .call(String(command[0]), ...command.slice(1))
              .exec(),
            [[null, expected]],
          );
        else assert.equal(await proxy.call(String(command[0]), ...command.slice(1)), expected);
        await rig.shard.settled();
        const { mismatches, inconclusive } = rig.shard.snapshot();
        // In another database the lookup may have to wait for its lane, and the repair may come first: then the
        // comparison is inconclusive.
        const writtenSince = standsIn[0] === 0 ? 0 : (inconclusive['written-since'] ?? 0);
        assert.deepEqual(
          [sum(mismatches) + writtenSince, sum(inconclusive)],
          [1, writtenSince],
          JSON.stringify(rig.shard.findings()),
        );
        assert.deepEqual(await differences(rig.source, rig.target), []);
      });
    });
  }
}
