/**
 * SCRIPT KILL and FUNCTION KILL: they reach the server although the lane waits for the script.
 *
 * Needs real servers: BUSY, SCRIPT KILL and FUNCTION KILL, and their wordings.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withRig } from '../../support/rig.js';
import { needs } from '../../support/needs.js';
import { until } from '../../support/shard.js';

const USERS = { user: 'narrow on >pw ~* &* +@all -script|kill' };

for (const stage of ['shadow', 'live'] as const) {
  test(`a script that does not end is killed by another client, if its user may, in ${stage}`, async (t) => {
    // In `shadow` a user is denied a subcommand, and a function is killed.
    if (stage === 'shadow' && !(await needs(t, 'redis>=7.0'))) return;
    const config = { 'lua-time-limit': 50 };
    const narrow = stage === 'shadow' ? USERS : {};
    await withRig(
      { default: { stage }, servers: { source: { config: { ...config, ...narrow } }, target: { config } } },
      async ({ wire, assertEqual, source, target }) => {
        const [running, other] = [await wire(), await wire()];
        const direct = await wire(stage === 'live' ? target : source);
        const untilBusy = (): Promise<void> => until(async () => (await direct.ask('PING')).startsWith('-BUSY'));
        assert.equal(await other.ask('SCRIPT', 'KILL'), '-NOTBUSY No scripts in execution right now.');
        if (stage === 'shadow') assert.equal(await other.ask('AUTH', 'narrow', 'pw'), '+OK');
        running.send('EVAL', 'while true do end', 1, 'k');
        await untilBusy();
        if (stage === 'shadow') {
          assert.match(await other.ask('SCRIPT', 'KILL'), /^-NOPERM/);
          await other.ask('RESET');
        }
        assert.equal(await other.ask('SCRIPT', 'KILL'), '+OK');
        assert.match(await running.frame(), /^-ERR .*Script killed by user/);
        assert.equal(await running.ask('PING'), '+PONG');
        assert.match((await other.pipeline([['MULTI'], ['SCRIPT', 'KILL'], ['EXEC']])).at(-1)!, /^-EXECABORT/);
        if (stage === 'shadow') {
          await running.ask(
            'FUNCTION',
            'LOAD',
            "#!lua name=l\nredis.register_function('f', function() while true do end end)",
          );
          running.send('FCALL', 'f', 1, 'k');
          await untilBusy();
          assert.equal(await other.ask('FUNCTION', 'KILL'), '+OK');
          assert.match(await running.frame(), /^-ERR .*Script killed by user/);
        }
        await assertEqual();
      },
    );
  });
}
