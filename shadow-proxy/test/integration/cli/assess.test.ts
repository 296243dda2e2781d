/**
 * `shadow-compare assess` reads real servers.
 *
 * Needs real servers: INFO commandstats, MONITOR, CLIENT LIST and the forms that a KeyDB refuses.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { startRedis } from '../../../src/local/servers.js';
import { withServers } from '../../support/servers.js';
import { runCommand } from './process.js';
import { needs } from '../../support/needs.js';

/** Keeps a server's thread busy until it is closed. */
function flood(port: number): () => void {
  const batch = Buffer.from('*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n'.repeat(2_000));
  const socket = connect(port, '127.0.0.1');
  let asked = 0;
  const ask = (): void => {
    for (; asked < 4 && !socket.destroyed; asked++) socket.write(batch);
  };
  let bytes = 0;
  socket.on('connect', ask).on('data', (chunk) => {
    for (const byte of chunk) if (byte === 10 && ++bytes % 2_000 === 0) asked--;
    ask();
  });
  return () => socket.destroy();
}

test('an idle server is no reason to move; what clients use and the target lacks is named with its calls', async (t) => {
  if (!(await needs(t, 'redis>=7.0', 'target<7.0'))) return;
  await withServers(async ({ source, target }) => {
    const client = new Redis(source.port, { connectionName: 'checkout' });
    // A proxy of the kit that is there already is nobody to be pointed at the proxy.
    const proxy = new Redis(source.port, { connectionName: 'shadow-proxy:cache-0:1a2b' });
    await proxy.ping();
    await client.set('big', Buffer.alloc(3 << 20));
    await client.call('LMPOP', '1', 'none', 'LEFT');
    await client.call('FUNCTION', 'LOAD', "#!lua name=l\nredis.register_function('f', function() return 1 end)");
    await client.fcall('f', 0);
    const { code, stdout, stderr } = await runCommand(
      'assess',
      source.url,
      '--target',
      target.url,
      '--for',
      '300ms',
      '--json',
    );
    await client.quit();
    await proxy.quit();
    assert.deepEqual([code, stderr], [1, '']);
    const { conclusion, findings, sources } = JSON.parse(stdout) as {
      conclusion: string;
      findings: { about: string; weight: string; what: string }[];
      sources: { calls: Record<string, number> }[];
    };
    assert.equal(conclusion, 'no-go');
    const what = (about: string): string =>
      findings
        .filter((finding) => finding.about === about)
        .map((finding) => finding.what)
        .join('\n');
    assert.match(what('CPU'), /^one instance, idle/);
    assert.match(what('commands'), /(?=.*fcall \(1 call\))(?=.*lmpop \(1 call\))(?=.*function load \(1 call\))/);
    assert.doesNotMatch(what('commands'), /function list/, 'that was asked by assess itself');
    assert.match(what('functions'), /1 library/);
    assert.match(what('clients'), /^1 client of .*: 127\.0\.0\.1 checkout/);
    assert.match(what('large keys'), /a string of [34] MiB in database 0/);
    assert.equal(sources[0].calls.set, 1);
    assert.doesNotMatch(stdout, /user default on/);
  });
});

test('--monitor names options that the target refuses, in scripts too, and is bounded', async (t) => {
  if (!(await needs(t, 'redis>=7.0', 'target<7.0'))) return;
  await withServers(async ({ source, target }) => {
    const client = new Redis(source.port);
    const work = setInterval(() => {
      void client.call('SET', 'k', 'a "quoted"\r\n\x00 value', 'NX', 'GET');
      void client.call('EVAL', "return redis.call('expire', KEYS[1], 10, 'nx')", 1, 'k');
      void client.call('SET', 'NX', 'GET');
    }, 20);
    const { code, stdout, stderr } = await runCommand(
      'assess',
      source.url,
      '--target',
      target.url,
      '--for',
      '100ms',
      '--monitor',
      '1s',
      '--json',
    );
    clearInterval(work);
    const refused = await runCommand('assess', source.url, '--monitor', '2m');
    await client.quit();
    assert.match(stderr, /^Running MONITOR on 1 source for 1 s. It lowers throughput/);
    const { findings } = JSON.parse(stdout) as { findings: { about: string; weight: string; what: string }[] };
    const found = findings.find(({ about }) => about === 'options')!;
    assert.deepEqual([code, found.weight], [1, 'no-go']);
    assert.match(found.what, /(?=.*set NX GET \(\d+ calls\))(?=.*expire NX \(\d+ calls\)).* commands seen in 1\.\d s$/);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /At most 60s: MONITOR costs the server throughput/);
  });
});

test('a busy server is a reason, unless a proxy could not take it; one that does not answer leaves it open', async () => {
  const server = await startRedis();
  const stop = flood(server.port);
  try {
    const { code, stdout } = await runCommand(
      'assess',
      server.url,
      '--for',
      '1500ms',
      '--proxy-ops',
      '100000000',
      '--json',
    );
    const { conclusion, findings, sources, truths } = JSON.parse(stdout) as {
      conclusion: string;
      findings: { about: string; weight: string }[];
      sources: { cpu: number; opsPerSecond: number }[];
      truths: { what: string }[];
    };
    const [{ cpu, opsPerSecond }] = sources;
    // How much of a core the server gets depends on what else the machine does.
    assert.ok(cpu > 0 && opsPerSecond > 2_000, `${cpu} of a core, ${opsPerSecond} commands a second`);
    assert.equal(
      findings.some(({ about, weight }) => about === 'CPU' && weight === 'go'),
      cpu >= 0.7,
    );
    const has = (wanted: string): boolean => findings.some(({ weight }) => weight === wanted);
    assert.deepEqual(
      [conclusion, code],
      has('go') && !has('no-go') ? ['go', 0] : ['no-go', 1],
      JSON.stringify(findings),
    );
    assert.ok(truths.some(({ what }) => what === 'one global lock'));
    const ceiling = await runCommand('assess', server.url, '--for', '500ms', '--proxy-ops', '1000');
    assert.match(
      ceiling.stdout.replace(/\s+/g, ' '),
      /NO-GO proxy: \S+ gets [\d,]+ commands a second, over 60 % of the 1,000 that one proxy was measured to take/,
    );
    assert.equal(ceiling.code, 1);
  } finally {
    stop();
    await server.stop();
  }
  const { code, stderr } = await runCommand('assess', 'redis://u:hunter2@127.0.0.1:1');
  assert.equal(code, 3);
  assert.match(stderr, /^redis:\/\/u:\*\*\*@127\.0\.0\.1:1: .*ECONNREFUSED/);
});

test('the counts of two servers add up, in 80 columns', async (t) => {
  const servers = await Promise.all([startRedis(), startRedis()]);
  t.after(() => Promise.all(servers.map((server) => server.stop())));
  const clients = servers.map(({ port }) => new Redis(port, { connectionName: 'shop' }));
  t.after(() => clients.forEach((client) => client.disconnect()));
  for (const [i, client] of clients.entries()) {
    for (let key = 0; key < 3 + i; key++) await client.set(`k:${key}`, 'v');
    await client.select(2);
    await client.set('other', 'v');
    await client.swapdb(5, 6);
  }
  const timers = clients.map((client, i) => setInterval(() => void client.ping(), 90 + 40 * i));
  const urls = servers.map(({ url }) => url);
  const { stdout } = await runCommand('assess', ...urls, '--for', '1s');
  timers.forEach((timer) => clearInterval(timer));
  const rows = servers.map(({ port }) => stdout.split('\n').find((line) => line.startsWith(`127.0.0.1:${port} `))!);
  // source, version, commands per s, CPU with its unit, clients, memory with its unit, keys
  const columns = rows.map((row) => row.split(/\s+/));
  assert.deepEqual(
    columns.map((row) => [row[5], row[8]]),
    [
      ['1', '4'],
      ['1', '5'],
    ],
    stdout,
  );
  const commands = columns.reduce((sum, row) => sum + Number(row[2]), 0);
  assert.ok(commands > 5, stdout);
  assert.match(stdout, new RegExp(`^Sizing: ${commands} commands per second, `, 'm'));
  assert.match(stdout, /SWAPDB was called 2 times\b/);
  assert.deepEqual(
    stdout.split('\n').filter((line) => [...line].length > 80),
    [],
  );
});

test('reads at replicas are found', async () => {
  const master = await startRedis();
  const replica = await startRedis({ config: { replicaof: `127.0.0.1 ${master.port}` } });
  try {
    const client = new Redis(replica.port);
    for (let i = 0; i < 100 && !(await client.info('replication')).includes('master_link_status:up'); i++)
      await new Promise((resolve) => setTimeout(resolve, 100));
    await client.get('k');
    await client.quit();
    const { stdout } = await runCommand('assess', master.url, '--for', '200ms');
    assert.match(
      stdout.replace(/\s+/g, ' '),
      new RegExp(`FIRST replicas: the replica 127\\.0\\.0\\.1:${replica.port} of \\S+ has served 1 read`),
    );
  } finally {
    await replica.stop();
    await master.stop();
  }
});
