/**
 * Which process has a shard: the one that holds its lease at every server that is an authority, and at the other one as
 * soon as it can be reached. A process that finds that another holds it stops.
 *
 * A holder that lost its connection, and only that, takes the lease again: those who wait give it two seconds before
 * they take over. Whether another process held it meanwhile is decided by `#unbroken`.
 */
import { monotonicMs } from '../io/clock.js';
import { randomBytes, randomShare } from '../io/random.js';
import { after, clearTimer, every, sleep, type Timer } from '../io/timers.js';
import { printableBytes } from '../text/printable.js';
import { otherSide, type Side } from '../route/stage.js';
import type { Dialer } from '../upstream/dialer.js';
import { oneServer } from '../upstream/identity.js';
import { HandshakeRefused } from '../upstream/handshake.js';
import { ClientRefused, Lease, LeaseError, type Claim, type Tenure, type View } from './lease.js';

/** How often who waits looks; twice that long stays to be seen who has given the lease back. */
const OBSERVE_MS = 250;
const PING_MS = 1_000;
/** A holder that vanished may return for so long. */
const DISCONNECTED_MS = 2_000;
/** How often is looked whether those who wait know a new note, and for how long at most. */
const KNOWN_OBSERVE_MS = 50;
const KNOWN_MS = 1_000;

/** The process that held the lease before. */
export interface Predecessor {
  readonly process: string;
  /** The process left with everything confirmed on both servers. */
  readonly clean: boolean;
  /** What it left for the next holder; empty if it died before. */
  readonly note: string;
}

/** Under what the lease is held. */
export interface Epoch {
  readonly process: string;
  /** `run id:number of the connection`; null if the server could not be reached. */
  readonly source: string | null;
  readonly target: string | null;
}

export interface OwnershipOptions {
  readonly shard: string;
  readonly dialers: Readonly<Record<Side, Dialer>>;
  /** Another process has the shard: everything that serves must stop. Called once. */
  lost(reason: LeaseError): void;
}

export interface AcquireOptions {
  /** Wait for the end of the one that holds the lease, instead of giving up. */
  readonly standby: boolean;
  /** Do not wait for its end either, but take the lease from it. */
  readonly takeOver?: boolean;
  /** The servers without which the shard cannot be served. Asked again at each attempt. */
  needed(): Promise<readonly Side[]>;
  /** Whether this process could serve as the holder's note says; the holder is shown so. Without it, it could. */
  knows?(note: string): Promise<boolean>;
  /**
   * Why this process could not serve clients now, or null. A standby that could not leaves the lease to a holder that
   * is silent, and may wake, and to the standbys behind it.
   */
  cannotServe?(): Promise<Error | null>;
  /** Called when the shard is seen to be another's. */
  waiting?(holder: string): void;
  /** Called, as a standby, at each attempt for which a needed server is missing, or that could not serve. */
  hindered?(problem: Error): void;
}

export class Ownership {
  readonly process = randomBytes(8).toString('hex');
  readonly leases: Readonly<Record<Side, Lease>>;
  /** Who held the lease before; null if we saw nobody. */
  predecessor: Predecessor | null = null;
  readonly #all: readonly Lease[];
  /** When the lease was taken from another, who would take it again if he found it free soon. */
  #seizedAt = -Infinity;
  #ended: Error | null = null;
  /** The shard is ours: a lease that is lost is taken again. */
  #serves = false;
  #pinging: Timer | undefined;
  readonly #retries = new Map<Lease, Timer>();

  constructor(private readonly options: OwnershipOptions) {
    const lease = (side: Side): Lease =>
      new Lease(side, options.dialers[side], options.shard, this.process, {
        regain: (lost) => (this.#serves ? this.#regain(lost) : lost.open('waits')),
        lost: (lost) => void (this.#serves && this.#tryAgain(lost)),
      });
    this.leases = { source: lease('source'), target: lease('target') };
    this.#all = [this.leases.source, this.leases.target];
  }

  get epoch(): Epoch {
    const at = ({ held, runId, clientId }: Lease): string | null => (held ? `${runId}:${clientId}` : null);
    return { process: this.process, source: at(this.leases.source), target: at(this.leases.target) };
  }

  /**
   * Resolves when the shard is ours at every server that can be reached.
   * @throws {LeaseError} code `held`, unless as a standby; `one-server` where both addresses lead to one
   * @throws {HandshakeRefused} if a server refuses to list its connections, unless as a standby
   * @throws {Error} if a needed server cannot be reached, unless as a standby; when the process is ended meanwhile
   */
  async acquire({
    standby,
    takeOver = false,
    needed,
    knows,
    cannotServe,
    waiting,
    hindered,
  }: AcquireOptions): Promise<void> {
    const hindrance = async (): Promise<Error | null> => {
      const missing = (await needed()).find((side) => !this.leases[side].connected);
      if (missing !== undefined) return this.leases[missing].problem;
      return standby ? ((await cannotServe?.()) ?? null) : null;
    };
    /** Whether this process could serve now. A standby that could not lets those behind it go first. */
    const mayServe = async (): Promise<boolean> => {
      const problem = await hindrance();
      if (problem !== null && !standby) throw problem;
      if (problem !== null) hindered?.(problem);
      await this.#stepAside(problem !== null);
      return problem === null;
    };
    /** Since when nobody holds the lease, in ms of the monotonic clock. */
    let vacantSince: number | null = null;
    /** How long it must have been so. */
    let patienceMs = standby ? DISCONNECTED_MS : 0;
    /** Until when the holder waits for us to know its new note. */
    let awaitedUntil = -Infinity;
    for (let attempt = 0; ; attempt++) {
      // Not in step with others that look.
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
      // Two may stand in another order at the other server: one line counts.
      const isFirst = seen[0]?.first !== false;
      if (held !== -1) {
        const holder = seen[held].holder!;
        vacantSince = null;
        patienceMs = DISCONNECTED_MS;
        const where = describe(holder, reached[held]);
        waiting?.(where);
        if (standby) {
          if (holder.note !== this.predecessor?.note) awaitedUntil = monotonicMs() + KNOWN_MS;
          if (await this.#learn(holder.note, reached, knows)) awaitedUntil = -Infinity;
        }
        this.predecessor = { process: holder.process, clean: false, note: holder.note };
        if (takeOver) {
          const missing = (await needed()).find((side) => !this.leases[side].connected);
          if (missing !== undefined) throw this.leases[missing].problem;
          await Promise.all(reached.map((lease) => lease.seize()));
          this.#seizedAt = monotonicMs();
          return this.#serve();
        }
        if (seen.every((view) => view.holder === null || view.silent)) {
          // The first in line does it: others would see no holder, and wait for its return.
          if (!isFirst || !(await mayServe())) continue;
          await Promise.all(seen.flatMap((view, i) => (view.holder ? [reached[i].kill(view.holder.id)] : []))).catch(
            () => undefined,
          );
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
      if (goodbye !== null) {
        this.predecessor = { process: goodbye.process, clean: goodbye.word === 'clean', note: goodbye.note };
        patienceMs = 0;
      }
      if (monotonicMs() - vacantSince < patienceMs || !isFirst) continue;
      if ((await mayServe()) && (await this.#claimAll(reached))) return this.#serve();
    }
  }

  /**
   * Throws where another process is known to have the shard; what cannot be asked is believed.
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

  /** Leaves a note for the next holder; where a server cannot be reached, it is left later. */
  async tell(note: string): Promise<void> {
    const late = sleep(PING_MS, undefined, { ref: false });
    await Promise.race([
      Promise.all(
        this.#all.filter((lease) => lease.note !== note).map((lease) => lease.tell(note).catch(() => undefined)),
      ),
      late,
    ]);
  }

  /**
   * Resolves when every process that waits for the lease knows the note. The addresses of those that do not after 1 s;
   * empty if nobody waits.
   */
  async known(note: string): Promise<readonly string[]> {
    for (const until = monotonicMs() + KNOWN_MS; ; await sleep(KNOWN_OBSERVE_MS)) {
      const late = sleep(Math.max(KNOWN_OBSERVE_MS, until - monotonicMs()), [], { ref: false });
      const lists = this.#all
        .filter(({ held }) => held)
        .map((lease) => Promise.race([lease.waiters().catch(() => []), late]));
      const waiters = (await Promise.all(lists)).flat();
      const ignorant = new Map(waiters.map(({ process, from }) => [process, from]));
      // Its word at one server is enough: it may not reach the other one.
      for (const waiter of waiters) if (waiter.note === note) ignorant.delete(waiter.process);
      if (ignorant.size === 0 || monotonicMs() >= until) return [...ignorant.values()];
    }
  }

  /**
   * Gives the leases back, and stays to be seen where another process waits. `clean`: everything is confirmed on both
   * servers.
   */
  async release(clean: boolean): Promise<void> {
    if (this.#ended) return;
    await sleep(Math.max(0, this.#seizedAt + DISCONNECTED_MS + OBSERVE_MS - monotonicMs()));
    this.#end(new Error('the shard is closed'));
    const waited = await Promise.all(this.#all.map((lease) => lease.release(clean ? 'clean' : 'left')));
    if (waited.some(Boolean)) await sleep(2 * OBSERVE_MS);
    this.close();
  }

  /** Ends everything at once, without a word. */
  close(): void {
    this.#end(new Error('the shard is closed'));
    for (const lease of this.#all) lease.close();
  }

  /** Connects where there is no connection; at first waits for the outcome. Whether a connection is new. */
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

  /** Both addresses may lead to one server. @throws {LeaseError} */
  #refuseTwin(side: Side = 'target'): void {
    const { source, target } = this.leases;
    if (source.connected && target.connected && source.runId !== '' && source.runId === target.runId) {
      throw new LeaseError('one-server', oneServer(side, target.runId));
    }
  }

  async #stepAside(isAside: boolean): Promise<void> {
    await Promise.all(this.#all.map((lease) => lease.stepAside(isAside).catch(() => undefined)));
  }

  /** Shows the holder that we know its note, as soon as we do. Whether we do. */
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
      // From then on each vouches for the other: see `#unbroken`.
      await Promise.all(leases.map((lease) => lease.ping().catch(() => undefined)));
      return true;
    }
    await Promise.all(leases.map((lease) => lease.withdraw().catch(() => undefined)));
    return false;
  }

  // ── as the one that has the shard ───────────────────────────────────────────────────────────────────────────

  #serve(): void {
    this.#serves = true;
    for (const lease of this.#all) {
      if (!lease.held) this.#tryAgain(lease);
    }
    this.#pinging = every(PING_MS, () => {
      for (const lease of this.#all) if (lease.held) lease.ping().catch(() => undefined);
    });
    this.#pinging.unref();
  }

  #tryAgain(lease: Lease): void {
    if (this.#ended || this.#retries.has(lease)) return;
    const later = (): void => {
      if (this.#ended || lease.held) return;
      const timer = after(OBSERVE_MS, () => {
        this.#retries.delete(lease);
        if (!lease.held) this.#tryAgain(lease);
      });
      this.#retries.set(lease, timer.unref());
    };
    lease.regain().then(later, later);
  }

  /** Takes the lease at a server to which the connection was lost, or that could not be reached before. */
  async #regain(lease: Lease): Promise<void> {
    if (this.#ended) throw this.#ended;
    const { tenure } = lease;
    await lease.open('holds');
    try {
      this.#refuseTwin(lease.side);
      for (const rival of await lease.rivals()) {
        // What is left of the process that we took over from, at a server that we could not reach then.
        if (rival.process === this.predecessor?.process) await lease.kill(rival.id);
        else throw this.#lose(describe(rival, lease));
      }
      if (tenure === null) await lease.endOthers();
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
   * Whether nobody can have held the lease while our connection was lost: it was lost for less time than others wait;
   * or the server restarted, which is reported by itself; or the lease at the other server was never lost.
   */
  async #unbroken(lease: Lease, tenure: Tenure): Promise<boolean> {
    if (lease.runId !== tenure.runId || monotonicMs() - tenure.aliveAt < DISCONNECTED_MS) return true;
    const other = this.leases[otherSide(lease.side)];
    if (!other.held || other.tenure === null || other.tenure.since > tenure.aliveAt) return false;
    return other.ping().then(
      () => other.held,
      () => false,
    );
  }

  #lose(why: string): Error {
    const first = this.#ended === null;
    const reason = new LeaseError('lost', `has lost its lease: ${why}`);
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

/** Without these nobody knows whether another proxy serves the shard. */
const withoutClient = ({ side, dialer }: Lease, refused: HandshakeRefused): HandshakeRefused =>
  new HandshakeRefused(
    `the ${side} ${dialer.label} refuses ${refused instanceof ClientRefused ? refused.command : 'CLIENT LIST'} (${printableBytes(refused.reply.trim())}): without it the proxy cannot know that it alone serves the shard. Allow CLIENT LIST, CLIENT SETNAME and CLIENT KILL to the kit's user; where CLIENT is renamed, give it back its name`,
    side,
  );
