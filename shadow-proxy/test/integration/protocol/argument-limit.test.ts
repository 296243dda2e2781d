/**
 * A command of more arguments than one server takes: refused by its name where that server is in use, and counted.
 *
 * Needs real servers: how many arguments KeyDB takes, and its words.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needs } from '../../support/needs.js';
import { withRig, type Rig } from '../../support/rig.js';
import { partsOf } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';

const MOST = 1_048_576;
/** DEL of so many keys, with its name an argument more. */
const del = (keys: number): Buffer => {
  const part = Buffer.from('$1\r\nk\r\n');
  return Buffer.concat([Buffer.from(`*${keys + 1}\r\n$3\r\nDEL\r\n`), Buffer.alloc(part.length * keys, part)]);
};

const WORKLOADS = { workloads: [{ name: 'w', keys: ['k*'], stage: 'off' }] } as const;
const REFUSED = `-ERR shadow-proxy: DEL has ${MOST + 1} arguments: the target takes at most ${MOST}; send fewer in each command`;

/** Calls that are counted as unsupported by the target, and errors that clients got, so far. */
function counted({ shard }: Rig): unknown {
  const { router, counters } = partsOf(shard.shard);
  const { unsupported } = counters.of(router.named('w')!);
  const calls = [...unsupported].map(([name, { lacks, calls }]) => [name, lacks, calls]);
  return [calls, shard.snapshot().clientErrors.source];
}

test('the limit is that of the servers in use, and follows a stage change for a client that is connected', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await withRig({ ...WORKLOADS, alike: true, default: { stage: 'off' } }, async (rig) => {
    const client = await Wire.open({ port: rig.shard.port });
    try {
      assert.equal(await client.ask('SET', 'k', 'v'), '+OK');
      client.sendBytes(del(MOST));
      assert.equal((await client.frames(1))[0], ':1', 'the source takes any number');
      assert.deepEqual(counted(rig), [[['del of over 1048576 arguments', 'target', 1]], {}]);
      await rig.shard.shard.changeStage({ workload: 'w', stage: 'dualwrite' });
      assert.equal(await client.ask('SET', 'k', 'v'), '+OK');
      client.sendBytes(del(MOST));
      assert.equal((await client.frames(1))[0], REFUSED);
      client.sendBytes(del(MOST - 1));
      assert.equal((await client.frames(1))[0], ':1', 'the connection goes on');
      assert.deepEqual(
        counted(rig),
        [[['del of over 1048576 arguments', 'target', 2]], { PROXY: 1 }],
        'the refusal is not booked on the source',
      );
      await rig.shard.shard.changeStage({ workload: 'w', stage: 'off' });
      client.sendBytes(del(MOST));
      assert.equal((await client.frames(1))[0], ':0', 'and back');
      await rig.shard.shard.changeStage({ workload: 'w', stage: 'dualwrite' });
    } finally {
      client.destroy();
    }
    await rig.assertEqual();
  });
});

test('in a transaction it spoils EXEC, and a broken frame is counted as refused by the proxy', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await withRig({ alike: true }, async (rig) => {
    const client = await Wire.open({ port: rig.shard.port });
    try {
      assert.equal(await client.ask('MULTI'), '+OK');
      client.sendBytes(del(MOST));
      assert.equal((await client.frames(1))[0], REFUSED);
      assert.match(await client.ask('EXEC'), /^-EXECABORT/);
      client.sendBytes(Buffer.from('*x\r\n'));
      assert.match((await client.frames(1))[0], /^-ERR Protocol error: invalid multibulk length/);
      assert.deepEqual(rig.shard.snapshot().clientErrors.source, { EXECABORT: 1, PROXY: 2 });
    } finally {
      client.destroy();
    }
    await rig.assertEqual();
  });
});
