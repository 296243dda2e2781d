/**
 * `shadow-compare run` from its start to its verdict.
 *
 * Needs real processes: `run` and `demo`: output, exit codes, Ctrl-C, and nothing that is left behind.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import { Redis } from 'ioredis';
import { scratch } from '../../support/plans.js';
import { withServers, type Pair } from '../../support/servers.js';
import { startTestShard } from '../../support/shard.js';
import { needs } from '../../support/needs.js';
import { Program, runCommand, runCommandWith, runProgram } from './process.js';

const toServers = ({ source, target }: Pair): string[] => [
  '--source',
  source.url,
  '--target',
  target.url,
  '--listen',
  '127.0.0.1:0',
];

async function start(
  t: TestContext,
  servers: Pair,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<{ program: Program; client: Redis; direct: Redis }> {
  const program = new Program(t, 'shadow-compare', ['run', ...toServers(servers), ...args], env);
  const [, port] = await program.prints(/Point a client at redis:\/\/127\.0\.0\.1:(\d+)/);
  const connect = (to: number): Redis => {
    const client = new Redis({ host: '127.0.0.1', port: to, maxRetriesPerRequest: 0, retryStrategy: null });
    client.on('error', () => undefined);
    t.after(() => client.disconnect());
    return client;
  };
  return { program, client: connect(Number(port)), direct: connect(servers.target.port) };
}

/** Waits for the mirror. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 200 && !(await holds()); i++) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** A folder for temporary files that no other process uses. */
function temporary(t: TestContext): { readonly env: NodeJS.ProcessEnv; leftovers(): string[] } {
  const folder = scratch(t);
  return { env: { TMPDIR: folder }, leftovers: () => readdirSync(folder) };
}

describe('shadow-compare run', () => {
  test('holds where both servers answered alike, and leaves nothing behind', async (t) => {
    await withServers(async (servers) => {
      const { env, leftovers } = temporary(t);
      const { program, client, direct } = await start(t, servers, [], env);
      for (let i = 0; i < 50; i++) {
        await client.set(`k${i}`, i);
        assert.equal(await client.get(`k${i}`), String(i));
      }
      program.signal('SIGINT');
      assert.equal(await program.exit(), 0, program.stdout + program.stderr);
      assert.match(program.stdout, /\nHOLDS: 1\d\d pairs of replies compared, no mismatch/);
      assert.equal(await direct.get('k49'), '49');
      assert.deepEqual(leftovers(), []);
    });
  });

  test('ends by itself after --for, and without a client says that it could not tell', async (t) => {
    await withServers(async (servers) => {
      const { code, stdout } = await runProgram(t, 'shadow-compare', ['run', ...toServers(servers), '--for', '300ms']);
      assert.equal(code, 3);
      assert.match(stdout, /INCONCLUSIVE: no client sent a command: point a client at the proxy/);
    });
  });

  test('does not hold where a value was changed behind its back, names it redacted, and keeps the ledger', async (t) => {
    await withServers(async (servers) => {
      const ledger = join(scratch(t), 'kept');
      const { program, client, direct } = await start(t, servers, ['--ledger', ledger]);
      await client.set('session:42', 'right');
      await until(async () => (await direct.get('session:42')) === 'right');
      await direct.set('session:42', 'wrong-secret');
      assert.equal(await client.get('session:42'), 'right');
      program.signal('SIGINT');
      assert.equal(await program.exit(), 1);
      assert.match(
        program.stdout,
        /The last 1 of 1 recorded mismatches:\n {2}\w+ in default: get, key [0-9a-f]{16} \(10 bytes, redacted\)/,
      );
      assert.match(program.stdout, /DOES NOT HOLD: 1 mismatch: /);
      const kept = readFileSync(join(ledger, 'run', 'ledger.jsonl'), 'utf8');
      assert.equal(kept.trim().split('\n').length, 1);
      assert.doesNotMatch(program.stdout + kept, /session:42|wrong-secret/);
    });
  });

  test('prints one JSON object and nothing else with --json, in full with --no-redact', async (t) => {
    if (!(await needs(t, 'native'))) return;
    await withServers(async (servers) => {
      const listen = await freePort();
      const program = new Program(t, 'shadow-compare', [
        'run',
        ...toServers(servers).slice(0, 4),
        '--listen',
        `127.0.0.1:${listen}`,
        '--json',
        '--no-redact',
        '--for',
        '3s',
      ]);
      const client = new Redis({
        host: '127.0.0.1',
        port: listen,
        maxRetriesPerRequest: null,
        retryStrategy: () => 50,
      });
      client.on('error', () => undefined);
      const direct = new Redis(servers.target.url);
      t.after(() => {
        client.disconnect();
        direct.disconnect();
      });
      await client.set('k', 'right');
      await until(async () => (await direct.get('k')) === 'right');
      await direct.set('k', 'wrong');
      await client.get('k');
      client.disconnect();
      assert.equal(await program.exit(), 1);
      const report = JSON.parse(program.stdout) as {
        outcome: string;
        exitCode: number;
        drained: boolean;
        snapshot: { operations: number };
        mismatches: { key: { text: string } }[];
      };
      assert.deepEqual(
        [report.outcome, report.exitCode, report.drained, report.mismatches.length, report.mismatches[0].key.text],
        ['does not hold', 1, true, 1, 'k'],
      );
      assert.ok(report.snapshot.operations >= 2);
      assert.equal(program.stderr, '');
    });
  });

  test('warns that the target lacks the keys that the source had before', async (t) => {
    await withServers(async (servers) => {
      const direct = new Redis(servers.source.url);
      await direct.mset('a', 1, 'b', 2);
      direct.disconnect();
      const { stderr } = await runProgram(t, 'shadow-compare', [
        'run',
        ...toServers(servers).slice(0, 4),
        '--listen',
        `127.0.0.1:${await freePort()}`,
        '--json',
        '--for',
        '1s',
      ]);
      assert.match(
        stderr,
        /the target lacks keys that the source has: keys from before the proxy started are not copied/,
      );
      assert.match(stderr, /"keys":\{"source":2,"target":0\}/);
    });
  });

  test('exits with code 3 and one sentence if a server does not answer or refuses the password, and serves no client', async (t) => {
    await withServers(async ({ source, target }) => {
      const { env, leftovers } = temporary(t);
      const nobody = 'redis://user:hunter2@127.0.0.1:1';
      const refusing = `redis://user:hunter2@127.0.0.1:${target.port}`;
      for (const [from, to, why] of [
        [source.url, nobody, /connect ECONNREFUSED 127\.0\.0\.1:1 .*target redis:\/\/user:\*\*\*@127\.0\.0\.1:1/],
        [nobody, target.url, /connect ECONNREFUSED 127\.0\.0\.1:1 .*source redis:\/\/user:\*\*\*@127\.0\.0\.1:1/],
        [source.url, refusing, /WRONGPASS .*target redis:\/\/user:\*\*\*@/],
      ] as const) {
        const options = ['--listen', '127.0.0.1:0', '--for', '1s', '--log-level', 'silent'];
        const servers = ['--source', from, '--target', to, ...options];
        const { code, stdout, stderr } = await runCommandWith({ TMPDIR: env.TMPDIR! }, ['run', ...servers]);
        assert.deepEqual([code, stdout], [3, ''], stderr);
        assert.match(
          stderr,
          /^shard run cannot start: [^\n]*; check that they run, and their user, password [^\n]*\n$/,
        );
        assert.match(stderr, why);
        assert.doesNotMatch(stderr, /hunter2/);
      }
      assert.deepEqual(leftovers(), []);
    });
  });

  test('names the address that is taken', async () => {
    await withServers(async (servers) => {
      const { port } = servers.source;
      const args = [
        'run',
        '--source',
        'redis://127.0.0.1:1',
        '--target',
        servers.target.url,
        '--listen',
        `127.0.0.1:${port}`,
      ];
      const taken = await runCommand(
        ...['run', ...toServers(servers).slice(0, 4)],
        ...['--listen', `localhost:${port}`, '--log-level', 'silent'],
      );
      assert.deepEqual(
        [
          taken.code,
          /^shard run cannot listen at redis:\/\/localhost:\d+: the address is in use; choose another address/.test(
            taken.stderr,
          ),
        ],
        [2, true],
        taken.stderr,
      );
      assert.equal((await runCommand(...args, '--log-level', 'silent')).code, 3, 'the source is asked first');
    });
  });
});

test('a shard that does not start has written all it will', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => other.close());
  const { port } = other.address() as AddressInfo;
  await withServers(async (servers) => {
    for (let i = 0; i < 20; i++) {
      const stateDir = scratch(t);
      // The servers are met while the address is found taken.
      await assert.rejects(startTestShard({ ...servers, stateDir, port }), /cannot listen at .* the address is in use/);
      const files = (): string[] =>
        readdirSync(join(stateDir, 'test')).map((name) => `${name} ${statSync(join(stateDir, 'test', name)).ino}`);
      const before = files();
      // Nothing may be written: a late write would have come by now.
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.deepEqual(files(), before);
    }
  });
});

describe('shadow-compare demo', () => {
  test('catches the value that was changed, and leaves no file', async (t) => {
    const { env, leftovers } = temporary(t);
    const { code, stdout } = await runProgram(t, 'shadow-compare', ['demo', '--for', '1s'], env);
    assert.equal(code, 0, stdout);
    assert.match(
      stdout,
      /^(NOTE: there is no KeyDB on this machine: .* stands in for it.*\n)?Source: (Redis|Valkey) [\d.]+ on port \d+\. Target: /,
    );
    assert.match(
      stdout,
      /Detected:\n {2}\w+ in feature-flags \(flag:\*\): smembers, key [0-9a-f]{16} \(13 bytes, redacted\)/,
    );
    assert.match(stdout, /[\d,]+ operations, [\d,]+ pairs of replies compared.* 0 mismatches in the traffic/);
    assert.deepEqual(leftovers(), []);
  });

  test('says in its first and last lines that a stand-in took KeyDB’s place', async (t) => {
    const redis = ['/usr/bin', '/usr/local/bin'].find((directory) => existsSync(join(directory, 'redis-server')));
    if (redis === undefined) return t.skip('no redis-server at a usual place');
    const { code, stdout } = await runProgram(t, 'shadow-compare', ['demo', '--for', '500ms'], {
      PATH: '/nowhere',
      KEYDB_SERVER: '',
      REDIS_SERVER: join(redis, 'redis-server'),
    });
    assert.equal(code, 0, stdout);
    const lines = stdout.trim().split('\n');
    assert.match(lines[0], /^NOTE: there is no KeyDB on this machine: redis [\d.]+ stands in for it/);
    assert.match(lines.at(-1)!, /redis [\d.]+ stood in for KeyDB/);
  });

  test('cleans up at Ctrl-C', async (t) => {
    const program = new Program(t, 'shadow-compare', ['demo', '--for', '60s']);
    const [, source, target] = await program.prints(/Source: .* on port (\d+)\. Target: .* on port (\d+)/);
    await program.prints(/Proxy on port/);
    program.signal('SIGINT');
    program.signal('SIGINT');
    assert.equal(await program.exit(), 130);
    for (const port of [source, target]) {
      const client = new Redis({ port: Number(port), lazyConnect: true, retryStrategy: null });
      client.on('error', () => undefined);
      await assert.rejects(client.connect());
    }
  });

  test('prints one JSON object with --json', async (t) => {
    const { code, stdout } = await runProgram(t, 'shadow-compare', ['demo', '--json', '--for', '500ms']);
    const { holds, compared, caught } = JSON.parse(stdout) as {
      holds: boolean;
      compared: number;
      caught: { workload: string };
    };
    assert.deepEqual([code, holds, compared > 0, caught.workload], [0, true, true, 'feature-flags']);
  });
});
