/**
 * The adversary's own parts, a short run of it, and every program that once found something.
 *
 * Needs real servers: Lua, HyperLogLog and more that models lack, and programs that once failed on real servers.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findKeydb } from '../../../shadow-proxy/src/local/program.js';
import { generate } from '../adversary/generate.js';
import { argumentAt, EPOCH_MS, type Act, type Program } from '../adversary/program.js';
import { Arena, runProgram } from '../adversary/run.js';
import { shrink } from '../adversary/shrink.js';
import { needs } from '../../../shadow-proxy/test/support/needs.js';

// This file runs from dist/; the programs are not compiled.
const KEPT = fileURLToPath(new URL('../../../../verification/drills/adversary/kept', import.meta.url));

describe('a program', () => {
  test('is the same for the same seed, and another for another', () => {
    assert.deepEqual(generate(7), generate(7));
    assert.notDeepEqual(generate(7).acts, generate(8).acts);
  });

  test('is the same as JSON', () => {
    const program = generate(9);
    assert.deepEqual(JSON.parse(JSON.stringify(program)), program);
  });

  test('has acts of every kind, in the long run', () => {
    const kinds = new Set(Array.from({ length: 20 }, (_, seed) => generate(seed).acts.map((act) => act.do)).flat());
    assert.deepEqual([...kinds].sort(), ['await', 'fault', 'kill', 'leave', 'pause', 'send', 'stage', 'stop-reading']);
  });

  test('is without what it is to be without', () => {
    const acts = Array.from(
      { length: 20 },
      (_, seed) => generate(seed, { without: ['faults', 'scripts', 'half-close'] }).acts,
    ).flat();
    assert.deepEqual(
      acts.filter((act) => act.do === 'fault' || act.do === 'kill' || (act.do === 'leave' && act.how === 'half-close')),
      [],
    );
    assert.deepEqual(
      acts.filter((act) => act.do === 'send' && act.commands.some(([name]) => name.startsWith('EVAL'))),
      [],
    );
  });

  test('has times that are offsets to the moment at which it runs', () => {
    const now = 1_800_000_000_000;
    assert.equal(argumentAt(String(EPOCH_MS + 1_500), now), String(now + 1_500));
    assert.equal(argumentAt(String(EPOCH_MS / 1000 + 60), now), String(now / 1000 + 60));
    assert.equal(argumentAt('9223372036854', now), '9223372036854');
    assert.equal(argumentAt('12', now), '12');
  });
});

describe('shrinking', () => {
  const pause = (ms: number): Act => ({ do: 'pause', ms });
  const program = (acts: readonly Act[]): Program => ({ ...generate(1), acts });

  test('keeps the acts that are needed together, and no other', async () => {
    const needs = (acts: readonly Act[], ...ms: number[]): boolean =>
      ms.every((each) => acts.some((act) => act.do === 'pause' && act.ms === each));
    const shorter = await shrink(program(Array.from({ length: 50 }, (_, ms) => pause(ms))), {
      reproduces: async ({ acts }) => needs(acts, 3, 41),
      isOver: () => false,
    });
    assert.deepEqual(shorter.acts, [pause(3), pause(41)]);
  });

  test('leaves out commands of a send', async () => {
    const send: Act = { do: 'send', client: 0, commands: [['PING'], ['GET', 'k'], ['PING']] };
    const reproduces = async ({ acts }: Program): Promise<boolean> =>
      acts.some((act) => act.do === 'send' && act.commands.some(([name]) => name === 'GET'));
    assert.deepEqual((await shrink(program([pause(1), send]), { reproduces, isOver: () => false })).acts, [
      { do: 'send', client: 0, commands: [['GET', 'k']] },
    ]);
  });

  test('ends when time is up', async () => {
    const acts = [pause(1), pause(2)];
    assert.deepEqual((await shrink(program(acts), { reproduces: async () => true, isOver: () => true })).acts, acts);
  });
});

describe('the proxy, between a real Redis and a real KeyDB', () => {
  let arena: Arena | null = null;
  before(async () => {
    if ((await findKeydb()) !== null) arena = await Arena.open();
  });
  after(() => arena?.close());

  for (const file of readdirSync(KEPT).filter((name) => name.endsWith('.json'))) {
    test(`holds in ${file}, which once found something`, async (t) => {
      if (!(await needs(t, 'keydb'))) return;
      const outcome = await runProgram(arena!, JSON.parse(readFileSync(join(KEPT, file), 'utf8')) as Program);
      assert.deepEqual(outcome.findings, []);
      assert.ok(outcome.operations > 0, 'commands were answered');
    });
  }
});
