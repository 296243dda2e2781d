/** Both servers and a shard between them, for as long as a test needs them. */
import assert from 'node:assert/strict';
import { Redis, type RedisOptions } from 'ioredis';
import { startKeydb, startRedis, type LocalServer, type ServerOptions } from '../../src/local/servers.js';
import { differences } from './keyspace.js';
import { startTestShard, type TestShard, type TestShardOptions } from './shard.js';
import { Wire } from './wire.js';

export interface Rig {
  /** Redis. */
  readonly source: LocalServer;
  /** KeyDB. */
  readonly target: LocalServer;
  readonly shard: TestShard;
  /** A connection to the proxy; closed with the rig. */
  wire(): Promise<Wire>;
  /** An ioredis client of the proxy, or of one of the servers; closed with the rig. */
  client(options?: RedisOptions & { readonly of?: LocalServer }): Redis;
  /** Waits until the mirror has everything, then asserts that both servers hold the same, and that no difference was found on the way. */
  assertEqual(): Promise<void>;
}

export type RigOptions = Omit<TestShardOptions, 'source' | 'target'> & { readonly servers?: { readonly source?: ServerOptions; readonly target?: ServerOptions } };

/** Starts a rig, and stops it after `body`, however that ends. */
export async function withRig<T>(options: RigOptions, body: (rig: Rig) => Promise<T>): Promise<T> {
  const rig = await startRig(options);
  try {
    return await body(rig);
  } finally {
    await rig.stop();
  }
}

/** Starts servers and a shard; `stop` ends them all. */
export async function startRig({ servers = {}, ...shardOptions }: RigOptions = {}): Promise<Rig & { stop(): Promise<void> }> {
  const source = await startRedis(servers.source);
  const target = await startKeydb(servers.target);
  const stop = async (): Promise<void> => void (await Promise.all([source.stop(), target.stop()]));
  try {
    const rig = await startOn({ ...shardOptions, source, target });
    return { ...rig, stop: () => rig.stop().then(stop) };
  } catch (problem) {
    await stop();
    throw problem;
  }
}

/** A rig on servers that are there already, and stay. */
export async function startOn(options: TestShardOptions & { readonly source: LocalServer; readonly target: LocalServer }): Promise<Rig & { stop(): Promise<void> }> {
  const { source, target } = options;
  const shard = await startTestShard(options);
  const open: { destroy(): void }[] = [];
  return {
    source,
    target,
    shard,
    async wire() {
      const wire = await Wire.open({ port: shard.port });
      open.push(wire);
      return wire;
    },
    client({ of, ...more } = {}) {
      const client = new Redis({ host: '127.0.0.1', port: of?.port ?? shard.port, maxRetriesPerRequest: null, ...more });
      client.on('error', () => undefined);
      open.push({ destroy: () => client.disconnect() });
      return client;
    },
    async assertEqual() {
      await shard.settled();
      assert.deepEqual(await differences(source, target), []);
      assert.deepEqual(shard.snapshot().mismatches, {}, JSON.stringify(shard.findings().slice(0, 3)));
      assert.deepEqual(suspectWorkloads(shard), []);
    },
    async stop() {
      for (const each of open) each.destroy();
      await shard.stop();
    },
  };
}

/** Workloads that are in doubt as a whole. */
const suspectWorkloads = (shard: TestShard): string[] => shard.snapshot().workloads.flatMap(({ name, clean }) => (clean ? [] : [name]));
