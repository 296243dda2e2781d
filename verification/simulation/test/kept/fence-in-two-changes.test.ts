/** Found in profile `fenced` (seed 3): another stage change lifted the fence under a promotion that had raised it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FENCED_PLAN, makeKit } from '../../kept/fenced.js';
import { KeptWorld } from '../../kept/world.js';

const PLAN = { ...FENCED_PLAN, workloads: [{ name: 'second', keys: ['second*'], stage: 'dualwrite' }] };

test('A fence that a promotion has raised is not lifted by another stage change', () =>
  KeptWorld.run(
    async (kept) => {
      const rules: string[] = [];
      let begun = false;
      kept.source.onCommand = (_address, [name, what, user, ...given]) => {
        if (name === 'ACL' && what === 'SETUSER') begun = true;
        if (name === 'ACL' && what === 'SETUSER' && user === 'default') rules.push(given.join(' '));
      };
      const consent = { overwrite: true, deleteForeign: true, confirm: 1 };
      const done: string[] = [];
      const change = (workload: string, stage: 'shadow' | 'live'): void =>
        kept.proxy.within(({ shard }) => {
          void shard.changeStage({ workload, stage, consent }).then(() => done.push(workload));
        });
      change('default', 'live');
      await kept.until(() => begun, 'the fence is being raised');
      change('second', 'shadow');
      await kept.until(() => done.length === 2, 'both are changed');
      await kept.pass(1_000);
      assert.deepEqual(rules, ['-@write']);
      assert.equal(kept.proxy.snapshot()!.workloads.find(({ name }) => name === 'default')!.stage, 'live');
    },
    PLAN,
    makeKit,
  ));
