/** Found by `npm run simulate -- --profile troubles`. A real server is seldom busy for just the one command. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { KeptWorld } from '../../kept/world.js';

const SCRIPT = "return redis.call('INCR', KEYS[1])";

test('A mirror that refused the text of a script is given it again, and nothing is a mismatch', () =>
  KeptWorld.run(async (kept) => {
    for (const { model } of [kept.source, kept.target])
      model.addScript(SCRIPT, ({ call, keys }) => call('INCR', keys[0]));
    const client = await kept.client();
    kept.target.model.refuse((_, name) => (name.startsWith('eval') ? 'BUSY KeyDB is busy running a script.' : null));
    await client.ask(['EVAL', SCRIPT, '1', 'n']);
    await kept.until(() => kept.proxy.snapshot()!.suspects.total === 1, 'the mirror has refused it');
    kept.target.model.refuse(() => null);
    const digest = createHash('sha1').update(SCRIPT).digest('hex');
    for (let i = 0; i < 2; i++) {
      await kept.pass(500);
      await client.ask(['EVALSHA', digest, '1', 'n']);
    }
    await kept.pass(500);
    assert.deepEqual(kept.proxy.snapshot()!.mismatches, {});
    assert.deepEqual(kept.values('0 n'), ['3', '3']);
  }));
