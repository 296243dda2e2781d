/**
 * What TCP shows of a network that is far away and loses packets: replies are late, little passes in a second, and
 * single connections stall while what was lost is sent again. No packet is lost, repeated or reordered here. TCP itself
 * puts that right, and its work is not tested.
 */
import type { Relay } from '../../src/local/relay.js';
import { Random } from '../integration/random/random.js';

export interface Network {
  /** From one end to the other, milliseconds. */
  readonly delayMs?: number;
  /** Of each connection, each way. */
  readonly bytesPerSecond?: number;
  readonly stalls?: Stalls;
}

/** What of each connection, in one direction, does not pass for a while. */
export interface Stalls {
  /** Mean time between two on one connection, milliseconds. */
  readonly everyMs: number;
  /** How long one lasts, milliseconds: any of these. */
  readonly ms: readonly number[];
}

const TICK_MS = 20;

/** Applies until it is stopped. */
export class SlowNetwork {
  /** How often a connection stalled. */
  stalls = 0;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #ticks: NodeJS.Timeout;

  constructor(
    private readonly relay: Relay,
    { delayMs = 0, bytesPerSecond = Infinity, stalls }: Network,
    seed: number,
  ) {
    Object.assign(relay, { delayMs, bytesPerSecond });
    const random = new Random(seed);
    this.#ticks = setInterval(() => stalls !== undefined && this.#tick(stalls, random), TICK_MS);
  }

  /** The network is fast again. */
  stop(): void {
    clearInterval(this.#ticks);
    for (const timer of this.#timers) clearTimeout(timer);
    Object.assign(this.relay, { delayMs: 0, bytesPerSecond: Infinity });
    this.relay.release();
  }

  #tick({ everyMs, ms }: Stalls, random: Random): void {
    for (const link of this.relay.links) {
      if (link.stalled || !random.chance(TICK_MS / everyMs)) continue;
      this.stalls++;
      link.hold(random.pick(['up', 'down']));
      const timer = setTimeout(() => (this.#timers.delete(timer), link.release()), random.pick(ms));
      this.#timers.add(timer);
    }
  }
}
