/** Two proxies of one shard, each with a Sentinel, as real processes; and clients that know only the Sentinels. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createSentinel } from 'redis';
import { stringify } from 'yaml';
import { freePort } from '../../../src/local/port.js';
import { differences } from '../../support/keyspace.js';
import { patienceMs } from '../../support/patience.js';
import { scratch } from '../../support/plans.js';
import { withServers, type Pair } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';
import { Program } from '../cli/process.js';

export const MASTER = 'main';
const HOST = '127.0.0.1';
const GOES_ON_MS = 20_000;

/** A machine on which a proxy of the shard may run. */
export interface Seat {
  readonly port: number;
  readonly sentinel: number;
  readonly admin: number;
  start(...args: readonly string[]): Program;
}

export interface Scene extends Pair {
  readonly seats: readonly [Seat, Seat];
}

export const addressOf = ({ port }: { readonly port: number }): string => `${HOST} ${port}`;

export async function withSeats(t: TestContext, body: (scene: Scene) => Promise<void>): Promise<void> {
  await withServers(async (pair) => {
    const directory = scratch(t);
    const seat = async (name: string): Promise<Seat> => {
      const [port, sentinel, admin] = [await freePort(), await freePort(), await freePort()];
      const plan = {
        version: 1,
        name: 'test',
        shards: [{ name: 'a', listen: `redis://${HOST}:${port}`, source: pair.source.url, target: pair.target.url }],
        workloads: [],
        default: { stage: 'shadow' },
        admin: { listen: `${HOST}:${admin}` },
        sentinel: { listen: `redis://${HOST}:${sentinel}`, masters: [{ name: MASTER, shard: 'a' }] },
        state: join(directory, 'state'),
      };
      const file = join(directory, `${name}.yaml`);
      writeFileSync(file, stringify(plan));
      return {
        ...{ port, sentinel, admin },
        start: (...args) => new Program(t, 'shadow-proxy', ['--plan', file, ...args]),
      };
    };
    await body({ ...pair, seats: [await seat('one'), await seat('two')] });
  });
}

/** What the Sentinel answers for the master: `host port`; null if it does not know it, or does not answer. */
export async function masterAt({ sentinel }: Seat): Promise<string | null> {
  try {
    const wire = await Wire.open({ port: sentinel });
    try {
      wire.send('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER);
      const [, , host, , port] = (await wire.frame()).split('\r\n');
      return port === undefined ? null : `${host} ${port}`;
    } finally {
      wire.destroy();
    }
  } catch {
    return null;
  }
}

/** Resolves when the Sentinel answers with the address of the proxy. */
export const answersWith = (seat: Seat, holder: Seat): Promise<void> =>
  until(async () => (await masterAt(seat)) === addressOf(holder), GOES_ON_MS);

/** A client's connection to the master that Sentinels name. */
export interface Client {
  incr(key: string): Promise<number>;
  set(key: string, value: string): Promise<unknown>;
  close(): void;
}

const nodes = (seats: readonly Seat[]): { host: string; port: number }[] =>
  seats.map(({ sentinel }) => ({ host: HOST, port: sentinel }));

export const CLIENTS: Readonly<Record<string, (seats: readonly Seat[]) => Promise<Client>>> = {
  ioredis(seats) {
    const client = new Redis({ sentinels: nodes(seats), name: MASTER, maxRetriesPerRequest: 0 });
    client.on('error', () => undefined);
    return Promise.resolve({
      incr: (key) => client.incr(key),
      set: (key, value) => client.set(key, value),
      close: () => client.disconnect(),
    });
  },
  async 'node-redis'(seats) {
    const client = createSentinel({ name: MASTER, sentinelRootNodes: nodes(seats) });
    client.on('error', () => undefined);
    await client.connect();
    return {
      incr: (key) => client.incr(key),
      set: (key, value) => client.set(key, value),
      close: () => void client.destroy(),
    };
  },
};

/** What a client was acknowledged, of writes that it makes one after the other. */
class Acknowledged {
  /** The last reply to INCR. */
  counted = 0;
  readonly keys: string[] = [];
  /** The longest time between two acknowledgements, in ms. */
  longestMs = 0;
  #lastAt = Infinity;

  constructor(readonly name: string) {}

  /** Resolves when so many further writes were acknowledged. */
  async goesOn(more = 100): Promise<void> {
    const from = this.keys.length;
    for (const deadline = performance.now() + patienceMs(GOES_ON_MS); this.keys.length < from + more; await sleep(10))
      assert.ok(performance.now() < deadline, `${this.name} does not go on: ${this.keys.length - from} writes`);
  }

  /** Every write that was acknowledged is on both servers, and they hold the same. */
  async assertKept({ source, target }: Pair): Promise<void> {
    for (const { url } of [source, target]) {
      const direct = new Redis(url);
      try {
        assert.ok(Number(await direct.get(`count:${this.name}`)) >= this.counted, `${this.name}: an INCR is lost`);
        const values = await direct.mget(this.keys);
        assert.deepEqual(
          values.flatMap((value, i) => (value === null ? [this.keys[i]] : [])),
          [],
          'writes that were acknowledged and are not there',
        );
      } finally {
        direct.disconnect();
      }
    }
    assert.deepEqual(await differences(source, target), []);
  }

  protected acknowledge(count: number, key: string): void {
    assert.ok(count > this.counted, `${this.name}: ${count} after ${this.counted}`);
    this.counted = count;
    this.keys.push(key);
    const now = performance.now();
    this.longestMs = Math.max(this.longestMs, now - this.#lastAt);
    this.#lastAt = now;
  }
}

/** A client of this process that writes until it is stopped. */
export class Writer extends Acknowledged {
  #stopped = false;
  readonly #done: Promise<void>;

  constructor(
    name: string,
    private readonly client: Client,
  ) {
    super(name);
    this.#done = this.#write();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
    this.client.close();
  }

  async #write(): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const key = `${this.name}:${n}`;
      const replies = await Promise.all([this.client.incr(`count:${this.name}`), this.client.set(key, key)]).catch(
        () => null,
      );
      if (replies !== null) this.acknowledge(replies[0], key);
      await sleep(2);
    }
  }
}

/** A program that writes until its standard input ends, and prints `count key` for what was acknowledged. */
export class ProgramWriter extends Acknowledged {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(t: TestContext, name: string, seats: readonly Seat[], { command, cwd }: WriterProgram) {
    super(name);
    const addresses = nodes(seats).map(({ host, port }) => `${host}:${port}`);
    const [program, ...args] = [...command, MASTER, ...addresses];
    this.#child = spawn(program, args, { cwd, stdio: ['pipe', 'pipe', 'ignore'], detached: true });
    this.#ended = once(this.#child, 'close');
    createInterface(this.#child.stdout!).on('line', (line) => {
      const [count, key] = line.split(' ');
      this.acknowledge(Number(count), key);
    });
    t.after(() => {
      if (this.#child.exitCode === null) process.kill(-this.#child.pid!, 'SIGKILL');
    });
  }

  async stop(): Promise<void> {
    this.#child.stdin!.end();
    await this.#ended;
  }
}

export interface WriterProgram {
  readonly command: readonly string[];
  readonly cwd?: string;
}

/**
 * The clients go on after the proxy was killed, and after the one that took over has handed over to it; nothing that
 * was acknowledged is lost.
 */
export async function assertGoesOn(
  t: TestContext,
  scene: Scene,
  connect: (seats: readonly Seat[]) => Promise<Writer | ProgramWriter>,
): Promise<void> {
  const [one, two] = scene.seats;
  const first = one.start();
  await answersWith(one, one);
  const second = two.start('--standby');
  await answersWith(two, one);
  const writer = await connect(scene.seats);
  await writer.goesOn();

  first.signal('SIGKILL');
  await answersWith(two, two);
  await writer.goesOn();
  t.diagnostic(`${writer.name} waited ${Math.round(writer.longestMs)} ms when the proxy was killed`);
  writer.longestMs = 0;

  // The one that was killed starts again and waits: its Sentinel names the other one, which then hands over.
  const third = one.start('--standby');
  await answersWith(one, two);
  second.signal('SIGTERM');
  assert.equal(await second.exit(), 0);
  await answersWith(one, one);
  await writer.goesOn();
  t.diagnostic(`${writer.name} waited ${Math.round(writer.longestMs)} ms when the proxy handed over`);

  await writer.stop();
  third.signal('SIGTERM');
  assert.equal(await third.exit(), 0);
  await writer.assertKept(scene);
}
