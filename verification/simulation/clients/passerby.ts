/** A client that subscribes and leaves soon, whether it is subscribed by then or not. It reads nothing. */
import { WORLD } from '../world/events.js';
import type { End, Network } from '../world/network.js';
import type { Random } from '../world/random.js';

/** It disconnects within so many milliseconds, and connects again within so many. */
const STAYS_MS = 8;
const AWAY_MS = 60;

export class Passerby {
  #end: End | null = null;
  #isHere = false;
  #stopped = true;

  constructor(
    private readonly network: Network,
    private readonly address: { readonly host: string; readonly port: number },
    private readonly random: Random,
  ) {}

  start(): void {
    this.#stopped = false;
    if (!this.#isHere) this.#come();
  }

  stop(): void {
    this.#stopped = true;
    this.#end?.close();
  }

  #come(): void {
    const { network, random } = this;
    this.#isHere = !this.#stopped;
    if (this.#stopped) return;
    // It waits for the reply to PING first.
    const end = network.connect(WORLD, '10.0.1.4', this.address, () =>
      end.send(Buffer.from('PING\r\nSUBSCRIBE ch0\r\n')),
    );
    this.#end = end;
    network.events.after(random.between(0, STAYS_MS), WORLD, () => {
      end.close(random.chance(0.5));
      network.events.after(random.between(0, AWAY_MS), WORLD, () => this.#come());
    });
  }
}
