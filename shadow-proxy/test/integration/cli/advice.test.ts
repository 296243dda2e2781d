/**
 * Every command that gates, the status page, `status` and `promote` name as the next step is run in the state in which
 * it is named, by the real program against a real proxy: it is accepted, and answers or changes something.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { attentionOf } from '../../../src/page/attention.js';
import type { ShardEvidence } from '../../../src/stages/next-stage.js';
import { withServers, type Pair } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { Program, runProgram } from './process.js';
import { planFor, start, status } from './running.js';

const GATES = { minCompared: 1, minMinutes: 0.01, maxP99Ratio: 10_000 };
/** `status --watch` shows until it is stopped. */
const WATCHES = /--watch\b/;

/** What may be asked of a proxy in one state. */
class Scene {
  readonly seen = new Set<string>();

  private constructor(
    private readonly t: TestContext,
    readonly servers: Pair,
    readonly running: Awaited<ReturnType<typeof start>>,
    readonly client: Redis,
    readonly source: Redis,
    readonly target: Redis,
  ) {}

  static async open(t: TestContext, servers: Pair): Promise<Scene> {
    const plan = await planFor(servers, (planned) =>
      Object.assign(planned, { gates: GATES, knownClients: ['127.0.0.1'] }),
    );
    const running = await start(t, plan);
    const direct = (url: string): Redis => {
      const client = new Redis(url, { lazyConnect: false });
      client.on('error', () => undefined);
      t.after(() => client.disconnect());
      return client;
    };
    return new Scene(t, servers, running, running.connect(), direct(servers.source.url), direct(servers.target.url));
  }

  run(...args: string[]): ReturnType<typeof runProgram> {
    return runProgram(this.t, 'shadow-compare', [...args, '--plan', this.running.file]);
  }

  async moved(...args: string[]): Promise<void> {
    const { code, stdout, stderr } = await this.run(...args);
    assert.equal(code, 0, `${args.join(' ')}: ${stdout}${stderr}`);
  }

  /** The commands that are named now, by who names them. */
  async named(): Promise<Map<string, string>> {
    const { shards } = (await (await fetch(`${this.running.admin}/api/evidence`)).json()) as {
      shards: ShardEvidence[];
    };
    const [snapshot] = await status(this.running.admin);
    const printed = [await this.run('status'), await this.run('promote', 'sessions', '--dry-run')]
      .flatMap(({ stdout }) => stdout.replace(/\s+/g, ' ').split('npx --no-install shadow-compare ').slice(1))
      .flatMap((text) => /^(.*?) --plan /.exec(text)?.[1] ?? [])
      // A template with names to fill in.
      .filter((text) => !/[A-Z]{4}/.test(text));
    return new Map([
      ...printed.map((command) => [command, 'printed'] as const),
      ...attentionOf(snapshot).flatMap(({ command, text }) =>
        command === undefined ? [] : [[command, `page: ${text}`] as const],
      ),
      ...shards.flatMap(({ workloads }) =>
        workloads.flatMap(({ workload, gates }) =>
          gates.flatMap(({ command, name }) =>
            command === undefined ? [] : [[command, `gate ${name} of ${workload}`] as const],
          ),
        ),
      ),
    ]);
  }

  /** Runs what is named in this state, which has this command in it. @returns the commands */
  async follows(state: string, wanted?: string): Promise<string[]> {
    const named = await this.named();
    assert.ok(
      wanted === undefined || named.has(wanted),
      `${state}: ${wanted} is not in ${[...named.keys()].join('; ')}`,
    );
    for (const [command, by] of named) {
      const [args, what] = [command.split(' '), `in ${state}, ${by} names: ${command}`];
      this.seen.add(command);
      if (WATCHES.test(command)) {
        const program = new Program(this.t, 'shadow-compare', [...args, '--plan', this.running.file]);
        await program.prints(/shard a/);
        program.signal('SIGINT');
        continue;
      }
      const { code, stdout, stderr } = await this.run(...args);
      // 1 is a finding, such as lost keys. A refusal has its reason on standard error, and prints no answer.
      assert.ok(
        (code === 0 || code === 1) && stdout !== '' && !/refused|is in (off|complete)|frozen:/.test(stderr),
        `${what}\n${code}\n${stdout}\n${stderr}`,
      );
    }
    return [...named.keys()];
  }
}

test('every command that is named as the next step is accepted in the state in which it is named', async (t) => {
  await withServers(async (servers) => {
    const scene = await Scene.open(t, servers);
    const { client, source, target, running } = scene;
    const shard = async (): Promise<Awaited<ReturnType<typeof status>>[0]> => (await status(running.admin))[0];
    for (let i = 0; i < 50; i++) await client.set(`session:${i}`, `v${i}`);

    // Writes that bypass the proxy before anything is copied need no repair.
    const closed = async (): Promise<string> => (await scene.run('promote', 'sessions', '--dry-run')).stdout;
    await until(async () => {
      await source.set('session:bypassing', Date.now());
      return /NO\s.*bypass/.test(await closed());
    }, 60_000);
    assert.deepEqual(await scene.follows('off, with writes that bypass the proxy'), []);

    await scene.moved('promote', 'sessions', '--force', '--reason', 'the test goes on');
    await scene.follows('dualwrite, nothing copied', 'backfill --workload sessions');
    await until(
      async () => (await shard()).workloads[0].suspect === null && (await shard()).suspects.total === 0,
      30_000,
    );
    await scene.follows('dualwrite, copied');
    await scene.moved('promote', 'sessions', '--force', '--reason', 'the test goes on');

    await scene.follows('shadow');
    await target.set('session:1', 'another value');
    await scene.run('verify', '--workload', 'sessions', '--again');
    await scene.follows('shadow, with differences', 'verify --workload sessions --repair');
    // What bypassed the proxy closes a gate for a minute; then nothing is left but the drill.
    await until(async () => (await scene.follows('shadow, repaired')).includes('rollback sessions --drill'), 120_000);
    await target.set('session:2', 'another value');
    await client.get('session:2');
    await until(async () => (await shard()).workloads[0].mismatches > 0, 30_000);
    await scene.follows('shadow, with a mismatch', 'verify --workload sessions');

    await scene.moved(
      'promote',
      'sessions',
      '--to',
      'live',
      '--percent',
      '100',
      '--force',
      '--reason',
      'the test goes on',
    );
    assert.deepEqual(
      [...(await scene.named()).keys()].filter((command) => command.includes('--drill')),
      [],
    );
    await scene.follows('live, with a mismatch', 'rollback sessions');

    await servers.source.restart();
    await until(
      async () =>
        (await client.set('session:0', 'new').catch(() => null)) === 'OK' ||
        (await running
          .connect()
          .set('session:0', 'new')
          .catch(() => null)) === 'OK',
      30_000,
    );
    await until(async () => (await shard()).frozen !== null, 30_000);
    const frozen = await scene.follows('frozen', 'accept --dry-run');
    assert.ok(!frozen.some((command) => /backfill|--repair/.test(command)), frozen.join());
    t.diagnostic(`run as they were named: ${[...scene.seen].sort().join('; ')}`);
  });
});
