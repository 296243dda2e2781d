/**
 * Which process has a shard: the one that holds its lease at every server that is an authority, and at the other server
 * as soon as it can be reached. A process that finds that another process has the shard stops.
 *
 * A holder that only lost its connection takes the lease again: waiting processes give it two seconds before they take
 * over. `#unbroken` decides whether another process held the lease meanwhile.
 */
import { monotonicMs } from '../io/clock.js';
import { randomBytes, randomShare } from '../io/random.js';
import { after, clearTimer, every, sleep, type Timer } from '../io/timers.js';
import { printableBytes } from '../text/printable.js';
import { otherSide, type Side } from '../route/stage.js';
import type { Dialer } from '../upstream/dialer.js';
import { oneServer } from '../upstream/identity.js';
import { HandshakeRefused } from '../upstream/handshake.js';
import type { Claim, Places } from './claims.js';
import { ClientRefused, Lease, LeaseError, type Tenure } from './lease.js';
import type { View } from './other-processes.js';
import type { Address } from '../plan/endpoint.js';
import type { ServerLease } from '../upstream/server-connections.js';

/** How often a waiting process looks, in ms. */
const OBSERVE_MS = 250;
/** How long a process that has released the lease stays visible, at most, and how often it looks whether it has to. */
const SEEN_MS = 1_000;
const SEEN_LOOK_MS = 50;
const PING_MS = 1_000;
/** How long waiting processes wait for a vanished holder to return, in ms. */
const DISCONNECTED_MS = 2_000;
/** How often to check whether waiting processes know a new note, and the maximum wait, in ms. */
const KNOWN_OBSERVE_MS = 50;
const KNOWN_MS = 1_000;

/** The process that held the lease before. */
export interface Predecessor {
  readonly process: string;
  /** Whether that process left with everything confirmed on both servers. */
  readonly clean: boolean;
  /** Its note for the next holder; empty if it was killed before. */
  readonly note: string;
}

/** The epoch under which the lease is held. */
export interface Epoch {
  readonly process: string;
  /** `run id:client ID`; null if the server could not be reached. */
  readonly source: string | null;
  readonly target: string | null;
}

/** What a look showed of the process that has the shard. */
export interface Sight {
  /** Null if no process holds the lease. */
  readonly holder: { readonly process: string; readonly places: Places } | null;
  /** Whether the holder is silent, or has ended without releasing the lease. */
  readonly isDown: boolean;
}

export interface OwnershipOptions {
  readonly shard: string;
  /** How many other processes wait to take over, as far as is known. Default: 0. */
  readonly others?: number;
  readonly dialers: Readonly<Record<Side, Dialer>>;
  /** Where this process answers as a Sentinel, `host:port`; empty if it does not. */
  readonly sentinel?: string;
  /** Called once if another process has the shard: everything that serves must stop. */
  lost(reason: LeaseError): void;
}

export interface AcquireOptions {
  /** Wait until the holder ends, instead of failing. */
  readonly standby: boolean;
  /** Take the lease from its holder without waiting. */
  readonly takeOver?: boolean;
  /** The servers that the shard needs. Asked again at each attempt. */
  needed(): Promise<readonly Side[]>;
  /** Whether this process could serve as the holder's note says; this is shown to the holder. If absent, it could. */
  knows?(note: string): Promise<boolean>;
  /**
   * Why this process could not serve clients now, or null. Such a standby leaves the lease to a silent holder, which
   * may still wake, and to the standbys behind it.
   */
  cannotServe?(): Promise<Error | null>;
  /** Called at each look that shows another process to have the shard; `where` describes it. */
  waiting?(where: string, holder: Claim): void | Promise<void>;
  /** Called at each look. */
  looked?(sight: Sight): void;
  /** Called for a standby, at each attempt at which a needed server is missing, or this process could not serve. */
  hindered?(problem: Error): void;
}

/** A lease, as the rest of the process needs it. */
export interface HeldLease extends ServerLease {
  /** Whether this process holds it. */
  readonly held: boolean;
  readonly connected: boolean;
  readonly tenure: Readonly<Tenure> | null;
  /** Resolves when the lease is held now; if given, at the server with that address and run ID. */
  confirm(address?: Address, runId?: string): Promise<void>;
}

export class Ownership {
  readonly process = randomBytes(8).toString('hex');
  readonly #leases: Readonly<Record<Side, Lease>>;
  /** The process that held the lease before; null if none was seen. */
  predecessor: Predecessor | null = null;
  /** The servers that the shard needs now, once this process has it. */
  needs: () => readonly Side[] = () => [];
  /** The servers that the shard needed when the server of the lease last answered. */
  readonly #neededAt = new Map<Lease, readonly Side[]>();
  readonly #all: readonly Lease[];
  /** When the lease was taken from a process that would take it again if it found it free. */
  #seizedAt = -Infinity;
  #ended: Error | null = null;
  /** Whether this process has the shard: a lost lease is taken again. */
  #serves = false;
  #pinging: Timer | undefined;
  readonly #retries = new Map<Lease, Timer>();

  constructor(private readonly options: OwnershipOptions) {
    const lease = (side: Side): Lease =>
      new Lease(side, options.dialers[side], options.shard, this.process, {
        regain: (lost) => (this.#serves ? this.#regain(lost) : lost.open('waits')),
        lost: (lost) => void (this.#serves && this.#tryAgain(lost)),
      });
    this.#leases = { source: lease('source'), target: lease('target') };
    this.#all = [this.#leases.source, this.#leases.target];
    for (const lease of this.#all) lease.places = { service: '', sentinel: options.sentinel ?? '' };
  }

  get leases(): Readonly<Record<Side, HeldLease>> {
    return this.#leases;
  }

  get epoch(): Epoch {
    const at = ({ held, runId, clientId }: Lease): string | null => (held ? `${runId}:${clientId}` : null);
    return { process: this.process, source: at(this.#leases.source), target: at(this.#leases.target) };
  }

  /**
   * Resolves when this process has the shard, at every server that can be reached.
   * @throws {LeaseError} code `held`, unless as a standby; `one-server` if both addresses lead to one server
   * @throws {HandshakeRefused} if a server refuses to list its connections, unless as a standby
   * @throws {Error} if a needed server cannot be reached, unless as a standby; if the process is stopped meanwhile
   */
  async acquire({
    standby,
    takeOver = false,
    needed,
    knows,
    cannotServe,
    waiting,
    looked,
    hindered,
  }: AcquireOptions): Promise<void> {
    const missing = async (): Promise<Error | null> => {
      const sides = await needed();
      this.needs = () => sides;
      const side = sides.find((each) => !this.#leases[each].connected);
      return side === undefined ? null : this.#leases[side].problem;
    };
    const hindrance = async (): Promise<Error | null> => {
      const problem = await missing();
      if (problem !== null) return problem;
      return standby ? ((await cannotServe?.()) ?? null) : null;
    };
    /** Whether this process could serve now. A standby that could not serve lets the standbys behind it go first. */
    const mayServe = async (): Promise<boolean> => {
      const problem = await hindrance();
      if (problem !== null && !standby) throw problem;
      if (problem !== null) hindered?.(problem);
      await this.#stepAside(problem !== null);
      return problem === null;
    };
    /** Since when no process holds the lease, in ms of the monotonic clock; null if one does. */
    let vacantSince: number | null = null;
    /** How long the lease must have been free before it is taken, in ms. */
    let patienceMs = standby ? DISCONNECTED_MS : 0;
    /** Until when the holder waits for us to know its new note. */
    let awaitedUntil = -Infinity;
    for (let attempt = 0; ; attempt++) {
      // Avoid looking in step with other processes.
      if (attempt > 0)
        await sleep(monotonicMs() < awaitedUntil ? KNOWN_OBSERVE_MS : OBSERVE_MS * (0.75 + randomShare() / 4));
      if (await this.#connectAll(attempt === 0)) vacantSince = null;
      this.#refuseTwin();
      const reached = this.#all.filter(({ connected }) => connected);
      const refusals: HandshakeRefused[] = [];
      const views = await Promise.all(
        reached.map((lease) =>
          lease.observe().catch((problem: Error) => {
            if (problem instanceof HandshakeRefused) refusals.push(withoutClient(lease, problem));
            return null;
          }),
        ),
      );
      if (this.#ended) throw this.#ended;
      if (refusals.length > 0 && !standby) throw refusals[0];
      if (refusals.length > 0) hindered?.(refusals[0]);
      if (views.includes(null)) continue;
      const seen = views as View[];
      const held = seen.findIndex(({ holder }) => holder !== null);
      const goodbye = seen.find((view) => view.goodbye !== null)?.goodbye ?? null;
      if (seen.length > 0) {
        const isSilent = seen.every((view) => view.holder === null || view.silent);
        const holder = held === -1 ? null : seen[held].holder;
        looked?.({ holder, isDown: holder === null ? goodbye === null : isSilent });
      }
      // The order may differ at the other server: only one line counts.
      const isFirst = seen[0]?.first !== false;
      if (held !== -1) {
        const holder = seen[held].holder!;
        vacantSince = null;
        patienceMs = DISCONNECTED_MS;
        const where = describe(holder, reached[held]);
        await waiting?.(where, holder);
        if (standby) {
          if (holder.note !== this.predecessor?.note) awaitedUntil = monotonicMs() + KNOWN_MS;
          if (await this.#learn(holder.note, reached, knows)) awaitedUntil = -Infinity;
        }
        this.predecessor = { process: holder.process, clean: false, note: holder.note };
        if (takeOver) {
          const problem = await missing();
          if (problem !== null) throw problem;
          await Promise.all(reached.map((lease) => lease.seize()));
          this.#seizedAt = monotonicMs();
          return this.#serve();
        }
        if (seen.every((view) => view.holder === null || view.silent)) {
          // Only the first in line may take the lease: the others would see no holder, and wait for its return.
          if (!isFirst || !(await mayServe())) continue;
          await Promise.all(
            seen.flatMap((view, i) => (view.holder ? [reached[i].others.kill(view.holder.id)] : [])),
          ).catch(() => undefined);
          patienceMs = 0;
        } else {
          if (!standby && seen.some(({ alive }) => alive))
            throw new LeaseError('held', `is served by another proxy: ${where}`);
          await this.#stepAside(false);
        }
        continue;
      }
      awaitedUntil = -Infinity;
      vacantSince ??= monotonicMs();
      // What it says is believed with the lease only: `#inherit`.
      if (goodbye !== null) this.predecessor ??= { process: goodbye.process, clean: false, note: '' };
      // Those behind it need not wait until it would take the lease.
      if ((await missing()) !== null && standby) await this.#stepAside(true);
      const words = new Map(seen.map((view, i) => [reached[i].side, view.goodbye]));
      if (this.#lastHolder((side) => words.get(side) ?? null) !== null) patienceMs = 0;
      if (monotonicMs() - vacantSince < patienceMs || !isFirst) continue;
      if ((await mayServe()) && (await this.#claimAll(reached))) return this.#serve();
    }
  }

  /**
   * Throws if another process is known to have the shard. A server that cannot be asked is assumed to agree.
   * @throws {LeaseError}
   */
  async check(): Promise<void> {
    const late = sleep(PING_MS, undefined, { ref: false });
    const asked = this.#all
      .filter(({ tenure }) => tenure !== null)
      .map((lease) => lease.confirm().catch(() => undefined));
    await Promise.race([Promise.all(asked), late]);
    if (this.#ended instanceof LeaseError) throw this.#ended;
  }

  /** Leaves a note for the next holder; at a server that cannot be reached, later. */
  async publishNote(note: string): Promise<void> {
    const late = sleep(PING_MS, undefined, { ref: false });
    await Promise.race([
      Promise.all(
        this.#all.filter((lease) => lease.note !== note).map((lease) => lease.publishNote(note).catch(() => undefined)),
      ),
      late,
    ]);
  }

  /** Shows the processes that wait where this one serves; at a server that cannot be reached, later. */
  async announce(service: string): Promise<void> {
    const places = { service, sentinel: this.options.sentinel ?? '' };
    await Promise.all(this.#all.map((lease) => lease.announce(places).catch(() => undefined)));
  }

  /** Where other processes answer as Sentinels, `host:port`; null if no server says which processes there are. */
  async sentinels(): Promise<readonly string[] | null> {
    for (const lease of this.#all) {
      const late = sleep(PING_MS, null, { ref: false });
      const others = lease.connected ? await Promise.race([lease.others.present().catch(() => null), late]) : null;
      if (others !== null) return others.map(({ places }) => places.sentinel).filter((each) => each !== '');
    }
    return null;
  }

  /**
   * Resolves when every waiting process knows the note, or after 1 s. Returns the addresses of those that do not know
   * it; empty if all do, or none waits.
   */
  async waitForNote(note: string): Promise<readonly string[]> {
    for (const until = monotonicMs() + KNOWN_MS; ; await sleep(KNOWN_OBSERVE_MS)) {
      const late = sleep(Math.max(KNOWN_OBSERVE_MS, until - monotonicMs()), [], { ref: false });
      const lists = this.#all
        .filter(({ held }) => held)
        .map((lease) => Promise.race([lease.others.waiting().catch(() => []), late]));
      const waiters = (await Promise.all(lists)).flat();
      const uninformed = new Map(waiters.map(({ process, from }) => [process, from]));
      // An answer at one server is enough: the process may not reach the other one.
      for (const waiter of waiters) if (waiter.note === note) uninformed.delete(waiter.process);
      if (uninformed.size === 0 || monotonicMs() >= until) return [...uninformed.values()];
    }
  }

  /**
   * Releases the leases, and stays visible if another process waits. `clean`: everything is confirmed on both servers.
   * @returns whether another process may take over: one waits, or a server that it needs does not answer
   */
  async release(clean: boolean): Promise<boolean> {
    if (this.#ended) return false;
    await sleep(Math.max(0, this.#seizedAt + DISCONNECTED_MS + OBSERVE_MS - monotonicMs()));
    this.#end(new Error('the shard is closed'));
    const word = clean ? 'clean' : 'left';
    const [source, target] = await Promise.all(this.#all.map((lease) => lease.release(word)));
    const waits = { source, target };
    const isAwaited = source === true || target === true;
    if (isAwaited) await this.#staySeen();
    this.close();
    return isAwaited || this.needs().some((side) => waits[side] === null);
  }

  /** Resolves when the next holder has closed the connections, or none came. */
  async #staySeen(): Promise<void> {
    for (const until = monotonicMs() + SEEN_MS; monotonicMs() < until; await sleep(SEEN_LOOK_MS))
      if (!this.#all.some(({ connected }) => connected)) return;
  }

  /** Closes everything at once, without releasing the leases first. */
  close(): void {
    this.#end(new Error('the shard is closed'));
    for (const lease of this.#all) lease.close();
  }

  /**
   * Connects where there is no connection. The first time, it waits for the result. @returns whether a connection is
   * new
   */
  async #connectAll(wait: boolean): Promise<boolean> {
    let fresh = false;
    const opening = this.#all
      .filter(({ connected }) => !connected)
      .map(async (lease) => {
        await lease.regain().then(
          () => (fresh = true),
          () => undefined,
        );
      });
    const all = Promise.all(opening);
    await (wait ? all : Promise.race([all, sleep(OBSERVE_MS)]));
    return fresh;
  }

  /** Refuses if both addresses lead to one server. @throws {LeaseError} */
  #refuseTwin(side: Side = 'target'): void {
    const { source, target } = this.#leases;
    if (source.connected && target.connected && source.runId !== '' && source.runId === target.runId) {
      throw new LeaseError('one-server', oneServer(side, target.runId));
    }
  }

  async #stepAside(isAside: boolean): Promise<void> {
    await Promise.all(this.#all.map((lease) => lease.stepAside(isAside).catch(() => undefined)));
  }

  /** Shows the holder that we know its note, as soon as we do. @returns whether we do */
  async #learn(note: string, leases: readonly Lease[], knows: AcquireOptions['knows']): Promise<boolean> {
    const ignorant = leases.filter((lease) => lease.note !== note);
    if (ignorant.length === 0) return true;
    if (!((await knows?.(note)) ?? true)) return false;
    await Promise.all(ignorant.map((lease) => lease.learn(note).catch(() => undefined)));
    return true;
  }

  async #claimAll(leases: readonly Lease[]): Promise<boolean> {
    const claimed = await Promise.all(leases.map((lease) => lease.claim().catch(() => false)));
    if (claimed.every(Boolean)) {
      // From then on each lease confirms the other: see `#unbroken`.
      await Promise.all(leases.map((lease) => lease.ping().catch(() => undefined)));
      this.#inherit();
      return true;
    }
    await Promise.all(leases.map((lease) => lease.withdraw().catch(() => undefined)));
    return false;
  }

  /** Nobody has held the lease since the words of goodbye that were there as it was taken. */
  #inherit(): void {
    const last = this.#lastHolder((side) => this.#leases[side].inherited);
    if (last !== null) this.predecessor = { process: last.process, clean: last.word === 'clean', note: last.note };
  }

  /**
   * The process whose word of goodbye is at every server that the shard needs, for each holder has the lease there. At
   * another server it may be that of an earlier holder.
   */
  #lastHolder(goodbyeAt: (side: Side) => Claim | null): Claim | null {
    const [first, ...others] = this.needs().map(goodbyeAt);
    return first !== undefined && others.every((other) => other?.process === first?.process) ? first : null;
  }

  // ── once this process has the shard ────────────────────────────────────────────────────────────────────────────

  #serve(): void {
    this.#serves = true;
    for (const lease of this.#all) {
      if (!lease.held) this.#tryAgain(lease);
    }
    for (const lease of this.#all) this.#neededAt.set(lease, this.needs());
    this.#pinging = every(PING_MS, () => {
      for (const lease of this.#all) if (lease.held) this.#ping(lease).catch(() => undefined);
    });
    this.#pinging.unref();
  }

  async #ping(lease: Lease): Promise<void> {
    const needed = this.needs();
    await lease.ping();
    this.#neededAt.set(lease, needed);
  }

  #tryAgain(lease: Lease): void {
    if (this.#ended || this.#retries.has(lease)) return;
    lease.regain().catch(() => undefined);
  }

  /** Takes the lease at a server; where that fails, it is tried again until it succeeds. */
  async #regain(lease: Lease): Promise<void> {
    try {
      await this.#takeAgain(lease);
    } finally {
      if (!this.#ended && !lease.held && !this.#retries.has(lease)) {
        const timer = after(OBSERVE_MS, () => {
          this.#retries.delete(lease);
          if (!lease.held) this.#tryAgain(lease);
        });
        this.#retries.set(lease, timer.unref());
      }
    }
  }

  /** Takes the lease at a server whose connection was lost, or that could not be reached before. */
  async #takeAgain(lease: Lease): Promise<void> {
    if (this.#ended) throw this.#ended;
    const { tenure } = lease;
    await lease.open('holds');
    try {
      this.#refuseTwin(lease.side);
      for (const rival of await lease.others.rivals()) {
        // The rest of the process that we took over from, at a server that we could not reach then.
        if (rival.process === this.predecessor?.process) await lease.others.kill(rival.id);
        else throw this.#lose(describe(rival, lease), rival);
      }
      if (tenure === null) await lease.others.end(await lease.others.list());
      else if (!(await this.#unbroken(lease, tenure)))
        throw this.#lose(
          `it was lost at the ${lease.side} ${lease.dialer.label} for so long that another proxy may have held it`,
        );
    } catch (error) {
      lease.close();
      throw error;
    }
    if (this.#ended) {
      lease.close();
      throw this.#ended as Error;
    }
    lease.resume(tenure?.runId === lease.runId ? tenure : null);
  }

  /**
   * Whether certainly no process held the lease while our connection was lost. Then the loss was shorter than the time
   * that others wait; or the server restarted, which is reported separately; or the lease at the other server was never
   * lost, and each other process would have needed it.
   */
  async #unbroken(lease: Lease, tenure: Tenure): Promise<boolean> {
    if (lease.runId !== tenure.runId || monotonicMs() - tenure.aliveAt < DISCONNECTED_MS) return true;
    const other = this.#leases[otherSide(lease.side)];
    if (!other.held || other.tenure === null || other.tenure.since > tenure.aliveAt) return false;
    return other.ping().then(
      async () => other.held && (this.#isNeeded(lease, other.side) || (await this.#waitedSince(other, tenure.aliveAt))),
      () => false,
    );
  }

  /** Whether a process could only have held the lease together with that at `side`, since it was lost. */
  #isNeeded(lease: Lease, side: Side): boolean {
    return [this.#neededAt.get(lease) ?? [], this.needs()].every((sides) => sides.includes(side));
  }

  /**
   * Whether each other process has waited at the server since then, and seen us there. One that does not reach it could
   * serve without it, where it is no authority.
   * @param since in ms of the monotonic clock
   */
  async #waitedSince(lease: Lease, since: number): Promise<boolean> {
    const { others = 0 } = this.options;
    if (others === 0) return true;
    // Before that, it could not take over. One that has looked a moment ago, and is cut off since then, cannot have.
    const begunMs = monotonicMs() - since - DISCONNECTED_MS;
    const waited = (await lease.others.waiting()).filter(
      ({ ageS, idleS }) => ageS * 1_000 >= begunMs && (idleS + 1) * 1_000 <= DISCONNECTED_MS,
    );
    return new Set(waited.map(({ process }) => process)).size >= others;
  }

  #lose(why: string, rival: Claim | null = null): Error {
    const first = this.#ended === null;
    const reason = new LeaseError('lost', `has lost its lease: ${why}`, rival);
    this.#end(reason);
    for (const lease of this.#all) lease.close();
    if (first) this.options.lost(reason);
    return reason;
  }

  #end(reason: Error): void {
    this.#ended ??= reason;
    clearTimer(this.#pinging);
    for (const timer of this.#retries.values()) clearTimer(timer);
  }
}

const describe = ({ from, ageS }: Claim, { side, dialer }: Lease): string =>
  `the proxy at ${from} has held the lease at the ${side} ${dialer.label} for ${ageS} s`;

/** If the server refuses this, it is unknown whether another proxy serves the shard. */
const withoutClient = ({ side, dialer }: Lease, refused: HandshakeRefused): HandshakeRefused =>
  new HandshakeRefused(
    `the ${side} ${dialer.label} refuses ${refused instanceof ClientRefused ? refused.command : 'CLIENT LIST'} (${printableBytes(refused.reply.trim())}): without it the proxy cannot know that it alone serves the shard. Allow CLIENT LIST, CLIENT SETNAME and CLIENT KILL to the kit's user; where CLIENT is renamed, give it back its name`,
    side,
  );
