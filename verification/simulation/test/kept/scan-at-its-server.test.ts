/** SCAN through a stage change: where it goes on, and that it ends. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

test('A SCAN that the target began goes on there after a rollback, and ends', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await kept.client();
      const names = Array.from({ length: 30 }, (_, i) => `k${i}`);
      for (const name of names) await client.ask(`SET ${name} v`);
      await kept.until(() => kept.isClean, 'the workload is clean');
      const ran = kept.ranBy(([name]) => name === 'SCAN');
      const found: string[] = [];
      let cursor = '0';
      for (let calls = 0; calls === 0 || cursor !== '0'; calls++) {
        assert.ok(calls < names.length, 'it ends');
        const [next, some] = (await client.ask(`SCAN ${cursor} COUNT 4`)) as unknown as [string, readonly string[]];
        cursor = next.slice(1);
        found.push(...some);
        if (calls === 0) await kept.change('shadow');
      }
      assert.deepEqual(found.sort(), names.map((name) => `$${name}`).sort());
      assert.deepEqual([...new Set(ran)], ['target']);
    },
    { default: { stage: 'live' } },
  ));
