/** What must hold at every moment of a run, and when everything has come to rest. */
import { Equality } from '../check/equality.js';
import type { KeyName } from '../world/server-host.js';
import type { Load } from './load.js';
import type { Scene } from './scene.js';

/** At most once in so long. */
const LOOK_EACH_MS = 1;
/** A key that has differed for so long is a reason to look at the status. */
const LOOK_AFTER_MS = 3;

export class Checks {
  readonly #equality: Equality;
  #nextLook = 0;

  constructor(
    private readonly scene: Scene,
    private readonly load: Load,
  ) {
    this.#equality = new Equality(scene.source, scene.target);
  }

  afterEvent(): void {
    const { now } = this.scene;
    this.#equality.update(now);
    if (now < this.#nextLook) return;
    for (const [key, since] of this.#equality.differing) {
      if (now - since < LOOK_AFTER_MS || this.#isUncertain(key)) continue;
      this.#look();
      return;
    }
  }

  /** No command is on its way, and nothing is left to do. */
  atRest(): void {
    this.#equality.compareAll(this.scene.now);
    for (const key of this.#equality.differing.keys()) this.#differs(key, 'at the end');
    this.load.finishHistories();
    this.#noMismatch();
  }

  /** What the proxy says of itself: whether nothing is left to do. */
  get isClean(): boolean {
    const snapshot = this.scene.proxy.snapshot();
    if (snapshot === null) return false;
    const { workloads, suspects, mirror, undecided } = snapshot;
    return (
      suspects.total === 0 && undecided === 0 && mirror.queuedEffects === 0 && workloads.every(({ clean }) => clean)
    );
  }

  /** Its status, for a finding. */
  get status(): string {
    const { proxy } = this.scene;
    const snapshot = proxy.snapshot();
    if (snapshot === null) return `the proxy does not run: ${proxy.problem?.message}`;
    const { workloads, suspects, mirror, undecided, frozen, source, target } = snapshot;
    return JSON.stringify({
      suspects,
      mirror,
      undecided,
      frozen,
      source: source.problem,
      target: target.problem,
      workloads: workloads.map(({ clean, suspect, stage }) => ({ clean, suspect, stage })),
    });
  }

  /** A key differs, and no client's command may be the reason: the status must say that something is left to do. */
  #look(): void {
    this.#nextLook = this.scene.now + LOOK_EACH_MS;
    this.#noMismatch();
    if (!this.isClean) return;
    for (const key of this.#equality.differing.keys()) this.#differs(key, 'while the status is clean');
  }

  #noMismatch(): void {
    const { proxy } = this.scene;
    const snapshot = proxy.snapshot();
    if (snapshot === null || Object.keys(snapshot.mismatches).length === 0) return;
    const latest = JSON.stringify(proxy.launched!.ledger.latest().slice(-2));
    this.scene.fail(`a mismatch is reported that does not exist: ${latest}`);
  }

  #differs(key: KeyName, when: string): void {
    if (this.#isUncertain(key) || this.#equality.compare(key, this.scene.now)) return;
    this.scene.fail(`a key differs ${when}: ${this.#equality.show(key)}`, [nameOf(key)]);
  }

  #isUncertain(key: KeyName): boolean {
    return this.load.isUncertain(nameOf(key));
  }
}

const nameOf = (key: KeyName): string => key.slice(key.indexOf(' ') + 1);
