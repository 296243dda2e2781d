/** The Sentinels of the proxy's processes: clients ask them which process serves. */
import { SentinelClient, type Seen } from '../clients/sentinel-client.js';
import type { Scene } from './scene.js';

const CLIENTS = 3;
/** The processes that wait have seen by then who serves. */
const KNOWN_MS = 5_000;
/** What must have happened in longer runs. */
export const SEEN: readonly Seen[] = ['a takeover', 'a late answer', 'a closed client'];

export class Announced {
  /** How often each happened. */
  readonly tried = new Map<string, number>();
  readonly #clients: readonly SentinelClient[];
  #servesSince = 0;

  constructor(private readonly scene: Scene) {
    const { world, seats } = scene;
    const served = scene.onServe;
    scene.onServe = (seat) => {
      this.#servesSince = scene.now;
      served(seat);
    };
    const events = {
      hosts: seats.map(({ host }) => host.address),
      serving: () => this.#serving,
      seen: (what: Seen) => void this.tried.set(what, (this.tried.get(what) ?? 0) + 1),
      wrong: (problem: string) => scene.fail(`the Sentinel: ${problem}`),
    };
    this.#clients = Array.from(
      { length: CLIENTS },
      (_, i) => new SentinelClient(world.network, `10.${i + 1}`, world.random.fork(), events),
    );
  }

  start(): void {
    for (const client of this.#clients) client.start();
  }

  /** The host of the process that has served for long enough; null where none has. */
  get #serving(): string | null {
    const { proxy, now } = this.scene;
    return proxy.launched !== null && !proxy.isEnding && now - this.#servesSince > KNOWN_MS ? proxy.host.address : null;
  }
}
