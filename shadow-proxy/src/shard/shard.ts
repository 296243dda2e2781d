/**
 * One shard, put together: servers → sequencer → clients; and how it ends.
 *
 * Room: shard: one shard, composed and run; the daemon that has several.
 * Called by: cli.
 * Calls: every room before it.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandTable } from '../command/table.js';
import { redactKey } from '../compare/redact.js';
import { Admitted } from '../stages/admitted.js';
import { Clocks } from '../health/clocks.js';
import { Failover } from '../health/failover.js';
import { drained, Flipper, type Admitting } from '../stages/flip.js';
import { judgeTarget } from '../stages/gates.js';
import { guardShard } from '../stages/counters-gate.js';
import type { ShardEvidence } from '../stages/next-stage.js';
import { Logins } from '../health/logins.js';
import {
  promote,
  rollback,
  type PromoteRequest,
  type Promotion,
  type PromotionContext,
  type Rollback,
  type RollbackRequest,
} from '../stages/promotion.js';
import { StageError, type StageChange, type StageRequest } from '../stages/stage-change.js';
import type { JobSnapshot, ScrapedShard, ShardSnapshot } from '../telemetry/snapshot.js';
import type { Note } from '../admin/shard-control.js';
import type { Shard, ShardOptions } from './contract.js';
import type { StagePoint } from '../plan/plan.js';
import { Trust } from '../health/trust.js';
import { Vigil } from '../health/monitor.js';
import { factsOf } from './facts.js';
import { Listener } from './listener.js';
import { watchOf } from './scraped.js';
import { snapshotOf } from './snapshot.js';
import { Witness } from '../stages/evidence-collector.js';
import { Healer } from '../copy/repair/repairer.js';
import { Jobs } from '../copy/job/jobs.js';
import { connectTo, KeyReader } from '../copy/key/reader.js';
import { Report } from '../copy/job/report.js';
import { Since } from '../copy/repair/writes-since-restart.js';
import { isContested, type StraysContext } from '../copy/foreign/shared-target.js';
import { Dialer } from '../upstream/dialer.js';
import { oneServer } from '../upstream/identity.js';
import { Judge, type Finding } from '../suspects/adjudicator.js';
import { Expiry } from '../suspects/expiry.js';
import { Doubts } from '../suspects/tracker.js';
import { Liveness } from '../upstream/liveness.js';
import { Scripts } from '../script/catalog.js';
import { Sequencer } from '../pipeline/sequencer.js';
import { Server } from '../upstream/server.js';
import { Turn } from '../io/turn.js';
import { neighboursOf } from '../plan/normalise.js';
import { allWorkloads, type Plan, type ShardPlan } from '../plan/plan.js';
import { readJob, writeJob, type JobRecord, type JobRequest } from '../storage/job-file.js';
import { Journal } from '../storage/journal.js';
import type { Author } from '../storage/sealed.js';
import { Series, type Latest, type SeriesSnapshot } from '../telemetry/series.js';
import type { HistoryEvent, ServerSeen, ShardState, StatePatch } from '../storage/state.js';
import { Suspects } from '../suspects/suspects.js';
import { Regional } from '../regional/regional.js';
import { Owners } from '../route/owner.js';
import { Router, type Workload } from '../route/router.js';
import { authoritiesOf, otherSide, SIDES, stageRule, type Side } from '../route/stage.js';
import { Clients } from '../session/clients.js';

/** How long effects wait for others to share a write to the mirror. */
const MIRROR_BATCH_MS = 2;
/** With so much of the authority's keys a mirror may hold all of them. */
const ENOUGH_KEYS = 0.95;
/** At the very first start nobody waits for the keys of the target to be counted but for so long. */
const FIRST_COUNT_MS = 60_000;
const SENTINEL_POLL_MS = 500;
/** A mirror that is further behind tells nothing about what it lacks. */
const SETTLE_MS = 30_000;
/** So many of the last changes are told. */
const HISTORY_EVENTS = 500;

/**
 * Connects to both servers and listens.
 * @throws {Error} when an authority cannot be reached or the address is in use
 */
export async function startShard(options: ShardOptions): Promise<Shard> {
  const shard = new RunningShard(options);
  try {
    await shard.start();
  } catch (problem) {
    await shard.stop();
    throw problem;
  }
  return shard;
}

class RunningShard implements Shard {
  readonly name: string;
  readonly #options: ShardOptions;
  readonly #since = performance.now();
  readonly #turn = new Turn();
  readonly #servers: Readonly<Record<Side, Server>>;
  readonly #router: Router;
  readonly #suspects: Suspects;
  readonly #judge: Judge;
  readonly #sequencer: Sequencer;
  readonly #healer: Healer;
  readonly #clients: Clients;
  readonly #flipper: Flipper;
  readonly #witness: Witness;
  readonly #series = new Series();
  readonly #jobs: Jobs;
  readonly #admitted: Admitted;
  readonly #trust: Trust;
  readonly #clocks: Clocks;
  readonly #logins: Logins;
  readonly #vigil: Vigil;
  readonly #liveness: readonly Liveness[];
  /** Connections that went silent, and were closed. */
  readonly #silenced: Record<Side, number> = { source: 0, target: 0 };
  readonly #failover: Failover;
  readonly #directory: string;
  readonly #author: Author;
  readonly #journal: Journal;
  /** The servers of the other shards that share the target. */
  readonly #neighbours: ReadonlyMap<string, Dialer>;
  readonly #strays: StraysContext;
  /** Null where no workload's layout is `per-region`. */
  readonly #regional: Regional | null;
  #plan: Plan;
  readonly #mirrorLimits: { queueBytes: number; readonly batchMs: number };
  readonly #listener: Listener;
  #sentinels: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(options: ShardOptions) {
    const { plan, shard, state, ledger, logger } = options;
    this.#options = options;
    this.name = shard.name;
    this.#plan = plan;
    this.#directory = join(plan.state, shard.name);
    this.#author = { process: options.ownership.process, before: state.previous?.journal ?? null };
    this.#mirrorLimits = { queueBytes: plan.limits.queueBytes, batchMs: MIRROR_BATCH_MS };
    const server = (side: Side): Server =>
      new Server(side, options.ownership.leases[side], this.#turn, {
        identified: (which) => {
          if (which.side === 'target') this.#admitted.targetSeen(false);
          this.#rememberSoon();
        },
        replaced: (which, change) => {
          if (which.side === 'target') this.#admitted.targetSeen(true);
          this.#trust.replaced(which, change);
        },
        demoted: (which) => this.#trust.demoted(which),
        usable: (which) => this.#tellProblem(which),
        refusal: (which, runId) => this.#twin(which, runId),
        clockRead: () => this.#clocks.compare(),
        passwordNeeded: (which) => this.#logins.changed(which),
        full: (which) => this.#full(which),
        clockSet: (which, byMs) => this.#clocks.set(which, byMs),
      });
    this.#servers = { source: server('source'), target: server('target') };
    const neighbours = shard.sharedTarget ? neighboursOf(plan, shard) : [];
    this.#neighbours = new Map(neighbours.map(({ name, source }) => [name, new Dialer(source, plan.limits.connectMs)]));
    const owners = shard.sharedTarget
      ? new Owners(
          shard.owns,
          neighbours.map(({ owns }) => owns),
        )
      : null;
    this.#strays = this.#straysOf(owners);
    const point = (name: string, first: StagePoint): StagePoint => state.current.workloads[name] ?? first;
    this.#router = new Router(
      plan.workloads.map((workload) => ({ ...workload, ...point(workload.name, workload) })),
      { ...point('default', plan.default), writer: plan.default.writer },
      owners?.isElsewhere ?? null,
      shard.region,
      plan.topology.secondWriter,
    );
    this.#suspects = new Suspects((suspect) => {
      this.#journal.noteKey(suspect.db, suspect.key, 0, suspect.key.length);
      this.#trust.since?.marked(suspect);
      this.#healer.marked(suspect);
    });
    this.#journal = new Journal({
      directory: this.#directory,
      id: this.#author.process,
      before: state.previous,
      settle: () => drained(this.#sequencer),
      carry: () => this.#noteDoubts(),
      failed: (problem) =>
        logger.error(
          { shard: shard.name, problem: problem.message },
          'the journal cannot be written: should the process end now, every key will be suspect',
        ),
    });
    this.#turn.beforeFlush = () => this.#journal.flush();
    const found = (finding: Finding): void =>
      ledger.record({
        ...finding,
        pattern: finding.key && (this.#router.named(finding.workload)?.patternOf(finding.key) ?? null),
      });
    let judge!: Judge;
    this.#sequencer = new Sequencer({
      servers: this.#servers,
      router: this.#router,
      table: new CommandTable(),
      scripts: new Scripts(),
      suspicion: (sequencer) => {
        judge = new Judge(sequencer, found);
        return {
          verdicts: judge,
          doubts: new Doubts({ sequencer, suspects: this.#suspects, judge, journal: this.#journal }),
          expiry: new Expiry(sequencer),
        };
      },
      journal: this.#journal,
      limits: this.#mirrorLimits,
      turn: this.#turn,
    });
    this.#judge = judge;
    const limits = (): Plan['limits'] => this.#plan.limits;
    const large = {
      get bytes() {
        return limits().largeKeyBytes;
      },
      get elements() {
        return limits().largeKeyElements;
      },
    };
    this.#healer = new Healer(
      this.#sequencer,
      this.#suspects,
      () => this.#judge.buried(),
      large,
      logger,
      owners && ((db, key) => isContested(this.#strays, db, key)),
      owners,
    );
    this.#judge.onBuried = () => this.#healer.wake();
    this.#sequencer.mirrorChanged = (side, up) => {
      logger.info(
        { shard: shard.name, mirror: side, up },
        up ? 'the mirror is connected' : 'the mirror is not connected',
      );
      if (up) this.#healer.wake();
    };
    this.#clients = new Clients(this.#sequencer, shard.sharedTarget, owners?.mine ?? null, plan.limits);
    this.#listener = new Listener(shard.listen, this.#clients, () => this.#plan.limits);
    this.#logins = new Logins({
      sequencer: this.#sequencer,
      clients: this.#clients,
      isNeeded: (side) => this.#isNeeded(side),
      logger: logger.child({ shard: shard.name }),
    });
    this.#regional = this.#router.rewrites
      ? new Regional({ server: this.#servers.target, region: shard.region!, shard: shard.name })
      : null;
    this.#clients.regional = this.#regional;
    const nameOf = (key: Buffer): string =>
      this.#plan.ledger.redact ? redactKey(key, options.hashKey) : key.toString();
    this.#admitted = new Admitted({
      ...this.#strays,
      sequencer: this.#sequencer,
      redact: nameOf,
      state: () => state.current,
      persist: (patch) => state.update(patch),
      logger: logger.child({ shard: shard.name }),
    });
    this.#flipper = new Flipper(
      {
        sequencer: this.#sequencer,
        clients: this.#clients,
        suspects: this.#suspects,
        sharedTarget: shard.sharedTarget && shard.owns === null,
        target: (workload) => this.#admitted.facts(workload),
        persist: (workload, from, to, note, admitting) => this.#persist(workload, from, to, note, admitting),
        moved: () => {
          this.#startMirrors();
          this.#trust.moved();
        },
        doubt: (workload, reason) => this.#doubt(workload, reason),
        undecided: (workload) => this.#judge.asksOf(workload),
        buried: (server) => this.#judge.buried(server),
        frozen: () => this.#healer.frozen,
        distrusts: (side) => this.#trust.distrusts(side),
        isDown: (side) => this.#vigil.isDown(side),
        giveUp: (side) => this.#giveUp(side),
        redact: nameOf,
        counters: () => this.#regional!.counters(),
      },
      plan.limits.flipMs,
    );
    this.#clocks = new Clocks({
      servers: this.#servers,
      mirrors: this.#sequencer.mirrors,
      isNeeded: (side) => this.#isNeeded(side),
      doubtAll: (reason) => this.#doubtAll(reason),
      logger: logger.child({ shard: shard.name }),
    });
    this.#trust = new Trust({
      servers: this.#servers,
      onAuthorityChange: plan.onAuthorityChange,
      isAuthority: (side) => this.#isAuthority(side),
      doubtAll: (reason, which) => this.#doubtAll(reason, which),
      remember: (event) => this.#remember({}, event),
      freeze: (reason) => this.#freeze(reason),
      distrusted: (side) => this.#listener.wasOpened && this.#failover.replaced(side),
      // Before the first client comes, another process may have served others.
      watch: (side) => (!this.#listener.wasOpened ? null : new Since(this.#sequencer, this.#suspects, side)),
      logger: logger.child({ shard: shard.name }),
    });
    this.#vigil = new Vigil({
      servers: this.#servers,
      isNeeded: (side) => this.#isNeeded(side),
      mayBeBusy: (side) => this.#sequencer.lanes[side].mayBeBusy(performance.now()),
      downAfterMs: () => this.#plan.limits.downAfterMs,
      down: (side) => {
        this.#flipper.down(side);
        this.#failover.down(side, this.#vigil.silentMs(side));
      },
    });
    const silence = {
      silentMs: () => this.#plan.limits.silentMs,
      closed: ({ side }: Server, { clientId }: { readonly clientId: number }, silentMs: number) => {
        this.#silenced[side]++;
        const about = { shard: shard.name, server: side, clientId, silentMs: Math.round(silentMs) };
        logger.warn(
          about,
          'a connection went silent while the server answers on another one: it is closed, and the keys of its unanswered writes are suspects',
        );
      },
    };
    this.#liveness = SIDES.map((side) => new Liveness(this.#servers[side], silence));
    this.#failover = new Failover({
      router: this.#router,
      suspects: this.#suspects,
      policy: ({ name }) => allWorkloads(this.#plan).find((each) => each.name === name)!.failover,
      unsupported: (workload, side) => this.#witness.unsupportedBy(workload, side),
      change: (request) => this.changeStage(request),
      open: () => this.#clients.open(),
      servers: this.#servers,
      redact: nameOf,
      logger: logger.child({ shard: shard.name }),
    });
    const report = new Report(join(this.#directory, 'differences.jsonl'), () => this.#plan.ledger, nameOf);
    this.#jobs = new Jobs(
      {
        ...this.#strays,
        sequencer: this.#sequencer,
        suspects: this.#suspects,
        large,
        hindrance: (copies) => this.#hindrance(copies),
        since: () => this.#trust.since,
        heals: () => this.#healer.frozen === null,
        doubt: (workload, reason) => this.#doubt(workload, reason),
        proven: (workloads) => this.#proven(workloads),
        cleared: () => this.#journal.turn(),
        begun: () => report.begin(),
        report: (key, difference) => report.add(key, difference),
        told: (told) => report.tell(told),
        save: (record) => this.#saveJob(record),
        redact: nameOf,
        logger: logger.child({ shard: shard.name }),
      },
      () => this.#healer.frozen,
    );
    const witness = {
      sequencer: this.#sequencer,
      plan: () => this.#plan,
      suspects: (workload: Workload) => this.#suspects.count(workload) + (this.#judge.asksOf(workload) ? 1 : 0),
      frozen: () => this.#healer.frozen,
      job: () => this.#jobs.snapshot(),
      sampled: (latest: Latest) => this.#series.add(Date.now(), this.snapshot(), latest),
      target: (workload: Workload, counted: boolean) =>
        counted ? this.#admitted.facts(workload) : this.#admitted.glance(workload),
      counters: () => guardShard(this.#plan, this.#planned, this.snapshot()),
      seenUsers: () => this.#clients.logins.names(),
      refusedLogins: () => this.#clients.logins.refusedBy(this.#servers.target, this.#servers.source),
      sent: () => this.#clients.sentWrites(),
      shard: () => this.name,
      sharing: () => neighboursOf(this.#plan, this.#planned).map(({ name }) => name),
      logger: logger.child({ shard: shard.name }),
    };
    this.#witness = new Witness(witness, this.#directory, this.#author);
  }

  #proven(workloads: readonly Workload[]): void {
    this.#admitted.proven(workloads).catch((problem: Error) => {
      this.#options.logger.error(
        { shard: this.name, problem: problem.message },
        'that the target holds only what the proxy wrote cannot be written down: it is not known after a restart',
      );
    });
  }

  /** Whom to ask about keys: this shard's own servers, and the others' sources. */
  #straysOf(owners: Owners | null): StraysContext {
    const own = (side: Side): KeyReader => {
      const server = this.#servers[side];
      return new KeyReader(`the ${side} of shard ${this.name}`, () =>
        server.open({ db: 0, protocol: 2, credentials: server.endpoint.credentials }),
      );
    };
    const neighbours = [...this.#neighbours].map(
      ([name, dialer]) =>
        new KeyReader(`the source of shard ${name}`, () =>
          connectTo(dialer, `shadow-proxy-asks:${this.name}`, this.#turn),
        ),
    );
    const here = (): readonly Shard[] => this.#options.shards().filter(({ name }) => this.#neighbours.has(name));
    const settled: StraysContext['settled'] = async (db, keys) => {
      let left = keys;
      for (const shard of [this, ...here()]) left = await shard.settled(db, left);
      return left;
    };
    const knowsAll = (): boolean => here().length === this.#neighbours.size;
    return { owners, readers: { source: own('source'), target: own('target') }, neighbours, settled, knowsAll };
  }

  async settled<T extends { readonly key: Buffer }>(db: number, keys: readonly T[]): Promise<readonly T[]> {
    const inTime = await Promise.race([
      drained(this.#sequencer).then(() => true),
      sleep(SETTLE_MS, false, { ref: false }),
    ]);
    if (!inTime) return [];
    return keys.filter(({ key }) => !this.#suspects.has(db, key));
  }

  /** Why no key may be copied, or compared, now; null where it may. */
  #hindrance(copies: boolean): string | null {
    if (copies && this.#healer.frozen !== null) return this.#healer.frozen;
    if (this.#sequencer.passing) return 'a command that runs alone is under way';
    if (!this.#judge.buried()) return 'a lost connection may still change something';
    if (copies && this.#admitted.isRecognising)
      return 'it is being looked up whether the target still holds the keys that were written to it';
    for (const { keylessRule, whole, moving } of this.#router.workloads) {
      if (moving) return 'a stage changes';
      for (const side of whole ? [otherSide(keylessRule.authority)] : (['source', 'target'] as const)) {
        if ((keylessRule.mirrorsWrites || !whole) && !this.#sequencer.mirrors[side].connected)
          return `the ${side} is not connected`;
      }
    }
    return null;
  }

  #readJob(): JobRecord | null {
    const { value, problem } = readJob(this.#directory, this.#author.before);
    if (problem !== null)
      this.#options.logger.warn(
        { shard: this.name, problem },
        'a backfill or verification that was under way does not go on: start it again',
      );
    return value;
  }

  #saveJob(record: JobRecord): void {
    try {
      writeJob(this.#directory, this.#author, record);
    } catch (problem) {
      this.#options.logger.error(
        { shard: this.name, problem: (problem as Error).message },
        'how far the job has come cannot be written: after a restart it begins anew',
      );
    }
  }

  startJob(request: JobRequest, by?: string): JobSnapshot {
    const begun = this.#jobs.start(request);
    const { kind, deletes, dryRun } = request;
    if (deletes > 0 && !dryRun) {
      this.#options.state
        .update({}, { event: 'deletes', kind, workloads: begun.workloads, keys: deletes, by })
        .catch((problem: Error) => {
          this.#options.logger.error(
            { shard: this.name, keys: deletes, problem: problem.message },
            'that keys of the mirror may be deleted cannot be written into the history',
          );
        });
    }
    return begun;
  }

  stopJob(): JobSnapshot {
    return this.#jobs.stop();
  }

  acceptAuthority(runIds: readonly string[] | null): Promise<Side[]> {
    return this.#trust.accept(runIds);
  }

  async start(): Promise<void> {
    const { state } = this.#options;
    const first = state.current.source === null && state.current.target === null;
    for (const side of ['source', 'target'] as const) {
      const seen = state.current[side];
      if (seen !== null) this.#servers[side].expect(seen, Date.parse(seen.seenAt));
    }
    for (const liveness of this.#liveness) void liveness.watch();
    for (const side of authoritiesOf(this.#router.workloads)) await this.#servers[side].identify();
    if (this.#router.workloads.some(({ isRewritten }) => isRewritten)) await this.#regional!.counters();
    if (first) await this.#admitFirst();
    this.#startMirrors();
    const certain = this.#takeOver();
    if (first) await this.#beginCopies();
    await this.#remember({ cleanShutdown: false, journal: this.#author.process }, this.#journalEvent());
    this.#journal.serve();
    await this.#listener.open(performance.now() + this.#options.listenMs);
    if (this.#servers.source.endpoint.followsSentinel || this.#servers.target.endpoint.followsSentinel) {
      this.#sentinels = setInterval(() => void this.#followSentinels(), SENTINEL_POLL_MS);
    }
    this.#clocks.watch();
    this.#vigil.watch();
    this.#logins.watch();
    this.#witness.start();
    this.#jobs.begin(this.#options.doubt === null ? this.#readJob() : null, certain);
  }

  /**
   * A plan whose first stage is beyond off is held to the gate as well: where the target has keys that the shard did
   * not write, the workload stays off. A standby with a folder of its own goes on in the stage of the process that it
   * saw, and deletes no key that only the target has. @throws {StageError} where both servers should hold the same, and
   * do not
   */
  async #admitFirst(): Promise<void> {
    const { state, alike, consent, logger, ownership } = this.#options;
    const goesOn = (ownership.predecessor?.note ?? '') !== '';
    for (const workload of this.#router.workloads) {
      const { name, stage, percent } = workload;
      if (stage === 'off' || workload.perRegion) continue;
      const facts = await this.#admitted.facts(workload, FIRST_COUNT_MS);
      const { answer, evidence } = judgeTarget(
        facts,
        alike && facts.keys?.found === facts.keys?.onSource
          ? { overwrite: true, deleteForeign: false, confirm: Infinity }
          : consent,
      );
      if (answer === 'yes' || goesOn) {
        const admission = this.#admitted.admission(facts, answer === 'yes' && consent.deleteForeign);
        await state.update(({ admitted }) => ({ admitted: { ...admitted, [name]: admission } }));
        this.#admitted.apply(workload);
        continue;
      }
      // Clients get the target's replies already: nothing of it is overwritten, but by them.
      if (stageRule(stage).authority === 'target') continue;
      if (alike) throw new StageError('gates-closed', evidence);
      logger.error(
        { shard: this.name, workload: name },
        `the workload stays off, not ${stage} as the plan says: ${evidence}; then: shadow-compare promote ${name}`,
      );
      await this.#options.state.update(
        ({ workloads }) => ({ workloads: { ...workloads, [name]: { stage: 'off', percent: 100 } } }),
        {
          event: 'stage',
          workload: name,
          from: { stage, percent },
          to: { stage: 'off', percent: 100 },
          reason: evidence,
        },
      );
      workload.move('off', 100);
    }
  }

  /** What the servers hold at the very first start is not known to be equal, whatever the plan says. */
  async #beginCopies(): Promise<void> {
    if (this.#options.alike) return void this.#tellOfMissingKeys();
    for (const workload of this.#router.workloads) {
      if (workload.stage === 'dualwrite' || workload.stage === 'shadow') await this.#flipper.beginCopy(workload);
    }
  }

  /** Where both servers are believed to hold the same, and cannot, the operator is told. */
  async #tellOfMissingKeys(): Promise<void> {
    const { keylessRule } = this.#router.default;
    if (!keylessRule.mirrorsWrites) return;
    const [authority, mirror] = [this.#servers[keylessRule.authority], this.#servers[otherSide(keylessRule.authority)]];
    const counts = await Promise.all([authority.keyCount(), mirror.keyCount()]).catch(() => null);
    // Keys that have expired and are not removed yet are counted, on one server more than on the other.
    if (counts === null || counts[1] >= counts[0] * ENOUGH_KEYS) return;
    const keys = { [authority.side]: counts[0], [mirror.side]: counts[1] };
    this.#options.logger.warn(
      { shard: this.name, keys },
      `the ${mirror.side} lacks keys that the ${authority.side} has: what was there before is not copied, and differs until it is written`,
    );
  }

  /** For producers beside the clients. */
  get sequencer(): Sequencer {
    return this.#sequencer;
  }

  get suspects(): Suspects {
    return this.#suspects;
  }

  get port(): number {
    return this.#listener.port;
  }

  ready(): boolean {
    if (!this.#listener.wasOpened || this.#stopping) return false;
    return this.#router.workloads.every((workload) => this.#servers[workload.keylessRule.authority].up);
  }

  async changeStage(request: StageRequest): Promise<StageChange> {
    // What was seen belongs to the stage in which it was.
    this.#witness.look();
    const change = await this.#flipper.change(request);
    this.#witness.look();
    return change;
  }

  promote(request: PromoteRequest): Promise<Promotion> {
    return promote(this.#promotion, request);
  }

  rollback(request: RollbackRequest): Promise<Rollback> {
    return rollback(this.#promotion, request);
  }

  get #promotion(): PromotionContext {
    return {
      standing: (workload) => this.#witness.standing(workload),
      facts: (workload, consent) => this.#witness.facts(workload, consent),
      change: (request) => this.changeStage(request),
      drilling: (workload, on) => this.#witness.drilling(workload, on),
      drilled: (workload, drill) => this.#witness.drilled(workload, drill),
    };
  }

  /** As the plan has it now. */
  get #planned(): ShardPlan {
    return this.#plan.shards.find(({ name }) => name === this.name)!;
  }

  scrape(): ScrapedShard {
    return {
      ...this.snapshot(),
      watch: watchOf(this.#plan, this.#planned, this.#options.ownership.leases, this.#witness.glance()),
    };
  }

  async evidence(): Promise<ShardEvidence> {
    const workloads = await this.#witness.outlook();
    return {
      shard: this.name,
      workloads,
      latencies: this.#witness.latencies(),
      mismatches: this.#options.ledger.tail(),
    };
  }

  series(since: number): SeriesSnapshot {
    return this.#series.since(since);
  }

  history(): Promise<readonly HistoryEvent[]> {
    return this.#options.state.history(HISTORY_EVENTS);
  }

  note(note: Note): Promise<void> {
    return this.#options.state.update({}, { event: 'runbook', ...note });
  }

  async drain(timeoutMs: number): Promise<boolean> {
    this.#stopping = true;
    void this.#listener.close();
    const deadline = performance.now() + timeoutMs;
    for (const session of this.#clients.sessions.values()) session.end();
    const until = (holds: () => boolean): Promise<boolean> =>
      new Promise((resolve) => {
        const look = (): void => {
          if (holds()) resolve(true);
          else if (performance.now() > deadline) resolve(false);
          else setTimeout(look, 5);
        };
        look();
      });
    const quiet = await until(() => [...this.#clients.sessions.values()].every((session) => session.inFlight === 0));
    const timedOut = new Promise<boolean>((resolve) =>
      setTimeout(resolve, Math.max(0, deadline - performance.now()), false).unref(),
    );
    const unblocked = await until(() => this.#clients.blocked.size === 0);
    const confirmed = await Promise.race([drained(this.#sequencer).then(() => true), timedOut]);
    const healed = await until(
      () => this.#judge.undecided === 0 && (this.#suspects.size === 0 || this.#healer.frozen !== null),
    );
    await Promise.race([this.#witness.watchLosses(), timedOut]);
    await Promise.race([this.#regional?.leave().catch(() => undefined), timedOut]);
    const clean = quiet && unblocked && confirmed && healed && this.#suspects.size === 0;
    if (clean) {
      this.#journal.settled();
      await this.#remember({ cleanShutdown: this.#router.workloads.every((workload) => workload.suspect === null) });
    }
    return clean;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#sentinels);
    this.#clocks.stop();
    this.#vigil.stop();
    this.#logins.stop();
    for (const liveness of this.#liveness) liveness.stop();
    this.#admitted.close();
    this.#jobs.close();
    this.#witness.close();
    this.#clients.counterWatch.close();
    this.#clients.limits.end();
    this.#healer.close();
    for (const reader of [this.#strays.readers.source, this.#strays.readers.target, ...this.#strays.neighbours])
      reader.close();
    const closed = this.#listener.close();
    for (const session of this.#clients.sessions.values()) session.destroy();
    this.#sequencer.close();
    this.#regional?.close();
    await Promise.all([this.#servers.source.end(), this.#servers.target.end(), closed]);
    this.#journal.close();
  }

  reload(plan: Plan): void {
    const { limits, shards, workloads } = plan;
    const { source, target, listen } = shards.find(({ name }) => name === this.name)!;
    this.#plan = plan;
    this.#mirrorLimits.queueBytes = limits.queueBytes;
    this.#clients.limits.bounds = limits;
    this.#flipper.holdMs = limits.flipMs;
    this.#servers.source.endpoint.renew(source, limits.connectMs);
    this.#servers.target.endpoint.renew(target, limits.connectMs);
    for (const shard of shards) this.#neighbours.get(shard.name)?.renew(shard.source, limits.connectMs);
    for (const workload of workloads) this.#router.named(workload.name)!.workloadClass = workload.class;
    this.#listener.reload(listen);
  }

  // ── servers ─────────────────────────────────────────────────────────────────────────────────────────────────

  #startMirrors(): void {
    for (const workload of this.#router.workloads) {
      if (!workload.keylessRule.mirrorsWrites) continue;
      this.#sequencer.mirrors[otherSide(workload.keylessRule.authority)].start();
      if (!workload.whole) this.#sequencer.mirrors.source.start();
    }
  }

  #full({ side }: Server): void {
    this.#options.logger.warn(
      { shard: this.name, server: side },
      'the server has no memory left for what the other one holds: keys that it refuses are in doubt, and copied when there is room (raise maxmemory)',
    );
  }

  /** Two addresses that lead to one server: every write would be made twice. */
  #twin({ side }: Server, runId: string): string | null {
    const other = this.#servers[otherSide(side)];
    return runId !== '' && other.identity?.runId === runId ? oneServer(side, runId) : null;
  }

  #tellProblem({ side, problem }: Server): void {
    const { logger } = this.#options;
    if (problem === null) logger.info({ shard: this.name, server: side }, 'the server can be used again');
    else logger.error({ shard: this.name, server: side, problem }, 'the server is not used');
  }

  /** Whether clients are sent to it. */
  #isNeeded(side: Side): boolean {
    return authoritiesOf(this.#router.workloads).includes(side);
  }

  /** Whether the mirror of any workload follows this server. */
  #isAuthority(side: Side): boolean {
    return this.#router.workloads.some(
      ({ keylessRule, whole }) => keylessRule.mirrorsWrites && (keylessRule.authority === side || !whole),
    );
  }

  /** Freezes what copies, or lets it go on. */
  #freeze(reason: string | null): void {
    this.#healer.frozen = reason;
    if (reason === null) this.#healer.wake();
  }

  #doubtAll(reason: string, which: (workload: Workload) => boolean = () => true): void {
    for (const workload of this.#router.workloads)
      if (workload.keylessRule.mirrorsWrites && which(workload)) this.#doubt(workload, reason);
  }

  /** Every key of the workload is in doubt, and that is on the disk before anything else happens. */
  #doubt(workload: Workload, reason: string): void {
    workload.doubt(reason);
    this.#journal.noteWorkload(workload.name, workload.suspect!);
    this.#journal.flush();
  }

  /** Sentinel may have chosen another master while the old one still answers us. */
  async #followSentinels(): Promise<void> {
    for (const side of ['source', 'target'] as const) {
      const server = this.#servers[side];
      if (!server.endpoint.followsSentinel || server.address === undefined) continue;
      const now = await server.endpoint.resolve().catch(() => null);
      if (now === null || (now.host === server.address.host && now.port === server.address.port)) continue;
      this.#options.logger.warn(
        { shard: this.name, server: side, from: server.address, to: now },
        'following a failover',
      );
      server.address = now;
      this.#giveUp(side);
    }
  }

  /** Ends every connection to the server: what it has not answered is lost. */
  #giveUp(side: Side): void {
    const lanes = this.#sequencer.lanes[side];
    void this.#servers[side].close();
    this.#strays.readers[side].close();
    for (const lane of [...lanes.all(), ...lanes.private()]) lane.close();
    this.#sequencer.mirrors[side].reconnect();
    this.#clients.subscribers.leave(side);
  }

  // ── doubts that outlive a process ───────────────────────────────────────────────────────────────────────────

  /** What the last process left in doubt is in doubt. Returns whether it told all of it. */
  #takeOver(): boolean {
    const { logger, doubt } = this.#options;
    const { keys, workloads, everything } = this.#journal.left;
    for (const { db, key } of keys) this.#sequencer.doubts.key(db, key, 'process-ended');
    for (const [name, why] of workloads) {
      const workload = this.#router.named(name);
      if (workload?.keylessRule.mirrorsWrites) workload.doubt(why);
    }
    if (everything !== null) this.#doubtAll(`the last process ended suddenly: ${everything}`);
    if (doubt !== null) this.#doubtAll(doubt);
    if (keys.length > 0)
      logger.warn(
        { shard: this.name, keys: keys.length },
        'the last process ended suddenly: the keys that it was writing are suspect',
      );
    if (everything !== null)
      logger.warn(
        { shard: this.name, problem: everything },
        'the journal does not tell all keys that the last process was writing: every key of what is written twice is suspect',
      );
    this.#journal.turn();
    return everything === null;
  }

  /** What the history says of a journal that does not tell everything. */
  #journalEvent(): HistoryEvent | undefined {
    const reason = this.#journal.left.everything;
    const workloads = this.#router.workloads
      .filter(({ keylessRule }) => keylessRule.mirrorsWrites)
      .map(({ name }) => name);
    return reason === null || workloads.length === 0 ? undefined : { event: 'suspect', workloads, reason };
  }

  #noteDoubts(): void {
    for (const { db, key } of this.#suspects.all()) this.#journal.noteKey(db, key, 0, key.length);
    for (const blocked of this.#clients.blocked) blocked.note();
    for (const workload of this.#router.workloads)
      if (workload.suspect !== null) this.#journal.noteWorkload(workload.name, workload.suspect);
  }

  // ── state ───────────────────────────────────────────────────────────────────────────────────────────────────

  async #persist(
    workload: Workload,
    from: StagePoint,
    to: StagePoint,
    note: StageRequest['note'],
    admitting: Admitting | null,
  ): Promise<void> {
    const lost = this.#failover.unanswered(workload);
    const admission = admitting && this.#admitted.admission(admitting.facts, admitting.consent.deleteForeign);
    const patch: (current: ShardState) => StatePatch = ({ workloads, admitted }) => ({
      workloads: { ...workloads, [workload.name]: to },
      ...(admission !== null && { admitted: { ...admitted, [workload.name]: admission } }),
    });
    await this.#options.state.update(patch, {
      event: 'stage',
      workload: workload.name,
      from,
      to,
      ...note,
      ...(lost.unanswered > 0 && lost),
    });
    if (admission !== null) this.#admitted.apply(workload);
  }

  /** Notes which servers were seen; an authority that is not trusted keeps its old name until somebody decides. */
  #remember(patch: { cleanShutdown?: boolean; journal?: string }, event?: HistoryEvent): Promise<void> {
    return this.#options.state.update((current) => {
      const seen = (side: Side): ServerSeen | null => {
        const { runId, replId, version } = this.#servers[side];
        return version === '' || this.#trust.distrusts(side)
          ? current[side]
          : { runId, replId, version, seenAt: new Date().toISOString() };
      };
      return { ...patch, source: seen('source'), target: seen('target') };
    }, event);
  }

  #rememberSoon(): void {
    const { logger } = this.#options;
    this.#remember({}).catch((problem: Error) =>
      logger.error({ shard: this.name, problem: problem.message }, 'which servers were seen could not be written down'),
    );
  }

  snapshot(): ShardSnapshot {
    return snapshotOf(
      factsOf({
        name: this.name,
        since: this.#since,
        sequencer: this.#sequencer,
        suspects: this.#suspects,
        judge: this.#judge,
        clients: this.#clients,
        vigil: this.#vigil,
        silenced: this.#silenced,
        flipper: this.#flipper,
        failover: this.#failover,
        jobs: this.#jobs,
        frozen: this.#healer.frozen,
      }),
    );
  }
}
