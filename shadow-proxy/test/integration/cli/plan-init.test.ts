/**
 * `shadow-compare plan init` reads a real Redis, and what it writes is a plan that the proxy takes.
 *
 * Needs real servers: key names, MONITOR, ACL errors and CLUSTER SHARDS of a Redis that a plan is made from.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Cluster, Redis } from 'ioredis';
import { parse } from 'yaml';
import { startCluster } from '../../../src/local/start-cluster.js';
import { startRedis } from '../../../src/local/servers.js';
import { makeCertificates, startTestTarget } from '../../support/servers.js';
import { runCommand, runProgram } from './process.js';
import { needs } from '../../support/needs.js';

interface Written {
  readonly shards?: readonly { readonly source: string; readonly target: string }[];
  readonly cluster?: { readonly source: string; readonly target: string };
  readonly workloads: readonly { name: string; keys: string[]; channels?: string[]; class: string }[];
}

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'plan-init-'));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

/** Keys of six kinds, as applications write them. */
async function fill(client: Redis | Cluster): Promise<void> {
  const each = (count: number, write: (i: number) => Promise<unknown>): Promise<unknown>[] =>
    Array.from({ length: count }, (_, i) => write(i));
  await Promise.all([
    ...each(300, async (i) => {
      await client.hset(`session:${i}`, { user: i, seen: 'now' });
      await client.expire(`session:${i}`, 1_800);
    }),
    ...each(200, (i) => client.set(`cache:page:${i}`, 'x'.repeat(200), 'EX', 60)),
    ...each(100, (i) => client.incrby(`hits:user:${i}`, i)),
    ...each(20, (i) => client.zadd(`board:${i}`, i, 'a', 2, 'b')),
    ...each(20, (i) => client.rpush(`queue:${i}`, 'job')),
    ...each(100, (i) => client.hset(`account:${i}`, { balance: i })),
    ...each(10, (i) => client.set(String(i), 'no name')),
    client.set('account:report', Buffer.alloc(2 << 20)),
  ]);
}

const CLASSES = [
  ['session', 'session:*', 'read-mostly'],
  ['cache-page', 'cache:page:*', 'read-mostly'],
  ['hits-user', 'hits:user:*', 'counter'],
  ['board', 'board:*', 'leaderboard'],
  ['account', 'account:*', 'critical'],
  ['queue', 'queue:*', 'critical'],
];

test('workloads are those of the keys, with their reasons; the plan is valid, and nothing is changed', async (t) => {
  const server = await startRedis({ config: { requirepass: 'hunter2' } });
  t.after(() => server.stop());
  const client = new Redis(server.port, { password: 'hunter2' });
  t.after(() => client.disconnect());
  await fill(client);
  await client.select(3);
  await client.set('session:other-database', '1');
  await client.select(0);
  await client.eval('return 1', 0);
  const listener = client.duplicate();
  await listener.subscribe('session.ended', 'news.eu');
  t.after(() => listener.disconnect());
  const file = join(folder(t), 'migration.yaml');
  const from = `redis://:hunter2@127.0.0.1:${server.port}`;
  const before = await client.dbsize();
  const dirty = async (): Promise<string> =>
    /rdb_changes_since_last_save:(\d+)/.exec(await client.info('persistence'))![1];
  const changes = await dirty();
  const init = (...args: string[]): ReturnType<typeof runProgram> =>
    runCommand('plan', 'init', '--from', from, '--out', file, ...args);

  const written = await init();
  assert.deepEqual([written.code, written.stderr], [0, '']);
  const text = readFileSync(file, 'utf8');
  const plan = parse(text) as Written;
  assert.deepEqual(plan.workloads.map(({ name, keys, class: as }) => [name, keys[0], as]).sort(), [...CLASSES].sort());
  assert.deepEqual(plan.workloads.find(({ name }) => name === 'session')!.channels, ['session.*']);
  assert.doesNotMatch(text, /hunter2/);
  assert.equal(plan.shards![0].source, `redis://:\${REDIS_PASSWORD}@127.0.0.1:${server.port}`);
  const flat = text.replace(/\n *# /g, ' ');
  const sampled = [...flat.matchAll(/ ([\d,]+) keys? of the sample \(/g)].reduce(
    (sum, [, keys]) => sum + Number(keys),
    0,
  );
  assert.equal(sampled + 10, 752, 'with the ten that no workload names');
  assert.match(
    written.stdout.replace(/\n/g, ' '),
    /\(752 of 752 keys sampled\)\. 10 of the sampled keys are in none, and/,
  );
  assert.match(flat, /752 of 752 keys were sampled \(100 %\)\. MONITOR was not run/);
  assert.match(
    flat,
    /301 keys of the sample \(40 %\): 300 hash, 1 string; a TTL on 100 %, the median (?:29|30) min \d+ s from expiring/,
  );
  assert.match(flat, /Large: 1 key of the sample, the largest a string \([\d,]+ KiB\)/);
  assert.match(flat, /Keys that no workload names: 1\.3 % of the sample: \* \(10\)\. .* they stay on Redis/);
  assert.match(written.stdout.replace(/\n/g, ' '), /keys that no workload names stay on Redis/);
  assert.match(flat, /Channels without a workload: news\.\*/);
  assert.match(flat, /scripts ran 1 time/);
  for (const shown of [text, written.stdout])
    assert.deepEqual(
      shown.split('\n').filter((line) => [...line].length > 80 && !line.includes(file)),
      [],
    );
  assert.match(written.stdout, /^session +session +read-mostly +2 +40 % +100 % +–$/m);
  const check = await runProgram(t, 'shadow-proxy', ['--plan', file, '--check'], { REDIS_PASSWORD: 'hunter2' });
  assert.deepEqual([check.code, check.stderr], [0, '']);
  assert.equal(await client.dbsize(), before);
  assert.equal(await dirty(), changes, 'no write');

  const again = await init('--sample', '100');
  assert.deepEqual(
    [again.code, again.stderr],
    [1, `${file} exists: give another file with --out, or --force to overwrite it\n`],
  );
  assert.equal(readFileSync(file, 'utf8'), text);
  assert.equal((await init('--sample', '100', '--force')).code, 0);
  assert.match(readFileSync(file, 'utf8'), /100 of 752 keys were sampled \(13 %\)/);
});

test('MONITOR shows what is done to the keys; where it is refused, the plan says so', async (t) => {
  const server = await startRedis();
  t.after(() => server.stop());
  const client = new Redis(server.port);
  t.after(() => client.disconnect());
  await Promise.all(Array.from({ length: 50 }, (_, i) => client.set(`seats:${i}`, i)));
  await Promise.all(Array.from({ length: 50 }, (_, i) => client.set(`price:${i}`, i)));
  let busy = true;
  const work = (async () => {
    for (let i = 0; busy; i++) {
      await client.decr(`seats:${i % 50}`);
      await client.get(`price:${i % 50}`);
      if (i % 10 === 0) await client.set(`seat:${i % 50}`, 'a token', 'PX', 30_000, 'NX');
      if (i % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  })();
  const file = join(folder(t), 'migration.yaml');
  const init = ['plan', 'init', '--out', file, '--force', '--sample', '100'];
  const seen = await runCommand(...init, '--from', server.url, '--monitor', '1s');
  await client.call('ACL', 'SETUSER', 'reader', 'on', '>pw', '~*', '+@all', '-monitor');
  const plan = parse(readFileSync(file, 'utf8')) as Written;
  const refused = await runProgram(t, 'shadow-compare', [
    ...init,
    '--from',
    `redis://reader:pw@127.0.0.1:${server.port}`,
    '--monitor',
    '1s',
  ]);
  busy = false;
  await work;
  assert.equal(seen.code, 0);
  assert.match(seen.stderr, /^Running MONITOR on 1 source for 1 s\./);
  assert.deepEqual(
    plan.workloads.map(({ name, class: as }) => [name, as]),
    [
      ['price', 'read-mostly'],
      ['seats', 'counter'],
      ['seat', 'critical'],
    ],
  );
  assert.equal(refused.code, 0);
  const text = readFileSync(file, 'utf8').replace(/\n *# /g, ' ');
  assert.match(text, /MONITOR failed, so that what is done to the keys was not seen: .*refused/);
  assert.match(text, /Counters, it seems: whole numbers, and clients of this server call INCR or its like\./);
});

test('a cluster is written as one, with the shards that the check derives', async (t) => {
  const source = await startCluster({ program: 'redis', masters: 3 });
  t.after(() => source.stop());
  const target = await startTestTarget();
  t.after(() => target.stop());
  const client = new Cluster(source.masters.map(({ host, port }) => ({ host, port })));
  await fill(client);
  client.disconnect();
  const file = join(folder(t), 'migration.yaml');
  const { code, stderr } = await runProgram(t, 'shadow-compare', [
    'plan',
    'init',
    '--from',
    source.nodes[1].url,
    '--target',
    target.url,
    '--out',
    file,
    '--sample',
    '10000',
  ]);
  assert.deepEqual([code, stderr], [0, '']);
  const plan = parse(readFileSync(file, 'utf8')) as Written;
  assert.deepEqual(plan.cluster, {
    listen: 'redis://127.0.0.1:7000',
    source: `redis://${source.masters.map(({ host, port }) => `${host}:${port}`).join(',')}`,
    target: target.url,
  });
  assert.deepEqual(plan.workloads.map(({ name, keys, class: as }) => [name, keys[0], as]).sort(), [...CLASSES].sort());
  const check = await runProgram(t, 'shadow-proxy', ['--plan', file, '--check']);
  assert.deepEqual([check.code, check.stderr], [0, '']);
  for (const shard of ['slots-0', 'slots-5461', 'slots-10922']) assert.ok(check.stdout.includes(shard), shard);
});

test('with TLS, the plan has the CA by a path that is relative to the plan', async (t) => {
  if (!(await needs(t, 'openssl', 'tls-source'))) return;
  const path = folder(t);
  const tls = makeCertificates();
  const server = await startRedis({ tls });
  t.after(() => server.stop());
  const file = join(path, 'migration.yaml');
  const from = ['--from', server.url, '--ca', tls.ca];
  const { code, stderr } = await runProgram(t, 'shadow-compare', ['plan', 'init', ...from, '--out', file]);
  assert.deepEqual([code, stderr], [0, '']);
  const [shard] = (parse(readFileSync(file, 'utf8')) as { shards: { tls: { source: { ca: string } } }[] }).shards;
  assert.match(shard.tls.source.ca, /^\.\.\//);
  const check = await runProgram(t, 'shadow-proxy', ['--plan', file, '--check']);
  assert.deepEqual([check.code, check.stderr], [0, '']);
});

test('a source that does not answer leaves no file, and an existing one alone', async (t) => {
  const file = join(folder(t), 'migration.yaml');
  const args = ['plan', 'init', '--from', 'redis://u:hunter2@127.0.0.1:1', '--out', file];
  const { code, stderr } = await runCommand(...args);
  assert.equal(code, 3);
  assert.match(stderr, /^redis:\/\/u:\*\*\*@127\.0\.0\.1:1: .*ECONNREFUSED/);
  assert.equal(existsSync(file), false);
  writeFileSync(file, 'mine');
  assert.equal((await runCommand(...args)).code, 1);
  assert.equal(readFileSync(file, 'utf8'), 'mine');
});
