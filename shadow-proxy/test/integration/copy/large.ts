/** A rig in which large keys are copied in chunks while clients write to them. */
import assert from 'node:assert/strict';
import type { Redis } from 'ioredis';
import { copyLarge, type LargeCopy, type LargeOptions } from '../../../src/copy/large/large.js';
import type { Sequencer } from '../../../src/pipeline/sequencer.js';
import type { Suspects } from '../../../src/suspects/suspects.js';
import type { LocalServer } from '../../../src/local/servers.js';
import { partsOf } from '../../support/shard.js';
import { withRig, type Rig, type RigOptions } from '../../support/rig.js';

export const KEY = 'big';
/** So small that a key of the tests has many. */
export const SMALL_CHUNKS = { chunkElements: 40, chunkBytes: 4096 };

/** From Redis to KeyDB, and back. */
export const DIRECTIONS = ['shadow', 'live'] as const;
export type Direction = (typeof DIRECTIONS)[number];
export const wayOf = (stage: Direction): string => (stage === 'shadow' ? 'Redis to KeyDB' : 'KeyDB to Redis');

export interface Scene {
  readonly rig: Rig;
  readonly sequencer: Sequencer;
  readonly suspects: Suspects;
  readonly authority: LocalServer;
  readonly mirror: LocalServer;
  /** Connected to the authority directly, bypassing the proxy: writes the keys that exist before the copy. */
  readonly before: Redis;
  copy(options?: Partial<LargeOptions>): Promise<LargeCopy>;
}

export function withScene(
  stage: Direction,
  body: (scene: Scene) => Promise<void>,
  servers: RigOptions['servers'] = {},
): Promise<void> {
  return withRig({ default: { stage }, servers }, async (rig) => {
    const { sequencer, suspects } = partsOf(rig.shard.shard);
    const [authority, mirror] = stage === 'shadow' ? [rig.source, rig.target] : [rig.target, rig.source];
    await rig.shard.settled();
    const scene: Scene = {
      rig,
      sequencer,
      suspects,
      authority,
      mirror,
      before: rig.client({ of: authority }),
      copy: (options = {}) => {
        const { db = 0, key = Buffer.from(KEY), ...more } = options;
        return copyLarge({
          sequencer,
          suspects,
          workload: sequencer.router.match(key, 0, key.length),
          db,
          key,
          limits: SMALL_CHUNKS,
          ...more,
        });
      },
    };
    await body(scene);
  });
}

/** What a client does next: a command. */
export type Next = (i: number) => readonly (string | Buffer | number)[];

/**
 * Clients of the proxy that write without a pause until the work is done. @returns what the work did, and how many
 * commands they sent
 */
export async function hammered<T>(
  rig: Rig,
  clients: number,
  next: Next,
  work: () => Promise<T>,
): Promise<{ result: T; commands: number }> {
  let [stopped, commands] = [false, 0];
  const writer = async (): Promise<void> => {
    const client = rig.client();
    while (!stopped) {
      const [name, ...args] = next(commands++);
      await client
        .call(name as string, args as string[])
        .catch((problem: Error) =>
          assert.match(
            problem.message,
            /WRONGTYPE|BUSYGROUP|NOGROUP|no such key|not an integer|not a float|smaller than/i,
          ),
        );
    }
  };
  const writers = Array.from({ length: clients }, writer);
  try {
    return { result: await work(), commands };
  } finally {
    stopped = true;
    await Promise.all(writers);
  }
}

export const random = (n: number): number => Math.floor(Math.random() * n);
export const oneOf = <T>(...choices: readonly T[]): T => choices[random(choices.length)];

/** Neither server holds what was only needed on the way, no suspect is left, and both hold the same. */
export async function assertCopied({ rig, sequencer }: Scene): Promise<void> {
  await rig.assertEqual();
  assert.equal(sequencer.suspects.chunked.size, 0);
}
