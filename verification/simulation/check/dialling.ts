/** How often the proxy tries to reach a server that is down, and how soon it is back when the server is. */
import type { Network } from '../world/network.js';
import type { ServerHost } from '../world/server-host.js';

/** A server that has been down for so long is tried less often. */
const LONG_DOWN_MS = 3_000;
/** So many attempts in a second: those of the mirror and of what watches the server. */
const MOST_IN_A_SECOND = 20;
/** So long after its start the mirror is connected. */
const BACK_MS = 3_000;

export class Dialling {
  #downSince: number | null = null;
  #attempts: number[] = [];
  #isTooFast = false;

  constructor(
    private readonly network: Network,
    private readonly server: ServerHost,
  ) {
    const connect = network.connect.bind(network);
    network.connect = (owner, from, to, connected) => {
      if (to.host === server.address.host) this.#attempted();
      return connect(owner, from, to, connected);
    };
  }

  #attempted(): void {
    const { now } = this.network.events;
    if (this.#downSince === null || now - this.#downSince < LONG_DOWN_MS) return;
    this.#attempts = [...this.#attempts.filter((at) => now - at < 1_000), now];
    this.#isTooFast ||= this.#attempts.length > MOST_IN_A_SECOND;
  }

  /** To be called often. @param isConnected whether the mirror is */
  problem(isConnected: boolean): string | null {
    const { now } = this.network.events;
    if (this.server.isUp && this.#downSince !== null) {
      this.#downSince = null;
      this.#attempts = [];
    } else if (!this.server.isUp) this.#downSince ??= now;
    if (this.#isTooFast) return `a server that is down is tried more than ${MOST_IN_A_SECOND} times a second`;
    if (this.server.isUp && !isConnected && now - this.server.startedAt > BACK_MS)
      return `the mirror is not connected ${BACK_MS / 1000} s after the start of its server`;
    return null;
  }
}
