/**
 * Real servers for tests and demos: start, stop, restart, configuration, TLS.
 *
 * Needs real processes: servers that start, stop, restart, and end with the process that started them.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import {
  ServerFailed,
  ServerMissing,
  startKeydb,
  startRedis,
  startSentinel,
  startTarget,
  type LocalServer,
} from '../../../src/local/servers.js';
import { makeCertificates, withServers } from '../../support/servers.js';
import { needs } from '../../support/needs.js';

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const eventually = async (what: () => boolean | Promise<boolean>, message: string, ms = 5000): Promise<void> => {
  for (const deadline = Date.now() + ms; ; await sleep(20)) {
    if (await what()) return;
    assert.ok(Date.now() < deadline, message);
  }
};

/** Runs `body` with some environment variables, and PATH if named, changed. */
async function withEnvironment<T>(changes: Record<string, string>, body: () => Promise<T>): Promise<T> {
  const before = { ...process.env };
  Object.assign(process.env, changes);
  try {
    return await body();
  } finally {
    process.env = before;
  }
}

async function withClient<T>(server: LocalServer, body: (client: Redis) => Promise<T>, options = {}): Promise<T> {
  const client = new Redis({ host: server.host, port: server.port, retryStrategy: () => null, ...options });
  client.on('error', () => {});
  try {
    return await body(client);
  } finally {
    client.disconnect();
  }
}

test('a Redis answers as soon as it has started, and stop leaves neither process nor file', async () => {
  const server = await startRedis();
  assert.equal(await withClient(server, (client) => client.ping()), 'PONG');
  assert.match(server.label, /^(Redis|Valkey) \d+\.\d+/);
  const { pid, dir } = server;
  await server.stop();
  await server.stop();
  assert.equal(alive(pid!), false);
  assert.equal(existsSync(dir), false);
});

test('a KeyDB runs with two threads and fetches nothing from the network', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await withServers(async ({ target }) => {
    assert.match(target.label, /^KeyDB /);
    const info = await withClient(target, (client) => client.info());
    assert.match(info, /server_threads:2/);
    assert.match(await readFile(join(target.dir, 'server.conf'), 'utf8'), /enable-motd no/);
  });
});

test('configuration is passed on: password, ACL users, memory', async () => {
  const config = { requirepass: 'secret', user: ['app on >pw ~app:* &* +@all -@admin', 'off off'], maxmemory: '10mb' };
  const server = await startRedis({ config });
  try {
    await withClient(
      server,
      async (client) => assert.deepEqual(await client.config('GET', 'maxmemory'), ['maxmemory', '10485760']),
      { password: 'secret' },
    );
    await withClient(server, (client) => assert.rejects(client.set('other', 1), /NOPERM/), {
      username: 'app',
      password: 'pw',
    });
  } finally {
    await server.stop();
  }
});

test('a server speaks TLS, Redis and KeyDB', async (t) => {
  if (!(await needs(t, 'openssl', 'tls-source', 'tls-target'))) return;
  const tls = makeCertificates();
  const ca = await readFile(tls.ca);
  const start = [startRedis, startTarget];
  for (const startServer of start) {
    const server = await startServer({ tls });
    try {
      assert.match(server.url, /^rediss:/);
      await withClient(server, async (client) => assert.equal(await client.ping(), 'PONG'), { tls: { ca } });
    } finally {
      await server.stop();
    }
  }
});

test('a killed server is started again on its port, a stopped one continues where it was', async () => {
  const server = await startRedis();
  try {
    await withClient(server, (client) => client.set('k', 'v'));
    await server.kill('SIGSTOP');
    await withClient(server, async (client) => {
      const answer = client.get('k');
      assert.equal(await Promise.race([answer, sleep(200, 'silent')]), 'silent');
      await server.kill('SIGCONT');
      assert.equal(await answer, 'v');
    });
    const before = server.pid;
    await server.kill('SIGKILL');
    assert.equal(server.pid, undefined);
    await server.start();
    assert.notEqual(server.pid, before);
    assert.equal(await withClient(server, (client) => client.get('k')), null, 'nothing was saved');
  } finally {
    await server.stop();
  }
});

test('restart keeps what the configuration saves', async () => {
  const server = await startRedis({ config: { appendonly: 'yes' } });
  try {
    await withClient(server, (client) => client.set('k', 'v'));
    await server.restart();
    assert.equal(await withClient(server, (client) => client.get('k')), 'v');
  } finally {
    await server.stop();
  }
});

test('a Sentinel names the master and fails over', async () => {
  const master = await startRedis();
  const replica = await startRedis({ config: { replicaof: `${master.host} ${master.port}` } });
  const sentinel = await startSentinel({ cache: { server: master } });
  try {
    const named = (): Promise<string> =>
      withClient(sentinel, async (client) =>
        String(((await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'cache')) as string[])[1]),
      );
    assert.equal(await named(), String(master.port));
    await eventually(
      () =>
        withClient(
          sentinel,
          async (client) => ((await client.call('SENTINEL', 'REPLICAS', 'cache')) as unknown[]).length === 1,
        ),
      'the Sentinel never saw the replica',
      15_000,
    );
    await master.kill('SIGKILL');
    await eventually(async () => (await named()) === String(replica.port), 'no failover', 20_000);
  } finally {
    await Promise.all([sentinel.stop(), replica.stop(), master.stop()]);
  }
});

test('a configuration that the server refuses is an error with its log, and leaves nothing', async () => {
  await assert.rejects(startRedis({ config: { maxmemory: 'lots' } }), (error: unknown) => {
    assert.ok(error instanceof ServerFailed);
    assert.match(error.message, /maxmemory/);
    return true;
  });
});

test('a port that is taken is an error, not the other server', async () => {
  const server = await startRedis();
  try {
    await assert.rejects(startRedis({ port: server.port }), ServerFailed);
  } finally {
    await server.stop();
  }
});

test('a machine without servers gets an error that says what to install', async () => {
  const bare = { PATH: '/nowhere', SERVERS_FROM: 'path', REDIS_SERVER: '', KEYDB_SERVER: '', VALKEY_SERVER: '' };
  await withEnvironment(bare, async () => {
    await assert.rejects(
      startRedis(),
      (error: unknown) => error instanceof ServerMissing && /^no redis-server: .*REDIS_SERVER/.test(error.message),
    );
    await assert.rejects(
      startKeydb(),
      (error: unknown) => error instanceof ServerMissing && /KEYDB_SERVER/.test(error.message),
    );
  });
  await withEnvironment({ KEYDB_SERVER: '/no/such/keydb' }, () =>
    assert.rejects(
      startTarget(),
      (error: unknown) => error instanceof ServerMissing && /KEYDB_SERVER=\/no\/such\/keydb/.test(error.message),
    ),
  );
});

test('without KeyDB a stand-in runs and is named', async () => {
  const { path } = (await withRedisProgram()).program;
  await withEnvironment({ PATH: '/nowhere', KEYDB_SERVER: '', VALKEY_SERVER: '', REDIS_SERVER: path }, async () => {
    const target = await startTarget();
    try {
      assert.match(target.standIn!, new RegExp(`^(redis|valkey) ${target.program.version}$`));
    } finally {
      await target.stop();
    }
  });
});

test('a Redis that KEYDB_SERVER names stands in for KeyDB, and none is as on a machine without one', async () => {
  const { path } = (await withRedisProgram()).program;
  for (const KEYDB_SERVER of [path, 'none'])
    await withEnvironment({ KEYDB_SERVER, VALKEY_SERVER: '', REDIS_SERVER: path }, async () => {
      await assert.rejects(startKeydb(), ServerMissing);
      const target = await startTarget();
      try {
        assert.equal(target.standIn, `${target.program.name} ${target.program.version}`);
        assert.match(target.log(), /Redis version=|Valkey version=/i);
      } finally {
        await target.stop();
      }
    });
});

async function withRedisProgram(): Promise<LocalServer> {
  const server = await startRedis();
  await server.stop();
  return server;
}

/** An engine that runs the program of the image on this machine: what is tested is how it is asked. */
const ENGINE = `#!/bin/sh
case "$1" in
  info) exit 0 ;;
  kill) exec kill -"\${3#SIG}" "$(cat "$CONTAINERS/$4")" ;;
  rm) kill -9 "$(cat "$CONTAINERS/$3")" ; exit 0 ;;
  run) shift
    name=none
    while [ $# -gt 0 ]; do
      case "$1" in
        --rm) shift ;;
        --name) name=$2; shift 2 ;;
        --publish) shift 2 ;;
        eqalpha/keydb) shift; break ;;
        *) echo "unknown option $1" >&2; exit 125 ;;
      esac
    done
    echo $$ > "$CONTAINERS/$name"
    shift
    exec "$STANDS_FOR_KEYDB" "$@" ;;
esac
`;

test('without a keydb-server a running container engine is asked for one', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', 'command -v "${KEYDB_SERVER:-keydb-server}"']);
  const dir = await mkdtemp(join(tmpdir(), 'engine-'));
  try {
    await writeFile(join(dir, 'podman'), ENGINE);
    await chmod(join(dir, 'podman'), 0o755);
    for (const tool of ['cat', 'kill', 'rm']) await symlinkTool(dir, tool);
    const changes = {
      PATH: dir,
      SERVERS_FROM: 'engine',
      KEYDB_SERVER: '',
      CONTAINERS: dir,
      STANDS_FOR_KEYDB: stdout.trim(),
    };
    await withEnvironment(changes, async () => {
      const target = await startTarget({ config: { user: ['app on >pw ~* &* +@all'] } });
      assert.equal(target.standIn, undefined);
      assert.match(target.label, /^KeyDB 6/);
      await withClient(target, async (client) => assert.equal(await client.ping(), 'PONG'), {
        username: 'app',
        password: 'pw',
      });
      await target.restart();
      const { pid } = target;
      await target.stop();
      assert.equal(alive(pid!), false);
    });
  } finally {
    await rm(dir, { recursive: true });
  }
});

async function symlinkTool(dir: string, tool: string): Promise<void> {
  const { stdout } = await promisify(execFile)('/bin/sh', [
    '-c',
    `command -v /bin/${tool} || command -v /usr/bin/${tool}`,
  ]);
  await writeFile(join(dir, tool), `#!/bin/sh\nexec ${stdout.trim()} "$@"\n`);
  await chmod(join(dir, tool), 0o755);
}

for (const how of ['SIGINT', 'SIGTERM', 'SIGKILL', 'an uncaught error', 'a forgotten stop'] as const) {
  test(`nothing outlives a process that ends by ${how}`, async () => {
    const module = new URL('../../../src/local/servers.js', import.meta.url).href;
    const end =
      { 'an uncaught error': 'throw new Error("uncaught")', 'a forgotten stop': '' }[how as string] ??
      'setInterval(() => {}, 1000)';
    const script = `const { startRedis } = await import(${JSON.stringify(module)});
      const server = await startRedis();
      console.log(JSON.stringify({ pid: server.pid, dir: server.dir }));
      setTimeout(() => { ${end} }, 50)`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const { pid, dir } = JSON.parse(line.toString()) as { pid: number; dir: string };
    assert.ok(alive(pid) && existsSync(dir));
    if (how.startsWith('SIG')) child.kill(how as NodeJS.Signals);
    await once(child, 'exit');
    await eventually(() => !alive(pid) && !existsSync(dir), `process ${pid} or ${dir} is still there`);
  });
}
