/** What follows when a server that clients depend on does not answer: soon enough, and only then. */
import { SIDES, type Side } from '../../../shadow-proxy/src/route/stage.js';
import type { ShardCondition } from '../../../shadow-proxy/src/shard/snapshot.js';
import type { Scene } from './scene.js';

/** So much later than the plan says an outage may be seen: the server is asked four times a second. */
const SEEN_MS = 1_000;
/** A look at the server may begin so long before its silence does. */
const EARLY_MS = 50;
/** So long clients may take to be moved. */
const MOVED_MS = 5_000;

export class Outages {
  #failovers = 0;
  /** When each server answered last, and when it was silent last, for so long. */
  readonly #answered: Record<Side, number> = { source: 0, target: 0 };
  readonly #silent: Record<Side, { at: number; ms: number }> = {
    source: { at: -Infinity, ms: 0 },
    target: { at: -Infinity, ms: 0 },
  };
  /** Since when the authority of all keys is the same one. */
  #authority: Side | null = null;
  #since = 0;

  constructor(private readonly scene: Scene) {}

  /**
   * To be called often.
   * @param mayBeBusy whether a script may be running, which would be a reason for the server's silence
   * @returns what is not true; null where all is
   */
  problem({ failovers, outage }: ShardCondition, mayBeBusy: boolean): string | null {
    const { now, mirror, proxy } = this.scene;
    const { downAfterMs } = proxy.plan.limits;
    for (const side of SIDES) {
      const { isSilent, stillMs, model } = this.scene[side];
      // It may have answered between two looks, and be stopped again.
      const ranUntil = stillMs > 0 && !model.troubles.loading ? now - stillMs : 0;
      this.#answered[side] = isSilent ? Math.max(this.#answered[side], ranUntil) : now;
      if (isSilent) this.#silent[side] = { at: now, ms: now - this.#answered[side] };
    }
    const authority = mirror && (mirror.name === 'target' ? 'source' : 'target');
    if (authority !== this.#authority || mayBeBusy) this.#since = now;
    this.#authority = authority;
    if (failovers > this.#failovers) {
      this.#failovers = failovers;
      const { at, ms } = this.#silent[outage!.side];
      if (ms < downAfterMs - EARLY_MS || now - at > MOVED_MS)
        return `clients were moved away from the ${outage!.side}, which answers`;
    }
    if (authority === null) return null;
    const silentMs = now - Math.max(this.#answered[authority], this.#since, proxy.startedAt);
    if (silentMs > downAfterMs + SEEN_MS && (outage?.side !== authority || outage.endedAt !== null))
      return `no outage, and the ${authority} has not answered for ${silentMs.toFixed(0)} ms`;
    return null;
  }
}
