/** A command that takes a user's writes must not run after its connection was lost, and the promotion was refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KIT, KIT_RULES } from '../../clients/kinds/sessions.js';
import { describe, setUser } from '../../server/acl.js';
import { KeptWorld } from '../../kept/world.js';

const SILENCE_MS = 30_000;
const PLAN = {
  fence: 'acl',
  shards: [
    {
      ...{ name: 's0', listen: 'redis://10.0.0.1:7000', target: 'redis://10.0.0.3:6379' },
      source: `redis://${KIT.name}:${KIT.password}@10.0.0.2:6379`,
    },
  ],
};

test('A promotion that lost its connection to the source takes no writes later', () =>
  KeptWorld.run(
    async (kept) => {
      const { source } = kept;
      const rules = (): string => describe(source.model.users.get('default')!);
      const before = rules();
      let isSilent = false;
      source.onCommand = (address, [name, what, user]) => {
        if (isSilent || name !== 'ACL' || what !== 'SETUSER' || user !== 'shadow-proxy:default') return;
        isSilent = true;
        kept.endOf(source, Number(address.split(':')[1])).other.silence(SILENCE_MS);
      };
      const consent = { overwrite: true, deleteForeign: true, confirm: 1 };
      let problem: string | null = null;
      kept.proxy.within(({ shard }) => {
        void shard
          .changeStage({ workload: 'default', stage: 'live', consent })
          .catch(({ message }: Error) => (problem = message));
      });
      await kept.until(() => problem !== null, 'the promotion is refused');
      assert.match(problem!, /the source cannot be fenced/);
      await kept.pass(2 * SILENCE_MS);
      assert.equal(rules(), before);
    },
    PLAN,
    (kept) => setUser(kept.source.model, KIT.name, KIT_RULES),
  ));
