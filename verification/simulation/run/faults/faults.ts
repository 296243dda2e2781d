/** The faults of a run: each strikes by itself, with the profile's mean time between two. */
import type { Load } from '../load.js';
import type { Operator } from '../operator.js';
import type { Strike } from '../program.js';
import type { Fault } from '../profiles.js';
import type { Scene } from '../scene.js';
import { networkFaults } from './network.js';
import { proxyFaults } from './proxy.js';
import { serverFaults } from './servers.js';
import { standbyFaults } from './standbys.js';
import type { Strikes } from './strikes.js';

export class Faults {
  /** How often each struck. */
  readonly struck = new Map<Fault, number>();
  readonly #strikes: Strikes;
  /** Counts starts and ends. */
  #period = 0;

  constructor(
    private readonly scene: Scene,
    load: Load,
    operator: Operator,
  ) {
    this.#strikes = {
      ...networkFaults(scene, load),
      ...serverFaults(scene),
      ...proxyFaults(scene),
      ...standbyFaults(scene),
      ...operator.acts,
    };
  }

  /** Each strikes from now on, until the end. */
  start(): void {
    const period = ++this.#period;
    for (const fault of Object.keys(this.#strikes) as Fault[]) {
      const meanMs = this.scene.profile.faults[fault];
      if (meanMs !== undefined) this.#repeat(fault, meanMs, period);
    }
  }

  /** Ends what lasts, too: servers and the proxy run again. */
  end(): void {
    this.#period++;
    const { source, target, clusters, seats, world } = this.scene;
    world.network.settle();
    for (const server of [source, target]) server.start(true);
    for (const cluster of clusters) cluster.settle();
    for (const seat of seats) if (seat.process === null) seat.start();
  }

  /** Strikes each at its time. */
  replay(strikes: readonly Strike[]): void {
    for (const { at, fault, seed } of strikes) this.scene.later(at, () => this.#strike(fault, seed));
  }

  #strike(fault: Fault, seed: number): void {
    const { scene } = this;
    const what = scene.random.withSeed(seed, this.#strikes[fault]);
    if (what === null) return;
    this.struck.set(fault, (this.struck.get(fault) ?? 0) + 1);
    scene.say(what);
    scene.recorder.struck(scene.now, { fault, seed, what });
  }

  #repeat(fault: Fault, meanMs: number, period: number): void {
    const { scene } = this;
    scene.later(-Math.log(1 - scene.random.share()) * meanMs, () => {
      if (period !== this.#period) return;
      this.#strike(fault, scene.random.next());
      this.#repeat(fault, meanMs, period);
    });
  }
}
