/** Found in profile `fenced` (seed 909): an operator lifted the fence under a promotion that had raised it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FENCED_PLAN, makeKit } from '../../kept/fenced.js';
import { KeptWorld } from '../../kept/world.js';

test('A fence that a promotion has raised cannot be lifted until the promotion has ended', () =>
  KeptWorld.run(
    async (kept) => {
      const rules: string[] = [];
      kept.source.onCommand = (_address, [name, what, user, ...given]) => {
        if (name === 'ACL' && what === 'SETUSER' && user === 'default') rules.push(given.join(' '));
      };
      const consent = { overwrite: true, deleteForeign: true, confirm: 1 };
      let ended = false;
      kept.proxy.within(({ shard }) => {
        void shard.changeStage({ workload: 'default', stage: 'live', consent }).then(() => (ended = true));
      });
      await kept.until(() => rules.length > 0, 'the fence is raised');
      const refusals: string[] = [];
      kept.proxy.within(({ shard }) => {
        void shard.fence('lift').catch(({ message }: Error) => refusals.push(message));
      });
      await kept.until(() => ended, 'the stage is live');
      assert.deepEqual(rules, ['-@write']);
      assert.match(refusals.join(), /a stage change that needs the fence is in progress: try again when it has ended/);

      kept.proxy.within(({ shard }) => void shard.fence('lift'));
      await kept.until(() => rules.length > 1, 'the fence is lifted by hand');
      assert.deepEqual(rules, ['-@write', '-@all +@all']);
    },
    FENCED_PLAN,
    makeKit,
  ));
