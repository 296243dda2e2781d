/** How the proxies of a plan are reached: by shard, by announced address, and without the files of its secrets. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import { formatAddress } from '../../../src/plan/endpoint.js';
import { loadAdmins, loadPlan } from '../../../src/plan/load.js';
import { scratch } from '../../support/plans.js';

const shard = (name: string, more: object = {}): object => ({
  name,
  listen: `redis://127.0.0.1:${6400 + Number(name.slice(1))}`,
  source: { url: `redis://source-${name}`, passwordFile: 'secrets/source' },
  target: `redis://target-${name}`,
  ...more,
});

function planFile(t: TestContext, plan: object): string {
  const file = join(scratch(t), 'plan.yaml');
  writeFileSync(file, stringify({ version: 1, name: 'moving', ...plan }));
  return file;
}

const addresses = (file: string, env: NodeJS.ProcessEnv = {}): string[] =>
  loadAdmins(file, env).admins.map(formatAddress);

test('each shard has its own admin address, or that of the plan; an address is listed once', (t) => {
  const own = { admin: { listen: '127.0.0.1:9401' } };
  const file = planFile(t, {
    shards: [shard('s0', own), shard('s1'), shard('s2')],
    admin: { listen: '127.0.0.1:9400' },
  });
  assert.deepEqual(addresses(file), ['127.0.0.1:9401', '127.0.0.1:9400']);
  assert.deepEqual(loadAdmins(file).shards, ['s0', 's1', 's2']);
});

test('announce has the address for other machines, by the name of the shard, and a second one for its standby', (t) => {
  const announce = ['proxy-{shard}-a.${DOMAIN}:9400', 'proxy-{shard}-b.${DOMAIN}:9400'];
  const file = planFile(t, { shards: [shard('s0'), shard('s1')], admin: { listen: '0.0.0.0:9400', announce } });
  assert.deepEqual(addresses(file, { DOMAIN: 'internal' }), [
    'proxy-s0-a.internal:9400',
    'proxy-s0-b.internal:9400',
    'proxy-s1-a.internal:9400',
    'proxy-s1-b.internal:9400',
  ]);
  assert.throws(() => addresses(file), /plan\.yaml:\d+:\d+: admin\.announce needs the environment variable DOMAIN/);
});

test('no file of a secret is needed; a token that cannot be read is missing, with the reason', (t) => {
  const admin = { listen: '127.0.0.1:9400', tokenFile: 'secrets/token' };
  const file = planFile(t, { shards: [shard('s0')], admin });
  const [{ token, tokenProblem }] = loadAdmins(file).admins;
  assert.equal(token, null);
  assert.match(tokenProblem!, /admin\.tokenFile is .*secrets\/token, which cannot be read here \(ENOENT\)/);
  assert.throws(() => loadPlan(file), /passwordFile/);
});

test('a cluster has one address, or the servers must name the shards', (t) => {
  const cluster = {
    source: 'redis://10.0.0.1:7000',
    target: 'redis://10.0.1.1:7000',
    listen: 'redis://127.0.0.1:7100',
  };
  const one = loadAdmins(planFile(t, { cluster }));
  assert.deepEqual([one.shards, one.perShard, one.admins.map(formatAddress)], [null, false, ['127.0.0.1:9400']]);
  assert.equal(
    loadAdmins(planFile(t, { cluster: { ...cluster, admin: { listen: '127.0.0.1:9500' } } })).perShard,
    true,
  );
  assert.equal(loadAdmins(planFile(t, { cluster, admin: { announce: ['{shard}.internal:9400'] } })).perShard, true);
});

test('an announced address that is none is a problem of the plan', (t) => {
  const file = planFile(t, { shards: [shard('s0')], admin: { announce: ['proxy'] } });
  for (const load of [loadAdmins, loadPlan]) assert.throws(() => load(file), /announce.* has no port: write host:port/);
});
