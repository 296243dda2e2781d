/** How several shards on one target ask each other about keys. */
import type { SharedTargetContext } from '../copy/foreign/shared-target.js';
import { connectTo, KeyReader } from '../copy/key/key-reader.js';
import { sleep } from '../io/timers.js';
import type { Turn } from '../io/turn.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import type { Owners } from '../route/owner.js';
import type { Side } from '../route/stage.js';
import { drained } from '../stages/flip.js';
import type { Suspects } from '../suspects/suspects.js';
import type { Dialer } from '../upstream/dialer.js';
import type { Shard } from './contract.js';

/** A mirror that lags by more than this, in ms, shows nothing about missing keys. */
const SETTLE_MS = 30_000;

export interface SharingOptions {
  readonly name: string;
  readonly sequencer: Sequencer;
  readonly suspects: Suspects;
  readonly turn: Turn;
  /** Null if the target belongs to this shard alone. */
  readonly owners: Owners | null;
  /** The sources of the other shards that share the target, by shard. */
  readonly neighbourSources: ReadonlyMap<string, Dialer>;
  /** The shards of this process. */
  readonly shards: () => readonly Shard[];
}

/** The servers to ask about keys: this shard's own, and the sources of the other shards. */
export function sharingOf(options: SharingOptions): SharedTargetContext {
  const { name, sequencer, turn, owners, neighbourSources } = options;
  const own = (side: Side): KeyReader => {
    const server = sequencer.servers[side];
    return new KeyReader(
      `the ${side} of shard ${name}`,
      () => server.open({ db: 0, protocol: 2, credentials: server.endpoint.credentials }),
      server.endpoint.isCluster,
    );
  };
  const others = [...neighbourSources].map(
    ([other, dialer]) =>
      new KeyReader(
        `the source of shard ${other}`,
        () => connectTo(dialer, `shadow-proxy-asks:${name}`, turn),
        dialer.isCluster,
      ),
  );
  const here = (): readonly Shard[] => options.shards().filter((shard) => neighbourSources.has(shard.name));
  const settled: SharedTargetContext['settled'] = async (db, keys) => {
    let left = await settledHere(options, db, keys);
    for (const shard of here()) left = await shard.settled(db, left);
    return left;
  };
  const knowsAll = (): boolean => here().length === neighbourSources.size;
  return { owners, readers: { source: own('source'), target: own('target') }, neighbours: others, settled, knowsAll };
}

/** The same as `Shard.settled`, for a shard of this process. */
export async function settledHere<T extends { readonly key: Buffer }>(
  { sequencer, suspects }: Pick<SharingOptions, 'sequencer' | 'suspects'>,
  db: number,
  keys: readonly T[],
): Promise<readonly T[]> {
  const inTime = await Promise.race([drained(sequencer).then(() => true), sleep(SETTLE_MS, false, { ref: false })]);
  if (!inTime) return [];
  return keys.filter(({ key }) => !suspects.has(db, key));
}
