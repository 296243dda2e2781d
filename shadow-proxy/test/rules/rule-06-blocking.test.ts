/** Rule 6, as far as it goes yet: a command that would block is refused at once, everywhere, and says what to do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needsKeydb } from '../support/servers.js';
import { withScene } from './scene.js';

const BLOCKING: readonly (readonly (string | number)[])[] = [
  ['BLPOP', 'l', 0],
  ['brpop', 'l', 'l2', 0],
  ['BLMOVE', 'l', 'l2', 'LEFT', 'RIGHT', 0],
  ['BRPOPLPUSH', 'l', 'l2', 0],
  ['BLMPOP', 0, 1, 'l', 'LEFT'],
  ['BZPOPMIN', 'z', 0],
  ['BZPOPMAX', 'z', 0],
  ['BZMPOP', 0, 1, 'z', 'MIN'],
  ['XREAD', 'COUNT', 1, 'BLOCK', 0, 'STREAMS', 'x', '$'],
  ['XREADGROUP', 'GROUP', 'g', 'c', 'block', 0, 'STREAMS', 'x', '>'],
  ['WAIT', 1, 0],
];
const REFUSED = /^-ERR shadow-proxy: ([A-Z]+)( with BLOCK)? is not supported yet: \S+/;

for (const stage of ['shadow', 'live', 'off'] as const) {
  test(`blocking commands are refused in both protocols, in and outside MULTI, in stage ${stage}`, async (t) => {
    if (!(await needsKeydb(t))) return;
    await withScene({ default: { stage } }, async (scene) => {
      for (const protocol of [2, 3]) {
        const wire = await scene.wire();
        await wire.ask('HELLO', protocol);
        // There is something to pop: they are refused all the same, and nothing is popped.
        await wire.pipeline([['DEL', 'l', 'z', 'x'], ['RPUSH', 'l', 'a'], ['ZADD', 'z', 1, 'a'], ['XADD', 'x', '1-1', 'f', 'v']]);
        for (const command of BLOCKING) {
          const [refusal, after] = await wire.pipeline([command, ['ECHO', 'after']]);
          assert.match(refusal, REFUSED);
          assert.equal(REFUSED.exec(refusal)?.[1], String(command[0]).toUpperCase());
          assert.equal(after, '$5\r\nafter');
          const inMulti = await wire.pipeline([['MULTI'], ['INCR', 'never'], command, ['EXEC'], ['ECHO', 'after']]);
          assert.deepEqual([inMulti[0], inMulti[1], inMulti[3].slice(0, 10), inMulti[4]], ['+OK', '+QUEUED', '-EXECABORT', '$5\r\nafter']);
          assert.match(inMulti[2], REFUSED);
        }
        assert.deepEqual(await wire.pipeline([['LLEN', 'l'], ['ZCARD', 'z'], ['XLEN', 'x'], ['EXISTS', 'never']]), [':1', ':1', ':1', ':0']);
        // Without BLOCK they are as any other.
        assert.match(await wire.ask('XREAD', 'COUNT', 1, 'STREAMS', 'x', '0'), /^[*%]1/);
      }
      if (stage !== 'off') await scene.assertEqual();
    });
  });
}

test('inline commands that would block are refused, and a script may not block by itself', async (t) => {
  if (!(await needsKeydb(t))) return;
  await withScene({}, async (scene) => {
    const wire = await scene.wire();
    wire.sendBytes('BLPOP l 0\r\nXREAD BLOCK 0 STREAMS x $\r\nPING\r\n');
    const [first, second, third] = await wire.frames(3);
    assert.match(first, REFUSED);
    assert.match(second, REFUSED);
    assert.equal(third, '+PONG');
    assert.match(await wire.ask('EVAL', "return redis.call('BLPOP', KEYS[1], 0)", 1, 'l'), /^(\$-1|-ERR)/);
    await scene.assertEqual();
  });
});
