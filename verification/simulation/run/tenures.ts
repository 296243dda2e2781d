/** Which process has the shard: one at a time, the one that has it while it is well, and another soon after its end. */
import type { Proxy } from '../world/proxy.js';
import type { ServerHost } from '../world/server-host.js';
import { VACANT_MS } from './faults/standbys.js';
import type { Scene } from './scene.js';

const CHECK_MS = 50;
/** A lease whose connection was lost is held again after so long. */
const REGAINED_MS = 3_000;
const HOLDS = /^shadow-proxy-lease:.*:holds:/;
export class Tenures {
  /** By server: which processes have written to it, the last one at the end. */
  readonly #writers = new Map<ServerHost, string[]>();
  #vacantSince: number | null = null;
  #mayLastMs = 0;
  #wellSince = 0;

  constructor(private readonly scene: Scene) {
    if (scene.seats.length === 1) return;
    for (const server of [scene.source, scene.target]) {
      this.#writers.set(server, []);
      server.onChange = (address) => this.#wrote(server, address);
    }
    const served = scene.onServe;
    scene.onServe = (seat) => {
      this.#vacantSince = null;
      if (scene.profile.holderStays && seat !== scene.seats[0])
        scene.fail(`${scene.nameOf(seat)} takes over from one that was well`);
      served(seat);
    };
    scene.onVacant = (seat, mayLastMs) => {
      if (scene.proxy !== seat) return;
      this.#vacantSince = scene.now;
      // A goodbye is seen by all that wait, where nothing is wrong with one of them or the one that has ended.
      const isSeen = scene.seats.every((each) => each === seat || this.#isWell(each, scene.now));
      this.#mayLastMs = isSeen && scene.troubledUntil(seat) < scene.now - VACANT_MS ? mayLastMs : VACANT_MS;
    };
    scene.onEnd = (seat, problem) => {
      if (scene.profile.holderStays && seat === scene.seats[0])
        scene.fail(`${scene.nameOf(seat)} ends, and was well: ${problem.message}`);
    };
  }

  start(): void {
    if (this.scene.seats.length === 1) return;
    this.scene.later(CHECK_MS, () => {
      this.#check();
      this.start();
    });
  }

  #check(): void {
    const { scene } = this;
    this.#checkNames();
    // One that was stopped goes on where no other could take over: that it holds the lease is looked at above.
    const { proxy } = scene;
    if (proxy.launched !== null && proxy.answers && scene.troubledUntil(proxy) < scene.now - REGAINED_MS)
      this.#vacantSince = null;
    if (this.#vacantSince === null) return;
    // One that has taken the lease, and is troubled before it serves, has the shard.
    if (scene.seats.some((seat) => scene.troubledUntil(seat) > scene.now - REGAINED_MS && this.#holds(seat)))
      this.#vacantSince = scene.now;
    const isServed = scene.seats.some((seat) => this.#isWell(seat, this.#vacantSince!));
    if (!isServed) {
      this.#vacantSince = scene.now;
      // It may have missed a goodbye.
      this.#mayLastMs = VACANT_MS;
    }
    // One that is stopped stands in line until the others see that it is silent.
    if (scene.seats.some((seat) => seat !== scene.proxy && seat.process !== null && !seat.answers))
      this.#mayLastMs = 2 * VACANT_MS;
    if (scene.now - this.#vacantSince > this.#mayLastMs)
      scene.fail(`no standby has taken over within ${this.#mayLastMs} ms`);
  }

  /** At each server that it can reach, the one that serves holds the lease. */
  #checkNames(): void {
    const { scene } = this;
    const { proxy: seat, source, target } = scene;
    const isWell =
      [source, target].every(({ stillMs }) => stillMs === 0) && scene.troubledUntil(seat) < scene.now - 2 * CHECK_MS;
    if (!isWell || seat.launched === null || seat.isEnding) this.#wellSince = scene.now;
    if (scene.now - this.#wellSince < REGAINED_MS) return;
    for (const { engine, model } of [source, target])
      if (![...model.clients.values()].some(({ name }) => HOLDS.test(name)))
        scene.fail(`nothing has held the lease at the ${engine} for ${REGAINED_MS} ms`);
  }

  #holds({ host }: Proxy): boolean {
    return [this.scene.source, this.scene.target].some(({ model }) =>
      [...model.clients.values()].some(
        ({ name, address }) => HOLDS.test(name) && address.startsWith(`${host.address}:`),
      ),
    );
  }

  /** Whether it has waited, and nothing was wrong with it, since then. */
  #isWell(seat: Proxy, since: number): boolean {
    return seat.process !== null && seat.startedAt < since - 1_000 && this.scene.troubledUntil(seat) < since;
  }

  #wrote(server: ServerHost, address: string): void {
    const { scene } = this;
    const seat = scene.seats.find(({ host }) => address.startsWith(`${host.address}:`));
    if (seat === undefined) return;
    // What an earlier process of the seat has sent may still arrive.
    const connection = [...scene.world.network.connections].find(({ from }) => address === `${from.host}:${from.port}`);
    const writers = this.#writers.get(server)!;
    const writer = `${scene.nameOf(seat)} (${connection?.near.owner.name})`;
    if (writers.at(-1) === writer) return;
    if (writers.includes(writer)) scene.fail(`${writer} writes again after ${writers.at(-1)}`);
    writers.push(writer);
  }
}
