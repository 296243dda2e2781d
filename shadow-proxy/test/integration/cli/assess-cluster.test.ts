/**
 * `shadow-compare assess` reads a real Redis Cluster, and lays out the slots of a KeyDB cluster.
 *
 * Needs real servers: CLUSTER NODES, slots and INFO of a Redis Cluster, and a KeyDB cluster that redis-cli makes.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Cluster, Redis } from 'ioredis';
import { askNode, startCluster, type LocalCluster } from '../../../src/local/start-cluster.js';
import { parseSlots } from '../../../src/plan/owns.js';
import { text } from '../../../src/resp/decode.js';
import { redisSince } from '../../support/servers.js';
import { runCommand, runProgram } from './process.js';
import { needs } from '../../support/needs.js';

interface Layout {
  readonly kind: string;
  readonly masters: readonly string[];
  readonly shards: readonly { readonly slots: string }[];
  readonly cuts: readonly number[];
  readonly proxies: number;
}

interface Assessed {
  readonly findings: readonly { about: string; weight: string; what: string }[];
  readonly cluster: {
    readonly state: string;
    readonly masters: readonly { address: string; slots: string; keys: number; replicas: number; loadShare: number }[];
    readonly loadBy: string;
    readonly hotSlots: readonly { slot: number; commands: number; keys: number }[] | null;
    readonly layouts: readonly Layout[];
    readonly chosen: Layout;
    readonly plan: string;
  };
}

const clientOf = ({ masters }: LocalCluster): Cluster =>
  new Cluster(
    masters.map(({ host, port }) => ({ host, port })),
    { redisOptions: { connectionName: 'checkout' } },
  );

/** How often the masters ran commands that write. */
async function writesOf({ masters }: LocalCluster): Promise<number> {
  let writes = 0;
  for (const { host, port } of masters) {
    const client = new Redis(port, host);
    const stats = await client.info('commandstats');
    for (const [, calls] of stats.matchAll(
      /^cmdstat_(?:set|del|expire|restore|migrate|cluster\|setslot):calls=(\d+)/gm,
    ))
      writes += Number(calls);
    await client.quit();
  }
  return writes;
}

test('a cluster is read from one of its nodes: masters, replicas, slots, traffic; and nothing is changed', async (t) => {
  if (!(await needs(t, 'redis>=7.0'))) return;
  const cluster = await startCluster({ program: 'redis', masters: 3, replicas: 1 });
  t.after(() => cluster.stop());
  const client = clientOf(cluster);
  t.after(() => client.disconnect());
  await Promise.all(Array.from({ length: 3_000 }, (_, i) => client.set(`session:${i}`, 'x'.repeat(100))));
  await Promise.all(Array.from({ length: 2_000 }, (_, i) => client.set(`{cart}:${i}`, 'x')));
  await client.set('report', Buffer.alloc(3 << 20));
  const [node] = client.nodes('master');
  await node.call('CLUSTER', 'SHARDS');
  await node.call('SPUBLISH', 'news', 'x').catch(() => undefined);
  const before = await writesOf(cluster);
  let busy = true;
  const work = (async () => {
    // One key that many read, and one read of another.
    for (let i = 0; busy; i++)
      await Promise.all([
        ...Array.from({ length: 30 }, () => client.get('{cart}:1')),
        client.get(`session:${i % 3_000}`),
      ]);
  })();
  // A replica knows the cluster as well as a master does.
  const args = ['assess', cluster.nodes[4].url, '--for', '500ms', '--monitor', '2s'];
  const { code, stdout, stderr } = await runCommand(...args, '--json');
  const printed = await runCommand(...args);
  busy = false;
  await work;
  assert.match(stderr, /^Running MONITOR on 3 sources for 2 s\./);
  assert.equal(code, 1);
  const { findings, cluster: read } = JSON.parse(stdout) as Assessed;
  assert.equal(read.state, 'ok');
  assert.deepEqual(
    read.masters.map(({ address, slots, replicas }) => [address, slots, replicas]),
    cluster.masters.map(({ host, port }, i) => [`${host}:${port}`, ['0-5460', '5461-10921', '10922-16383'][i], 1]),
  );
  assert.equal(
    read.masters.reduce((sum, { keys }) => sum + keys, 0),
    5_001,
  );
  const slot = Number(await client.cluster('KEYSLOT', 'cart'));
  assert.equal(read.hotSlots![0].slot, slot);
  assert.equal(read.hotSlots![0].keys, 1);
  const what = (about: string): string =>
    findings
      .filter((finding) => finding.about === about)
      .map(({ weight, what: text }) => `${weight}: ${text}`)
      .join('\n');
  assert.match(what('hot slots'), new RegExp(`^note: ${slot} \\(9\\d % of the commands, on 1 key\\)`));
  assert.match(what('full slots'), new RegExp(`^note: ${slot} \\(2,0\\d\\d keys, 40 %\\)`));
  assert.match(what('cluster'), /^note: Redis Cluster of 3 masters with 3 replicas$/);
  assert.match(what('cluster commands'), /^first: clients use CLUSTER SHARDS \(1 call\)$/);
  assert.match(what('sharded pub/sub'), /^no-go: clients use SPUBLISH \(1 call\)$/);
  assert.match(what('large keys'), /a string of [34] MiB in database 0/);
  // A client says its library since Redis 7.2.
  const library = (await redisSince(7, 2)) ? 'ioredis [0-9.]+ ' : '';
  assert.match(what('clients'), new RegExp(`127\\.0\\.0\\.1 checkout ${library}\\(\\d+\\)`));
  assert.equal(what('commands'), '', 'CLUSTER SLOTS, and what assess itself asks, are no lack of KeyDB');
  assert.equal(await writesOf(cluster), before);
  const long = printed.stdout.split('\n').filter((line) => [...line].length > 80);
  assert.deepEqual(long, []);
  assert.match(printed.stdout, /^Redis Cluster: 3 masters, 3 replicas, cluster_state ok$/m);
  assert.match(printed.stdout, /keydb-cli -h keydb-1 CLUSTER ADDSLOTS \$\(seq 0 5460\)$/m);
});

test('the layout that is proposed makes a KeyDB cluster whose shards are as few as it says', async (t) => {
  const source = await startCluster({ program: 'redis', masters: 3 });
  t.after(() => source.stop());
  const client = clientOf(source);
  await Promise.all(Array.from({ length: 500 }, (_, i) => client.set(`k:${i}`, 'x')));
  client.disconnect();
  const assess = async (...args: string[]): Promise<Assessed> => {
    const { stdout, stderr } = await runProgram(t, 'shadow-compare', [
      'assess',
      source.nodes[0].url,
      '--for',
      '200ms',
      '--json',
      ...args,
    ]);
    assert.equal(stderr, '');
    return JSON.parse(stdout) as Assessed;
  };
  const { cluster: proposed } = await assess('--masters', '2', '--proxy-ops', '1000000');
  assert.deepEqual([proposed.loadBy, proposed.chosen.shards.length, proposed.chosen.cuts], ['keys', 3, []]);
  const target = await startCluster({
    program: 'target',
    masters: 2,
    ranges: proposed.chosen.masters.map((slots) => parseSlots(slots)),
  });
  t.after(() => target.stop());
  const { findings, cluster } = await assess('--masters', '2', '--target', target.nodes[0].url);
  assert.deepEqual(
    findings.filter(({ about }) => about === 'target layout').map(({ weight, what }) => `${weight}: ${what}`),
    ['note: with the slots that the 2 masters of the target have now, there are 3 shards'],
  );
  // The part of the plan is one that the proxy takes.
  const folder = mkdtempSync(join(tmpdir(), 'assess-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'migration.yaml');
  writeFileSync(file, `version: 1\nname: cache\n${cluster.plan}\n`);
  const check = await runProgram(t, 'shadow-proxy', ['--plan', file, '--check']);
  assert.deepEqual([check.code, check.stderr], [0, '']);
  for (const { slots } of cluster.chosen.shards)
    assert.match(check.stdout, new RegExp(`slots-${slots.split('-')[0]}\\b`));
  const again = await runProgram(t, 'shadow-compare', ['assess', '--plan', file, '--for', '200ms', '--json']);
  assert.equal((JSON.parse(again.stdout) as Assessed).cluster.masters.length, 3);
});

test('a node that is down and a slot that moves have to be put right first, and the rest is read all the same', async (t) => {
  const cluster = await startCluster({ program: 'redis', masters: 3, replicas: 1 });
  t.after(() => cluster.stop());
  const [first, second] = cluster.masters;
  const down = cluster.nodes[5];
  await down.kill('SIGKILL');
  const nodes = async (): Promise<string> => text(await askNode(first, 'CLUSTER', 'NODES'));
  for (let i = 0; i < 100 && !/slave,fail\b/.test(await nodes()); i++)
    await new Promise((resolve) => setTimeout(resolve, 100));
  const id = text(await askNode(second, 'CLUSTER', 'MYID'));
  await askNode(first, 'CLUSTER', 'SETSLOT', 7, 'MIGRATING', id);
  const { stdout } = await runProgram(t, 'shadow-compare', ['assess', second.url, '--for', '200ms', '--json']);
  const { findings, cluster: read } = JSON.parse(stdout) as Assessed;
  const [state] = findings.filter(({ about }) => about === 'cluster state');
  assert.equal(state.weight, 'first');
  assert.equal(state.what, `failed or not reached: ${down.host}:${down.port}; 1 slot being moved`);
  assert.equal(read.masters.length, 3);
});

test('nodes of two clusters, or a cluster and a single server, are not assessed together', async (t) => {
  const [one, another] = [
    await startCluster({ program: 'redis', masters: 1 }),
    await startCluster({ program: 'redis', masters: 1 }),
  ];
  t.after(() => Promise.all([one.stop(), another.stop()]));
  const { code, stderr } = await runProgram(t, 'shadow-compare', ['assess', one.nodes[0].url, another.nodes[0].url]);
  assert.deepEqual(
    [code, stderr],
    [2, 'the sources are not nodes of one cluster: name nodes of one cluster, or single servers alone\n'],
  );
});
