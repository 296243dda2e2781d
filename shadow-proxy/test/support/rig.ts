/** Both servers and a shard between them, for as long as a test needs them. */
import assert from 'node:assert/strict';
import { startRedis, type LocalServer, type ServerOptions } from '../../src/local/servers.js';
import { clientsOf, type Clients } from './clients.js';
import { differences } from './keyspace.js';
import { startTestTarget } from './servers.js';
import { startTestShard, type TestShard, type TestShardOptions } from './shard.js';

export interface Rig extends Clients {
  /** Redis. */
  readonly source: LocalServer;
  /** KeyDB. */
  readonly target: LocalServer;
  readonly shard: TestShard;
  /**
   * Waits until the mirror has everything, then asserts that both servers hold the same, and that no difference was
   * found on the way.
   * @param failures so many replies at which the proxy has failed
   */
  assertEqual(failures?: number): Promise<void>;
}

export type RigOptions = Omit<TestShardOptions, 'source' | 'target'> & {
  readonly servers?: { readonly source?: ServerOptions; readonly target?: ServerOptions };
};

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
export async function startRig({ servers = {}, ...shardOptions }: RigOptions = {}): Promise<
  Rig & { stop(): Promise<void> }
> {
  const source = await startRedis(servers.source);
  const target = await startTestTarget(servers.target);
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
export async function startOn(
  options: TestShardOptions & { readonly source: LocalServer; readonly target: LocalServer },
): Promise<Rig & { stop(): Promise<void> }> {
  const { source, target } = options;
  const shard = await startTestShard(options);
  const { closeAll, ...clients } = clientsOf(() => shard.port);
  return {
    source,
    target,
    shard,
    ...clients,
    async assertEqual(failures = 0) {
      await shard.settled();
      assert.deepEqual(await differences(source, target), []);
      assert.deepEqual(shard.snapshot().mismatches, {}, JSON.stringify(shard.findings().slice(0, 3)));
      assert.deepEqual(suspectWorkloads(shard), []);
      assert.equal(shard.snapshot().replyFailures, failures, 'the proxy failed at a reply: TEST_LOG=error shows it');
    },
    async stop() {
      closeAll();
      await shard.stop();
    },
  };
}

/** Workloads that are suspect as a whole. */
const suspectWorkloads = (shard: TestShard): string[] =>
  shard.snapshot().workloads.flatMap(({ name, clean }) => (clean ? [] : [name]));
