/**
 * Plan files: defaults, references to other files, and what is wrong with them.
 *
 * Needs real files: plan files, files of secrets and certificates, and what is wrong with them.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PlanError } from '../../../src/plan/errors.js';
import { loadPlan } from '../../../src/plan/load.js';
import { allWorkloads } from '../../../src/plan/plan.js';
import { planJsonSchema } from '../../../src/plan/schema.js';
import { makeCertificates } from '../../support/servers.js';
import { problemsOf, scratch, smallPlan, printProblems, toPlan } from '../../support/plans.js';
import { needs } from '../../support/needs.js';

/** The repository, seen from the compiled test. */
const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url));

const load = (t: TestContext, yaml: string, env: NodeJS.ProcessEnv = {}): ReturnType<typeof loadPlan> => {
  const directory = scratch(t, { 'plan.yaml': yaml });
  return loadPlan(join(directory, 'plan.yaml'), env);
};

const failure = (t: TestContext, yaml: string): string => {
  try {
    load(t, yaml);
  } catch (error) {
    assert.ok(error instanceof PlanError);
    return error.message.replaceAll(/^.*plan\.yaml/gm, 'plan.yaml');
  }
  throw new assert.AssertionError({ message: 'the plan was accepted' });
};

const HEAD = `version: 1
name: test
shards:
  - name: a
    listen: redis://127.0.0.1:6400
    source: redis://127.0.0.1:6379
    target: redis://127.0.0.1:6390
`;

describe('a plan file', () => {
  test('in the repository is right, and is the one that editors know', () => {
    const plan = loadPlan(join(ROOT, 'migration.example.yaml'), {});
    assert.deepEqual(
      allWorkloads(plan).map(({ name }) => name),
      ['sessions', 'rate-limits', 'leaderboards', 'feature-flags', 'default'],
    );
    const schema: unknown = JSON.parse(readFileSync(join(ROOT, 'shadow-proxy/migration.schema.json'), 'utf8'));
    assert.deepEqual(schema, JSON.parse(JSON.stringify(planJsonSchema())), 'run: npm run schema');
  });

  test('with nothing but shards gets every default', (t) => {
    const plan = load(t, HEAD);
    assert.deepEqual(plan.limits, {
      queueBytes: 64 * 1024 ** 2,
      clients: 10_000,
      clientOutputBytes: 256 * 1024 ** 2,
      totalClientBytes: 256 * 1024 ** 2,
      transactionBytes: 64 * 1024 ** 2,
      loginMs: 10_000,
      idleMs: 0,
      connectMs: 5_000,
      downAfterMs: 3_000,
      silentMs: 1_000,
      flipMs: 5_000,
      drainMs: 10_000,
      largeKeyBytes: 1024 ** 2,
      largeKeyElements: 10_000,
    });
    assert.deepEqual(plan.ledger, { maxBytes: 16 * 1024 ** 2, files: 4, redact: true, keepDays: 30 });
    assert.deepEqual(plan.admin, { host: '127.0.0.1', port: 9400, token: null });
    assert.deepEqual(plan.gates, {
      minCompared: 100_000,
      minMinutes: 60,
      maxMismatches: 0,
      maxP99Ratio: 1.2,
      maxAllowedShare: 0.25,
      maxInconclusiveShare: 0.001,
      maxVerifyHours: 24,
      unsupportedHours: 24,
      allowUnsupported: {},
      acceptSettings: [],
      acceptRights: [],
      drill: true,
      steps: true,
    });
    assert.deepEqual(plan.default, {
      name: 'default',
      keys: [],
      channels: [],
      class: 'general',
      stage: 'off',
      percent: 100,
      writer: null,
      shadowReads: 100,
      counterLayout: 'plain',
      failover: 'manual',
      gates: plan.gates,
    });
    assert.deepEqual(plan.workloads, []);
    assert.ok(plan.state.endsWith('/state') && plan.state.startsWith('/'));
  });

  test('has the defaults that the example shows', () => {
    const example = loadPlan(join(ROOT, 'migration.example.yaml'), {});
    const least = toPlan(smallPlan());
    assert.deepEqual(example.limits, least.limits);
    assert.deepEqual(example.ledger, least.ledger);
    assert.deepEqual(example.gates, least.gates);
    assert.deepEqual(example.admin, least.admin);
  });

  test('hands the plan’s gates down to workloads, which may have their own', () => {
    const plan = toPlan({
      ...smallPlan(),
      gates: { minCompared: 5 },
      workloads: [{ name: 'w', keys: ['*'], gates: { maxMismatches: 2 } }],
    });
    assert.deepEqual(plan.workloads[0].gates, { ...plan.gates, minCompared: 5, maxMismatches: 2 });
  });

  test('hands the plan’s failover down to workloads, which may have their own', () => {
    assert.equal(toPlan(smallPlan()).default.failover, 'manual');
    const plan = toPlan({
      ...smallPlan(),
      failover: 'automatic',
      workloads: [{ name: 'w', keys: ['w*'], failover: 'manual' }],
    });
    assert.deepEqual([plan.workloads[0].failover, plan.default.failover], ['manual', 'automatic']);
  });

  test('takes sizes as numbers or with a unit', () => {
    const sized = (queueBytes: unknown): number => toPlan({ ...smallPlan(), limits: { queueBytes } }).limits.queueBytes;
    assert.deepEqual(
      [sized(1000), sized('1000'), sized('2KiB'), sized('3 MiB'), sized('1GiB')],
      [1000, 1000, 2048, 3 * 1024 ** 2, 1024 ** 3],
    );
  });
});

describe('an error of a plan file names place, value and what is allowed:', () => {
  test('a wrong word', (t) => {
    const message = failure(t, `${HEAD}workloads:\n  - name: s\n    keys: ["s:*"]\n    stage: shadwo\n`);
    assert.equal(
      message,
      'plan.yaml:11:12: workloads[0].stage is "shadwo": off, dualwrite, shadow, live, rampdown or complete is allowed; did you mean shadow?',
    );
  });

  test('a setting that the gate servers does not compare', (t) => {
    assert.match(
      failure(t, `${HEAD}gates: { acceptSettings: [notify-keyspace-event] }\n`),
      /gates\.acceptSettings\[0\] is "notify-keyspace-event": client-output-buffer-limit, .*, zset-max-ziplist-value or unreadable is allowed; did you mean notify-keyspace-events\?$/,
    );
  });

  test('an unknown key, at the key', (t) => {
    assert.match(
      failure(t, `${HEAD}    tarket: x\n`),
      /^plan\.yaml:8:5: shards\[0\]\.tarket is not known here: did you mean target\?$/,
    );
    assert.match(
      failure(t, `${HEAD}colour: red\n`),
      /^plan\.yaml:8:1: colour is not known here: version, name, shards, .* are allowed$/,
    );
    assert.match(
      failure(t, HEAD.replace('target: redis://127.0.0.1:6390', 'target: { url: redis://h, pasword: x }')),
      /:7:31: shards\[0\]\.target\.pasword .*password/,
    );
  });

  test('a missing key, at what lacks it', (t) => {
    assert.match(
      failure(t, HEAD.replace(/ {4}target.*\n/, '')),
      /^plan\.yaml:4:5: shards\[0\]\.target is missing: a string or a mapping$/,
    );
    assert.match(failure(t, ''), /is empty: a plan is a mapping/);
  });

  test('several at once, in the order of the file', (t) => {
    const lines = failure(t, `${HEAD}state:\nlimits: { clients: 0, drainMs: 1.5 }\nversion2: 1\n`).split('\n');
    assert.deepEqual(
      lines.map((line) => line.split(' ')[0]),
      ['plan.yaml:8:7:', 'plan.yaml:9:20:', 'plan.yaml:9:32:', 'plan.yaml:10:1:'],
    );
  });

  test('a bad URL, without its password', (t) => {
    const message = failure(t, HEAD.replace('redis://127.0.0.1:6379', 'redis://u:hunter2@h:99999'));
    assert.equal(message, 'plan.yaml:6:13: shards[0].source has a port that is not a number from 0 to 65535');
  });

  test('a rule between parts of the plan', (t) => {
    assert.match(
      failure(t, HEAD.replace('6390', '6379')),
      /^plan\.yaml:7:13: shards\[0\]\.target is the source itself/,
    );
  });

  test('broken YAML, and a key given twice', (t) => {
    assert.match(failure(t, `${HEAD}state: [1\n`), /^plan\.yaml:9:1: is not valid YAML: /);
    assert.match(failure(t, `${HEAD}name: again\n`), /^plan\.yaml:8:1: is not valid YAML: Map keys must be unique$/);
  });

  test('no file', () => {
    assert.throws(
      () => loadPlan('/nowhere/plan.yaml'),
      /plan\.yaml: cannot be read \(ENOENT\): give the path of the plan with --plan/,
    );
  });

  test('false for a stage, which is what other YAML readers make of off', () => {
    assert.match(printProblems(problemsOf((plan) => (plan.default = { stage: false }))), /write "off" in quotes/);
  });

  test('a secret is never shown', () => {
    assert.doesNotMatch(printProblems(problemsOf((plan) => (plan.admin = { token: 12345 }))), /12345/);
    assert.doesNotMatch(printProblems(problemsOf((plan) => (plan.version = 'redis://u:hunter2@h'))), /hunter2/);
  });
});

describe('secrets', () => {
  test('come from the environment and from files, without the last line break', (t) => {
    const directory = scratch(t, { pw: 'p@ss\n', 'sentinel-pw': 'sp', token: 't0ken\n' });
    const plan = smallPlan();
    plan.shards[0].source = 'redis://app:${PW}@127.0.0.1:6379';
    plan.shards[0].target = {
      url: 'redis+sentinel://kdb@s1,s2/m',
      passwordFile: 'pw',
      sentinelUsername: 'su',
      sentinelPasswordFile: 'sentinel-pw',
    };
    plan.admin = { listen: '0.0.0.0:9400', tokenFile: 'token' };
    const { shards, admin } = toPlan(plan, { PW: 'a b@c' }, directory);
    assert.equal(shards[0].source.password, 'a b@c');
    const { target } = shards[0];
    assert.ok(target.kind === 'sentinel');
    assert.deepEqual(
      [target.username, target.password, target.sentinelUsername, target.sentinelPassword],
      ['kdb', 'p@ss', 'su', 'sp'],
    );
    assert.equal(target.label, 'redis+sentinel://kdb:***@s1:26379,s2:26379/m');
    assert.equal(admin.token, 't0ken');
  });

  test('that cannot be read are named with their path', () => {
    const problems = problemsOf((plan) => (plan.shards[0].target = { url: 'redis://h', passwordFile: 'nope' }));
    assert.equal(
      printProblems(problems),
      'shards.0.target.passwordFile: is /nowhere/nope, which cannot be read (ENOENT)',
    );
    assert.match(
      printProblems(problemsOf((plan) => (plan.shards[0].source = 'redis://:${NOPE}@h'))),
      /environment variable NOPE, which is not set/,
    );
  });

  test('are given once only', (t) => {
    const directory = scratch(t, { pw: 'x', empty: '\n' });
    const both = problemsOf(
      (plan) => (plan.shards[0].target = { url: 'redis://:y@h', passwordFile: 'pw' }),
      {},
      directory,
    );
    assert.match(printProblems(both), /passwordFile: and a password in url are both given: leave one out/);
    assert.match(
      printProblems(problemsOf((plan) => (plan.admin = { token: 'x', tokenFile: 'pw' }), {}, directory)),
      /tokenFile: and token are both given/,
    );
    assert.match(
      printProblems(problemsOf((plan) => (plan.admin = { tokenFile: 'empty' }), {}, directory)),
      /contains an empty token/,
    );
  });
});

describe('TLS', () => {
  test('reads certificates for both servers and for clients', async (t) => {
    if (!(await needs(t, 'openssl'))) return;
    const { ca, cert, key } = makeCertificates();
    const plan = smallPlan();
    plan.shards[0] = {
      name: 'a',
      listen: 'rediss://127.0.0.1:6400',
      source: 'rediss://127.0.0.1:6379',
      target: 'rediss://127.0.0.1:6390',
      tls: { listen: { cert, key, ca, requireClientCert: true }, source: { ca, servername: 'redis.internal' } },
    };
    const { listen, source, target } = toPlan(plan).shards[0];
    assert.ok(listen.tls?.requireClientCert && listen.tls.ca);
    assert.equal(listen.tls.cert.toString(), readFileSync(cert, 'utf8'));
    assert.deepEqual(source.tls, { ca: readFileSync(ca), servername: 'redis.internal' });
    assert.deepEqual(target.tls, {}, 'Node’s own authorities');
  });

  test('that would be left unused, or half of it, is an error', async (t) => {
    if (!(await needs(t, 'openssl'))) return;
    const { ca, cert, key } = makeCertificates();
    const cases: [(shard: Record<string, unknown>) => void, RegExp][] = [
      [(shard) => (shard.tls = { source: { ca } }), /tls\.source: is given, but source is redis:\/\/, without TLS/],
      [(shard) => (shard.tls = { listen: { cert, key } }), /tls\.listen: is given, but listen is redis:\/\//],
      [
        (shard) => (shard.listen = 'rediss://127.0.0.1:6400'),
        /listen: is rediss:\/\/, so tls\.listen with cert and key is needed/,
      ],
      [
        (shard) => Object.assign(shard, { source: 'rediss://h', tls: { source: { cert } } }),
        /tls\.source\.cert: is given alone/,
      ],
      [
        (shard) => Object.assign(shard, { source: 'rediss://h', tls: { source: { cert: ca, key } } }),
        /tls\.source: holds PEM files that cannot be used together/,
      ],
      [
        (shard) =>
          Object.assign(shard, { listen: 'rediss://h:1', tls: { listen: { cert, key, requireClientCert: true } } }),
        /requireClientCert: is true, so ca is needed/,
      ],
    ];
    for (const [change, expected] of cases)
      assert.match(printProblems(problemsOf((plan) => change(plan.shards[0] as Record<string, unknown>))), expected);
  });
});
