/** Shows the Sentinel of this process what the lease of a shard shows, while the process waits and while it serves. */
import { every, clearTimer, type Timer } from '../io/timers.js';
import type { Ownership, Sight } from '../lease/ownership.js';
import { formatAddress } from '../plan/endpoint.js';
import type { SentinelMaster } from '../plan/plan.js';
import { LOOK_MS, type Masters } from '../sentinel/masters.js';

export class SentinelWatch {
  readonly #timer: Timer;
  /** What this process says of itself once it serves. */
  #serves: Sight | null = null;
  #hasLooked = false;

  constructor(
    private readonly masters: Masters,
    private readonly ownership: Ownership,
    private readonly master: SentinelMaster,
  ) {
    this.#timer = every(LOOK_MS, () => void this.#discover()).unref();
  }

  /** For a process that waits. */
  looked(sight: Sight): void {
    this.masters.looked(this.master.shard, sight);
    if (!this.#hasLooked) void this.#discover();
    this.#hasLooked = true;
  }

  /**
   * The process accepts clients, at this port if the plan leaves the port open. It waits for no server, which may hang.
   */
  serves(port: number): void {
    const { host, port: planned } = this.master.announce;
    const service = formatAddress({ host, port: planned || port });
    const { process } = this.ownership;
    this.#serves = { holder: { process, places: { service, sentinel: '' } }, isDown: false };
    this.masters.looked(this.master.shard, this.#serves);
    void this.ownership.announce(service);
    void this.#discover();
  }

  stop(): void {
    clearTimer(this.#timer);
  }

  async #discover(): Promise<void> {
    const others = await this.ownership.sentinels();
    if (others === null) return;
    this.masters.discovered(this.master.shard, others);
    if (this.#serves !== null) this.masters.looked(this.master.shard, this.#serves);
  }
}
