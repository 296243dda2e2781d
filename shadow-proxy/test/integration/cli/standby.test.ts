/**
 * Two processes for one shard: one has it, the other refuses or waits, and takes over with nothing lost.
 *
 * Needs real processes: SIGSTOP, SIGKILL and SIGTERM of the active proxy, and the address that the next one opens.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { stringify } from 'yaml';
import { planFrom } from '../../../src/plan/load.js';
import { Daemon } from '../../../src/shard/daemon.js';
import type { ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import type { ShardState } from '../../../src/storage/state.js';
import { scratch, type PlanObject } from '../../support/plans.js';
import { differences } from '../../support/keyspace.js';
import { patienceMs } from '../../support/patience.js';
import { withServers, type Pair } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { Program, runCommand, runProgram } from './process.js';
import { planFor } from './running.js';

const TAKEOVER_MS = 5_000;
/** A standby tries its admin address again so often. */
const ADMIN_RETRY_MS = 250;
const WRITERS = 4;

interface Setting extends Pair {
  readonly plan: PlanObject;
  readonly port: number;
  readonly admin: string;
  /** Starts a process of the plan, changed. */
  start(args?: readonly string[], change?: (plan: PlanObject) => void): Program;
}

async function withSetting(t: TestContext, body: (setting: Setting) => Promise<void>): Promise<void> {
  await withServers(async ({ source, target }) => {
    const [port, adminPort] = [await freePort(), await freePort()];
    const directory = scratch(t);
    const plan = {
      version: 1,
      name: 'test',
      shards: [{ name: 'a', listen: `redis://127.0.0.1:${port}`, source: source.url, target: target.url }],
      workloads: [],
      default: { stage: 'shadow' },
      admin: { listen: `127.0.0.1:${adminPort}` },
      state: join(directory, 'state'),
    };
    let files = 0;
    const start = (args: readonly string[] = [], change: (plan: PlanObject) => void = () => undefined): Program => {
      const changed = structuredClone(plan) as PlanObject;
      change(changed);
      const file = join(directory, `plan-${files++}.yaml`);
      writeFileSync(file, stringify(changed));
      return new Program(t, 'shadow-proxy', ['--plan', file, ...args]);
    };
    await body({ source, target, plan, port, admin: `http://127.0.0.1:${adminPort}`, start });
  });
}

/** Writers that reconnect by themselves and keep what was acknowledged to them. */
class Traffic {
  /** By writer: the last reply to INCR, and how many members were added to a set. */
  readonly counted = new Array<number>(WRITERS).fill(0);
  readonly added: string[] = [];
  /** When the last reply came, and the longest time without any, in ms of the monotonic clock. */
  #last = performance.now();
  longestMs = 0;
  #stopped = false;
  readonly #loops: Promise<void>[];
  readonly #clients: Redis[];

  constructor(ports: readonly number[]) {
    this.#clients = Array.from({ length: WRITERS }, () => {
      let attempt = 0;
      const client = new Redis({
        host: '127.0.0.1',
        port: ports[0],
        retryStrategy: () => 20,
        maxRetriesPerRequest: 0,
        autoResendUnfulfilledCommands: false,
        lazyConnect: true,
      });
      client.on('close', () => (client.options.port = ports[++attempt % ports.length]));
      client.on('error', () => undefined);
      void client.connect().catch(() => undefined);
      return client;
    });
    this.#loops = this.#clients.map((client, i) => this.#write(client, i));
  }

  async #write(client: Redis, writer: number): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const member = `${writer}:${n}`;
      const [reply, added] = await Promise.all([
        client.incr(`count:${writer}`),
        client.set(`key:${member}`, member),
      ]).catch(() => [null, null]);
      if (added !== null) this.added.push(member);
      if (reply !== null) {
        assert.ok(reply > this.counted[writer], `${reply} after ${this.counted[writer]}`);
        this.counted[writer] = reply;
        this.longestMs = Math.max(this.longestMs, performance.now() - this.#last);
        this.#last = performance.now();
      }
      await sleep(2);
    }
  }

  get total(): number {
    return this.added.length;
  }

  /** Resolves when `more` writes were acknowledged from now on. */
  async goesOn(more = 200): Promise<void> {
    const from = this.total;
    for (const deadline = performance.now() + 15_000; this.total < from + more; await sleep(10))
      assert.ok(performance.now() < deadline, 'the writers do not go on');
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
    for (const client of this.#clients) client.disconnect();
  }

  /** Every write that was acknowledged is on both servers, and they hold the same. */
  async assertKept({ source, target }: Pair): Promise<void> {
    for (const { url } of [source, target]) {
      const direct = new Redis(url);
      try {
        for (const [writer, count] of this.counted.entries())
          assert.ok(Number(await direct.get(`count:${writer}`)) >= count);
        const missing = (await direct.mget(this.added.map((member) => `key:${member}`))).filter(
          (value) => value === null,
        );
        assert.equal(missing.length, 0, `${missing.length} acknowledged writes are missing`);
      } finally {
        direct.disconnect();
      }
    }
    assert.deepEqual(await differences(source, target), []);
  }
}

const status = async (admin: string): Promise<ShardSnapshot> =>
  ((await (await fetch(`${admin}/api/status`)).json()) as { shards: ShardSnapshot[] }).shards[0];

/** Waits until no effect is queued and no key is suspect. */
async function settled(admin: string): Promise<ShardSnapshot> {
  for (const deadline = performance.now() + 10_000; ; await sleep(20)) {
    const snapshot = await status(admin).catch(() => null);
    if (snapshot && snapshot.mirror.queuedEffects === 0 && snapshot.suspects.total === 0 && snapshot.undecided === 0)
      return snapshot;
    assert.ok(performance.now() < deadline, JSON.stringify(snapshot));
  }
}

/** Every key was suspect: waits until the proxy has verified them without being asked. */
async function verifiedByItself(admin: string): Promise<void> {
  const isVerified = async (): Promise<boolean> => {
    const { workloads, job } = await settled(admin);
    return workloads[0].suspect === null && job?.automatic === true && job.state === 'done';
  };
  await until(isVerified, 20_000);
}

test('a second process refuses to serve, names the first, and leaves the state alone', async (t) => {
  await withSetting(t, async ({ start, plan, source, target }) => {
    const first = start();
    await first.prints(/"listening"/);
    const file = join(plan.state as string, 'a', 'history.jsonl');
    const before = readFileSync(file, 'utf8');
    const onOtherPorts = (changed: PlanObject): void => {
      changed.shards[0].listen = 'redis://127.0.0.1:0';
      changed.admin.listen = '127.0.0.1:0';
    };
    const second = start([], onOtherPorts);
    assert.equal(await second.exit(), 1);
    assert.match(
      second.stderr,
      /^shard a is served by another proxy: the proxy at 127\.0\.0\.1:\d+ has held the lease at the (source|target) redis:.* for \d+ s; stop that proxy, or start this one with --standby/,
    );
    assert.equal(readFileSync(file, 'utf8'), before);
    const other = start([], (changed) => {
      onOtherPorts(changed);
      changed.shards[0].name = 'run';
    });
    await other.prints(/"listening"/);
    const run = await runProgram(t, 'shadow-compare', [
      'run',
      '--source',
      source.url,
      '--target',
      target.url,
      '--listen',
      '127.0.0.1:0',
      '--for',
      '1s',
    ]);
    assert.equal(run.code, 1, run.stderr);
    assert.match(run.stderr, /^shard run is served by another proxy/);
    first.signal('SIGTERM');
    assert.equal(await first.exit(), 0);
    await start().prints(/"listening"/);
  });
});

test('a standby takes over on the same address when the first drains: no write is lost, and no key is suspect', async (t) => {
  await withSetting(t, async ({ start, port, admin, plan, ...servers }) => {
    const first = start();
    await first.prints(/"listening"/);
    const second = start(['--standby']);
    await second.prints(/"standing by"/);
    const traffic = new Traffic([port]);
    await traffic.goesOn();
    first.signal('SIGTERM');
    assert.equal(await first.exit(), 0, first.stdout);
    await second.prints(/"listening"/);
    await traffic.goesOn();
    // And back: an upgrade replaces both.
    const third = start(['--standby']);
    await third.prints(/"standing by"/);
    second.signal('SIGTERM');
    assert.equal(await second.exit(), 0, second.stdout);
    await third.prints(/"listening"/);
    await traffic.goesOn();
    await traffic.stop();
    const { mismatches, workloads } = await settled(admin);
    assert.deepEqual([mismatches, workloads.map(({ suspect }) => suspect)], [{}, [null]]);
    for (const { stdout } of [second, third]) assert.doesNotMatch(stdout, /in doubt/);
    await traffic.assertKept(servers);
    assert.ok(traffic.longestMs < patienceMs(TAKEOVER_MS), `${traffic.longestMs} ms without a reply`);
  });
});

test('a standby takes over within seconds when the first is killed in mid-traffic, and repairs what was unconfirmed', async (t) => {
  await withSetting(t, async ({ start, port, admin, plan, ...servers }) => {
    const first = start();
    await first.prints(/"listening"/);
    const second = start(['--standby']);
    await second.prints(/"standing by"/);
    const traffic = new Traffic([port]);
    await traffic.goesOn();
    const killed = performance.now();
    first.signal('SIGKILL');
    await second.prints(/"listening"/);
    const tookMs = performance.now() - killed;
    assert.ok(tookMs < patienceMs(TAKEOVER_MS), `it took ${tookMs} ms`);
    assert.match(second.stdout, /the last process crashed: the keys that it was writing are suspects/);
    await traffic.goesOn();
    await traffic.stop();
    const { mismatches, workloads } = await settled(admin);
    assert.deepEqual([mismatches, workloads.map(({ suspect }) => suspect)], [{}, [null]]);
    await traffic.assertKept(servers);
    t.diagnostic(`took over after ${Math.round(tookMs)} ms; clients waited ${Math.round(traffic.longestMs)} ms`);
  });
});

test('a standby leaves the shard to a process that is stopped and has its address, and takes over when that ends', async (t) => {
  await withSetting(t, async ({ start, port, admin, plan, ...servers }) => {
    const first = start();
    await first.prints(/"listening"/);
    const second = start(['--standby']);
    await second.prints(/"standing by"/);
    const traffic = new Traffic([port]);
    await traffic.goesOn();
    first.signal('SIGSTOP');
    await second.prints(/cannot be opened: listen EADDRINUSE/);
    first.signal('SIGCONT');
    await traffic.goesOn();
    first.signal('SIGSTOP');
    first.signal('SIGKILL');
    await second.prints(/"listening"/);
    await traffic.goesOn();
    await traffic.stop();
    const { mismatches, workloads } = await settled(admin);
    assert.deepEqual([mismatches, workloads.map(({ suspect }) => suspect)], [{}, [null]]);
    await traffic.assertKept(servers);
  });
});

for (const folder of ['the same', 'another'] as const) {
  test(`a standby with ${folder} state folder takes over from a process that is stopped, which ends when it wakes`, async (t) => {
    await withSetting(t, async ({ start, port, plan, ...servers }) => {
      const [standbyPort, standbyAdmin] = [await freePort(), await freePort()];
      const first = start();
      await first.prints(/"listening"/);
      const second = start(['--standby'], (changed) => {
        changed.shards[0].listen = `redis://127.0.0.1:${standbyPort}`;
        changed.admin.listen = `127.0.0.1:${standbyAdmin}`;
        if (folder === 'another') changed.state = `${plan.state as string}-other`;
      });
      await second.prints(/"standing by"/);
      const ready = await fetch(`http://127.0.0.1:${standbyAdmin}/readyz`);
      assert.deepEqual([ready.status, await ready.json()], [503, { ready: false, notReady: [], reason: 'standby' }]);
      const traffic = new Traffic([port, standbyPort]);
      await traffic.goesOn();
      const stopped = performance.now();
      first.signal('SIGSTOP');
      await second.prints(/"listening"/);
      const tookMs = performance.now() - stopped;
      assert.ok(tookMs < patienceMs(TAKEOVER_MS), `it took ${tookMs} ms`);
      // What it is to do when it wakes: a write of its own.
      const late = new Redis({ host: '127.0.0.1', port, retryStrategy: null, maxRetriesPerRequest: 0 });
      late.on('error', () => undefined);
      const sent = late.set('late', 'by a process that had lost its lease').then(
        () => 'answered',
        () => 'refused',
      );
      // The command lies in a socket of the stopped process, where no sign shows it.
      await sleep(200);
      first.signal('SIGCONT');
      assert.equal(await first.exit(), 1);
      assert.match(
        first.stderr,
        /^shard a has lost its lease: the proxy at 127\.0\.0\.1:\d+ has held the lease at the (source|target)/,
      );
      assert.equal(await sent, 'refused');
      late.disconnect();
      for (const { url } of [servers.source, servers.target]) {
        const direct = new Redis(url);
        assert.equal(await direct.exists('late'), 0);
        direct.disconnect();
      }
      await traffic.goesOn();
      await traffic.stop();
      const { mismatches, workloads } = await settled(`http://127.0.0.1:${standbyAdmin}`);
      assert.deepEqual(mismatches, {});
      if (folder === 'the same') {
        assert.equal(workloads[0].suspect, null);
        await traffic.assertKept(servers);
        const state = JSON.parse(readFileSync(join(plan.state as string, 'a', 'state.json'), 'utf8')) as ShardState;
        const history = readFileSync(join(plan.state as string, 'a', 'history.jsonl'), 'utf8').match(
          /"event":"owner","process":"\w+"/g,
        );
        assert.equal(history?.length, 2);
        assert.ok(history?.[1].includes(state.owner!.process), 'the state is the new owner’s');
      } else {
        await verifiedByItself(`http://127.0.0.1:${standbyAdmin}`);
        await traffic.assertKept(servers);
      }
      t.diagnostic(`took over after ${Math.round(tookMs)} ms`);
    });
  });
}

test('a process that has only waited knows at its next start, and offline, that another one had the shard', async (t) => {
  await withSetting(t, async ({ start, port, admin, plan, ...servers }) => {
    const [standbyPort, standbyAdmin] = [await freePort(), await freePort()];
    const first = start();
    await first.prints(/"listening"/);
    const other = start(['--standby'], (changed) => {
      changed.shards[0].listen = `redis://127.0.0.1:${standbyPort}`;
      changed.admin.listen = `127.0.0.1:${standbyAdmin}`;
      changed.state = `${plan.state as string}-other`;
    });
    await other.prints(/"standing by"/);
    first.signal('SIGKILL');
    await other.prints(/"listening"/);
    const waits = start(['--standby']);
    await waits.prints(/"standing by"/);
    waits.signal('SIGKILL');
    await waits.exit();

    const file = join(scratch(t), 'plan.yaml');
    writeFileSync(file, stringify(plan));
    const offline = await runCommand('rollback', '--all', '--offline', '--plan', file);
    assert.equal(offline.code, 1);
    assert.match(
      offline.stderr,
      /shard a cannot be rolled back from \S+: the proxy at 127\.0\.0\.1:\d+ has held the lease .*, and its journal is in another folder; nothing was changed\. Run this command on the host of that proxy/,
    );
    const client = new Redis({ host: '127.0.0.1', port: standbyPort });
    assert.equal(await client.set('key', 'of the one that served last'), 'OK');
    client.disconnect();

    other.signal('SIGKILL');
    await other.exit();
    const next = start();
    await next.prints(/"listening"/);
    await verifiedByItself(admin);
    assert.deepEqual(await differences(servers.source, servers.target), []);
  });
});

for (const end of ['SIGKILL', 'SIGTERM'] as const)
  test(`a process that ended (${end}) and finds nobody verifies every key, for the one that waited may have served`, async (t) => {
    await withSetting(t, async ({ start, admin, plan, ...servers }) => {
      const [standbyPort, standbyAdmin] = [await freePort(), await freePort()];
      const first = start(['--standby', '--peer', `http://127.0.0.1:${standbyAdmin}`]);
      await first.prints(/"listening"/);
      const other = start(['--standby', '--peer', admin], (changed) => {
        changed.shards[0].listen = `redis://127.0.0.1:${standbyPort}`;
        changed.admin.listen = `127.0.0.1:${standbyAdmin}`;
        changed.state = `${plan.state as string}-other`;
      });
      await other.prints(/"standing by"/);
      const copied = join(`${plan.state as string}-other`, 'a', 'state.json');
      await until(() => Promise.resolve(existsSync(copied)), 5_000);
      first.signal(end);
      await Promise.all([first.exit(), other.prints(/"listening"/)]);
      other.signal('SIGKILL');
      await other.exit();
      const next = start(['--standby', '--peer', `http://127.0.0.1:${standbyAdmin}`]);
      await next.prints(/"listening"/);
      await verifiedByItself(admin);
      assert.deepEqual(await differences(servers.source, servers.target), []);
    });
  });

test('a standby whose own folder knows of other stages does not serve', async (t) => {
  await withSetting(t, async ({ start, admin, plan }) => {
    const first = start();
    await first.prints(/"listening"/);
    const second = start(['--standby'], (changed) => {
      changed.state = `${plan.state as string}-other`;
    });
    await second.prints(/"standing by"/);
    const moved = await runCommand('rollback', 'default', '--admin', admin);
    assert.equal(moved.code, 0, moved.stderr);
    first.signal('SIGTERM');
    assert.equal(await first.exit(), 0);
    assert.equal(await second.exit(), 1);
    assert.match(second.stderr, /^shard a has other stages in \S+-other\/a than the last process that served it/);
  });
});

test('a standby that cannot serve opens nothing afterwards, though its admin address is free by then', async (t) => {
  await withServers(async (servers) => {
    const directory = scratch(t);
    const plan = await planFor(servers, (each) => (each.state = join(directory, 'state')));
    mkdirSync(join(directory, 'state', 'a'), { recursive: true });
    writeFileSync(join(directory, 'state', 'a', 'state.json'), '{');
    const port = Number(plan.admin.listen!.split(':')[1]);
    const other = createServer();
    await once(other.listen(port, '127.0.0.1'), 'listening');
    const parsed = planFrom(plan, 'test', { directory, env: {} });
    await assert.rejects(Daemon.start(parsed, null, pino({ level: 'silent' }), { standby: true }), /damaged/);
    other.close();
    await once(other, 'close');
    // Nothing may be opened: it would have been tried by now.
    await sleep(4 * ADMIN_RETRY_MS);
    await assert.rejects(fetch(`http://127.0.0.1:${port}/readyz`), /fetch failed/);
  });
});
test('a standby with a peer goes on in the stages that were changed while it waited', async (t) => {
  await withSetting(t, async ({ start, admin, plan, ...servers }) => {
    const [port, adminPort] = [await freePort(), await freePort()];
    const first = start();
    await first.prints(/"listening"/);
    const second = start(['--standby', '--peer', admin], (changed) => {
      changed.state = `${plan.state as string}-other`;
      changed.shards[0].listen = `redis://127.0.0.1:${port}`;
      changed.admin.listen = `127.0.0.1:${adminPort}`;
    });
    await second.prints(/"standing by"/);
    const traffic = new Traffic([servers.port, port]);
    await traffic.goesOn();
    const moved = await runCommand('rollback', 'default', '--admin', admin);
    assert.equal(moved.code, 0, moved.stderr);
    // At once: the change was answered only when the standby had it.
    first.signal('SIGKILL');
    await second.prints(/"listening"/);
    assert.match(second.stdout, /every key of each mirrored workload is a suspect/);
    await traffic.goesOn();
    await traffic.stop();
    assert.equal((await status(`http://127.0.0.1:${adminPort}`)).workloads[0].stage, 'dualwrite');
    const verified = async (): Promise<boolean> => {
      const { workloads, job } = await settled(`http://127.0.0.1:${adminPort}`);
      return workloads[0].suspect === null && job?.automatic === true && job.state === 'done';
    };
    await until(verified, 20_000);
    await traffic.assertKept(servers);
  });
});

test('a standby that was refused for its stages does not serve at its next start either', async (t) => {
  await withSetting(t, async ({ start, admin, plan }) => {
    const other = (changed: PlanObject): void => {
      changed.state = `${plan.state as string}-other`;
    };
    const first = start();
    await first.prints(/"listening"/);
    const second = start(['--standby'], other);
    await second.prints(/"standing by"/);
    const moved = await runCommand('rollback', 'default', '--admin', admin);
    assert.equal(moved.code, 0, moved.stderr);
    first.signal('SIGKILL');
    assert.equal(await second.exit(), 1);
    const third = start(['--standby'], other);
    assert.notEqual(await third.exit(), 0);
    assert.match(third.stderr, /state\.json is missing, but the shard was served before/);
  });
});

test('a peer is an admin address, and only a standby has one', async (t) => {
  const file = ['--plan', 'migration.example.yaml'];
  for (const [args, problem] of [
    [['--standby', '--peer', '10.0.2.31:9400'], /such as http:\/\/10\.0\.2\.31:9400/],
    [['--peer', 'http://10.0.2.31:9400'], /--peer.*needs --standby/s],
  ] as const) {
    const { code, stderr } = await runProgram(t, 'shadow-proxy', [...file, ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, problem);
  }
});
