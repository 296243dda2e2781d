/**
 * What a release promises to the one before it (docs/upgrading.md): its plan, its metrics, and its state folder, which
 * today's proxy takes over. `fixtures/` has what each release left.
 *
 * Needs real files: state folders, plans and metrics that earlier releases left.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { hashKey } from '../../../src/compare/redact.js';
import { loadPlan } from '../../../src/plan/load.js';
import { readHashKey } from '../../../src/storage/hash-key.js';
import { readJournal } from '../../../src/storage/journal-reader.js';
import { readHistory, readState } from '../../../src/storage/state.js';
import type { LedgerEntry } from '../../../src/telemetry/ledger.js';
import { METRICS } from '../../../src/telemetry/metrics.js';
import { runProgram } from '../cli/process.js';
import { planFor, start, status } from '../cli/running.js';
import { scratch, type PlanObject } from '../../support/plans.js';
import { withServers, type Pair } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { LEFT, MISMATCH, workloads } from './previous.js';

const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url));
const FIXTURES = join(ROOT, 'shadow-proxy/test/integration/upgrade/fixtures');
const RELEASES = readdirSync(FIXTURES).filter((name) => /^\d/.test(name));

/** A directory with the state folder of a release. */
function stateOf(t: TestContext, release: string): { directory: string; folder: string } {
  const directory = scratch(t);
  execFileSync('tar', [
    '--extract',
    '--gzip',
    '--file',
    join(FIXTURES, release, 'state.tar.gz'),
    '--directory',
    directory,
  ]);
  return { directory, folder: join(directory, 'state', 'a') };
}

const planOn = (servers: Pair): Promise<PlanObject> =>
  planFor(servers, (plan) => Object.assign(plan, { workloads, onAuthorityChange: 'accept', state: './state' }));

for (const release of RELEASES) {
  test(`today's proxy takes over the state folder of ${release}`, async (t) => {
    await withServers(async (servers) => {
      const { directory, folder } = stateOf(t, release);
      const before = (await readState(folder, 'a'))!;
      const suspects = readJournal(folder, before).keys.map(({ key }) => key.toString());
      assert.deepEqual(
        LEFT.filter((key) => !suspects.includes(key)),
        [],
        'the journal names what was in flight',
      );
      const evidence = JSON.parse(readFileSync(join(folder, 'evidence.json'), 'utf8')) as {
        value: { workloads: { sessions: { compared: number; since: string } } };
      };
      const [source, target] = [servers.source, servers.target].map(({ port }) => new Redis(port));
      t.after(() => [source, target].forEach((each) => each.disconnect()));
      for (const key of LEFT) await source.set(key, 'written last');

      const { admin } = await start(t, await planOn(servers), directory);
      const [shard] = await status(admin);
      assert.deepEqual(
        shard.workloads.map(({ name, stage, percent }) => [name, stage, percent]),
        [
          ['sessions', 'shadow', 100],
          ['carts', 'live', 10],
          ['flags', 'off', 100],
          ['default', 'off', 100],
        ],
      );
      await until(async () => (await target.mget(...LEFT)).every((value) => value === 'written last'));
      const { shards } = (await (await fetch(`${admin}/api/evidence`)).json()) as {
        shards: { workloads: { workload: string; evidence: { since: string; compared: number } }[] }[];
      };
      const { compared, since } = evidence.value.workloads.sessions;
      assert.ok(compared > 100, `${compared}`);
      const sessions = shards[0].workloads.find(({ workload }) => workload === 'sessions')!.evidence;
      assert.deepEqual([sessions.since, sessions.compared], [since, compared]);

      const events = (await readHistory(folder, 1_000)).map(({ event }) => event);
      assert.ok(
        !events.includes('unreadable') && events.filter((event) => event === 'owner').length === 2,
        `${events}`,
      );
      const ledger = readFileSync(join(folder, 'ledger.jsonl'), 'utf8').trim().split('\n');
      const hashes = ledger.map((line) => (JSON.parse(line) as LedgerEntry).key!.hash);
      assert.ok(hashes.includes(hashKey(Buffer.from(MISMATCH), readHashKey(folder)!)), `${hashes}`);
    });
  });

  test(`the plan of ${release} is a plan today`, () => {
    assert.equal(loadPlan(join(FIXTURES, release, 'migration.yaml'), {}).workloads.length, 4);
  });

  test(`each metric of ${release} is there, or docs/upgrading.md says what became of it`, () => {
    const before = JSON.parse(readFileSync(join(FIXTURES, release, 'metrics.json'), 'utf8')) as Metric[];
    const now = new Map(METRICS.map(({ name, ...rest }) => [name, rest]));
    const page = readFileSync(join(ROOT, 'docs/upgrading.md'), 'utf8');
    assert.ok(before.length > 50, `${before.length}`);
    for (const { name, type, labels } of before) {
      if (page.includes(`\`${name}\``)) continue;
      const metric = now.get(name);
      assert.ok(metric !== undefined, `${name} is not there`);
      assert.deepEqual([metric.type, labels.filter((label) => !metric.labels.includes(label))], [type, []], name);
    }
  });
}

interface Metric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
}

test('a state folder of a newer release is refused by its name, and left as it is', async (t) => {
  await withServers(async (servers) => {
    const { directory, folder } = stateOf(t, RELEASES[0]);
    const file = join(folder, 'state.json');
    const newer = JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), version: 3, more: 1 });
    writeFileSync(file, newer);
    writeFileSync(join(directory, 'plan.yaml'), stringify(await planOn(servers)));
    const { code, stderr } = await runProgram(t, 'shadow-proxy', ['--plan', join(directory, 'plan.yaml')]);
    assert.equal(code, 2);
    assert.match(stderr, /state\.json has version 3, and this proxy reads 2: start the release that wrote it/);
    assert.equal(readFileSync(file, 'utf8'), newer);
  });
});
