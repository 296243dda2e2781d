/**
 * Arguments that Redis takes and V8 cannot make a text of.
 *
 * Needs real servers: an argument of 536,870,900 bytes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withRig } from '../../support/rig.js';

const BYTES = 536_870_900;

test('an argument of 536,870,900 bytes is refused by name, and all clients are served', async () => {
  await withRig({ limits: { totalClientBytes: 2 ** 32, clientOutputBytes: 2 ** 32 } }, async (rig) => {
    const huge = Buffer.alloc(BYTES, 'x');
    const other = await rig.wire();
    for (const before of [['CLIENT', 'SETNAME'], ['EVAL'], ['AUTH'], ['SUBSCRIBE'], ['NOSUCH'], ['GET']]) {
      const wire = await rig.wire();
      wire.send(...before, huge, ...(before[0] === 'EVAL' ? [0] : []));
      assert.match(await wire.frame(120_000), /^-ERR shadow-proxy: .* bytes: at most \d+ are allowed$/, before[0]);
      assert.equal(await other.ask('PING'), '+PONG');
      wire.destroy();
    }
  });
});
