/**
 * leave-keydb.md: back to Redis, and what of KeyDB cannot come along.
 *
 * Needs real servers: what of KeyDB a Redis cannot hold, such as members that expire.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { startRedis } from '../../../src/local/servers.js';
import { planFor, start } from '../cli/running.js';
import { withServers } from '../../support/servers.js';
import { leaveFor, OTHER } from './leaving.js';
import { toolOf } from './stops.js';
import { needs } from '../../support/needs.js';

test('from KeyDB to Redis', { timeout: 1_800_000 }, async (t) => {
  if (await needs(t, 'keydb')) await leaveFor(t, startRedis);
});

test(
  'members that expire are found by the page, for neither copy nor verification can tell',
  { timeout: 300_000 },
  async (t) => {
    await withServers(async ({ source: redis, target: keydb }) => {
      const before = new Redis(keydb.port);
      await before.sadd('other:members', 'a', 'b');
      const running = await start(
        t,
        await planFor({ source: keydb, target: redis }, (planned) =>
          Object.assign(planned, { workloads: [OTHER], knownClients: ['127.0.0.1'] }),
        ),
      );
      const tool = toolOf(t);
      const look = async (): Promise<number | null> =>
        (await tool('runbook', 'leave-keydb', '--step', 'no-member-expires', '--json', '--plan', running.file)).code;
      assert.equal(await look(), 0);
      await before.call('EXPIREMEMBER', 'other:members', 'a', 1000);
      assert.equal(await look(), 1);
      await assert.rejects(running.connect().call('EXPIREMEMBER', 'other:members', 'b', 1000), /only KeyDB has it/);

      // The gate has seen that command pass the proxy by, as it should.
      for (const args of [['promote', 'other', '--force', '--reason', 'it was us'], ['backfill'], ['verify']]) {
        const { code, stdout, stderr } = await tool(...args, '--plan', running.file);
        assert.equal(code, 0, stdout + stderr);
      }
      const copy = new Redis(redis.port);
      assert.deepEqual(
        [(await copy.smembers('other:members')).sort(), await copy.pttl('other:members')],
        [['a', 'b'], -1],
        'as the page says: it is there, for ever',
      );
      for (const client of [before, copy]) client.disconnect();
    });
  },
);
