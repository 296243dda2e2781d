/**
 * Scripts of clients whom no server lets run them.
 *
 * Needs real servers: NOPERM for EVAL, and a login that a script text does not outlive.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { withRig } from '../../support/rig.js';
import { partsOf } from '../../support/shard.js';

const MIB = 1 << 20;
const TEXT = "return redis.call('INCR', KEYS[1])";
const SHA = '61636018f4e6b5817b89791bbed242f93fa089e3';
const long = (name: string): string => `return '${name}' --`.padEnd(MIB - 64, 'x');

describe('the text of a script', () => {
  test('is not kept where the server refuses it, and drives out none that it has accepted', () =>
    withRig({}, async (rig) => {
      const { scripts } = partsOf(rig.shard.shard).sequencer;
      const wire = await rig.wire();
      assert.equal(await wire.ask('EVAL', TEXT, 1, 'n'), ':1');
      for (const server of [rig.source, rig.target]) {
        const admin = rig.client({ of: server });
        await admin.call('ACL', 'SETUSER', 'weak', 'on', '>p', '~*', '+@all', '-@scripting');
      }
      const weak = await rig.wire();
      assert.equal(await weak.ask('AUTH', 'weak', 'p'), '+OK');
      for (let i = 0; i < 8; i++) {
        for (const command of [
          ['EVAL', long(`a${i}`), 0],
          ['EVAL_RO', long(`b${i}`), 0],
          ['SCRIPT', 'LOAD', long(`c${i}`)],
        ])
          assert.match(await weak.ask(...command), /^-NOPERM/);
      }
      assert.ok(scripts.bytes < 5 * MIB, `${scripts.bytes}`);
      assert.equal(await wire.ask('EVALSHA', SHA, 1, 'n'), ':2');
      assert.equal(await wire.ask('SCRIPT', 'LOAD', 'return 1'), '$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db');
      assert.equal(await wire.ask('MULTI'), '+OK');
      assert.equal(await wire.ask('SCRIPT', 'LOAD', 'return 2'), '+QUEUED');
      assert.match(await wire.ask('EXEC'), /^\*1/);
      await rig.assertEqual();
      assert.equal(await rig.client({ of: rig.target }).get('n'), '2');
    }));

  test('is not kept of a client that has not logged in', () =>
    withRig({}, async (rig) => {
      const { scripts } = partsOf(rig.shard.shard).sequencer;
      const wire = await rig.wire();
      await wire.ask('PING');
      for (const server of [rig.source, rig.target])
        await rig.client({ of: server }).call('CONFIG', 'SET', 'requirepass', 'p');
      const stranger = await rig.wire();
      for (let i = 0; i < 500; i++) stranger.send('EVAL', `return '${i}' --`.padEnd(16_000, 'x'), 0);
      for (const reply of await stranger.frames(500)) assert.match(reply, /^-NOAUTH/);
      assert.ok(scripts.bytes < 5 * MIB, `${scripts.bytes}`);
    }));
});
