/** Scripts that a server refuses, or would run in another way. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const INCR = "return redis.call('INCR', KEYS[1])";
/** KeyDB has no NX here. */
const OF_REDIS = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('PEXPIRE', KEYS[1], 60000, 'NX')";

test('A script whose command has an option that only one server knows is not sent to the other', () =>
  KeptWorld.run(
    async (kept) => {
      const client = await kept.client();
      // The clocks of both servers are known by then.
      await kept.pass(5_000);
      const sent: string[] = [];
      kept.target.onCommand = (_address, [name]) => sent.push(name);
      assert.equal(await client.ask(['EVAL', OF_REDIS, '1', 'k', 'v']), 1);
      await kept.until(() => kept.isClean, 'the workload is clean');
      await kept.until(() => kept.target.entry('0 k')?.value === 'v', 'the key is copied');
      assert.ok(!sent.includes('EVAL'));
    },
    {},
    ({ source, target }) => {
      for (const { model } of [source, target])
        model.addScript(OF_REDIS, ({ call, keys, args }) => {
          call('SET', keys[0], args[0]);
          return call('PEXPIRE', keys[0], '60000', 'NX');
        });
    },
  ));

test('A script that was refused to a user is not loaded for others', () =>
  KeptWorld.run(
    async (kept) => {
      const [limited, other] = [await kept.client(), await kept.client()];
      assert.equal(await limited.ask('AUTH limited secret'), '+OK');
      assert.match(String(await limited.ask(['EVAL', INCR, '1', 'k'])), /^-NOPERM/);
      const digest = createHash('sha1').update(INCR).digest('hex');
      assert.match(String(await other.ask(['EVALSHA', digest, '1', 'k'])), /^-NOSCRIPT/);
    },
    {},
    (kept) => {
      for (const server of [kept.source, kept.target]) {
        kept.bypass(server, 'ACL SETUSER limited on >secret ~* &* +@all -eval');
        server.model.addScript(INCR, ({ call, keys }) => call('INCR', keys[0]));
      }
    },
  ));
