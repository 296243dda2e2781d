/**
 * Rule 9: a script that the proxy knows runs on a server that never received its text.
 *
 * Needs real servers: SCRIPT LOAD, NOSCRIPT, and scripts that are flushed behind the proxy.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withRig } from '../../support/rig.js';

test('after a change of authority EVALSHA runs on a server that never received the text, alone and in transactions', async () => {
  await withRig({}, async ({ wire, shard, target, client, assertEqual }) => {
    const proxy = await wire();
    // The script cannot be replayed, so that its text is never sent to the mirror.
    const scripts = ['a', 'b', 'c'].map((name) => `redis.call('TIME') return redis.call('APPEND', KEYS[1], '${name}')`);
    const shas: string[] = [];
    for (const [i, script] of scripts.entries()) {
      if (i === 0) shas.push((await proxy.ask('SCRIPT', 'LOAD', script)).split('\r\n')[1]);
      else {
        await proxy.ask('EVAL', script, 1, `k${i}`);
        shas.push((await client({ of: target }).script('LOAD', script)) as string);
      }
    }
    await client({ of: target }).script('FLUSH');
    await shard.settled();
    await shard.shard.changeStage({ workload: 'default', stage: 'live' });
    const replies = await proxy.pipeline([
      ['SET', 'k1', '0'],
      ['EVALSHA', shas[1], 1, 'k1'],
      ['EVALSHA', shas[1].toUpperCase(), 1, 'k1'],
      ['APPEND', 'k1', 'z'],
      ['MULTI'],
      ['EVALSHA', shas[2], 1, 'k1'],
      ['GET', 'k1'],
      ['EXEC'],
    ]);
    assert.deepEqual(replies, ['+OK', ':2', ':3', ':4', '+OK', '+QUEUED', '+QUEUED', '*2\r\n:5\r\n$5\r\n0bbzc']);
    assert.match(await proxy.ask('EVALSHA', 'f'.repeat(40), 1, 'k1'), /^-NOSCRIPT/);
    await assertEqual();
    assert.equal(await proxy.ask('SCRIPT', 'FLUSH'), '+OK');
    assert.match(await proxy.ask('EVALSHA', shas[1], 1, 'k1'), /^-NOSCRIPT/);
    const [, , exec] = await proxy.pipeline([['MULTI'], ['EVALSHA', shas[2], 1, 'k1'], ['EXEC']]);
    assert.match(exec, /^\*1\r\n-NOSCRIPT/);
    await assertEqual();
  });
});

test('a script that was taken from the authority behind the proxy is loaded again for the call after the next', async () => {
  await withRig({}, async ({ wire, source, client, assertEqual }) => {
    const proxy = await wire();
    const sha = (await proxy.ask('SCRIPT', 'LOAD', "return redis.call('INCR', KEYS[1])")).split('\r\n')[1];
    assert.equal(await proxy.ask('EVALSHA', sha, 1, 'n'), ':1');
    await client({ of: source }).script('FLUSH');
    assert.match(await proxy.ask('EVALSHA', sha, 1, 'n'), /^-NOSCRIPT/);
    assert.equal(await proxy.ask('EVALSHA', sha, 1, 'n'), ':2');
    await assertEqual();
  });
});
