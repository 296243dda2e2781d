/**
 * A share of the reads is compared where the plan says so; writes and transactions always are.
 *
 * Not simulated yet: shadowReads in shadow and live, with exact counts of what was compared.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderShard } from '../../../src/cli/status.js';
import type { ShardFacts } from '../../../src/report/contents.js';
import { notCovered } from '../../../src/report/uncovered.js';
import { encodeCommand } from '../../../src/resp/encode.js';
import { withRig, type Rig } from '../../support/rig.js';

const READS = 2_000;
/** More than six standard deviations of 20 % of so many reads. */
const [LEAST, MOST] = [290, 510];

/** How many times the target has run the command. */
async function callsAt(rig: Rig, command: string): Promise<number> {
  const stats = await (await rig.wire(rig.target)).ask('INFO', 'commandstats');
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

async function read(rig: Rig, command: readonly string[] = ['GET', 'k']): Promise<void> {
  const wire = await rig.wire();
  const sent = Buffer.concat(Array.from({ length: READS }, () => encodeCommand(command)));
  wire.sendBytes(sent);
  await wire.frames(READS);
  await rig.shard.settled();
}

test('one read of five is sent to the target, each write is, and only pairs count as compared', () =>
  withRig({ plan: { default: { stage: 'shadow', shadowReads: '20 %' } } }, async (rig) => {
    const wire = await rig.wire();
    for (let i = 0; i < 100; i++) assert.equal(await wire.ask('SET', 'k', `${i}`), '+OK');
    await read(rig);
    const gets = await callsAt(rig, 'get');
    assert.ok(gets >= LEAST && gets <= MOST, `${gets} of ${READS}`);
    assert.equal(await callsAt(rig, 'set'), 100);
    const [{ reads, writes, compared, shadowReads }] = rig.shard.snapshot().workloads;
    assert.deepEqual([reads, writes, shadowReads], [READS, 100, 20]);
    assert.equal(compared, gets + 100);
    assert.match(renderShard(rig.shard.snapshot()), /^default: 20 % of reads compared \(shadowReads of the plan\)$/m);
    const evidence = await rig.shard.shard.evidence();
    const facts = { from: 'proxy', snapshot: rig.shard.snapshot(), evidence, job: null } as unknown as ShardFacts;
    assert.ok(notCovered(facts).some((line) => line.startsWith('default: 20 % of reads compared')));
    await rig.assertEqual();
  }));

test('also reads of several keys; reads of a transaction are all sent', () =>
  withRig({ plan: { default: { stage: 'shadow', shadowReads: 20 } } }, async (rig) => {
    await read(rig, ['MGET', 'a', 'b']);
    const several = await callsAt(rig, 'mget');
    assert.ok(several >= LEAST && several <= MOST, `${several} of ${READS}`);
    const wire = await rig.wire();
    for (let i = 0; i < 20; i++) await wire.pipeline([['MULTI'], ['INCR', 'n'], ['GET', 'n'], ['EXEC']]);
    await rig.shard.settled();
    assert.equal(await callsAt(rig, 'get'), 20);
    await rig.assertEqual();
  }));

test('a key that differs is found by the reads that are sent, and repaired', () =>
  withRig({ plan: { default: { stage: 'shadow', shadowReads: 20 } } }, async (rig) => {
    const client = await rig.wire();
    assert.equal(await client.ask('SET', 'k', 'v'), '+OK');
    await rig.shard.settled();
    const target = await rig.wire(rig.target);
    assert.equal(await target.ask('SET', 'k', 'other'), '+OK');
    await read(rig);
    assert.equal(await target.ask('GET', 'k'), '$1\r\nv');
    assert.ok(Object.values(rig.shard.snapshot().mismatches).reduce((sum, count) => sum + count, 0) > 0);
  }));

test('while the target answers, the source gets all reads', () =>
  withRig({ plan: { default: { stage: 'live', shadowReads: 20 } } }, async (rig) => {
    await read(rig);
    const stats = await (await rig.wire(rig.source)).ask('INFO', 'commandstats');
    assert.match(stats, new RegExp(`cmdstat_get:calls=${READS},`));
  }));

test('a reload of the plan changes the share', () =>
  withRig({ plan: { default: { stage: 'shadow', shadowReads: 20 } } }, async (rig) => {
    const { plan } = rig.shard;
    rig.shard.shard.reload({ ...plan, default: { ...plan.default, shadowReads: 100 } });
    await read(rig);
    assert.equal(await callsAt(rig, 'get'), READS);
    assert.equal(rig.shard.snapshot().workloads[0].shadowReads, undefined);
  }));
