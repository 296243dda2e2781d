/**
 * A source that behaves as ElastiCache does: copied, shadowed, cut over and rolled back; and what is said of it.
 *
 * Needs real servers: renamed and refused commands, as ElastiCache has them, on a Redis that is set up so.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { ROOT } from '../../../src/runbook/shelf.js';
import { startElastiCache, UNAVAILABLE } from '../../support/elasticache.js';
import { ask, ended, job } from '../../support/jobs.js';
import { differences } from '../../support/keyspace.js';
import { missing } from '../../support/needs.js';
import { makeCertificates, startTestTarget } from '../../support/servers.js';
import { startTestShard, until } from '../../support/shard.js';
import { runProgram } from '../cli/process.js';
import { APP, fullLine, KIT, loginOf, MIGRATION, rbac, TOKEN } from './logins.js';
import { work } from './work.js';

const skip = await missing('openssl');
const tls = skip ? { ca: '', cert: '', key: '' } : makeCertificates();

test('the stand-in refuses what AWS documents, and shows no digests', { skip }, async () => {
  const cache = await startElastiCache({ tls, token: TOKEN.password, replica: true });
  const connect = (port: number): Redis =>
    new Redis({ port, password: TOKEN.password, tls: { rejectUnauthorized: false } });
  const [client, reader] = [connect(cache.primary.port), connect(cache.reader.port)];
  try {
    for (const name of UNAVAILABLE) await assert.rejects(client.call(name), /ERR unknown command/, name);
    for (const [name, ...args] of [
      ['ACL', 'SETUSER', 'mallory', 'on'],
      ['ACL', 'GETUSER', 'default'],
      ['PSYNC', '?', '-1'],
    ])
      await assert.rejects(client.call(name, ...args), /NOPERM/, name);
    const info = await client.info();
    assert.match(info, /^os:Amazon ElastiCache +\r$/m);
    assert.match(info, /^config_file:- *\r$/m);
    const users = (await client.acl('LIST')) as string[];
    assert.match(
      users.find((line) => line.startsWith('user default'))!,
      /^user default on (sanitize-payload )? {2,}~\* &\* \+@all *$/,
    );
    await client.set('k', 'v');
    await until(async () => (await reader.get('k')) === 'v');
    await assert.rejects(reader.set('k', 'w'), /READONLY/);
    await cache.failOver();
    const promoted = connect(cache.primary.port);
    assert.equal(await promoted.set('k', 'w'), 'OK');
    promoted.disconnect();
  } finally {
    client.disconnect();
    reader.disconnect();
    await cache.stop();
  }
});

/** Whether the flip is to be tried again: suspects are repaired meanwhile. */
function onlyNotClean(problem: { readonly code?: string }): boolean {
  if (problem.code === 'not-clean') return false;
  throw problem;
}

test('docs/elasticache.md shows the access string of the tests', () => {
  const page = readFileSync(join(ROOT, 'docs/elasticache.md'), 'utf8');
  assert.ok(page.includes(`\n${MIGRATION.access}\n`), MIGRATION.access);
});

test(
  'RBAC: copied, shadowed, live and rolled back with the documented access string; nothing is lost',
  { skip },
  async () => {
    const cache = await startElastiCache({ tls, users: rbac() });
    const target = await startTestTarget({ config: { user: [fullLine(KIT), 'default off', fullLine(APP)] } });
    const shard = await startTestShard({
      source: cache.primary.urlFor(loginOf(MIGRATION)),
      target: `redis://${loginOf(KIT)}127.0.0.1:${target.port}`,
      sourceTls: { ca: tls.ca },
      default: { stage: 'off' },
    });
    const clients = work(shard.port, APP);
    try {
      const direct = new Redis({ port: cache.node.port, username: APP.username, password: APP.password });
      await Promise.all(Array.from({ length: 300 }, (_, i) => direct.hset(`old:${i}`, 'f', i)));
      direct.disconnect();
      const to = (stage: 'dualwrite' | 'shadow' | 'live' | 'rampdown'): Promise<unknown> =>
        shard.shard.changeStage({ workload: 'default', stage });
      await to('dualwrite');
      ask({ shard }, { kind: 'backfill' });
      await ended({ shard });
      assert.deepEqual([job({ shard }).state, job({ shard }).failed], ['done', 0]);
      for (const stage of ['shadow', 'live', 'shadow', 'live', 'rampdown'] as const) {
        // Where the mirror lags, TTLs come late: keys are suspects until they are repaired.
        await until(() => to(stage).then(() => true, onlyNotClean));
        await sleep(150);
      }
      const added = await clients.stop();
      assert.deepEqual([...clients.errors], []);
      assert.ok(added > 0);
      await shard.settled();
      const at = (port: number, { username, password }: typeof KIT): Parameters<typeof differences>[0] => ({
        host: '127.0.0.1',
        port,
        username,
        password,
      });
      assert.deepEqual(await differences(at(cache.node.port, MIGRATION), at(target.port, KIT)), []);
      assert.deepEqual(shard.snapshot().mismatches, {});
    } finally {
      await clients.stop();
      await shard.stop();
      await Promise.all([cache.stop(), target.stop()]);
    }
  },
);

test(
  'the gate users, where the source hides passwords: unknown until the logins of clients prove them',
  { skip },
  async () => {
    const cache = await startElastiCache({ tls, users: rbac() });
    const target = await startTestTarget({
      config: { user: [fullLine(KIT), 'default off', fullLine({ ...APP, password: 'another' })] },
    });
    const shard = await startTestShard({
      source: cache.primary.urlFor(loginOf(MIGRATION)),
      target: `redis://${loginOf(KIT)}127.0.0.1:${target.port}`,
      sourceTls: { ca: tls.ca },
    });
    const client = new Redis({ port: shard.port, username: APP.username, password: APP.password, lazyConnect: true });
    try {
      const gate = async (): Promise<string> => {
        const { gates } = await shard.shard.promote({ workload: 'default', dryRun: true });
        const { answer, evidence } = gates.find(({ name }) => name === 'users')!;
        return `${answer}: ${evidence}`;
      };
      assert.match(
        await gate(),
        /^unknown: a server lists its users without passwords .*no client has logged in .* as app:/,
      );
      await client.get('k');
      assert.match(await gate(), /^no: the target refused the login of app/);
      const admin = new Redis({ port: target.port, username: KIT.username, password: KIT.password });
      await admin.call('ACL', 'SETUSER', APP.username, `>${APP.password}`);
      admin.disconnect();
      assert.match(await gate(), /^yes: 2 users have the same rules on both servers; the logins of clients work/);
    } finally {
      client.disconnect();
      await shard.stop();
      await Promise.all([cache.stop(), target.stop()]);
    }
  },
);

test('a script of a user who may do everything is replicated, although ACL GETUSER is refused', { skip }, async () => {
  const cache = await startElastiCache({ token: TOKEN.password });
  const target = await startTestTarget({ config: { requirepass: TOKEN.password } });
  const shard = await startTestShard({
    source: cache.primary.urlFor(`:${TOKEN.password}@`),
    target: `redis://:${TOKEN.password}@127.0.0.1:${target.port}`,
  });
  const client = new Redis({ port: shard.port, password: TOKEN.password });
  const direct = new Redis({ port: target.port, password: TOKEN.password });
  try {
    await client.eval("return redis.call('incr', KEYS[1])", 1, 'n');
    await shard.settled();
    assert.match(await direct.info('commandstats'), /cmdstat_eval:calls=1/);
    assert.equal(await direct.get('n'), '1');
  } finally {
    client.disconnect();
    direct.disconnect();
    await shard.stop();
    await Promise.all([cache.stop(), target.stop()]);
  }
});

test('assess knows it by what it shows and refuses, and says what to read instead', { skip }, async (t) => {
  const cache = await startElastiCache({
    tls,
    users: rbac(),
    renamed: { exists: 'my-exists' },
    parameters: { 'maxmemory-policy': 'volatile-lru' },
  });
  const target = await startTestTarget({ config: { user: ['default off', fullLine(KIT), fullLine(APP)] } });
  try {
    const assess = async (url: string): Promise<Record<string, string>> => {
      const { stdout, stderr } = await runProgram(t, 'shadow-compare', [
        'assess',
        url,
        ...['--target', `redis://${loginOf(KIT)}127.0.0.1:${target.port}`, '--ca', tls.ca, '--for', '100ms', '--json'],
      ]);
      assert.equal(stderr, '');
      const { findings } = JSON.parse(stdout) as { findings: { about: string; what: string; means: string }[] };
      return Object.fromEntries(findings.map(({ about, what, means }) => [about, `${what} → ${means}`]));
    };
    const found = await assess(cache.primary.urlFor(loginOf(MIGRATION)));
    assert.match(found.elasticache, /is ElastiCache, or behaves so: INFO says so/);
    assert.match(
      found['parameter group'],
      /refuses CONFIG.*maxmemory-policy volatile-lru \(target: noeviction\); not known: notify-keyspace-events.*describe-cache-parameters/,
    );
    assert.match(found['renamed commands'], /has no EXISTS \(renamed or disabled\)/);
    assert.match(found.users, /lists its users without passwords \(app\)/);
    assert.match(found.permissions, /CONFIG GET: ERR unknown command.*offers to nobody/);
    // Without INFO's word, by what it lacks.
    const plain = await assess(`redis://${loginOf(MIGRATION)}127.0.0.1:${cache.node.port}`);
    assert.match(plain.elasticache, /it has none of BGREWRITEAOF, BGSAVE, CONFIG/);
  } finally {
    await Promise.all([cache.stop(), target.stop()]);
  }
});

test(
  'assess refuses Serverless, cluster mode and reader endpoints by name, and connects to none',
  { skip },
  async (t) => {
    for (const [host, why] of [
      ['cache-a-abc123.serverless.use1.cache.amazonaws.com', /ElastiCache Serverless, which is not supported/],
      ['clustercfg.cache-a.abc123.use1.cache.amazonaws.com', /cluster mode enabled, which is not supported/],
      ['replica.cache-a.abc123.use1.cache.amazonaws.com', /Use the primary endpoint, master\.cache-a\./],
    ] as const) {
      const { code, stderr } = await runProgram(t, 'shadow-compare', ['assess', `rediss://${host}:6379`]);
      assert.equal(code, 2);
      assert.match(stderr, why);
    }
  },
);

test('a source whose CLIENT is renamed is refused at the start, with what to allow', { skip }, async () => {
  const cache = await startElastiCache({ renamed: { client: 'my-client' } });
  const target = await startTestTarget();
  try {
    await assert.rejects(
      startTestShard({ source: cache.primary.url, target }),
      /the source .* refuses CLIENT LIST \(ERR unknown command.*give it back its name/,
    );
  } finally {
    await Promise.all([cache.stop(), target.stop()]);
  }
});

test('a needed command that is renamed closes the gate servers', { skip }, async () => {
  const cache = await startElastiCache({ renamed: { exists: 'my-exists', dump: 'my-dump' } });
  const target = await startTestTarget();
  const shard = await startTestShard({ source: cache.primary.url, target, default: { stage: 'off' } });
  try {
    const { gates } = await shard.shard.promote({ workload: 'default', dryRun: true });
    const { answer, evidence } = gates.find(({ name }) => name === 'servers')!;
    assert.equal(answer, 'no');
    assert.match(evidence, /^the source has no DUMP, EXISTS \(renamed or disabled\)/);
  } finally {
    await shard.stop();
    await Promise.all([cache.stop(), target.stop()]);
  }
});
