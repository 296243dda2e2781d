/**
 * What Redis 8.2 to 8.6 have and KeyDB has not: both servers hold the same afterwards.
 *
 * Needs real servers: commands of Redis 8.2 to 8.6, where such a server is installed.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Argument } from '../../../src/resp/encode.js';
import { needs } from '../../support/needs.js';
import { withRig } from '../../support/rig.js';

/** `s` has five entries; group `g` has read three of them, and group `h` one. */
const SEED: readonly (readonly Argument[])[] = [
  ...[1, 2, 3, 4, 5].map((n) => ['XADD', 's', `${n}-0`, 'f', n] as const),
  ['XGROUP', 'CREATE', 's', 'g', 0],
  ['XGROUP', 'CREATE', 's', 'h', 0],
  ['XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', 3, 'STREAMS', 's', '>'],
  ['XREADGROUP', 'GROUP', 'h', 'c', 'COUNT', 1, 'STREAMS', 's', '>'],
  ['SET', 'k', 'v'],
];

const CALLS: readonly (readonly Argument[])[] = [
  ['SET', 'k', 'w', 'IFEQ', 'v'],
  ['SET', 'k', 'x', 'IFNE', 'w'],
  ['SET', 'k', 'y', 'IFNE', 'other', 'GET', 'EX', 1_000],
  ['SET', 'new', 'y', 'IFNE', 'other'],
  ['DIGEST', 'k'],
  ['SET', 'k', 'z', 'IFDEQ', '0000000000000000'],
  ['SET', 'k', 'z', 'IFDNE', '0000000000000000'],
  ['DELEX', 'k', 'IFEQ', 'other'],
  ['DELEX', 'k', 'IFNE', 'other'],
  ['MSETEX', 2, 'a', 1, 'b', 2, 'EX', 1_000],
  ['MSETEX', 1, 'a', 3, 'NX'],
  ['DELEX', 'a'],
  ['XACKDEL', 's', 'g', 'IDS', 2, '2-0', '9-0'],
  ['XACKDEL', 's', 'g', 'ACKED', 'IDS', 1, '1-0'],
  ['XACKDEL', 's', 'h', 'DELREF', 'IDS', 1, '1-0'],
  ['XDELEX', 's', 'KEEPREF', 'IDS', 2, '3-0', '7-0'],
  ['XDELEX', 's', 'ACKED', 'IDS', 1, '4-0'],
  ['XDELEX', 's', 'DELREF', 'IDS', 1, '5-0'],
  ['XADD', 's', 'IDMP', 'producer', 'message', '*', 'f', 'v'],
  ['XADD', 's', 'IDMP', 'producer', 'message', '*', 'f', 'v'],
  ['XADD', 's', 'IDMPAUTO', 'producer', '*', 'f', 'w'],
  ['XADD', 's', 'KEEPREF', 'MAXLEN', 4, '*', 'f', 'x'],
  ['XADD', 's', 'MAXLEN', 3, 'DELREF', '*', 'f', 'y'],
  ['XCFGSET', 's', 'IDMP-DURATION', 60],
  ['XREADGROUP', 'GROUP', 'g', 'd', 'CLAIM', 0, 'STREAMS', 's', '>'],
  ['XREADGROUP', 'GROUP', 'g', 'd', 'CLAIM', 1_000_000, 'BLOCK', 20, 'STREAMS', 's', '>'],
  ['XTRIM', 's', 'MAXLEN', 2, 'KEEPREF'],
  ['XTRIM', 's', 'MAXLEN', 1, 'ACKED'],
  ['XTRIM', 's', 'MAXLEN', 1, 'DELREF'],
  ['HOTKEYS', 'GET'],
];

for (const transaction of [false, true]) {
  test(`each is on both servers what it is on the source${transaction ? ', in MULTI' : ''}`, async (t) => {
    if (!(await needs(t, 'redis>=8.6'))) return;
    await withRig({}, async (rig) => {
      const wire = await rig.wire();
      const bystander = rig.client();
      for (const command of SEED) await wire.ask(...command);
      for (const command of CALLS) {
        const shown = command.join(' ');
        const asked = transaction ? [['MULTI'], command, ['EXEC']] : [command];
        for (const each of asked) assert.doesNotMatch(await wire.ask(...each), /^-/, shown);
        assert.equal(await bystander.echo('x'), 'x');
        await rig.shard.settled();
        await rig.assertEqual();
      }
      const { unsupported: _, ...others } = rig.shard.snapshot().mismatches;
      assert.deepEqual(others, {}, JSON.stringify(rig.shard.findings()));
    });
  });
}

test('what may harm a server, or belongs to one connection, is refused by name', async (t) => {
  if (!(await needs(t, 'redis>=8.6'))) return;
  await withRig({}, async (rig) => {
    const wire = await rig.wire();
    for (const command of [
      ['TRIMSLOTS', 'RANGES', 1, 0, 5],
      ['CLUSTER', 'MIGRATION', 'IMPORT', 0, 5],
      ['HIMPORT', 'PREPARE', 'set', 'field'],
    ])
      assert.match(await wire.ask(...command), /^-ERR (shadow-proxy: .* is not supported yet|unknown command)/);
  });
});

test('a digest of a wrong length gives no client the reply of another one', async (t) => {
  if (!(await needs(t, 'redis>=8.6'))) return;
  await withRig({}, async (rig) => {
    const [wire, bystander] = [await rig.wire(), rig.client()];
    await wire.ask('SET', 'k', 'v');
    for (let i = 0; i < 5; i++) {
      assert.match(await wire.ask('SET', 'k', 'w', 'IFDNE', '1', 'GET'), /^-ERR shadow-proxy: a digest/);
      await bystander.set('other', `of the bystander ${i}`);
      assert.equal(await bystander.get('other'), `of the bystander ${i}`);
    }
    assert.match(await wire.ask('MULTI'), /^\+OK/);
    assert.match(await wire.ask('SET', 'k', 'w', 'IFDNE', '1', 'GET'), /^-ERR shadow-proxy: a digest/);
    assert.match(await wire.ask('EXEC'), /^-EXECABORT/);
    assert.match(await wire.ask('GET', 'k'), /v/);
    await rig.assertEqual();
  });
});
