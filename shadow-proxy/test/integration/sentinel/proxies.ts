/** Two proxies of one shard, each with a Sentinel, as real processes; and clients that know only the Sentinels. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

/** Writes of one client, one after the other; what was acknowledged is kept. */
export class Writer {
  /** The last reply to INCR. */
  counted = 0;
  readonly set: string[] = [];
  /** How many writes failed, with an error for their client. */
  failed = 0;
  #stopped = false;
  readonly #done: Promise<void>;

  constructor(
    private readonly name: string,
    private readonly client: Client,
  ) {
    this.#done = this.#write();
  }

  async #write(): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      try {
        const key = `${this.name}:${n}`;
        const [reply] = await Promise.all([
          this.client.incr(`count:${this.name}`),
          this.client.set(key, key).then(() => this.set.push(key)),
        ]);
        assert.ok(reply > this.counted, `${this.name}: ${reply} after ${this.counted}`);
        this.counted = reply;
      } catch (problem) {
        if (problem instanceof assert.AssertionError) throw problem;
        this.failed++;
      }
      await sleep(2);
    }
  }

  /** Resolves when so many further writes were acknowledged. */
  async goesOn(more = 100): Promise<void> {
    const from = this.set.length;
    for (const deadline = performance.now() + patienceMs(GOES_ON_MS); this.set.length < from + more; await sleep(10))
      assert.ok(performance.now() < deadline, `${this.name} does not go on: ${this.set.length - from} writes`);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
    this.client.close();
  }

  /** Every write that was acknowledged is on both servers, and they hold the same. */
  async assertKept({ source, target }: Pair): Promise<void> {
    for (const { url } of [source, target]) {
      const direct = new Redis(url);
      try {
        assert.ok(Number(await direct.get(`count:${this.name}`)) >= this.counted, `${this.name}: an INCR is lost`);
        const values = await direct.mget(this.set);
        assert.deepEqual(
          values.flatMap((value, i) => (value === null ? [this.set[i]] : [])),
          [],
          'writes that were acknowledged',
        );
      } finally {
        direct.disconnect();
      }
    }
    assert.deepEqual(await differences(source, target), []);
  }
}
