/** Collects the evidence for a shard's gates while the shard runs, and returns it when asked. */
import type { Logger } from 'pino';
import type { Verdict } from '../guard/judge.js';
import { monotonicMs, unixMs } from '../io/clock.js';
import { clearTimer, every, type Timer } from '../io/timers.js';
import { workloadIn, type Plan, type WorkloadPlan } from '../plan/plan.js';
import { EvidenceBook, type Drill, type LatencyWindow, type WorkloadTotals } from '../storage/evidence.js';
import type { Author } from '../storage/sealed.js';
import type { WorkloadCounters } from '../telemetry/workload-counters.js';
import type { Latest } from '../telemetry/series.js';
import { sum, type JobSnapshot } from '../telemetry/snapshot.js';
import type { Workload } from '../route/router.js';
import { SIDES, type Side } from '../route/stage.js';
import { compareSettings, readSettings, type ServerSettings, type SettingsComparison } from '../upstream/settings.js';
import { BypassCounter, bypassingClients, type BypassContext } from './bypass-counter.js';
import type { FenceReport } from './fence-gate.js';
import { ExternalChecks, type CheckedWorkload, type CheckResult } from './external-checks.js';
import type { GateAnswer } from './gate-answer.js';
import { NO_CONSENT, type GateFacts, type PassedWrites, type TargetFacts } from './gate-facts.js';
import { unsupportedForms } from './gates.js';
import { LatencyMinutes } from './latency-minutes.js';
import { nextStageOf, type NextStage } from './next-stage.js';
import { Pace } from './pace.js';
import type { PromotionState } from './promotion.js';
import { readFacts, newerServers, probeKey, serverProblems } from './servers-gate.js';
import { soon } from './soon.js';
import { namedWorkload } from './stage-change.js';
import {
  judgeUsers,
  readAndCompareUsers,
  readUsersWithoutSource,
  rememberUsers,
  type UserMemory,
} from './users-gate.js';

export interface EvidenceContext extends BypassContext {
  readonly plan: () => Plan;
  /** Number of suspect keys, including differences without a verdict. */
  readonly suspects: (workload: Workload) => number;
  /** Why every key of the workload is suspect; null if they are not. */
  readonly suspicion: (workload: Workload) => string | null;
  readonly job: () => JobSnapshot | null;
  /**
   * Called every few seconds with the latencies since the last call: those of all commands, and those of each workload
   * in the router's order.
   */
  readonly sampled: (latest: Latest, workloads: readonly Latest[]) => void;
  /** What the target holds of a workload: counted now, or only what is known already. */
  readonly target: (workload: Workload, counted: boolean) => Promise<TargetFacts>;
  /** Whether the shard's counters are safe, judged by the servers' present answers. */
  readonly counters: () => Promise<readonly Verdict[]>;
  /** The shard's name, and the names of the shards that share its target in the plan. */
  readonly shard: () => string;
  readonly sharing: () => Readonly<Record<Side, readonly string[]>>;
  /** Releases of servers that this release does not know and that an operator has accepted. */
  readonly acceptedReleases: () => readonly string[];
  /** One of the shard's slots in a cluster; null if the shard is of no cluster. */
  readonly slot: number | null;
  /** Names of the users that clients have logged in as. */
  readonly seenUsers: () => ReadonlySet<string>;
  /** Users whose login the source accepts and the target refuses. */
  readonly refusedLogins: () => Promise<readonly string[]>;
  /** Users that lose writes behind the fence; null if the plan has no fence. */
  readonly fence: () => Promise<FenceReport | null>;
  readonly logger: Logger;
}

const COLLECT_MS = 1_000;
const COUNT_MS = 5_000;
const MINUTE_MS = 60_000;
const SAVE_MS = 10_000;
/** For this time, in ms, answers of the servers are used again for a viewer. */
const WATCH_MS = 15_000;
/**
 * After this time, in ms, the servers are asked again for a scrape, which does not wait for them. Older answers are not
 * shown.
 */
const GLANCE_MS = 60_000;
const STALE_MS = 300_000;

/** Facts that only the servers know. */
type ServerAnswers = Pick<
  GateFacts,
  'servers' | 'newer' | 'settings' | 'users' | 'bypassing' | 'passed' | 'evicted' | 'fence'
> & {
  readonly counters: readonly Verdict[] | null;
  /** Facts about the target for workloads that are off, by name. */
  readonly targets: ReadonlyMap<string, TargetFacts | null>;
};

/** What can be reported without waiting for a server. */
export interface Glance {
  readonly outlook: readonly NextStage[];
  readonly guard: readonly Verdict[];
  readonly bypassing: number | null;
  readonly passedWrites: number;
  readonly passedWritesKnown: boolean;
  /** Latencies of the last full minute; of the present minute if the last one is too old. */
  readonly latency: LatencyWindow;
  /** The same latencies, by workload. */
  readonly workloadLatencies: ReadonlyMap<string, LatencyWindow>;
}

export class EvidenceCollector {
  readonly #book: EvidenceBook;
  readonly #minutes: LatencyMinutes;
  readonly #bypass: BypassCounter;
  readonly #pace = new Pace();
  readonly #users: UserMemory = { source: null };
  readonly #checks: ExternalChecks;
  #timer: Timer | undefined;
  #counter: Timer | undefined;
  #rememberer: Timer | undefined;
  #savedAt = monotonicMs();
  /** The job that was recorded last. */
  #noted: string | null = null;
  #asked: { readonly at: number; readonly answer: Promise<ServerAnswers> } | null = null;
  /** The servers' last answers, and when they were asked; null before the first time. */
  #answered: { readonly at: number; readonly answers: ServerAnswers } | null = null;

  constructor(
    private readonly context: EvidenceContext,
    directory: string,
    author: Author,
  ) {
    this.#checks = new ExternalChecks(() => context.plan().checks);
    this.#book = new EvidenceBook(directory, author);
    if (this.#book.problem !== null)
      context.logger.warn(
        { problem: this.#book.problem },
        'the saved evidence is not used: the gates count from now on',
      );
    this.#minutes = new LatencyMinutes(context.sequencer.latencies, {
      sampled: context.sampled,
      minute: (now, latest, workloads) => {
        this.#book.timed(now, latest);
        workloads.forEach((of, index) => this.#book.timed(now, of, this.#workloads[index].name));
      },
    });
    this.#bypass = new BypassCounter(context, this.#book.passed, (last) => {
      this.#book.bypassed(last);
      this.#save();
    });
  }

  start(): void {
    this.#timer = every(COLLECT_MS, () => this.collect()).unref();
    this.#counter = every(COUNT_MS, () => {
      void this.#bypass.count();
      void this.watchLosses();
    }).unref();
    void this.#bypass.count();
    void this.watchLosses();
    this.#rememberer = every(MINUTE_MS, () => void this.rememberUsers()).unref();
  }

  /** Records what has happened so far. */
  collect(): void {
    const now = new Date(unixMs());
    const { router, counters } = this.context.sequencer;
    const { workloads } = router;
    const totals = workloads.map((workload) => totalsOf(workload, counters.of(workload)));
    if (this.#book.update(now, totals)) this.#save();
    for (const { name } of workloads) this.#pace.add(name, monotonicMs(), this.#book.of(name)!.compared);
    this.#note(this.context.job());
    this.#minutes.sampleIfDue(now);
    if (monotonicMs() - this.#savedAt >= SAVE_MS) this.#save();
  }

  /** @throws {StageError} code `unknown-workload` */
  standing(name: string): PromotionState {
    const { router, counters } = this.context.sequencer;
    const workload = namedWorkload(router, name);
    const {
      perRegion,
      position: { stage, percent },
    } = workload;
    return { stage, percent, spanning: counters.of(workload).spanning, perRegion };
  }

  /** @throws {StageError} code `unknown-workload` */
  async facts(name: string, consent = NO_CONSENT): Promise<GateFacts> {
    const workload = namedWorkload(this.context.sequencer.router, name);
    const counted = workload.position.stage === 'off' ? await this.context.target(workload, true) : null;
    const [answers, refusedLogins, checks] = await Promise.all([
      this.#ask(),
      soon(this.context.refusedLogins()),
      this.#checks.ask(this.#checked(workload)),
    ]);
    const facts = this.#facts(workload, { ...answers, targets: new Map([[name, counted]]) });
    return { ...facts, consent, refusedLogins, checks };
  }

  /**
   * The next stages of all workloads. The servers are asked at most every few seconds, however many viewers there are.
   */
  async outlook(): Promise<readonly NextStage[]> {
    return this.#outlook(await this.#askAtTimes(WATCH_MS));
  }

  #outlook(answers: ServerAnswers): readonly NextStage[] {
    return this.#workloads.map((workload) =>
      nextStageOf(
        this.#planned(workload),
        this.standing(workload.name),
        this.#facts(workload, answers),
        new Date(unixMs()),
      ),
    );
  }

  /** The same without waiting. If the servers were asked a minute ago or more, they are asked for the next viewer. */
  glance(): Glance {
    void this.#askAtTimes(GLANCE_MS);
    const fresh =
      this.#answered !== null && monotonicMs() - this.#answered.at < STALE_MS ? this.#answered.answers : null;
    const answers: ServerAnswers = {
      servers: fresh?.servers ?? null,
      newer: fresh?.newer ?? [],
      settings: fresh?.settings ?? null,
      users: fresh?.users ?? null,
      bypassing: fresh?.bypassing ?? null,
      evicted: fresh?.evicted ?? null,
      counters: fresh?.counters ?? null,
      targets: fresh?.targets ?? new Map(),
      fence: fresh?.fence ?? (this.context.plan().fence === 'off' ? null : 'unknown'),
      passed: this.#bypass.soFar(),
    };
    return {
      outlook: this.#outlook(answers),
      guard: answers.counters ?? [],
      bypassing: answers.bypassing?.length ?? null,
      passedWrites: this.#bypass.total,
      passedWritesKnown: answers.passed.since !== null,
      latency: this.#lastMinute(null) ?? this.#minutes.running(),
      workloadLatencies: new Map(
        this.#workloads.map(({ name, index }) => [name, this.#lastMinute(name) ?? this.#minutes.runningOf(index)]),
      ),
    };
  }

  /** The last full minute, if it is recent. */
  #lastMinute(workload: string | null): LatencyWindow | undefined {
    return this.#book.latenciesSince(new Date(unixMs() - 2 * MINUTE_MS).toISOString(), workload).at(-1);
  }

  get #workloads(): readonly Workload[] {
    return this.context.sequencer.router.workloads;
  }

  /** Number of mismatches since the workload entered its stage. */
  mismatches(name: string): number {
    this.collect();
    return sum(this.#book.of(name)!.mismatches);
  }

  /** The present answers of the plan's checks for the workload; empty if there are none. */
  async askChecks(workload: Workload): Promise<readonly CheckResult[]> {
    return (await this.#checks.ask(this.#checked(workload))) ?? [];
  }

  /** Latencies by minute. */
  latencies(): readonly LatencyWindow[] {
    return this.#book.latenciesSince('');
  }

  #facts(workload: Workload, { targets, ...answers }: ServerAnswers): GateFacts {
    this.collect();
    const { name } = workload;
    const running = this.#minutes.runningOf(workload.index);
    const evidence = this.#book.of(name)!;
    const windows = [
      ...this.#book.latenciesSince(evidence.since, name),
      ...(running.source.count > 0 && running.target.count > 0 ? [running] : []),
    ];
    return {
      workload: name,
      evidence,
      comparedPerSecond: this.#pace.perSecond(name),
      gates: this.#planned(workload).gates,
      checks: this.#checks.glance(this.#checked(workload)),
      suspects: this.context.suspects(workload),
      suspect: this.context.suspicion(workload),
      spanning: this.context.sequencer.counters.of(workload).spanning,
      sourceEvicted: this.context.sequencer.servers.source.losses.evicted,
      frozen: this.context.authorities.frozen,
      down: SIDES.some((side) => !this.context.sequencer.servers[side].up),
      latencies: windows,
      refusedLogins: null,
      ...answers,
      target: targets.get(name) ?? null,
      consent: NO_CONSENT,
      counters: answers.counters && (answers.counters.find((verdict) => verdict.workload === name) ?? 'none'),
      writtenIn: workload.writtenIn,
    };
  }

  /** Recent calls of forms that `side` does not support and the plan does not allow. */
  unsupportedBy(workload: Workload, side: Side): number {
    this.collect();
    const { blocking } = unsupportedForms(
      this.#book.of(workload.name)!,
      this.#planned(workload).gates,
      new Date(unixMs()),
    );
    return blocking.reduce((total, { lacks, calls }) => total + (lacks === side ? calls : 0), 0);
  }

  /**
   * The gate `users` when the source is down: it uses the users that the source listed last. Clients may be sent to the
   * target.
   */
  async usersWithoutSource(): Promise<GateAnswer> {
    const { seenUsers, plan, sequencer } = this.context;
    const users = await readUsersWithoutSource(sequencer.servers, seenUsers(), plan().knownUsers, this.#users);
    const refused = users.unproven.length === 0 ? null : await soon(this.context.refusedLogins());
    return judgeUsers(users, refused, plan().gates.acceptRights);
  }

  /** The gate `users` alone, from the present answers of both servers. */
  async checkUsers(): Promise<GateAnswer> {
    const { seenUsers, plan, sequencer } = this.context;
    const users = await readAndCompareUsers(sequencer.servers, seenUsers(), plan().knownUsers, this.#users);
    return judgeUsers(users, null, plan().gates.acceptRights);
  }

  /** Remembers the source's users while clients could be sent to the target if the source went down. */
  async rememberUsers(): Promise<void> {
    const { router, servers } = this.context.sequencer;
    if (router.positions.some(({ keylessRule }) => keylessRule.mirrorsWrites))
      await rememberUsers(servers, this.#users);
  }

  /** Called when a new stage is in effect. */
  stagesMoved(): void {
    this.#bypass.stagesMoved();
  }

  /** Checks once more for writes that bypassed the proxy. */
  passedWrites(): Promise<PassedWrites> {
    return this.#bypass.passedWrites();
  }

  drilling(name: string, on: boolean): void {
    this.collect();
    this.#book.drilling(name, on);
  }

  drilled(name: string, drill: Drill): void {
    this.collect();
    this.#book.drilled(name, drill);
    this.#save();
  }

  close(): void {
    clearTimer(this.#timer);
    clearTimer(this.#counter);
    clearTimer(this.#rememberer);
    this.#minutes.close();
    this.collect();
    this.#save();
  }

  #checked({ name, position: { stage, percent } }: Workload): CheckedWorkload {
    return { shard: this.context.shard(), workload: name, stage, percent };
  }

  #planned({ name }: Workload): WorkloadPlan {
    return workloadIn(this.context.plan(), name);
  }

  /** Records a verification of all keys as evidence for each of its workloads. */
  #note(job: JobSnapshot | null): void {
    if (
      job === null ||
      job.kind !== 'verify' ||
      job.state !== 'done' ||
      job.sample < 100 ||
      job.endedAt === null ||
      job.endedAt === this.#noted
    )
      return;
    this.#noted = job.endedAt;
    const differences = Object.values(job.differences).reduce((a, b) => a + b, 0);
    for (const name of job.workloads)
      this.#book.verified(name, {
        endedAt: job.endedAt,
        keys: job.verifiedBy[name] ?? 0,
        differences: Math.max(0, differences - job.repaired),
        failed: job.failed,
        unsure: job.unsure,
      });
  }

  async #ask(): Promise<ServerAnswers> {
    const { seenUsers, plan } = this.context;
    const { servers } = this.context.sequencer;
    const off = this.context.sequencer.router.workloads.filter(({ position: { stage } }) => stage === 'off');
    const [problems, settings, users, bypassing, passed, evicted, counters, fence, targets] = await Promise.all([
      this.#problems(),
      this.#settings(),
      readAndCompareUsers(servers, seenUsers(), plan().knownUsers, this.#users),
      bypassingClients(servers.source, plan().knownClients),
      this.#bypass.passedWrites(),
      this.#evicted(),
      soon(this.context.counters()),
      this.context.fence().catch(() => 'unknown' as const),
      Promise.all(
        off.map(async (workload): Promise<[string, TargetFacts | null]> => [
          workload.name,
          await soon(this.context.target(workload, false)),
        ]),
      ),
      ...SIDES.map((side) => soon(servers[side].endpoint.readCertificate())),
    ]);
    return { ...problems, settings, users, bypassing, passed, evicted, counters, fence, targets: new Map(targets) };
  }

  async #problems(): Promise<Pick<ServerAnswers, 'servers' | 'newer'>> {
    const { source, target } = this.context.sequencer.servers;
    const { slot } = this.context;
    const [from, to] = await Promise.all([readFacts(source, null), readFacts(target, probeKey(slot))]);
    const facts = { source: from, target: to };
    return {
      servers: serverProblems(facts, this.context.shard(), this.context.sharing(), slot !== null),
      newer: newerServers(facts, this.context.acceptedReleases()),
    };
  }

  async #settings(): Promise<SettingsComparison> {
    const { source, target } = this.context.sequencer.servers;
    const silent: ServerSettings = { values: new Map(), refusal: 'no answer' };
    const [from, to] = await Promise.all([soon(readSettings(source)), soon(readSettings(target))]);
    return compareSettings(
      { source: from ?? silent, target: to ?? silent },
      this.context.plan().limits.clientOutputBytes,
    );
  }

  #askAtTimes(everyMs: number): Promise<ServerAnswers> {
    const at = monotonicMs();
    if (this.#asked !== null && at - this.#asked.at <= everyMs) return this.#asked.answer;
    const answer = this.#ask();
    this.#asked = { at, answer };
    void answer.then((answers) => (this.#answered = { at, answers }));
    return answer;
  }

  #save(): void {
    this.#savedAt = monotonicMs();
    try {
      this.#book.save();
    } catch (problem) {
      this.context.logger.error(
        { problem: (problem as Error).message },
        'the evidence cannot be saved: after a restart the gates count from the last saved state',
      );
    }
  }

  /**
   * Watches evictions and expiries while keys are written to both servers: one server may remove what the other keeps.
   */
  async watchLosses(): Promise<void> {
    const { router, servers } = this.context.sequencer;
    if (!router.positions.some(({ keylessRule }) => keylessRule.mirrorsWrites)) return;
    await Promise.all(SIDES.filter((side) => servers[side].up).map((side) => soon(servers[side].losses.read())));
  }

  async #evicted(): Promise<number | null> {
    return soon(this.context.sequencer.servers.target.losses.read());
  }
}

function totalsOf(
  { name, position: { stage, percent } }: Workload,
  { compared, allowed, mismatches, inconclusive, inconclusiveByScript, unsupported }: WorkloadCounters,
): WorkloadTotals {
  return {
    name,
    stage,
    percent,
    compared,
    allowed,
    mismatches,
    unsupported,
    inconclusiveByScript,
    inconclusive: [...inconclusive.values()].reduce((a, b) => a + b, 0),
  };
}
