/** Found by `npm run simulate -- --profile split`. A real server loads its data for longer than a test can wait. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

for (const command of ['DEL key', 'PEXPIRE key 0', 'RENAME key other'])
  test(`A key that ${command} has removed is removed from a mirror that refused it, and may hold foreign keys`, () =>
    KeptWorld.run(async (kept) => {
      const client = await kept.client();
      const { router, permissions } = kept.proxy.parts!;
      permissions.set(router.default, { deletable: 0, mayOverwrite: false });
      await client.ask('SET key value');
      await kept.until(() => kept.values('0 key').every((value) => value === 'value'), 'both have the key');
      kept.target.model.troubles.loading = true;
      await client.ask(command);
      await kept.pass(50);
      kept.target.model.troubles.loading = false;
      assert.equal(kept.isClean, false);
      await kept.until(() => kept.isClean, 'the workload is clean');
      assert.deepEqual(kept.values('0 key'), [null, null]);
    }));
