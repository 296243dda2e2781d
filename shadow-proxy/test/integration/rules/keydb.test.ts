/**
 * What KeyDB 6.3.4 does by itself to the order of replies and to databases must not show through the proxy.
 *
 * Needs real servers: KeyDB's own order of KEYS and SCAN, and its SWAPDB.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeCommand, type Argument } from '../../../src/resp/encode.js';
import { withRig } from '../../support/rig.js';
import { needs } from '../../support/needs.js';

const KEYS = 2000;
const fill = Array.from({ length: KEYS }, (_, i): Argument[] => ['SET', `k:${i}`, i]);

test('KEYS and SCAN on KeyDB neither overtake the commands around them nor hold them up', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await withRig({ default: { stage: 'live' } }, async (rig) => {
    const [wire, other] = await Promise.all([rig.wire(), rig.wire()]);
    await wire.pipeline(fill);
    for (const [scan, head] of [
      [['KEYS', 'k:*'], `*${KEYS}\r\n`],
      [['SCAN', 0, 'COUNT', 1000], '*2\r\n'],
    ] as [Argument[], string][]) {
      for (let round = 0; round < 30; round++) {
        const before: Argument[][] = [['ECHO', 'before'], ['INCR', 'n'], scan, ['GET', 'k:7'], scan, ['ECHO', 'after']];
        // The other client's commands share the lane, and arrive in pieces while KeyDB scans the keyspace.
        const echoes = (async (): Promise<void> => {
          for (let i = 0; i < 20; i++)
            assert.equal(await other.ask('ECHO', `other ${i}`), `$${`other ${i}`.length}\r\nother ${i}`);
        })();
        const replies = await wire.pipeline(before);
        await echoes;
        assert.equal(replies[0], '$6\r\nbefore');
        assert.match(replies[1], /^:\d+$/);
        assert.ok(replies[2].startsWith(head) && replies[4].startsWith(head), replies[2].slice(0, 40));
        assert.equal(replies[3], '$1\r\n7');
        assert.equal(replies[5], '$5\r\nafter');
      }
    }
    await rig.assertEqual();
  });
});

test('a refusal of KEYS by KeyDB is what the client sees', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const config = { user: 'app on >pw ~* &* +@all -keys' };
  await withRig({ default: { stage: 'live' }, servers: { source: { config }, target: { config } } }, async (rig) => {
    const wire = await rig.wire();
    await wire.ask('AUTH', 'app', 'pw');
    wire.sendBytes(Buffer.concat([['KEYS', '*'], ['KEYS'], ['PING']].map((args) => encodeCommand(args))));
    const [denied, incomplete, pong] = await wire.frames(3);
    assert.match(denied, /^-NOPERM .*keys/);
    assert.match(incomplete, /^-(NOPERM|ERR wrong number of arguments)/);
    assert.equal(pong, '+PONG');
  });
});

for (const stage of ['shadow', 'live'] as const) {
  test(`after SWAPDB every client sees the database that it selected, in ${stage}`, async () => {
    await withRig({ default: { stage } }, async (rig) => {
      const clients = await Promise.all(
        Array.from({ length: 8 }, async (_, i) => {
          const wire = await rig.wire();
          if (i >= 4) await wire.ask('HELLO', 3);
          await wire.ask('SELECT', i % 4);
          return wire;
        }),
      );
      for (const db of [0, 1, 2, 3]) await clients[db].ask('SET', 'who', `db${db}`);
      const holds = [0, 1, 2, 3];
      for (let round = 0; round < 12; round++) {
        const [a, b] = [round % 4, (round * 3 + 1) % 4];
        if (a === b) continue;
        await clients[round % 8].ask('SWAPDB', a, b);
        [holds[a], holds[b]] = [holds[b], holds[a]];
        const seen = await Promise.all(clients.map((client) => client.ask('GET', 'who')));
        assert.deepEqual(
          seen,
          clients.map((_, i) => `$3\r\ndb${holds[i % 4]}`),
        );
        await clients[(round + 3) % 8].ask('APPEND', `trace:${round}`, round);
      }
      await rig.assertEqual();
    });
  });
}
