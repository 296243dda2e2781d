/**
 * Rule 24: whether the other server supports what clients use is decided by what they sent, in every stage.
 *
 * Needs real servers: the errors of commands and options that one server lacks.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startRedis, type LocalServer } from '../../../src/local/servers.js';
import type { Stage } from '../../../src/route/stage.js';
import { startOn, withRig } from '../../support/rig.js';
import { redisSince, startTestTarget, targetIsKeydb, withServers } from '../../support/servers.js';
import { startTestShard } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';
import { missing, needs } from '../../support/needs.js';

const skip = await missing('redis>=7.0', 'keydb');

/** Each with the form that it is counted as; those with null both servers support, or both refuse. */
const CALLS: readonly (readonly [call: string, form: string | null])[] = [
  ['LMPOP 1 list LEFT', 'lmpop'],
  ['lmpop 1 list right COUNT 2', 'lmpop'],
  ['ZMPOP 1 zset MIN', 'zmpop'],
  ['BLMPOP 1 1 list LEFT', 'blmpop'],
  ['BZMPOP 1 1 zset MAX', 'bzmpop'],
  ['EXPIRE s 1000 GT', 'expire GT'],
  ['expire s 1000 nx', 'expire NX'],
  ['PEXPIREAT s 99999999999999 XX', 'pexpireat XX'],
  ['EXPIRE s 1000', null],
  ['SET s v NX GET', 'set NX GET'],
  ['SET s v GET EX 100 NX', 'set NX GET'],
  ['SET s v NX', null],
  ['SET s v XX GET', null],
  ['SET nx get', null],
  ['SET s', null],
  ['XADD stream 99-* f v', 'xadd ms-*'],
  ['XADD stream NOMKSTREAM MAXLEN ~ 100 LIMIT 5 100-* f v', 'xadd ms-*'],
  ['XADD stream * 5-* 5-*', null],
  ['XGROUP CREATE stream g2 0 ENTRIESREAD 1', 'xgroup create ENTRIESREAD'],
  ['XGROUP CREATE stream g3 0 MKSTREAM', null],
  ['BITCOUNT s 0 7 BIT', 'bitcount BIT'],
  ['BITCOUNT s 0 7', null],
  ['BITPOS s 1 0 7 BIT', 'bitpos BIT'],
  ['GEOSEARCH geo FROMMEMBER KM BYRADIUS 200 KM', 'geosearch KM in upper case'],
  ['GEOSEARCH geo FROMMEMBER KM BYRADIUS 200 km', null],
  ['GEODIST geo KM b Km', 'geodist KM in upper case'],
  ['EXPIRETIME s', 'expiretime'],
  ['SINTERCARD 1 set', 'sintercard'],
  ['LCS s s', 'lcs'],
  ['LCS s s IDX MINMATCHLEN 2', 'lcs'],
  ['SORT_RO list', 'sort_ro'],
  ['EVAL_RO return(1) 0', 'eval_ro'],
  ["EVAL return(redis.call('lmpop',1,KEYS[1],'LEFT')) 1 list", 'eval lmpop'],
  ['FUNCTION LIST', 'function list'],
  ['COMMAND INFO get', 'command info'],
  ['COMMAND COUNT', null],
  ['ACL GETUSER default', 'acl getuser'],
  ['ACL WHOAMI', null],
  ['LOLWUT', 'lolwut'],
  ['INFO server clients', 'info section section'],
  ['INFO server', null],
  ['CONFIG GET maxmemory appendonly', 'config get parameter parameter'],
  ['CONFIG GET maxmemory', null],
  ['SPUBLISH c m', 'spublish'],
  ['PUBSUB SHARDCHANNELS', 'pubsub shardchannels'],
  // What clients send when they connect: counted where the source has it, and no reason to stay.
  ['CLIENT SETINFO LIB-NAME x', (await redisSince(7, 2)) ? 'client setinfo' : null],
  ['CLIENT SETNAME x', null],
  ['HELLO 2', null],
  ['INFO', null],
  ['NOSUCH a b', null],
  ['LMPOP 1', null],
];
/** Counted, but they close no gate. */
const HARMLESS: readonly (readonly [call: string, form: string])[] = [
  ['COMMAND', 'command'],
  ['COMMAND DOCS get', 'command docs'],
  ['CLIENT NO-EVICT ON', 'client no-evict'],
];

describe('what only one server supports', { skip }, () => {
  let source: LocalServer;
  let target: LocalServer;
  before(async () => void ([source, target] = await Promise.all([startRedis(), startTestTarget()])));
  after(() => Promise.all([source.stop(), target.stop()]));

  for (const stage of [
    'off',
    'dualwrite',
    'shadow',
    'live',
    'rampdown',
    'complete',
  ] as const satisfies readonly Stage[]) {
    test(`is counted in ${stage} by what the client sent`, async () => {
      for (const server of [source, target]) await fill(server);
      const rig = await startOn({ source, target, default: { stage } });
      try {
        const wire = await rig.wire();
        const counted = (): Readonly<Record<string, number>> =>
          rig.shard.snapshot().workloads.find(({ name }) => name === 'default')!.unsupported;
        for (const [call, form] of [...CALLS, ...HARMLESS]) {
          const earlier = { ...counted() };
          await wire.ask(...call.split(' '));
          const now = counted();
          const more = Object.keys(now).filter((name) => now[name] !== earlier[name]);
          assert.deepEqual(more, form === null ? [] : [form], `${call} in ${stage}`);
        }
        const ofShard = rig.shard.snapshot().unsupported;
        assert.ok(HARMLESS.every(([, form]) => !(form in ofShard)) && 'lmpop' in ofShard);
        assert.match(
          await wire.ask('SSUBSCRIBE', 'c'),
          stage === 'live' || stage === 'rampdown' || stage === 'complete' ? /^-ERR unknown command/ : /^\*3/,
        );
        assert.equal(rig.shard.snapshot().unsupported.ssubscribe, 1);
      } finally {
        await rig.stop();
      }
    });
  }
});

async function fill(server: { readonly host: string; readonly port: number }): Promise<void> {
  const wire = await Wire.open(server);
  const lines = [
    'FLUSHALL',
    'RPUSH list 1 2 3 4 5 6 7 8 9',
    'ZADD zset 1 a 2 b 3 c 4 d',
    'SET s value',
    'XADD stream 1-1 f v',
    'GEOADD geo 13 38 KM 15 37 b',
    'SADD set a',
  ];
  for (const line of lines) assert.doesNotMatch(await wire.ask(...line.split(' ')), /^-/);
  wire.destroy();
}

test('an unsupported command is reported for a workload only if it used the workload’s keys, and only while no other workload is possible', async (t) => {
  if (!(await needs(t, 'redis>=7.0', 'target<7.0'))) return;
  const workloads = [
    { name: 'jobs', keys: ['job:*'], channels: ['jobs:*'], stage: 'shadow' as const },
    { name: 'other', keys: ['other:*'], stage: 'shadow' as const },
  ];
  await withRig({ workloads }, async ({ wire, shard }) => {
    const client = await wire();
    await client.ask('LMPOP', '2', 'job:a', 'job:b', 'LEFT');
    await client.ask('SPUBLISH', 'jobs:done', 'x');
    await client.pipeline([['MULTI'], ['EXPIRE', 'job:a', '10', 'NX'], ['EXEC']]);
    await client.ask('SINTERCARD', '2', 'job:a', 'other:b');
    await client.ask('LOLWUT');
    const of = Object.fromEntries(shard.snapshot().workloads.map(({ name, unsupported }) => [name, unsupported]));
    assert.deepEqual(of, {
      jobs: { lmpop: 1, spublish: 1, 'expire NX': 1, sintercard: 1 },
      other: { sintercard: 1 },
      default: (await targetIsKeydb()) ? { lolwut: 1 } : {},
    });
  });
});

test('XAUTOCLAIM is counted where its reply shows entries that were deleted, on either server', async (t) => {
  if (!(await needs(t, 'redis>=7.0', 'target<7.0'))) return;
  for (const stage of ['shadow', 'live'] as const) {
    await withRig({ default: { stage } }, async ({ wire, shard }) => {
      const client = await wire();
      for (const line of [
        'XADD x 1-1 f v',
        'XADD x 2-1 f v',
        'XGROUP CREATE x g 0',
        'XREADGROUP GROUP g c STREAMS x >',
        'XAUTOCLAIM x g d 0 0',
      ])
        await client.ask(...line.split(' '));
      assert.deepEqual(shard.snapshot().unsupported, {}, stage);
      await client.ask('XDEL', 'x', '1-1');
      await client.ask('XAUTOCLAIM', 'x', 'g', 'd', '0', '0');
      assert.deepEqual(shard.snapshot().unsupported, { 'xautoclaim deleted entries': 1 }, stage);
      await client.pipeline([['MULTI'], ['XDEL', 'x', '2-1'], ['XAUTOCLAIM', 'x', 'g', 'd', '0', '0'], ['EXEC']]);
      assert.deepEqual(shard.snapshot().unsupported, { 'xautoclaim deleted entries': 2 }, stage);
    });
  }
});

test('who has not logged in, and what the proxy refuses, is not counted', async (t) => {
  if (!(await needs(t, 'redis>=7.0', 'target<7.0'))) return;
  const config = { requirepass: 'pw' };
  const login = ({ url }: { readonly url: string }): string => url.replace('//', '//:pw@');
  await withServers(
    async ({ source, target }) => {
      const shard = await startTestShard({ source: login(source), target: login(target) });
      const client = await Wire.open({ port: shard.port });
      assert.match(await client.ask('LMPOP', '1', 'k', 'LEFT'), /^-NOAUTH/);
      assert.deepEqual(shard.snapshot().unsupported, {});
      await client.ask('AUTH', 'pw');
      await client.ask('EXPDEL', 'k');
      assert.deepEqual(shard.snapshot().unsupported, {});
      await client.ask('LMPOP', '1', 'k', 'LEFT');
      assert.deepEqual(shard.snapshot().unsupported, { lmpop: 1 });
      client.destroy();
      await shard.stop();
    },
    { source: { config }, target: { config } },
  );
});

test('in live, errors that the source would not have given are counted by workload; what both refuse is not', async (t) => {
  if (!(await needs(t, 'redis>=7.0', 'target<7.0'))) return;
  const workloads = [{ name: 'moved', keys: ['m:*'], stage: 'live' as const }];
  await withRig({ workloads, default: { stage: 'shadow' } }, async ({ wire, client: direct, source, shard }) => {
    const client = await wire();
    const newErrors = (): Readonly<Record<string, number>> =>
      shard.snapshot().workloads.find(({ name }) => name === 'moved')!.newErrors;
    await client.ask('SET', 'm:s', 'v');
    await client.ask('SET', 'other', 'v');
    assert.match(await client.ask('EXPIRE', 'm:s', '10', 'NX'), /^-ERR/);
    assert.match(await client.ask('LMPOP', '1', 'm:l', 'LEFT'), /^-ERR/);
    assert.match(await client.ask('BITCOUNT', 'm:s', '0', '7', 'BIT'), /^-ERR/);
    assert.match(await client.ask('LPUSH', 'm:s', 'x'), /^-WRONGTYPE/);
    assert.match(await client.ask('GETRANGE', 'm:s', 'a', 'b'), /^-ERR/);
    assert.match(await client.ask('EXPIRE', 'other', '10', 'NX'), /^:1/);
    await shard.settled();
    assert.deepEqual(newErrors(), { 'expire NX': 1, lmpop: 1, 'bitcount BIT': 1 });
    // The table does not tell of it: only the comparison does.
    await direct({ of: source }).config('SET', 'maxmemory-policy', 'allkeys-lfu');
    assert.match(await client.ask('OBJECT', 'FREQ', 'm:s'), /^-ERR/);
    await shard.settled();
    assert.deepEqual(newErrors(), { 'expire NX': 1, lmpop: 1, 'bitcount BIT': 1, 'object freq': 1 });
    const { clientErrors } = shard.snapshot();
    assert.ok(clientErrors.target.ERR >= 4);
  });
});

test('KeyDB refuses a form of its own on the source: a workload in live cannot go back with it', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await withRig({ default: { stage: 'live' } }, async ({ wire, shard }) => {
    const client = await wire();
    await client.ask('SET', 'k', 'abc');
    assert.match(await client.ask('BITOP', 'LSHIFT', 'd', 'k', '1'), /^:/);
    assert.deepEqual(shard.snapshot().unsupported, { 'bitop LSHIFT': 1 });
    assert.deepEqual(shard.snapshot().workloads[0].newErrors, {});
  });
});
