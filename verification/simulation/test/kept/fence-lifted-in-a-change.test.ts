/** Found in profile `fenced` (seed 909): an operator lifted the fence under a promotion that had raised it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KIT, KIT_RULES } from '../../clients/kinds/sessions.js';
import { setUser } from '../../server/acl.js';
import { KeptWorld } from '../../kept/world.js';

const PLAN = {
  fence: 'acl',
  shards: [
    {
      ...{ name: 's0', listen: 'redis://10.0.0.1:7000', target: 'redis://10.0.0.3:6379' },
      source: `redis://${KIT.name}:${KIT.password}@10.0.0.2:6379`,
    },
  ],
};

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
    PLAN,
    (kept) => setUser(kept.source.model, KIT.name, KIT_RULES),
  ));
