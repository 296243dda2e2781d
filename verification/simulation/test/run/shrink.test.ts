/** A finding is made small. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROFILES } from '../../run/profiles.js';
import { linesOf } from '../../run/program.js';
import { simulate } from '../../run/run.js';
import { shrink } from '../../run/shrink.js';
import { ModelServer } from '../../server/server.js';

const profile = PROFILES.find(({ name }) => name === 'cuts')!;

test('A program is replayed: the same commands and faults at the same moments', async () => {
  const run = await simulate({ seed: 1, profile, operations: 300 });
  const repetition = await simulate({ seed: 1, profile, operations: 0, program: run.program });
  assert.equal(repetition.finding, null);
  assert.deepEqual(linesOf(repetition.program), linesOf(run.program));
});

test('A finding is made small: of 1,500 commands and faults, two or three commands are left', async (t) => {
  const { process } = ModelServer.prototype;
  t.after(() => void (ModelServer.prototype.process = process));
  // A KeyDB that pushes at the other end.
  ModelServer.prototype.process = function (client, args) {
    const isBroken = this.engine === 'keydb' && args[0] === 'LPUSH';
    process.call(this, client, isBroken ? ['RPUSH', ...args.slice(1)] : args);
  };
  const result = await simulate({ seed: 1, profile, operations: 1_500 });
  assert.match(result.finding!, /^a key differs/);
  const small = await shrink(profile, result, 60);
  const lines = linesOf(small!.program);
  assert.match(lines[0], /nothing arrives late/);
  assert.ok(lines.length <= 4, lines.join('\n'));
  assert.ok(lines.some((line) => line.includes('LPUSH')));
});
