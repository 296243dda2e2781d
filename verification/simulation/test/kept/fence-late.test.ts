/** A command that takes a user's writes must not run after its connection was lost, and the promotion was refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describe } from '../../server/acl.js';
import { FENCED_PLAN, makeKit } from '../../kept/fenced.js';
import { KeptWorld } from '../../kept/world.js';

const SILENCE_MS = 30_000;

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
    FENCED_PLAN,
    makeKit,
  ));
