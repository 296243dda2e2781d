/**
 * A rig, and a Redis like its source that nothing stands before: what the proxy says is held against what that one
 * says.
 */
import { after, before } from 'node:test';
import { startRedis, type LocalServer, type ServerOptions } from '../../src/local/servers.js';
import { assertSame, type Line } from './dialogue.js';
import { startRig } from './rig.js';

export interface Beside {
  readonly rig: Awaited<ReturnType<typeof startRig>>;
  readonly twin: LocalServer;
  /** Asserts that the proxy answers each dialogue as the twin does. */
  same(dialogues: readonly (readonly Line[])[]): Promise<void>;
}

/** Both, from the first test of the `describe` that it is called in to the last; `options` are of all three servers. */
export function besideRedis(options?: ServerOptions): Beside {
  let rig: Beside['rig'];
  let twin: LocalServer;
  before(async () => {
    [rig, twin] = await Promise.all([
      startRig(options && { servers: { source: options, target: options } }),
      startRedis(options),
    ]);
  });
  after(() => Promise.all([rig.stop(), twin.stop()]));
  return {
    get rig() {
      return rig;
    },
    get twin() {
      return twin;
    },
    same: (dialogues) => assertSame(rig.shard.port, twin.port, dialogues),
  };
}
