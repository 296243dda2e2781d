/**
 * A server of a release that this one does not know: named at the start, by the gate, by assess and by plan init.
 *
 * Needs real servers: INFO and COMMAND of a server that reports a newer release.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { newerServers, type ServerFacts } from '../../../src/stages/servers-gate.js';
import { NewerRelay } from '../../support/newer-relay.js';
import { withServers } from '../../support/servers.js';
import { startTestShard, type TestShard } from '../../support/shard.js';
import { runProgram } from '../cli/process.js';

const OFF = { default: { stage: 'off' } } as const;
const UNKNOWN = /^the source is Redis 9+\.9+: not known to this release, whose newest is Redis [\d.]+; its DUMP is RDB/;

const gate = async ({ shard }: TestShard, acceptVersion = false): Promise<string> => {
  const reason = acceptVersion ? 'rehearsed' : undefined;
  const { gates } = await shard.promote({ workload: 'default', dryRun: true, acceptVersion, reason });
  const { answer, evidence } = gates.find(({ name }) => name === 'servers')!;
  return `${answer}: ${evidence}`;
};

test('the gate servers is closed until the version is accepted, and then stays open for that release', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'newer-'));
  t.after(() => rmSync(folder, { recursive: true }));
  await withServers(async ({ source, target }) => {
    const relay = await NewerRelay.to(source.port);
    t.after(() => relay.stop());
    const recorded: unknown[] = [];
    const options = { ...OFF, source: relay, target, stateDir: folder };
    const shard = await startTestShard({ ...options, recorded: (event) => recorded.push(event) });
    try {
      assert.match((await gate(shard)).replace(/^no: /, ''), UNKNOWN);
      assert.match(await gate(shard), /or, after a rehearsal with such a server, promote with --accept-version/);
      await assert.rejects(shard.shard.promote({ workload: 'default' }), { code: 'gates-closed' });
      await assert.rejects(shard.shard.promote({ workload: 'default', acceptVersion: true }), /--reason/);
      assert.match(await gate(shard, true), /^yes: .*accepted: the source is Redis 9/);
      assert.deepEqual((await shard.state()).acceptedReleases, []);
      await shard.shard.promote({ workload: 'default', acceptVersion: true, reason: 'rehearsed', by: 'ada' });
      assert.equal(shard.snapshot().workloads[0].stage, 'dualwrite');
      const [release] = (await shard.state()).acceptedReleases;
      assert.match(release, /^Redis 9+\.9+$/);
      assert.deepEqual(
        recorded.filter((event) => (event as { event: string }).event === 'version'),
        [{ event: 'version', versions: [release], by: 'ada', reason: 'rehearsed' }],
      );
      assert.match(await gate(shard), /^yes: .*accepted: the source is Redis 9/);
    } finally {
      await shard.stop();
    }
    const again = await startTestShard({ ...options, firstStart: false });
    t.after(() => again.stop());
    assert.match(await gate(again), /^yes: /);
  });
});

test('another release than the accepted one closes the gate again', () => {
  const facts = (name: string): ServerFacts => ({
    identity: null,
    unreachable: '',
    address: null,
    refusal: null,
    lacks: [],
    selectRefusal: null,
    newer: { name, rdbVersion: 16, evidence: `${name}: not known` },
    shards: [],
  });
  const servers = { source: facts('Redis 8.14'), target: facts('Redis 8.12') };
  assert.deepEqual(newerServers(servers, ['Redis 8.12']), [
    { name: 'Redis 8.14', evidence: 'the source is Redis 8.14: not known', accepted: false },
    { name: 'Redis 8.12', evidence: 'the target is Redis 8.12: not known', accepted: true },
  ]);
});

test('assess and plan init name it', async (t) => {
  await withServers(async ({ source, target }) => {
    const relays = await Promise.all([source, target].map(({ port }) => NewerRelay.to(port)));
    t.after(() => Promise.all(relays.map((relay) => relay.stop())));
    const [from, to] = relays.map(({ url }) => url);
    const assessed = await runProgram(t, 'shadow-compare', ['assess', from, '--target', to, '--for', '1s', '--json']);
    const { findings } = JSON.parse(assessed.stdout) as { findings: { about: string; weight: string; what: string }[] };
    const named = findings.filter(({ about, what }) => about === 'version' && /not known to this release/.test(what));
    assert.deepEqual(
      named.map(({ weight }) => weight),
      ['first', 'first'],
      assessed.stdout + assessed.stderr,
    );
    const folder = mkdtempSync(join(tmpdir(), 'newer-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const out = join(folder, 'migration.yaml');
    const drafted = await runProgram(t, 'shadow-compare', [
      'plan',
      'init',
      '--from',
      from,
      '--target',
      to,
      '--out',
      out,
    ]);
    assert.equal(drafted.code, 0, drafted.stderr);
    for (const url of [from, to]) {
      const said = drafted.stdout.replaceAll(/\s+/g, ' ');
      assert.match(said, new RegExp(`${url.replaceAll('.', '\\.')} is \\w+ 9\\.9: not known to this release`), url);
    }
  });
});
