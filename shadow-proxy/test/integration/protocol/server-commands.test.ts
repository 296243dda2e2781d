/**
 * Commands about a server: answered by the authority, refused with what to do, and never left waiting.
 *
 * Needs real servers: the replies and wordings of CONFIG, DEBUG, SAVE and their like.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redisSince } from '../../support/servers.js';
import { withRig } from '../../support/rig.js';
import { needs } from '../../support/needs.js';

for (const stage of ['shadow', 'live'] as const) {
  test(`CONFIG SET is for the authority, and of it only notify-keyspace-events for the mirror, in ${stage}`, async (t) => {
    if (!(await needs(t, 'target<7.0'))) return;
    await withRig({ default: { stage } }, async ({ wire, client, source, target, shard, assertEqual }) => {
      const proxy = await wire();
      const setting = async (name: string): Promise<string[]> =>
        Promise.all([source, target].map(async (of) => ((await client({ of }).config('GET', name)) as string[])[1]));
      assert.equal(await proxy.ask('CONFIG', 'SET', 'notify-keyspace-events', 'Egx'), '+OK');
      await shard.settled();
      assert.deepEqual(await setting('notify-keyspace-events'), ['gxE', 'gxE']);
      const before = await setting('slowlog-max-len');
      assert.equal(await proxy.ask('CONFIG', 'SET', 'slowlog-max-len', '77'), '+OK');
      assert.match(await proxy.ask('CONFIG', 'SET', 'nosuch', '1'), /^-ERR/);
      assert.match(await proxy.ask('CONFIG', 'SET', 'notify-keyspace-events', '?'), /^-ERR/);
      // Of events that only Redis 7 knows, KeyDB will not hear.
      if (stage === 'shadow' && (await redisSince(7, 0)))
        assert.equal(await proxy.ask('CONFIG', 'SET', 'notify-keyspace-events', 'AEn'), '+OK');
      await assertEqual();
      const [onSource, onTarget] = await setting('slowlog-max-len');
      assert.deepEqual([onSource, onTarget], stage === 'shadow' ? ['77', before[1]] : [before[0], '77']);
      assert.equal((await setting('notify-keyspace-events'))[1], 'gxE');
      assert.equal(await proxy.ask('CONFIG', 'RESETSTAT'), '+OK');
      assert.match(
        (await proxy.pipeline([['MULTI'], ['CONFIG', 'SET', 'slowlog-max-len', '7'], ['EXEC']])).at(-1)!,
        /^-EXECABORT/,
      );
    });
  });

  test(`what would change the settings or the users of one server only is refused, in ${stage}`, async () => {
    await withRig({ default: { stage } }, async ({ wire, client, source, target, assertEqual }) => {
      const seen = (): Promise<unknown> =>
        Promise.all(
          [source, target].map(async (of) => {
            const direct = client({ of });
            const parameters = [
              'requirepass',
              'maxmemory',
              'maxmemory-policy',
              'appendonly',
              'save',
              'dir',
              'slowlog-max-len',
              'replica-read-only',
              'maxclients',
            ];
            return [
              await direct.call('ACL', 'LIST'),
              await Promise.all(parameters.map((name) => direct.config('GET', name))),
            ];
          }),
        );
      const before = await seen();
      const proxy = await wire();
      const refused = [
        ...[
          'requirepass secret',
          'REQUIREPASS secret',
          'masterauth x',
          'maxmemory 1',
          'maxmemory-policy allkeys-lru',
          'appendonly yes',
          'dir /tmp',
          'replica-read-only no',
          'maxclients 1',
          'nosuch 1',
        ].map((each) => ['SET', ...each.split(' ')]),
        ['SET', 'save', ''],
        ['SET', 'slowlog-max-len', '9', 'maxmemory', '1'],
        ['set', 'requirepass\r\n+OK', 'x'],
        ['REWRITE'],
      ];
      for (const words of refused)
        assert.match(
          await proxy.ask('CONFIG', ...words),
          /^-ERR shadow-proxy: CONFIG (SET \S+|REWRITE) is not supported.*: .*onnect directly/,
          words.join(' '),
        );
      for (const words of [
        ['SETUSER', 'default', 'off'],
        ['setuser', 'x', 'on', 'nopass'],
        ['DELUSER', 'default'],
        ['LOAD'],
        ['SAVE'],
      ]) {
        assert.match(await proxy.ask('ACL', ...words), /^-ERR shadow-proxy: ACL \S+ is not supported/, words.join(' '));
      }
      for (const call of [
        "'CONFIG','SET','requirepass','x'",
        "'ACL','SETUSER','default','off'",
        "'CONFIG','REWRITE'",
      ]) {
        assert.match(await proxy.ask('EVAL', `return redis.call(${call})`, '0'), /^-.*not allowed from script/);
      }
      for (const command of [
        ['CONFIG', 'SET', 'requirepass', 'x'],
        ['ACL', 'SETUSER', 'default', 'off'],
        ['CONFIG', 'SET', 'notify-keyspace-events', 'KEA'],
      ]) {
        assert.match((await proxy.pipeline([['MULTI'], command, ['EXEC']])).at(-1)!, /^-EXECABORT/);
      }
      await proxy.ask('SUBSCRIBE', 'c');
      assert.match(await proxy.ask('CONFIG', 'SET', 'requirepass', 'x'), /^-ERR/);
      assert.deepEqual(await seen(), before);
      await assertEqual();
    });
  });

  test(`DEBUG, PFDEBUG and the saving of data, in ${stage}`, async (t) => {
    if (!(await needs(t, 'target<7.0'))) return;
    const config = (await redisSince(7, 0)) ? { 'enable-debug-command': 'yes' } : undefined;
    await withRig({ default: { stage }, servers: { source: { config } } }, async ({ wire, assertEqual }) => {
      const proxy = await wire();
      await proxy.pipeline([
        ['SET', 'k', 'v'],
        ['PFADD', 'h', 'a', 'b'],
      ]);
      assert.match(await proxy.ask('DEBUG', 'OBJECT', 'k'), /^\+Value at:/);
      assert.equal(await proxy.ask('DEBUG', 'SLEEP', '0.01'), '+OK');
      assert.match(
        await proxy.ask('DEBUG', 'FLUSHALL'),
        /^-ERR shadow-proxy: DEBUG FLUSHALL is not supported: .*connect directly/,
      );
      assert.equal(await proxy.ask('PFDEBUG', 'TODENSE', 'h'), ':1');
      assert.match(await proxy.ask('PFDEBUG', 'ENCODING', 'h'), /dense/);
      assert.match(await proxy.ask('GET', 'h'), /^\$12304/);
      assert.match(await proxy.ask('BGSAVE'), /^\+Background saving/);
      for (const command of [
        ['SHUTDOWN'],
        ['MONITOR'],
        ['REPLICAOF', 'NO', 'ONE'],
        ['SCRIPT', 'DEBUG', 'YES'],
        ['CLIENT', 'PAUSE', '100'],
        ['CLUSTER', 'MEET', '127.0.0.1', '1'],
        ['ACL', 'SETUSER', 'x'],
        ['SYNC'],
        ['MIGRATE', 'h', '1', 'k', '0', '1'],
      ]) {
        assert.match(await proxy.ask(...command), /^-ERR shadow-proxy: .{40,}/, command.join(' '));
      }
      for (const command of [
        ['LATENCY', 'LATEST'],
        ['SLOWLOG', 'LEN'],
        ['MEMORY', 'USAGE', 'k'],
        ['MODULE', 'LIST'],
        ['OBJECT', 'HELP'],
        ['DEBUG', 'HELP'],
      ]) {
        assert.doesNotMatch(await proxy.ask(...command), /^-/, command.join(' '));
      }
      await assertEqual();
    });
  });
}
