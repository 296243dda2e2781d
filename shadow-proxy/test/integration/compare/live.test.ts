/**
 * The rules on two real servers with the same data: which replies match, which rule allows others, and a mismatch.
 *
 * Needs real servers: replies of Redis and KeyDB to hundreds of commands, compared by each rule.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { compareExec, compareReplies, RULES } from '../../../src/compare/compare.js';
import { redisSince, targetHas, targetIsKeydb, withServers } from '../../support/servers.js';
import { READS_AND_WRITES, REFUSALS, SETUP } from './battery.js';
import { inShort, mirrored } from './frames.js';
import { RawConnection, view, wordsOf } from './raw.js';
import { needs } from '../../support/needs.js';

const LIMITS = { ttlMs: 1000 };
const lines = (text: string): string[] => text.split('\n').filter((line) => line.trim() !== '');

test('hundreds of commands get the verdict that is written beside them, in both protocols and both directions', async (t) => {
  if (!(await needs(t, 'redis=7.0', 'target<7.0'))) return;
  const seen = new Set<string>();
  await withServers(
    async ({ source, target }) => {
      for (const protocol of [2, 3] as const) {
        for (const battery of [READS_AND_WRITES, REFUSALS]) {
          const redis = await RawConnection.open(source, protocol);
          const keydb = await RawConnection.open(target, protocol);
          const setup = ['FLUSHALL', ...lines(SETUP)].map(wordsOf);
          const expected = await Promise.all(setup.map((words) => redis.ask(...words)));
          // Reads that only one of them gets differ.
          await redis.ask('PFCOUNT', 'counted');
          // So does what depends on time.
          await sleep(20);
          assert.deepEqual(await Promise.all(setup.map((words) => keydb.ask(...words))), expected);
          for (const line of lines(battery)) {
            const [, expected, command] = /^(\S+) \| (.*)$/.exec(line)!;
            const words = wordsOf(command);
            const [a, b] = await Promise.all([redis.ask(...words), keydb.ask(...words)]);
            const verdict = inShort(compareReplies(view(words), a, b, LIMITS));
            const shown = `${command} in RESP${protocol}\n${a.toString('latin1', 0, 300)}\n${b.toString('latin1', 0, 300)}`;
            if (verdict !== 'match' || /^[=!]/.test(expected))
              assert.equal(verdict, expected === '=' ? 'match' : expected, shown);
            assert.equal(inShort(compareReplies(view(words), b, a, LIMITS)), mirrored(verdict), shown);
            seen.add(verdict);
          }
          redis.close();
          keydb.close();
        }
      }
    },
    { source: { config: { 'enable-debug-command': 'yes' } } },
  );
  // KeyDB estimates nothing. Of what stands in for it, only Redis 6.2 differs so from Redis 7.0, and not in its nulls.
  const keydb = await targetIsKeydb();
  if (!keydb && ((await targetHas('redis', '7.0')) || !(await redisSince(7, 0)))) return;
  const never = ['estimates', ...(keydb ? [] : ['null-form'])];
  for (const { name } of RULES.filter((rule) => !never.includes(rule.name)))
    assert.ok(seen.has(name), `no pair for ${name}`);
});

test('a transaction is judged command by command', async (t) => {
  if (!(await needs(t, 'target<7.0'))) return;
  await withServers(async ({ source, target }) => {
    const redis = await RawConnection.open(source);
    const keydb = await RawConnection.open(target);
    const members = Array.from({ length: 600 }, (_, i) => `m${i}`);
    for (const connection of [redis, keydb]) {
      await connection.ask('SADD', 'set', ...members);
      await connection.ask('RPUSH', 'list', 'a', 'b');
    }
    const exec = async (...commands: string[]): Promise<[ReturnType<typeof view>[], Buffer, Buffer]> => {
      const replies: Buffer[] = [];
      for (const connection of [redis, keydb]) {
        await connection.ask('MULTI');
        for (const command of commands) await connection.ask(...wordsOf(command));
        replies.push(await connection.ask('EXEC'));
      }
      return [commands.map((command) => view(wordsOf(command))), replies[0], replies[1]];
    };
    const judge = async (...commands: string[]): Promise<string> => {
      const { verdict, index } = compareExec(...(await exec(...commands)), LIMITS);
      return `${inShort(verdict)} ${index}`;
    };
    assert.equal(await judge('LRANGE list 0 -1', 'GET nosuch', 'LPUSH nosuch a'), 'match null');
    assert.equal(await judge('LLEN list', 'SMEMBERS set', 'LLEN list'), 'unordered 1');
    // KeyDB has the words of Redis 6.2.
    const sameWords = !(await redisSince(7, 0));
    assert.equal(await judge('SETEX k 0 v', 'LLEN list'), sameWords ? 'match null' : 'error-wording 0');
    await keydb.ask('SET', 'only-keydb', 'x');
    assert.equal(
      await judge('SMEMBERS set', 'LLEN list', 'GET only-keydb', 'SRANDMEMBER set'),
      '!missing-on-authority 2',
    );
    assert.equal(await judge("EVAL \"return redis.call('smembers','set')\" 0", 'SMEMBERS set'), '?script-order 0');
    assert.equal(await judge('NOSUCH', 'SET a b'), 'match null');
    const [views, a, b] = await exec('LLEN list', 'TTL list');
    assert.equal(inShort(compareExec(views, a, Buffer.from('*-1\r\n'), LIMITS).verdict), '!type');
    assert.equal(inShort(compareExec(views, a, Buffer.from('*1\r\n:2\r\n'), LIMITS).verdict), '!length');
    const asOne = { name: 'exec', args: [Buffer.from('EXEC')], inner: views };
    assert.equal(inShort(compareReplies(asOne, a, b, LIMITS)), 'match');
    assert.equal(inShort(compareReplies(asOne, a, Buffer.from('*2\r\n:2\r\n:-2\r\n'), LIMITS)), '!missing-on-mirror');
    const { authority, mirror } = compareExec(views, a, Buffer.from('*2\r\n:2\r\n:-2\r\n'), LIMITS);
    assert.deepEqual([String(authority), String(mirror)], [':-1\r\n', ':-2\r\n']);
    redis.close();
    keydb.close();
  });
});
