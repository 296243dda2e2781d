/**
 * Errors that clients get are counted by the server that answered and by code.
 *
 * Needs real servers: error codes and wordings of both servers.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { originsOf } from '../../../src/telemetry/error-origins.js';
import { withRig } from '../../support/rig.js';

test('errors are counted by server and code, for refusals by the server, by its login and by the proxy', async () => {
  const workloads = [{ name: 'moved', keys: ['m:*'], stage: 'shadow' as const }];
  const user = ['reader on >pw ~r:* &* +get +ping'];
  await withRig({ workloads, servers: { source: { config: { user } } } }, async ({ wire, shard }) => {
    await shard.shard.promote({
      ...{ workload: 'moved', to: 'live', percent: 100 },
      ...{ force: true, forceUsers: true, reason: 'the test' },
    });
    const client = await wire();
    await client.ask('SET', 's', 'x');
    await client.ask('LPUSH', 's', 'x');
    await client.ask('SHUTDOWN');
    await client.ask('AUTH', 'reader', 'wrong');
    await client.ask('AUTH', 'reader', 'pw');
    await client.ask('GET', 's');
    // KeyDB does not have this user.
    assert.match(await client.ask('GET', 'm:1'), /^-WRONGPASS/);
    await client.ask('GET', 'm:2');
    assert.deepEqual(shard.snapshot().clientErrors, {
      source: { WRONGTYPE: 1, PROXY: 1, WRONGPASS: 1, NOPERM: 1 },
      target: { WRONGPASS: 2 },
    });
    assert.equal(await client.ask('GET', 'r:none'), '$-1');
    const origins = shard
      .snapshot()
      .clientErrorOrigins.map(({ side, kind, command, client: of, count }) =>
        [side, kind, command, of, count].join(' '),
      );
    assert.deepEqual(origins.sort(), [
      'source NOPERM get 127.0.0.1 1',
      'source PROXY shutdown 127.0.0.1 1',
      'source WRONGPASS auth 127.0.0.1 1',
      'source WRONGTYPE lpush 127.0.0.1 1',
      'target WRONGPASS get 127.0.0.1 2',
    ]);
  });
});

test('an error names the client by its name, and the command by its subcommand', async () => {
  await withRig({}, async ({ wire, shard }) => {
    const client = await wire();
    await client.ask('CLIENT', 'SETNAME', 'checkout');
    await client.ask('CLIENT', 'SETINFO', 'LIB-NAME');
    await client.ask('CLIENT', 'MAINT_NOTIFICATIONS', 'ON');
    await client.ask('CLIENT', 'pass:word');
    await client.ask('NOTHING', 'secret');
    const origins = shard.snapshot().clientErrorOrigins.map(({ command, client: of }) => `${command} of ${of}`);
    assert.deepEqual(origins.sort(), [
      'client maint_notifications of checkout',
      'client setinfo of checkout',
      'unknown command of checkout',
    ]);
    const shown = originsOf(shard.snapshot().clientErrorOrigins, 'source');
    assert.match(shown, /2 UNKNOWN COMMAND of checkout/);
    const [, note] = shown.split('Harmless');
    assert.match(note, /CLIENT SETINFO: .*CLIENT MAINT_NOTIFICATIONS: /);
    assert.doesNotMatch(note, /UNKNOWN/);
  });
});

test('a client that makes up error codes does not grow the count without bound', async () => {
  await withRig({}, async ({ wire, shard }) => {
    const client = await wire();
    await client.pipeline(Array.from({ length: 300 }, (_, i) => ['EVAL', `return {err='CODE${i} x'}`, '0']));
    const { source } = shard.snapshot().clientErrors;
    assert.equal(Object.keys(source).length, 101);
    assert.equal(source['(other)'], 200);
    assert.equal(shard.snapshot().clientErrorOrigins.length, 50);
  });
});
