/** To `complete`, whichever way: refused without the migration's name, whatever else the request says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES, type AdminContext } from '../../../src/admin/routes.js';
import type { ShardControl } from '../../../src/admin/shard-control.js';
import type { StageChange } from '../../../src/stages/stage-change.js';
import type { PromoteRequest, Promotion } from '../../../src/stages/promotion.js';
import { shardSnapshot } from '../../support/snapshots.js';

const FROM = { stage: 'rampdown', percent: 100 } as const;
const TO = { stage: 'complete', percent: 100 } as const;

function shardThatCompletes(): { readonly control: ShardControl; readonly moved: string[] } {
  const moved: string[] = [];
  const change = (workload: string): StageChange => ({ workload, from: FROM, to: TO, heldMs: 1 });
  const control = {
    name: 'a',
    snapshot: () => shardSnapshot({ name: 'a' }),
    promote({ workload, dryRun }: PromoteRequest): Promise<Promotion> {
      if (!dryRun) moved.push(workload);
      const done = dryRun ? null : change(workload);
      return Promise.resolve({ workload, from: FROM, to: TO, gates: [], targetKeys: null, change: done });
    },
  };
  return { control: control as unknown as ShardControl, moved };
}

const ask = (control: ShardControl, path: string, body: object): Promise<unknown> => {
  const context = { migration: () => 'shop', shards: () => [control] } as unknown as AdminContext;
  return ROUTES[path].POST.handle(context, { query: new URLSearchParams(), body });
};

const REQUESTS: readonly (readonly [path: string, body: object])[] = [
  ['/api/promote', { workload: 'sessions' }],
  ['/api/promote', { workload: 'sessions', to: 'complete' }],
  ['/api/promote', { workload: 'sessions', force: true, forceUsers: true, reason: 'now' }],
];

for (const [path, body] of REQUESTS)
  test(`the way to complete needs the migration's name: ${path} ${JSON.stringify(body)}`, async () => {
    const { control, moved } = shardThatCompletes();
    for (const pointOfNoReturn of [undefined, '', 'sessions', 'Shop', 'yes'])
      await assert.rejects(ask(control, path, { ...body, pointOfNoReturn }), {
        code: 'point-of-no-return',
        message: /"sessions" would move to complete.*shop.*Nothing was changed/,
      });
    assert.deepEqual(moved, []);
    await ask(control, path, { ...body, dryRun: true });
    assert.deepEqual(moved, [], 'a dry run needs no confirmation and changes nothing');
    await ask(control, path, { ...body, pointOfNoReturn: 'shop' });
    assert.deepEqual(moved, ['sessions']);
  });
