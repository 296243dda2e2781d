/**
 * The commands of README.md and docs/ run, as they stand there, against a migration on this machine, and end as they
 * should.
 *
 * Needs real processes: the commands of the pages, run as they stand there.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import { Redis } from 'ioredis';
import type { Running } from '../../../src/cli/local/folder.js';
import { startRedis, startTarget, stopServers, type LocalServer } from '../../../src/local/servers.js';
import { STAGES, type Stage } from '../../../src/route/stage.js';
import type { ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import { commandsIn, pages, ROOT, type Documented } from './documented.js';

/** What does not end by itself, or follows what was done before; and the test that runs it. */
const OTHER_TESTS: readonly (readonly [command: RegExp, file: string])[] = [
  [/^shadow-proxy --plan \S+$/, 'cli/daemon.test.ts'],
  [/^shadow-proxy .*--standby/, 'cli/standby.test.ts'],
  [/^shadow-compare guard .*--watch/, 'guard/live.long.test.ts'],
  [/^shadow-compare runbook .*(--next|--check|--until|--all|--fleet)/, 'runbook/pages.long.test.ts'],
  [/^shadow-compare status .*--watch/, 'cli/jobs.test.ts'],
  [/^shadow-compare assess .*--masters/, 'cli/assess-cluster.test.ts'],
  [/^shadow-compare (cancel|promote .*(--at|--window))/, 'cli/waiting.test.ts'],
  // The migration on this machine has one shard, of another name.
  [/^shadow-compare ask .*--shard/, 'cli/ask.test.ts'],
  [/^shadow-compare job --/, 'cli/job.test.ts'],
  [/^shadow-compare fence apply/, 'cli/fence.test.ts'],
  [/^shadow-compare plan init/, 'cli/plan-init.test.ts'],
  [/^shadow-compare notify .*--test/, 'cli/notify.test.ts'],
];

/** The stage in which a workload must be for a command, and the exit codes that it may have then. */
const NEEDS: readonly (readonly [command: RegExp, stage: Stage | null, ...exits: number[]])[] = [
  [/^promote \S+ --dry-run/, 'shadow', 0, 1],
  [/^promote \S+ --to live/, 'shadow', 0],
  [/^promote/, 'off', 0],
  [/^backfill/, 'dualwrite', 0],
  [/^verify/, 'shadow', 0],
  [/^rollback \S+ --drill/, 'shadow', 0],
  [/^rollback/, 'live', 0],
  // There is nothing to gain from KeyDB on an idle machine.
  [/^assess/, null, 0, 1],
  [/./, null, 0],
];

/** Those of npm that end soon and need nothing. */
const QUICK = ['npm run schema', 'npm run docs:commands', 'npm run loadtest -- --help', 'npm run loadtest -- profiles'];

const lineOf = ({ program, args }: Documented): string => [program, ...args].join(' ');
/** Each line once, where it stands first. */
const unique = (all: readonly Documented[]): Documented[] =>
  all.filter((each, i) => all.findIndex((other) => lineOf(other) === lineOf(each)) === i);

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

describe('the commands of the docs', () => {
  const documented = unique(
    pages()
      .filter((page) => page === 'README.md' || page.startsWith('docs/'))
      .flatMap((page) => commandsIn(page))
      .filter(({ whole }) => whole),
  );
  const otherTestOf = (each: Documented): string | undefined =>
    OTHER_TESTS.find(([command]) => command.test(lineOf(each)))?.[1];
  const run = documented.filter(
    (each) =>
      ['shadow-compare', 'shadow-proxy'].includes(each.program) &&
      otherTestOf(each) === undefined &&
      each.args[0] !== 'local',
  );
  const home = mkdtempSync(join(tmpdir(), 'docs-'));
  let running: Running;
  /** For what takes servers, not a plan: two Redis and a KeyDB that no proxy has. */
  let free: readonly LocalServer[];

  const program = async (
    name: 'shadow-compare' | 'shadow-proxy',
    args: readonly string[],
    meanwhile?: () => Promise<void>,
  ): Promise<Ended> => ended(process.execPath, [join(ROOT, `shadow-proxy/bin/${name}.mjs`), ...args], home, meanwhile);

  before(async () => {
    const { code, stdout, stderr } = await program('shadow-compare', ['local', 'up', '--json']);
    assert.equal(code, 0, stderr);
    running = JSON.parse(stdout) as Running;
    // Where a command is shown without --plan, it is in the folder.
    symlinkSync(running.plan, join(home, 'migration.yaml'));
    free = [await startRedis(), await startRedis(), await startTarget()];
    assert.equal((await program('shadow-compare', ['local', 'traffic', '--for', '1s'])).code, 0);
  });

  after(async () => {
    const { stdout } = await program('shadow-compare', ['local', 'down']);
    await stopServers();
    rmSync(home, { recursive: true, force: true });
    assert.match(stdout, /Stopped the migration|No migration runs/);
  });

  /** The documents' servers and files are those of this test; what takes minutes takes seconds. */
  function here({ program: name, args }: Documented): string[] {
    const [source, other, target] = free.map(({ url }) => url);
    const known: Readonly<Record<string, string>> = {
      'redis://10.0.0.11:6379': source,
      'redis://10.0.0.12:6379': other,
      'redis://10.0.0.21:6379': target,
      'migration.yaml': running.plan,
      '1h': '2s',
      '10m': '2s',
      '1m': '2s',
    };
    const mine = args.map((arg) => known[arg] ?? arg);
    const planless =
      ['run', 'assess', 'guard', 'demo', 'local', 'completion'].includes(args[0]) ||
      args.includes('--plan') ||
      name !== 'shadow-compare';
    return planless ? mine : [...mine, '--plan', running.plan];
  }

  async function bring(workload: string, stage: Stage): Promise<void> {
    for (;;) {
      const [{ workloads }] = JSON.parse(
        (await program('shadow-compare', ['status', '--json', '--plan', running.plan])).stdout,
      ) as ShardSnapshot[];
      const is = STAGES.indexOf(workloads.find(({ name }) => name === workload)!.stage);
      if (STAGES[is] === stage) return;
      const next = STAGES[is + Math.sign(STAGES.indexOf(stage) - is)];
      const forward = [
        'promote',
        workload,
        '--force-suspects',
        '--force-users',
        ...(next === 'live' ? ['--percent', '100'] : []),
      ];
      const { code, stderr } = await program('shadow-compare', [
        ...(STAGES.indexOf(next) > is ? forward : ['rollback', workload]),
        ...['--to', next, '--force', '--reason', 'the test brings it there', '--plan', running.plan],
      ]);
      assert.equal(code, 0, stderr);
      if (next === 'dualwrite')
        assert.equal(
          (await program('shadow-compare', ['backfill', '--workload', workload, '--plan', running.plan])).code,
          0,
        );
    }
  }

  // That ends the proxy.
  const last = (each: Documented): number => Number(each.args.includes('--offline'));
  for (const each of run.toSorted((a, b) => last(a) - last(b))) {
    test(`${each.where} ${each.text}`, async () => {
      const [, stage, ...exits] = NEEDS.find(([command]) => command.test(each.args.join(' ')))!;
      const workload =
        /^(promote|rollback)$/.test(each.args[0]) && !each.args[1].startsWith('-') ? each.args[1] : 'sessions';
      if (stage !== null) await bring(workload, stage);
      const args = here(each);
      if (each.args[0] === 'run' && !args.includes('--listen')) args.push('--listen', '');
      const listen = args.indexOf('--listen') + 1;
      if (listen > 0) args[listen] = `127.0.0.1:${await freePort()}`;
      const { code, stdout, stderr } = await program(
        each.program as 'shadow-compare',
        args,
        listen > 0 ? () => talk(args[listen]) : undefined,
      );
      assert.ok(exits.includes(code!), `exit code ${code}: ${stdout}${stderr}`);
      assert.notEqual(stdout + stderr, '');
      assert.doesNotMatch(stderr, / {4}at /, 'no stack');
      const out = args.indexOf('--out') + 1;
      if (out > 0) assert.ok(existsSync(join(home, args[out])), args[out]);
    });
  }

  for (const command of QUICK) {
    test(command, async () => {
      const { code, stdout, stderr } = await ended('npm', command.split(' ').slice(1), ROOT);
      assert.equal(code, 0, stdout + stderr);
    });
  }

  test('are run here, or by the test that is named', () => {
    assert.ok(run.length > 20, `${run.length}`);
    for (const [command, file] of OTHER_TESTS) {
      assert.ok(
        documented.some((each) => command.test(lineOf(each))),
        `${command} is in no document`,
      );
      assert.ok(existsSync(join(ROOT, 'shadow-proxy/test/integration', file)), file);
    }
  });
});

async function ended(
  command: string,
  args: readonly string[],
  cwd: string,
  meanwhile?: () => Promise<void>,
): Promise<Ended> {
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  const said = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()));
  const timer = setTimeout(() => child.kill('SIGKILL'), 120_000);
  const closed = once(child, 'close') as Promise<[number | null]>;
  await meanwhile?.();
  const [code] = await closed;
  clearTimeout(timer);
  return { code, ...said };
}

/** A client of the proxy at `address`, from when it listens until it ends. */
async function talk(address: string): Promise<void> {
  const [host, port] = address.split(':');
  const client = new Redis({
    host,
    port: Number(port),
    maxRetriesPerRequest: null,
    retryStrategy: (times) => (times < 200 ? 50 : null),
  });
  client.on('error', () => undefined);
  await client.set('greeting', 'hello');
  assert.equal(await client.get('greeting'), 'hello');
  client.disconnect();
}
