/**
 * Two proxies of one shard, each with a state folder of its own, behind one address: HAProxy asks `/readyz`, as a load
 * balancer does. The active one is killed, or falls silent as with its zone: clients are served again within 10 s, and
 * no acknowledged write is lost.
 *
 * Needs real processes: HAProxy in front of two proxies, of which one is killed or stopped.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import type { ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import { differences } from '../../support/keyspace.js';
import { scratch } from '../../support/plans.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { Program } from './process.js';
import { needs } from '../../support/needs.js';
import { patienceMs } from '../../support/patience.js';

const LIMIT_MS = 10_000;
const TOKEN = 'a-token-that-no-load-balancer-has';

interface Switch {
  readonly port: number;
}

/** HAProxy before both, with the health check `check`. */
async function startSwitch(
  t: TestContext,
  directory: string,
  proxies: readonly { port: number; admin: number }[],
  check: string,
): Promise<Switch> {
  const port = await freePort();
  const servers = proxies.map(
    (proxy, i) =>
      `  server proxy-${i} 127.0.0.1:${proxy.port} check port ${proxy.admin} ${check} on-marked-down shutdown-sessions`,
  );
  const file = join(directory, 'haproxy.cfg');
  writeFileSync(
    file,
    [
      'defaults',
      '  mode tcp',
      '  timeout connect 1s',
      '  timeout client 1m',
      '  timeout server 1m',
      '  timeout check 1s',
      'listen clients',
      `  bind 127.0.0.1:${port}`,
      '  option httpchk GET /readyz',
      '  http-check expect status 200',
      ...servers,
      '',
    ].join('\n'),
  );
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
  t.after(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  return { port };
}

/** One client that reconnects by itself, gives a command a second, and keeps what was acknowledged. */
class Client {
  count = 0;
  longestMs = 0;
  #stopped = false;
  readonly #redis: Redis;
  readonly #loop: Promise<void>;

  constructor(
    port: number,
    private readonly name: string,
  ) {
    this.#redis = new Redis({
      port,
      host: '127.0.0.1',
      retryStrategy: () => 50,
      connectTimeout: 1_000,
      commandTimeout: 1_000,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
    });
    this.#redis.on('error', () => undefined);
    this.#loop = this.#write();
  }

  async #write(): Promise<void> {
    let last = performance.now();
    while (!this.#stopped) {
      const reply = await this.#redis.incr(this.name).catch(() => null);
      // A command that is not answered within a second has timed out: its connection is closed.
      if (reply === null) this.#redis.disconnect(true);
      else {
        assert.ok(reply > this.count, `${reply} after ${this.count}`);
        this.count = reply;
        this.longestMs = Math.max(this.longestMs, performance.now() - last);
        last = performance.now();
      }
      await sleep(reply === null ? 100 : 5);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop;
    this.#redis.disconnect();
  }
}

for (const [signal, loss] of [
  ['SIGKILL', 'is killed'],
  ['SIGSTOP', 'falls silent with its zone'],
] as const)
  test(`the active proxy ${loss}: clients of the one address are served again within 10 s, and nothing is lost`, async (t) => {
    if (!(await needs(t, 'haproxy'))) return;
    await withServers(async ({ source, target }) => {
      const directory = scratch(t);
      const proxies = [
        { port: await freePort(), admin: await freePort() },
        { port: await freePort(), admin: await freePort() },
      ];
      const start = (i: number): Program => {
        const file = join(directory, `plan-${i}.yaml`);
        const plan = {
          version: 1,
          name: 'test',
          shards: [
            { name: 'a', listen: `redis://127.0.0.1:${proxies[i].port}`, source: source.url, target: target.url },
          ],
          workloads: [],
          default: { stage: 'shadow' },
          admin: { listen: `127.0.0.1:${proxies[i].admin}`, token: TOKEN },
          state: join(directory, `state-${i}`),
        };
        writeFileSync(file, stringify(plan));
        const peer = `http://127.0.0.1:${proxies[1 - i].admin}`;
        return new Program(t, 'shadow-proxy', ['--plan', file, '--standby', '--peer', peer]);
      };
      const first = start(0);
      await first.prints(/"listening"/);
      const second = start(1);
      await second.prints(/the state was copied/);
      const { port } = await startSwitch(t, directory, proxies, 'inter 1s fall 2 rise 1');
      const clients = Array.from({ length: 4 }, (_, i) => new Client(port, `count:${i}`));
      t.after(() => Promise.all(clients.map((client) => client.stop())));
      await until(() => clients.every(({ count }) => count > 100), 30_000);
      for (const client of clients) client.longestMs = 0;
      first.signal(signal);
      const before = clients.map(({ count }) => count);
      await until(() => clients.every(({ count }, i) => count > before[i] + 100), 40_000);
      const waitedMs = Math.max(...clients.map(({ longestMs }) => longestMs));
      t.diagnostic(`clients waited ${Math.round(waitedMs)} ms at most`);
      if (signal === 'SIGSTOP') first.signal('SIGCONT');
      await until(() => clients.every(({ count }, i) => count > before[i] + 200), 40_000);
      await Promise.all(clients.map((client) => client.stop()));
      assert.ok(waitedMs < patienceMs(LIMIT_MS), `${waitedMs} ms without a reply`);
      const settled = async (): Promise<boolean> => {
        const response = await fetch(`http://127.0.0.1:${proxies[1].admin}/api/status`, {
          headers: { authorization: `Bearer ${TOKEN}` },
        });
        const [shard] = ((await response.json()) as { shards: ShardSnapshot[] }).shards;
        return shard.suspects.total === 0 && shard.workloads[0].suspect === null && shard.mirror.queuedEffects === 0;
      };
      await until(settled, 30_000);
      for (const { url } of [source, target]) {
        const direct = new Redis(url);
        for (const [i, { count }] of clients.entries())
          assert.ok(Number(await direct.get(`count:${i}`)) >= count, `acknowledged writes of client ${i} are missing`);
        direct.disconnect();
      }
      assert.deepEqual(await differences(source, target), []);
    });
  });
