/** What must hold as soon as a process of the proxy serves: before it has repaired anything. */
import { partsOf } from '../world/key-name.js';
import type { Checks } from './checks.js';
import type { Scene } from './scene.js';

/** What a journal says where it cannot name the keys of what was in flight. */
const HIDDEN = /: a (script|write with unknown keys) was in flight/;
const CRASHED = /^the last process crashed: /;
/** What a process says whose last one ended before it had a journal of its own: another had served before that. */
const UNKNOWN = /journal-[ab] is not that of the process that served last/;

export class Starts {
  /** When a process last served. */
  #servedAt = 0;
  /** Seats whose last process had to say `UNKNOWN`: until every key is verified, the next one repeats it. */
  readonly #unknown = new Set<Scene['proxy']>();

  constructor(
    private readonly scene: Scene,
    private readonly checks: Checks,
  ) {
    scene.onServe = () => this.#check();
  }

  #check(): void {
    const { scene } = this;
    const { damage } = scene;
    scene.damage = null;
    this.#believesNoDamage(damage);
    this.#hasNoSuspects();
    this.#namesWhatDiffers();
    this.#servedAt = scene.now;
  }

  /** The journal's promise: whatever the end was, what is no suspect is equal. */
  #namesWhatDiffers(): void {
    const { scene } = this;
    const { equality } = this.checks;
    if (scene.stage === 'off' || scene.emptied?.isLost === true) return;
    // A mirror that has not answered yet may have lost its keys; the status says that it does not answer.
    const { target } = scene.proxy.parts!.sequencer.servers;
    if (!target.up && scene.target.lostAt >= this.#servedAt) return;
    equality.compareAll(scene.now);
    for (const key of equality.differing.keys()) {
      const { db, name } = partsOf(key);
      if (scene.proxy.parts!.suspects.has(db, Buffer.from(name, 'latin1'))) continue;
      if (this.checks.isSuspect(key) || this.checks.isForeign(key) || this.checks.isOff(key)) continue;
      scene.fail(`a key differs after a start, and is no suspect: ${equality.show(key)}`, [name]);
    }
  }

  /** Of a journal that was damaged, or whose machine was, nothing is believed. */
  #believesNoDamage(damage: string | null): void {
    const { router, suspects } = this.scene.proxy.parts!;
    const trusts = router.workloads.find(
      (workload) => suspects.workloads.of(workload) === null && workload.position.keylessRule.mirrorsWrites,
    );
    if (damage !== null && trusts !== undefined) this.scene.fail(`the proxy trusts its journal, although ${damage}`);
  }

  /** A journal that nothing has damaged names the keys. */
  #hasNoSuspects(): void {
    const { proxy, damages } = this.scene;
    if (damages > 0) return;
    const { router, suspects } = proxy.parts!;
    const reasons = router.workloads.flatMap((workload) => suspects.workloads.of(workload) ?? []);
    const mayBeUnknown = !proxy.lastServed || this.#unknown.has(proxy);
    for (const reason of reasons)
      if (CRASHED.test(reason) && !HIDDEN.test(reason) && !(mayBeUnknown && UNKNOWN.test(reason)))
        this.scene.fail(`the proxy does not trust its journal, and nothing has damaged it: ${reason}`);
    if (reasons.some((reason) => UNKNOWN.test(reason))) this.#unknown.add(proxy);
    else this.#unknown.delete(proxy);
  }
}
