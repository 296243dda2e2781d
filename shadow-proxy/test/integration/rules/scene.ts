/**
 * Both servers, a relay before each, and a shard between them that can be stopped and started again on the same state.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LocalServer } from '../../../src/local/servers.js';
import { clientsOf, type Clients } from '../../support/clients.js';
import { differences } from '../../support/keyspace.js';
import { Relay } from '../../../src/local/relay.js';
import { withServers } from '../../support/servers.js';
import { startTestShard, type TestShard, type TestShardOptions } from '../../support/shard.js';

export type SceneOptions = Omit<TestShardOptions, 'source' | 'target' | 'stateDir'>;
type ServersOptions = Parameters<typeof withServers>[1];

export interface Scene extends Clients {
  /** Redis. */
  readonly source: LocalServer;
  /** KeyDB. */
  readonly target: LocalServer;
  /** The proxy's way to each of them. */
  readonly toSource: Relay;
  readonly toTarget: Relay;
  /** The shard that runs now. */
  readonly shard: TestShard;
  /** Ends the shard as the end of its process would, or lets it drain first. */
  stopShard(how?: 'at once' | 'drained'): Promise<void>;
  /** Starts a shard on the state that the last one left. */
  startShard(options?: SceneOptions): Promise<TestShard>;
  /** Waits until nothing waits for the mirror and no key is suspect, and asserts that both servers hold the same. */
  assertEqual(): Promise<void>;
}

/** Sets the scene, and clears it after `body`, however that ends. */
export async function withScene<T>(
  options: SceneOptions,
  body: (scene: Scene) => Promise<T>,
  servers: ServersOptions = {},
): Promise<T> {
  return withServers(async ({ source, target }) => {
    const stateDir = await mkdtemp(join(tmpdir(), 'scene-'));
    const [toSource, toTarget] = [await Relay.start(source), await Relay.start(target)];
    const start = (more: SceneOptions = {}): Promise<TestShard> =>
      startTestShard({ ...options, ...more, source: toSource, target: toTarget, stateDir });
    let shard = await start();
    const { closeAll, ...clients } = clientsOf(() => shard.port);
    const scene: Scene = {
      ...{ source, target, toSource, toTarget, ...clients },
      get shard() {
        return shard;
      },
      async stopShard(how = 'at once') {
        if (how === 'drained') assert.equal(await shard.shard.drain(5_000), true, 'the shard did not drain');
        await shard.stop();
      },
      startShard: async (more) => (shard = await start(more)),
      async assertEqual() {
        await shard.settled();
        const different = await differences(source, target);
        assert.deepEqual(different.slice(0, 5), [], `${different.length} keys differ`);
        assert.equal(shard.snapshot().replyFailures, 0, 'the proxy failed at a reply: TEST_LOG=error shows it');
      },
    };
    try {
      return await body(scene);
    } finally {
      closeAll();
      await shard.stop();
      await Promise.all([toSource.close(), toTarget.close()]);
      await rm(stateDir, { recursive: true, force: true });
    }
  }, servers);
}
