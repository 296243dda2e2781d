/** What the proxy says of itself at any moment, against what there is. */
import { SIDES } from '../../../shadow-proxy/src/route/stage.js';
import type { ShardCondition } from '../../../shadow-proxy/src/shard/snapshot.js';
import type { Suspect } from '../../../shadow-proxy/src/suspects/suspects.js';
import type { Entry } from '../server/values.js';
import { JobPace } from '../check/job-pace.js';
import { LONG } from '../clients/kinds/scripts.js';
import { PausedJob } from '../check/paused-job.js';
import { Unserved } from '../check/unserved.js';
import { keyName, partsOf, type KeyName } from '../world/key-name.js';
import type { Address, Connection } from '../world/network.js';
import type { Checks } from './checks.js';
import type { Load } from './load.js';
import { Outages } from './outages.js';
import type { Scene } from './scene.js';

const CHECK_MS = 10;
const QUIET_CHECK_MS = 200;
/** So long after a server has ended, its connections are known to be lost. */
const SEEN_MS = 100;
/** Keys that clients read and nobody writes. */
const UNWRITTEN = /^r\d/;

export class Figures {
  /** When the mirror had effects on their way that have waited since. */
  #waitedSince: number | null = null;
  /** The proxy's connections to the mirror when it was looked at last. */
  #mirrorConnections: readonly Connection[] = [];
  readonly #unserved: Unserved | null;
  readonly #outages: Outages | null;
  readonly #pace = new JobPace();
  readonly #names = new WeakMap<Suspect, KeyName>();
  readonly #paused = new PausedJob();

  constructor(
    private readonly scene: Scene,
    private readonly checks: Checks,
    private readonly load: Load,
  ) {
    this.#unserved = scene.profile.mix.sleepers === undefined ? null : new Unserved();
    this.#outages = scene.profile.faults.hang === undefined ? null : new Outages(scene);
  }

  start(): void {
    this.scene.later(this.scene.isQuiet ? QUIET_CHECK_MS : CHECK_MS, () => {
      this.#check();
      this.start();
    });
  }

  #check(): void {
    for (const seat of this.scene.seats)
      if (seat.isLateToEnd) this.scene.fail(`${this.scene.nameOf(seat)} was asked to end, and does not`);
    this.#serves();
    const condition = this.scene.proxy.condition();
    if (condition === null) {
      this.#waitedSince = null;
      this.#paused.problem(this.scene.now, null, this.scene.resumedAt);
      return;
    }
    const untrue =
      this.#suspects(condition) ??
      this.#clean(condition) ??
      this.#mirror(condition) ??
      this.#open(condition) ??
      this.#outage(condition);
    if (untrue !== null) this.scene.fail(`the status is not true: ${untrue}`);
    const { job } = condition;
    const { now, pace, tightMs } = this.scene;
    const goesOn = this.#paused.problem(now, job, this.scene.resumedAt);
    if (goesOn !== null) this.scene.fail(goesOn);
    this.#pace.looked(now, tightMs);
    if (this.scene.profile.bounded !== true || job === null) return;
    const wrong = this.#pace.problem(now, job, job.automatic ? {} : pace, tightMs);
    if (wrong !== null) this.scene.fail(wrong);
  }

  #outage(condition: ShardCondition): string | null {
    const mayBeBusy = this.load.waiting.some(({ args }) => args.includes(LONG));
    return this.#outages?.problem(condition, mayBeBusy) ?? null;
  }

  #serves(): void {
    const { scene } = this;
    const typesOf = (key: KeyName): readonly (Entry['type'] | undefined)[] =>
      [scene.source, scene.target].map((server) => server.entry(key)?.type);
    const problem = this.#unserved?.problem(scene.now, this.load.clients, typesOf) ?? null;
    if (problem !== null) scene.fail(problem);
  }

  #suspects({ suspects: { total, byReason } }: ShardCondition): string | null {
    const sum = Object.values(byReason).reduce((a, b) => a + b, 0);
    if (sum !== total) return `${total} suspects, and ${sum} by reason`;
    // A change to off leaves suspects until they would be repaired.
    const { faults, isOfOtherShard } = this.scene.profile;
    const isOff = (name: KeyName): boolean =>
      isOfOtherShard?.(partsOf(name).name) === true || (faults.stageChange === undefined && this.checks.isOff(name));
    for (const suspect of this.scene.proxy.parts!.suspects.all()) {
      const { reason } = suspect;
      const key = this.#nameOf(suspect);
      const { name } = partsOf(key);
      if (reason === '' || UNWRITTEN.test(name)) return `${name}, which nobody writes, is a suspect (${reason})`;
      if (isOff(key)) return `${name}, which is not mirrored, is a suspect (${reason})`;
    }
    return null;
  }

  #nameOf(suspect: Suspect): KeyName {
    const known = this.#names.get(suspect);
    if (known !== undefined) return known;
    const name = keyName(suspect.db, suspect.key.toString('latin1'));
    this.#names.set(suspect, name);
    return name;
  }

  /** Clean: each acknowledged effect is on the mirror. */
  #clean({ workloads }: ShardCondition): string | null {
    const { source, target, now, stage, emptied } = this.scene;
    // The mirror has what the authority has lost.
    if (
      emptied?.isLost === true ||
      stage === 'off' ||
      this.scene.isClockUnknown ||
      !workloads.every(({ clean }) => clean)
    )
      return null;
    const doubtful = workloads.find(({ suspect }) => suspect !== null);
    if (doubtful !== undefined) return `clean, and a suspect as a whole: ${doubtful.suspect}`;
    const { equality } = this.checks;
    for (const { unanswered } of [source, target])
      for (const key of unanswered.lost) if (!equality.differing.has(key)) unanswered.lost.delete(key);
    for (const key of equality.differing.keys()) {
      const isUnknown = [source, target].some(({ unanswered }) => unanswered.has(key) || unanswered.lost.has(key));
      if (isUnknown || this.checks.isOff(key) || this.checks.isForeign(key) || equality.compare(key, now)) continue;
      return `clean, and what was acknowledged is not on the mirror: ${equality.show(key)} ${partsOf(key).name}`;
    }
    return null;
  }

  #mirror({ mirror }: ShardCondition): string | null {
    const found = this.scene.mirror;
    const stillMs = found?.server.stillMs ?? 0;
    // The end of a connection comes late where nothing arrives.
    const knownMs = SEEN_MS + (this.scene.profile.faults.silenceMs ?? 0);
    if (found !== null && !found.server.isUp && stillMs > knownMs && mirror.connected)
      return `connected to the ${found.name}, which ended ${stillMs.toFixed(0)} ms ago`;
    // The effects of a lost connection become suspects: what waits on the other ones may be younger.
    const waits = stillMs > SEEN_MS && mirror.queuedEffects > 0 && mirror.connected;
    const connections = found === null ? [] : this.#connectionsTo(found.server.address);
    const hasLostOne = this.#mirrorConnections.some((connection) => !connections.includes(connection));
    this.#mirrorConnections = connections;
    if (!waits) this.#waitedSince = null;
    else if (this.#waitedSince === null || hasLostOne) this.#waitedSince = this.scene.now;
    // Between two looks it may have answered, and be still again.
    const leastMs = this.#waitedSince === null ? 0 : Math.floor(Math.min(this.scene.now - this.#waitedSince, stillMs));
    return mirror.lagMs < leastMs ? `lag ${mirror.lagMs} ms, and effects have waited for ${leastMs} ms` : null;
  }

  /** The proxy's connections to a server that it has not lost yet. */
  #connectionsTo({ host, port }: Address): readonly Connection[] {
    const { world, proxy } = this.scene;
    const own = proxy.host.address;
    const found: Connection[] = [];
    for (const connection of world.network.connections) {
      const { from, to, near } = connection;
      if (from.host === own && to.host === host && to.port === port && !near.isClosed) found.push(connection);
    }
    return found;
  }

  #open({ undecided, mirror }: ShardCondition): string | null {
    const { adjudicator, deferred, sequencer } = this.scene.proxy.parts!;
    // Where each server is the mirror of some keys, the older of both lags counts.
    const now = this.scene.world.monotonicMs();
    const lagMs = Math.max(...SIDES.map((side) => sequencer.mirrors[side].lagMs(now)));
    if (mirror.lagMs < Math.floor(lagMs)) return `lag ${mirror.lagMs} ms, and an effect has waited for ${lagMs} ms`;
    const gates = SIDES.reduce((sum, side) => sum + sequencer.mirrors[side].gates, 0);
    const open = adjudicator.undecided + deferred.pending + gates;
    return undecided === open ? null : `${undecided} without a verdict, not ${open}`;
  }
}
