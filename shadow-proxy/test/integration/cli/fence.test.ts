/**
 * `fence`: shows who would lose writes at the source, takes them, and gives them back.
 *
 * Needs real servers: the ACL rules that a fence takes from users of a Redis, and gives back.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { withServers } from '../../support/servers.js';
import { runCommand } from './process.js';
import { planFor, start } from './running.js';

test('fence show names who would lose writes; apply takes them, lift gives them back, and the history has both', async (t) => {
  await withServers(async (servers) => {
    const direct = new Redis(servers.source.url, { connectionName: 'nightly' });
    t.after(() => direct.disconnect());
    for (const { url } of [servers.source, servers.target]) {
      const admin = new Redis(url);
      await admin.call('ACL', 'SETUSER', 'kit', 'on', '>kit', '~*', '&*', '+@all');
      admin.disconnect();
    }
    const kit = (url: string): string => url.replace('redis://', 'redis://kit:kit@');
    const plan = await planFor(servers, (plan) => {
      plan.fence = 'acl';
      const [shard] = plan.shards as { source: unknown; target: unknown }[];
      [shard.source, shard.target] = [kit(servers.source.url), kit(servers.target.url)];
    });
    const { admin } = await start(t, plan);
    const fence = (...args: string[]): ReturnType<typeof runCommand> =>
      runCommand('fence', args[0], '--admin', admin, ...args.slice(1));
    await direct.set('a', '1');

    const shown = await fence('show');
    assert.equal(shown.code, 0, shown.stderr);
    assert.match(
      shown.stdout,
      /^a: not fenced \(fence: acl in the plan\); default would lose writes; 1 client connected directly as one of them\n {2}nightly at 127\.0\.0\.1:\d+ \(user default, set\), idle for \d+ s\n$/,
    );
    const applied = await fence('apply', '--reason', 'a job still writes');
    assert.equal(applied.code, 0, applied.stderr);
    assert.match(applied.stdout, /^a: fenced since \S+, applied by hand; without writes: default; 1 client/);
    await assert.rejects(direct.set('a', '2'), /NOPERM/);

    const lifted = await fence('lift', '--json');
    assert.equal(lifted.code, 0, lifted.stderr);
    const [{ shard, since, hand }] = JSON.parse(lifted.stdout) as Record<string, unknown>[];
    assert.deepEqual([shard, since, hand], ['a', null, null]);
    assert.equal(await direct.set('a', '2'), 'OK');
    const { stdout } = await runCommand('history', '--admin', admin);
    assert.match(stdout, /fence raised: default, by \S+: a job still writes\n.*fence lifted: default, by /);
  });
});

test('a source on which the kit has no user of its own is not fenced, and the answer says what to do', async (t) => {
  await withServers(async (servers) => {
    const { admin } = await start(t, await planFor(servers));
    const shown = await runCommand('fence', 'show', '--admin', admin);
    assert.equal(shown.code, 0, 'the plan wants no fence');
    const { code, stderr } = await runCommand('fence', 'apply', '--admin', admin);
    assert.equal(code, 1);
    assert.match(stderr, /a: the kit logs in to the source as default.* make a user for the kit/);
  });
});
