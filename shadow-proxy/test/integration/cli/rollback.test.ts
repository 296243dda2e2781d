/**
 * The emergency rollback of all workloads, where one is complete: the others go back, and the one that cannot is named.
 *
 * Needs real processes: the exit code and the printed lines of `rollback --all`.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withServers } from '../../support/servers.js';
import { runCommand } from './process.js';
import { planFor, start, status } from './running.js';

const STUCK =
  /a: "gone" is complete and cannot be rolled back: since then, only the target gets writes\. Leave it there, or move it with a backfill in the other direction/;

test('rollback --all names the workloads that are complete, rolls the others back, and exits with code 1; also with --offline', async (t) => {
  await withServers(async (servers) => {
    const plan = await planFor(servers, (planned) => {
      planned.workloads = [
        { name: 'gone', keys: ['gone:*'], stage: 'complete' },
        { name: 'sessions', keys: ['session:*'], stage: 'live' },
      ];
    });
    const running = await start(t, plan);
    const stages = async (): Promise<string[]> => (await status(running.admin))[0].workloads.map(({ stage }) => stage);
    const all = (...args: string[]): ReturnType<typeof runCommand> => runCommand('rollback', '--all', ...args);
    const mixed = await all('--admin', running.admin);
    assert.equal(mixed.code, 1);
    assert.match(mixed.stderr, STUCK);
    assert.match(mixed.stderr, /a: sessions was rolled back/);
    assert.deepEqual(await stages(), ['complete', 'shadow', 'off']);
    const again = await all('--admin', running.admin);
    assert.equal(again.code, 1, 'the one that is complete is no "nothing to roll back"');
    assert.match(again.stderr, STUCK);
    running.daemon.signal('SIGTERM');
    await running.daemon.exit();
    const offline = await all('--offline', '--plan', running.file);
    assert.equal(offline.code, 1);
    assert.match(offline.stderr, STUCK);
  });
});
