/**
 * KeyDB loses what SET … KEEPTTL writes to a key that has expired and is not removed yet.
 *
 * Needs real servers: KeyDB's defect: SET … KEEPTTL on an expired key is lost.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import type { Argument } from '../../../src/resp/encode.js';
import { withRig } from '../../support/rig.js';
import { needs } from '../../support/needs.js';

const SCRIPT = "return redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')";
const GIVEN = "return redis.call('SET', KEYS[1], ARGV[1], ARGV[2])";
const NAMED = "return redis.call('SET', ARGV[2], ARGV[1], 'KEEPTTL')";
const sha = createHash('sha1').update(SCRIPT).digest('hex');

const FORMS: Readonly<Record<string, (key: string) => Argument[][]>> = {
  plain: (key) => [['SET', key, 'new', 'KEEPTTL']],
  'in a transaction': (key) => [['MULTI'], ['SET', key, 'new', 'KEEPTTL'], ['EXEC']],
  'in a transaction, behind a SELECT': (key) => [
    ['SELECT', 5],
    ['MULTI'],
    ['SELECT', 0],
    ['SET', key, 'new', 'KEEPTTL'],
    ['EXEC'],
  ],
  'in a transaction over two databases': (key) => [
    ['SELECT', 5],
    ['MULTI'],
    ['SET', 'other', 1],
    ['SELECT', 0],
    ['SET', key, 'new', 'KEEPTTL'],
    ['EXEC'],
  ],
  'in a script': (key) => [['EVAL', SCRIPT, 1, key, 'new']],
  'in a script, by an argument': (key) => [['EVAL', GIVEN, 1, key, 'new', 'keepttl']],
  'in a script by its digest': (key) => [['EVALSHA', sha, 1, key, 'new']],
  'in a script that declares no key': (key) => [['EVAL', NAMED, 0, 'new', key]],
  'in a script in a transaction': (key) => [['MULTI'], ['EVAL', SCRIPT, 1, key, 'new'], ['EXEC']],
  'with a condition': (key) => [['SET', key, 'new', 'KEEPTTL', 'NX']],
};

for (const stage of ['shadow', 'live'] as const) {
  test(`what SET with KEEPTTL writes to an expired key stays, in ${stage}`, async (t) => {
    if (!(await needs(t, 'target<7.0'))) return;
    await withRig({ default: { stage } }, async ({ wire, client, target, shard, assertEqual }) => {
      const proxy = await wire();
      await proxy.ask('SCRIPT', 'LOAD', SCRIPT);
      await client({ of: target }).call('DEBUG', 'SET-ACTIVE-EXPIRE', '0');
      const keys = Object.keys(FORMS).flatMap((form) => Array.from({ length: 20 }, (_, i) => `${form} ${i}`));
      await proxy.pipeline(keys.map((key) => ['SET', key, 'old', 'PX', 30]));
      await shard.settled();
      // Longer than the keys live. A command that asked for them would delete them.
      await sleep(120);
      for (const [form, commands] of Object.entries(FORMS)) {
        for (let i = 0; i < 20; i++) {
          const reply = (await proxy.pipeline(commands(`${form} ${i}`))).at(-1)!;
          assert.match(reply, /^(\*\d\r\n)?(\+OK(\r\n)?)+$/, form);
        }
      }
      await assertEqual();
      const held = await client({ of: target }).mget(...keys);
      assert.deepEqual(
        keys.filter((_, i) => held[i] !== 'new'),
        [],
      );
      assert.equal(await proxy.ask('TTL', keys[0]), ':-1');
    });
  });
}
