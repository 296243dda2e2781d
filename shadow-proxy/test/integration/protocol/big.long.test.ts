/**
 * The largest value that Redis takes.
 *
 * Needs real servers: a value of 512 MiB, and the error for one byte more.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { test } from 'node:test';
import { encodeCommand } from '../../../src/resp/encode.js';
import { startRig } from '../../support/rig.js';

/** The digest of a value that is too long for a string. */
function hashOfGet(port: number, key: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const hash = createHash('sha1');
    const header = `$${512 << 20}\r\n`;
    let seen = 0;
    socket.on('error', reject);
    socket.on('data', (chunk: Buffer) => {
      const from = Math.max(0, header.length - seen);
      const to = Math.min(chunk.length, header.length + (512 << 20) - seen);
      if (to > from) hash.update(chunk.subarray(from, to));
      seen += chunk.length;
      if (seen < header.length + (512 << 20) + 2) return;
      socket.destroy();
      resolve(hash.digest('hex'));
    });
    socket.write(encodeCommand(['GET', key]));
  });
}

test('a value of 512 MiB goes through, and one byte more is refused as Redis does', async () => {
  const rig = await startRig({
    limits: { queueBytes: 2 ** 30, totalClientBytes: 2 ** 32, clientOutputBytes: 2 ** 32 },
  });
  try {
    const wire = await rig.wire();
    const value = Buffer.alloc(512 << 20, 'abcdefghij');
    wire.send('SET', 'huge', value);
    assert.equal(await wire.frame(120_000), '+OK');
    assert.equal(await wire.ask('STRLEN', 'huge'), `:${512 << 20}`);
    assert.equal(await wire.ask('GETRANGE', 'huge', -5, -1), '$5\r\nhijab');
    assert.equal(await hashOfGet(rig.shard.port, 'huge'), createHash('sha1').update(value).digest('hex'));
    await rig.shard.settled(120_000);
    const behind = rig.client({ of: rig.target });
    assert.equal(await behind.strlen('huge'), 512 << 20);
    assert.equal((await behind.getrange('huge', -5, -1)).toString(), 'hijab');
    assert.deepEqual(rig.shard.snapshot().mismatches, {});
    const over = await rig.wire();
    over.sendBytes(`*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$${(512 << 20) + 1}\r\n`);
    assert.equal(await over.frame(), '-ERR Protocol error: invalid bulk length');
    await over.closed;
  } finally {
    await rig.stop();
  }
});
