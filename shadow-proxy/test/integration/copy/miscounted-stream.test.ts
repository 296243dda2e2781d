/**
 * Streams that a server restores and serves although they count their own entries wrongly.
 *
 * Needs real servers: a stream payload whose length is wrong, as each server restores and serves it.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { decodeDump, encodeDump } from '../../../src/copy/rdb/transcode.js';
import { renderJob } from '../../../src/cli/job-progress.js';
import { tampered } from '../rdb/seal.js';
import { ask, ended, job } from '../../support/jobs.js';
import { withRig, type Rig } from '../../support/rig.js';

const KEY = 'stream';
const SURPLUS = 2;

/** A stream of `count` entries, with a group, that says it has two more. */
async function fill({ client, source }: Rig, count: number): Promise<void> {
  const direct = client({ of: source });
  const pipeline = direct.pipeline();
  for (let i = 1; i <= count; i++) pipeline.xadd(KEY, `${i}-0`, 'field', `value ${i}`);
  pipeline.xgroup('CREATE', KEY, 'g', '0').xreadgroup('GROUP', 'g', 'c', 'COUNT', 30, 'STREAMS', KEY, '>');
  await pipeline.exec();
  const number = (n: number): Buffer => Buffer.from([0x40 | (n >> 8), n & 255]);
  // The number of entries, and the last ID, which is as large.
  const honest = Buffer.concat([number(count), number(count), Buffer.from([0])]);
  const payload = tampered(encodeDump(decodeDump((await direct.dumpBuffer(KEY))!), 9), (content) => {
    const at = content.indexOf(honest);
    assert.ok(at > 0 && content.indexOf(honest, at + 1) === -1);
    number(count + SURPLUS).copy(content, at);
  });
  await direct.restore(KEY, 0, payload, 'REPLACE');
  assert.equal(await direct.xlen(KEY), count + SURPLUS);
  assert.equal((await direct.xrange(KEY, '-', '+')).length, count);
}

const held = async (rig: Rig, of: Rig['source']): Promise<unknown> => {
  const direct = rig.client({ of });
  return [await direct.xrange(KEY, '-', '+'), await direct.xpending(KEY, 'g')];
};

for (const [size, count] of [
  ['small', 118],
  ['large', 12_000],
] as const)
  test(`a ${size} stream whose XLEN is not the number of its entries is copied as it is served, and named`, async () => {
    await withRig({ default: { stage: 'shadow' } }, async (rig) => {
      await fill(rig, count);
      ask(rig, { kind: 'backfill' });
      await ended(rig, 60_000);
      const { state, copied, failed, failures, listed } = job(rig);
      assert.deepEqual([state, copied, failed, listed], ['done', 1, 0, { miscounted: 1 }], JSON.stringify(failures));
      assert.match(renderJob({ shard: 'test', job: job(rig) }), /1 stream whose XLEN is not the number of entries/);
      const report = readFileSync(join(rig.shard.stateDir, 'test', 'differences.jsonl'), 'utf8');
      assert.deepEqual([JSON.parse(report).kind, JSON.parse(report).key], ['miscounted', KEY]);
      assert.deepEqual(await held(rig, rig.target), await held(rig, rig.source));
      assert.equal(await rig.client({ of: rig.target }).xlen(KEY), count);

      // Clients go on, repairs work, and a verification finds nothing.
      const client = rig.client();
      await client.xadd(KEY, '*', 'a', 'b');
      await client.xack(KEY, 'g', '1-0');
      // The number differs, which clients see: the key is suspect, and copied again.
      await client.xlen(KEY);
      await rig.shard.settled();
      assert.deepEqual(await held(rig, rig.target), await held(rig, rig.source));
      ask(rig, { kind: 'verify' });
      await ended(rig, 60_000);
      const { differences, unsure, failed: unread, verified } = job(rig);
      assert.deepEqual([differences, unsure, unread, verified], [{}, 0, 0, 1]);
    });
  });
