/**
 * Checks and hooks of a plan, on a shard between real servers: what stops a stage change, and what they are given.
 *
 * Needs real processes: checks and hooks, which are programs of users.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { withServers } from '../../support/servers.js';
import { startTestShard, until } from '../../support/shard.js';

test('a promotion asks the checks, and runs the hooks around the change with what changes', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hooks-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [verdict, log] = [join(folder, 'verdict'), join(folder, 'log')];
  writeFileSync(verdict, '1');
  writeFileSync(log, '');
  const plan = {
    checks: [{ name: 'on-call', command: ['sh', '-c', `echo asked; exit $(cat ${verdict})`] }],
    hooks: [
      {
        name: 'announce',
        when: 'before',
        command: ['sh', '-c', `echo "before $SHADOW_PROXY_TO" >> ${log}; cat >> ${log}`],
      },
      {
        name: 'tell',
        when: 'after',
        command: ['sh', '-c', `echo "after $SHADOW_PROXY_TO" >> ${log}; echo no; exit 7`],
      },
    ],
  };
  const lines = (): string[] => readFileSync(log, 'utf8').trim().split('\n').filter(Boolean);
  await withServers(async ({ source, target }) => {
    const { shard, snapshot, stop } = await startTestShard({ source, target, default: { stage: 'off' }, plan });
    t.after(stop);
    const closed = await shard.promote({ workload: 'default', dryRun: true });
    assert.deepEqual(closed.gates.at(-1), { name: 'checks', answer: 'no', evidence: 'on-call: exit code 1: asked' });
    assert.deepEqual(
      closed.hooks!.map(({ name }) => name),
      ['announce', 'tell'],
    );
    await assert.rejects(shard.promote({ workload: 'default' }), { code: 'gates-closed' });
    assert.deepEqual(lines(), [], 'no hook runs where a gate is closed');

    writeFileSync(verdict, '0');
    await until(
      async () => (await shard.promote({ workload: 'default', dryRun: true })).gates.at(-1)!.answer === 'yes',
    );
    const { change } = await shard.promote({ workload: 'default', by: 'ada', reason: 'week 1' });
    assert.deepEqual(
      change!.hooks!.map(({ name, when, problem }) => [name, when, problem]),
      [
        ['announce', 'before', null],
        ['tell', 'after', 'exit code 7: no'],
      ],
    );
    assert.equal(snapshot().workloads[0].stage, 'dualwrite');
    const [before, given, after] = lines();
    assert.deepEqual([before, after], ['before dualwrite', 'after dualwrite']);
    const { gates, ...rest } = JSON.parse(given) as Record<string, unknown>;
    assert.ok(Array.isArray(gates));
    assert.deepEqual(rest, {
      ...{ hook: 'announce', when: 'before', shard: 'test', workload: 'default', failover: false },
      ...{ from: { stage: 'off', percent: 100 }, to: { stage: 'dualwrite', percent: 100 } },
      ...{ by: 'ada', reason: 'week 1', forced: false },
    });
  });
});

test('a hook that fails before a promotion stops it, and does not stop a rollback', async (t) => {
  const hooks = [{ name: 'broken', when: 'before', command: ['sh', '-c', 'echo not today; exit 1'] }];
  await withServers(async ({ source, target }) => {
    const { shard, snapshot, stop } = await startTestShard({ source, target, plan: { hooks } });
    t.after(stop);
    await assert.rejects(shard.changeStage({ workload: 'default', stage: 'live' }), {
      code: 'refused',
      message: '"default" stays in shadow: hook broken failed: exit code 1: not today',
    });
    assert.equal(snapshot().workloads[0].stage, 'shadow');
    const { changes } = await shard.rollback({ workload: 'default' });
    assert.deepEqual(changes[0].hooks?.[0].problem, 'exit code 1: not today');
    assert.equal(snapshot().workloads[0].stage, 'dualwrite');
  });
});
