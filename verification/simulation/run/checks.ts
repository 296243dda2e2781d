/** What must hold at every moment of a run, and when everything has come to rest. */
import { untruths } from '../check/at-rest.js';
import { Dialling } from '../check/dialling.js';
import { Equality } from '../check/equality.js';
import type { MirrorLane } from '../../../shadow-proxy/src/pipeline/mirror.js';
import { SIDES } from '../../../shadow-proxy/src/route/stage.js';
import { heldProblem } from '../check/held-bytes.js';
import { Journaled } from '../check/journaled.js';
import { leftOver } from '../check/left-over.js';
import { keyName, partsOf, type KeyName } from '../world/key-name.js';
import { isBypassed } from './bypassing.js';
import { isForeignKey } from './foreign-keys.js';
import type { Load } from './load.js';
import { OF_DIFFERING_KEYS, type Scene } from './scene.js';

/** After so many events the mirrors' queues are looked at. */
const LOOK_AT = 32;
/** While effects wait, differing keys are looked at after so many. */
const LOOK_AT_BUSY = 8;
/** All of the journal is read after so many events. */
const READ_AT = 1_024;
/** Where the mirror gets a large key before it has its name. */
export const TEMPORARY = 'shadow-proxy:copying:';
/** For so long the proxy may not have reached a target that has lost its keys. The status says that it is down. */
const UNSEEN_MS = 3_000;
/** The proxy looks at its clock once a turn. */
const ROUNDED_MS = 1;
/** The largest effect that clients' commands make, about: a transaction with a large value, which its EXEC has, too. */
const MOST_BYTES = 40 << 10;

export class Checks {
  readonly equality: Equality;
  readonly #journaled: Journaled;
  readonly #dialling: Dialling | null;
  #events = 0;
  /** Differing keys: when the last reply to a change was seen to have arrived. */
  readonly #acknowledged = new Map<KeyName, number>();

  constructor(
    private readonly scene: Scene,
    private readonly load: Load,
  ) {
    const { bypassed = false, foreign = false, isOfOtherShard } = scene.profile;
    const isLeftOut =
      isOfOtherShard ??
      ((name: string): boolean =>
        (bypassed && isBypassed(name)) || (foreign && isForeignKey(name)) || name.startsWith(TEMPORARY));
    const leavesOut = bypassed || foreign || isOfOtherShard !== undefined || scene.profile.memoryFactor !== undefined;
    this.equality = new Equality(scene.source, scene.target, leavesOut ? isLeftOut : undefined);
    // The stage does not change where the mirror has outages.
    this.#dialling = scene.profile.faults.outage === undefined ? null : new Dialling(scene.world.network, scene.target);
    this.#journaled = new Journaled(scene.world, scene.proxy);
  }

  /**
   * A key may differ while the reply to what changed it is on its way to the proxy, while an effect waits for a mirror
   * that may be its own, or while the proxy knows that the key may differ.
   */
  afterEvent(): void {
    const { now, target, proxy } = this.scene;
    if (target.model.isDown) this.scene.fail('the KeyDB has crashed');
    if (++this.#events % LOOK_AT === 0) this.#lookAtMirrors();
    this.#lookAtSuspects();
    this.equality.update(now, this.#changed);
    if (this.scene.profile.journaled === true && this.#events % READ_AT === 0) {
      const isNamed = this.#journaled.left();
      for (const key of this.equality.differing.keys()) if (!this.isForeign(key)) this.#lookAtJournal(key, isNamed);
    }
    // In stage off the mirror gets nothing.
    if (this.equality.differing.size === 0 || this.scene.stage === 'off' || proxy.parts === null || !proxy.answers)
      return;
    // The mirror has what the authority has lost.
    if (this.scene.emptied?.isLost === true) return;
    if (now - target.lostAt < UNSEEN_MS && !proxy.parts.sequencer.servers.target.up) return;
    const mirrors = Object.values(proxy.parts.sequencer.mirrors);
    if (mirrors.every(({ isEmpty }) => isEmpty)) this.#lookAtDiffering(-Infinity);
    else if (this.#events % LOOK_AT_BUSY === 0 && mirrors.every(({ gates }) => gates === 0))
      this.#lookAtDiffering(this.scene.world.monotonicMs() - Math.min(...mirrors.map(oldestOf)));
  }

  /** @param lagMs effects that were acknowledged earlier are confirmed, or were lost */
  #lookAtDiffering(lagMs: number): void {
    const { now, source, target, proxy } = this.scene;
    const { suspects } = proxy.parts!;
    for (const key of this.equality.differing.keys()) {
      const { id, name } = partsOf(key);
      if (suspects.get(id) !== undefined || this.isOff(key)) continue;
      if (source.unanswered.has(key) || target.unanswered.has(key)) continue;
      let since = this.#acknowledged.get(key);
      if (since === undefined) this.#acknowledged.set(key, (since = now));
      if (now - since <= lagMs + ROUNDED_MS || this.equality.compare(key, now)) continue;
      if (this.isSuspect(key) || this.isForeign(key)) continue;
      this.scene.fail(`a key differs and is no suspect: ${this.equality.show(key)}`, [name]);
      return;
    }
  }

  /** Where nothing is uncertain, no key is a suspect, for however short a time. */
  #lookAtSuspects(): void {
    if (this.scene.profile.certain !== true) return;
    for (const { key, reason } of this.scene.proxy.parts?.suspects.all() ?? []) {
      const name = key.toString('latin1');
      this.scene.fail(`${name} is a suspect (${reason}), and nothing was lost`, [name]);
    }
  }

  /** Whether the proxy knows that the key may differ: all keys of its workload do, or both servers are being asked. */
  isSuspect(name: KeyName): boolean {
    if (this.scene.isClockUnknown) return true;
    const { sequencer, adjudicator, suspects } = this.scene.proxy.parts!;
    const { id, bytes } = partsOf(name);
    if (suspects.workloads.of(sequencer.router.match(bytes, 0, bytes.length)) !== null) return true;
    if (adjudicator.asksAbout(id)) return true;
    return SIDES.some((side) => [...sequencer.lanes[side].allLocks()].some(({ withheld }) => withheld > 0));
  }

  /** A key of which one server has had a change. */
  readonly #changed = (key: KeyName): void => {
    this.#acknowledged.delete(key);
    if (this.scene.profile.journaled === true) this.#lookAtJournal(key, (each) => this.#journaled.names(each));
  };

  #lookAtJournal(key: KeyName, isNamed: (key: KeyName) => boolean): void {
    const { proxy } = this.scene;
    if (proxy.parts === null || !proxy.answers || this.isOff(key)) return;
    if (!isNamed(key)) this.scene.fail(`the journal does not name ${key}`, [partsOf(key).name]);
  }

  /** In stage off the mirror gets nothing. */
  isOff(key: KeyName): boolean {
    const router = this.scene.proxy.parts?.router;
    return router === undefined || router.byPattern(partsOf(key).bytes).position.stage === 'off';
  }

  /** Where no stage changes, the target never gets a key of a workload in stage off. */
  #lookAtOff(): void {
    const { target, proxy, profile } = this.scene;
    const { router } = proxy.parts ?? {};
    if (router === undefined || profile.faults.stageChange !== undefined || profile.foreign === true) return;
    for (const key of this.equality.differing.keys()) {
      const { name, bytes } = partsOf(key);
      if (router.byPattern(bytes).name === 'default' || !this.isOff(key) || target.entry(key) === undefined) continue;
      this.scene.fail(`the target has ${name}, a key that is not mirrored`, [name]);
    }
  }

  /** What waits for a mirror stays within the plan's bound, and not longer than the profile says. */
  #lookAtMirrors(): void {
    const { proxy, profile, world, now } = this.scene;
    const { parts } = proxy;
    if (parts === null || !proxy.answers) return;
    const wrong = this.#dialling?.problem(parts.sequencer.mirrors.target.connected) ?? null;
    if (wrong !== null) this.scene.fail(wrong);
    const kept = heldProblem(proxy.process!, parts.clients.limits.bounds.clientOutputBytes);
    if (kept !== null) this.scene.fail(kept);
    const mostBytes = profile.faults.reload === undefined ? parts.mirrorLimits.queueBytes + MOST_BYTES : Infinity;
    for (const mirror of Object.values(parts.sequencer.mirrors)) {
      if (mirror.queuedBytes > mostBytes)
        this.scene.fail(`${mirror.queuedBytes} bytes wait for a mirror, more than ${parts.mirrorLimits.queueBytes}`);
      const lagMs = mirror.lagMs(world.monotonicMs());
      if (lagMs > (profile.lagMs ?? Infinity)) this.scene.fail(`a mirror lags by ${lagMs.toFixed(0)} ms at ${now}`);
    }
  }

  /** No command is on its way, and nothing is left to do. */
  atRest(): void {
    this.equality.compareAll(this.scene.now);
    for (const key of this.equality.differing.keys()) {
      if (this.isForeign(key) || this.isOff(key)) continue;
      this.scene.fail(`a key differs at rest: ${this.equality.show(key)}`, [partsOf(key).name]);
    }
    this.#lookAtOff();
    const temporary = this.#keys.find((key) => partsOf(key).name.startsWith(TEMPORARY));
    if (temporary !== undefined) this.scene.fail(`left at rest: ${temporary}`, [partsOf(temporary).name]);
    this.load.finishHistories();
    this.#noMismatch();
    const { proxy } = this.scene;
    const snapshot = proxy.snapshot();
    if (snapshot === null) return;
    const [untrue] = untruths(snapshot, { clients: this.#clients });
    if (untrue !== undefined) this.scene.fail(`the status is not true at rest: ${untrue}`);
    const [left] = leftOver(proxy.parts!, this.#keys);
    if (left !== undefined) this.scene.fail(`left at rest: ${left}`);
  }

  /** All keys of both servers. */
  get #keys(): readonly KeyName[] {
    return [this.scene.source, this.scene.target].flatMap(({ model }) =>
      [...model.keyspace()].flatMap(([db, keys]) => [...keys.keys()].map((key) => keyName(db, key))),
    );
  }

  /**
   * A target that is not known to hold only what the proxy wrote: what only it has is kept, though it may be the rest
   * of a key that a client has deleted. So is what only a source has that is the mirror of a target without keys.
   */
  isForeign(key: KeyName): boolean {
    const { parts } = this.scene.proxy;
    if (parts?.permissions.isOurs(parts.router.byPattern(partsOf(key).bytes)) !== false) return false;
    const { emptied, mirror, source, target } = this.scene;
    const holder = emptied !== null && mirror?.server === source ? source : target;
    if (!this.equality.isAloneOn(holder, key)) return false;
    for (const kind of OF_DIFFERING_KEYS) this.scene.trueMismatches.add(kind);
    return true;
  }

  /** Connections of clients that the proxy's host has. */
  get #clients(): number {
    const { world, proxy } = this.scene;
    const { host, port } = proxy.address;
    return [...world.network.connections].filter(({ to, far }) => to.host === host && to.port === port && !far.isClosed)
      .length;
  }

  /** What the proxy says of itself: whether nothing is left to do. */
  get isClean(): boolean {
    const condition = this.scene.proxy.condition();
    if (condition === null) return false;
    const { workloads, suspects, mirror, undecided, frozen } = condition;
    return (
      this.scene.stage !== 'off' &&
      frozen === null &&
      suspects.total === 0 &&
      undecided === 0 &&
      mirror.queuedEffects === 0 &&
      workloads.every(({ clean }) => clean)
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

  #noMismatch(): void {
    const { proxy } = this.scene;
    const snapshot = proxy.snapshot();
    if (snapshot === null) return;
    const wrong = Object.keys(snapshot.mismatches).filter((kind) => !this.scene.trueMismatches.has(kind));
    if (wrong.length === 0) return;
    const latest = JSON.stringify(proxy.launched!.ledger.latest().slice(-2));
    this.scene.fail(`a mismatch is reported that does not exist (${wrong.join()}): ${latest}`);
  }
}

/** When the first of the effects that wait was acknowledged, in ms of the monotonic clock. */
function oldestOf(mirror: MirrorLane): number {
  let oldest = Infinity;
  mirror.eachQueued(({ answeredAt }) => {
    oldest = Math.min(oldest, answeredAt);
    return true;
  });
  return oldest;
}
