/** Gathers, while a shard runs, what its gates are judged by; and is asked for it. */
import { createHash } from 'node:crypto';
import type { Histogram } from 'hdr-histogram-js';
import type { Logger } from 'pino';
import type { Verdict } from '../guard/judge.js';
import { clientField, listClients } from '../upstream/handshake.js';
import { inTime } from '../io/in-time.js';
import { latencyHistogram } from '../io/latency.js';
import type { Authorities } from '../pipeline/authorities.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import { parseInfo, type Server } from '../upstream/server.js';
import { allWorkloads, type Plan, type WorkloadPlan } from '../plan/plan.js';
import { EvidenceBook, type Drill, type LatencyWindow, type Seen } from '../storage/evidence.js';
import type { Author } from '../storage/sealed.js';
import { SERIES_STEP_MS, type Latest } from '../telemetry/series.js';
import { sum, type JobSnapshot, type LatencySnapshot } from '../telemetry/snapshot.js';
import { isError, text } from '../resp/decode.js';
import type { Workload } from '../route/router.js';
import { SIDES, type Side } from '../route/stage.js';
import { foreignWrites, parseCalls, type CallCounts } from './bypass-watch.js';
import { NO_CONSENT, unsupportedForms, type GateFacts, type PassedWrites, type TargetFacts } from './gates.js';
import { nextStageOf, type NextStage } from './next-stage.js';
import type { Standing } from './promotion.js';
import { lookAt, serverProblems } from './servers-gate.js';
import { StageError } from './stage-change.js';
import { compareUsers, type UserComparison, type UserFacts } from '../command/users.js';

export interface EvidenceContext {
  readonly sequencer: Sequencer;
  readonly plan: () => Plan;
  /** Keys in doubt, differences without a verdict among them. */
  readonly suspects: (workload: Workload) => number;
  readonly authorities: Pick<Authorities, 'frozen'>;
  readonly job: () => JobSnapshot | null;
  /** Told every few seconds how fast both servers answered since the last time. */
  readonly sampled: (latest: Latest) => void;
  /** What the target holds of a workload; counted, or only what is known already. */
  readonly target: (workload: Workload, counted: boolean) => Promise<TargetFacts>;
  /** Whether the shard's counters are safe, by what their servers say now. */
  readonly counters: () => Promise<readonly Verdict[]>;
  /** The shard's name, and those of the other shards that the plan lets have its target. */
  readonly shard: () => string;
  readonly sharing: () => readonly string[];
  /** Names of the users that clients have logged in as. */
  readonly seenUsers: () => ReadonlySet<string>;
  /** Of these, those whose login the source takes and the target refuses. */
  readonly refusedLogins: () => Promise<readonly string[]>;
  readonly sent: () => { readonly writes: ReadonlyMap<string, number>; readonly scripts: number };
  readonly logger: Logger;
}

const LOOK_MS = 1_000;
/** A server that hangs is not waited for longer than this: somebody wants to see just then. */
const ANSWER_MS = 2_000;
const COUNT_MS = 5_000;
const MINUTE_MS = 60_000;
const SAVE_MS = 10_000;
/** For so long the servers are not asked again for somebody who only watches. */
const WATCH_MS = 15_000;
/** Nor for a scrape, which does not wait for their answer; one of before that is not told any more. */
const GLANCE_MS = 60_000;
const STALE_MS = 300_000;

/** What only the servers can tell. */
type Told = Pick<GateFacts, 'servers' | 'users' | 'bypassing' | 'passed' | 'evicted'> & {
  readonly counters: readonly Verdict[] | null;
  /** Of the workloads that are off, by name. */
  readonly targets: ReadonlyMap<string, TargetFacts | null>;
};

/** What is known without waiting for a server. */
export interface Glance {
  readonly outlook: readonly NextStage[];
  readonly guard: readonly Verdict[];
  readonly bypassing: number | null;
  readonly passedWrites: number;
  readonly passedTold: boolean;
  /** Of the last whole minute; before there is one, or where none is fresh, of the one that runs. */
  readonly latency: LatencyWindow;
}

export class EvidenceCollector {
  readonly #book: EvidenceBook;
  /** Since the last sample, and of the minute before that. */
  readonly #recent: Readonly<Record<Side, Histogram>> = { source: latencyHistogram(), target: latencyHistogram() };
  readonly #minute: Readonly<Record<Side, Histogram>> = { source: latencyHistogram(), target: latencyHistogram() };
  readonly #unwatch: readonly (() => void)[];
  #timer: NodeJS.Timeout | undefined;
  #counter: NodeJS.Timeout | undefined;
  /** What the source had counted at the last looks, the newest last. */
  #counts: CallCounts[] = [];
  /** Since when its counts were compared at each look; null where the last could not be. */
  #countedSince: Date | null = null;
  /** The last writes that were seen to pass the proxy by. */
  #passed: PassedWrites['last'] = null;
  #timedAt = performance.now();
  #sampledAt = performance.now();
  #savedAt = performance.now();
  /** The job that was noted last. */
  #noted: string | null = null;
  #passedWritesSeen = 0;
  #told: { readonly at: number; readonly answer: Promise<Told> } | null = null;
  /** What they answered last, and when they were asked. */
  #answered: { readonly at: number; readonly told: Told } | null = null;

  constructor(
    private readonly context: EvidenceContext,
    directory: string,
    author: Author,
  ) {
    const { latencies } = context.sequencer;
    this.#book = new EvidenceBook(directory, author);
    if (this.#book.problem !== null)
      context.logger.warn({ problem: this.#book.problem }, 'the gates count from now on');
    this.#unwatch = (['source', 'target'] as const).map((side) => latencies[side].watch(this.#recent[side]));
  }

  start(): void {
    this.#timer = setInterval(() => this.look(), LOOK_MS).unref();
    this.#counter = setInterval(() => {
      void this.#count();
      void this.watchLosses();
    }, COUNT_MS).unref();
    void this.#count();
    void this.watchLosses();
  }

  /** Takes in what has happened up to now. */
  look(): void {
    const now = new Date();
    if (this.#book.look(now, this.context.sequencer.router.workloads.map(seen))) this.#save();
    this.#note(this.context.job());
    if (performance.now() - this.#sampledAt >= SERIES_STEP_MS) this.#sample();
    if (performance.now() - this.#timedAt >= MINUTE_MS) this.#time(now);
    if (performance.now() - this.#savedAt >= SAVE_MS) this.#save();
  }

  /** @throws {StageError} code `unknown-workload` */
  standing(name: string): Standing {
    const { stage, percent, counters, perRegion } = this.#named(name);
    return { stage, percent, spanning: counters.spanning, perRegion };
  }

  /** @throws {StageError} code `unknown-workload` */
  async facts(name: string, consent = NO_CONSENT): Promise<GateFacts> {
    const workload = this.#named(name);
    const counted = workload.stage === 'off' ? await this.context.target(workload, true) : null;
    const [told, refusedLogins] = await Promise.all([this.#ask(), soon(this.context.refusedLogins())]);
    return { ...this.#facts(workload, { ...told, targets: new Map([[name, counted]]) }), consent, refusedLogins };
  }

  /** All workloads; the servers are asked at most every few seconds, however many watch. */
  async outlook(): Promise<readonly NextStage[]> {
    return this.#outlook(await this.#askAtTimes(WATCH_MS));
  }

  #outlook(told: Told): readonly NextStage[] {
    const running = this.#runningMinute();
    return this.context.sequencer.router.workloads.map((workload) =>
      nextStageOf(
        this.#planned(workload),
        this.standing(workload.name),
        this.#facts(workload, told, running),
        new Date(),
      ),
    );
  }

  /** As `outlook`, without waiting: servers that were asked a minute ago or more are asked for who looks next. */
  glance(): Glance {
    void this.#askAtTimes(GLANCE_MS);
    const fresh =
      this.#answered !== null && performance.now() - this.#answered.at < STALE_MS ? this.#answered.told : null;
    const told: Told = {
      servers: fresh?.servers ?? null,
      users: fresh?.users ?? null,
      bypassing: fresh?.bypassing ?? null,
      evicted: fresh?.evicted ?? null,
      counters: fresh?.counters ?? null,
      targets: fresh?.targets ?? new Map(),
      passed: this.#passedSoFar(),
    };
    return {
      outlook: this.#outlook(told),
      guard: told.counters ?? [],
      bypassing: told.bypassing?.length ?? null,
      passedWrites: this.#passedWritesSeen,
      passedTold: told.passed.since !== null,
      latency:
        this.#book.latenciesSince(new Date(Date.now() - 2 * MINUTE_MS).toISOString()).at(-1) ?? this.#runningMinute(),
    };
  }

  /** By the minute. */
  latencies(): readonly LatencyWindow[] {
    return this.#book.latenciesSince('');
  }

  #facts(workload: Workload, { targets, ...told }: Told, running = this.#runningMinute()): GateFacts {
    this.look();
    const { name } = workload;
    const evidence = this.#book.of(name)!;
    const windows = [
      ...this.#book.latenciesSince(evidence.since),
      ...(running.source.count > 0 && running.target.count > 0 ? [running] : []),
    ];
    return {
      evidence,
      gates: this.#planned(workload).gates,
      suspects: this.context.suspects(workload),
      suspect: workload.suspect,
      spanning: workload.counters.spanning,
      sourceEvicted: this.context.sequencer.servers.source.losses.evicted,
      frozen: this.context.authorities.frozen,
      latencies: windows,
      refusedLogins: null,
      ...told,
      target: targets.get(name) ?? null,
      consent: NO_CONSENT,
      counters: told.counters && (told.counters.find((verdict) => verdict.workload === name) ?? 'none'),
      writtenIn: workload.writtenIn,
    };
  }

  /** Calls, not long ago, of forms that `side` does not support and nobody has allowed. */
  unsupportedBy(workload: Workload, side: Side): number {
    this.look();
    const { blocking } = unsupportedForms(this.#book.of(workload.name)!, this.#planned(workload).gates, new Date());
    return blocking.reduce((total, { lacks, calls }) => total + (lacks === side ? calls : 0), 0);
  }

  drilling(name: string, on: boolean): void {
    this.look();
    this.#book.drilling(name, on);
  }

  drilled(name: string, drill: Drill): void {
    this.look();
    this.#book.drilled(name, drill);
    this.#save();
  }

  close(): void {
    clearInterval(this.#timer);
    clearInterval(this.#counter);
    for (const end of this.#unwatch) end();
    this.look();
    this.#save();
  }

  #named(name: string): Workload {
    const { router } = this.context.sequencer;
    const workload = router.named(name);
    if (workload !== undefined) return workload;
    throw new StageError(
      'unknown-workload',
      `there is no workload "${name}": the plan has ${router.workloads.map((each) => each.name).join(', ')}`,
    );
  }

  #planned({ name }: Workload): WorkloadPlan {
    return allWorkloads(this.context.plan()).find((each) => each.name === name)!;
  }

  /** A verification of all keys is evidence for each of its workloads. */
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

  async #ask(): Promise<Told> {
    const { servers } = this.context.sequencer;
    const off = this.context.sequencer.router.workloads.filter(({ stage }) => stage === 'off');
    const [problems, users, bypassing, passed, evicted, counters, targets] = await Promise.all([
      this.#problems(),
      this.#users(),
      this.#bypassing(this.context.plan().knownClients),
      this.#passedWrites(),
      this.#evicted(),
      soon(this.context.counters()),
      Promise.all(
        off.map(async (workload): Promise<[string, TargetFacts | null]> => [
          workload.name,
          await soon(this.context.target(workload, false)),
        ]),
      ),
      ...SIDES.map((side) => soon(servers[side].endpoint.lookAtCertificate())),
    ]);
    return { servers: problems, users, bypassing, passed, evicted, counters, targets: new Map(targets) };
  }

  /** Users that clients log in as are compared, whatever else they are for. */
  async #users(): Promise<UserComparison> {
    const { servers } = this.context.sequencer;
    const seen = this.context.seenUsers();
    const kit = SIDES.map((side) => servers[side].endpoint.credentials?.username ?? 'default').filter(
      (name) => name !== 'default',
    );
    const known = [...this.context.plan().knownUsers, ...kit].filter((name) => !seen.has(name));
    const [source, target] = await Promise.all([servers.source, servers.target].map(readUsers));
    return compareUsers(source, target, new Set(known));
  }

  async #problems(): Promise<readonly string[]> {
    const { source, target } = this.context.sequencer.servers;
    const [from, to] = await Promise.all([lookAt(source, false), lookAt(target, true)]);
    return serverProblems({ source: from, target: to }, this.context.shard(), this.context.sharing());
  }

  #askAtTimes(everyMs: number): Promise<Told> {
    const at = performance.now();
    if (this.#told !== null && at - this.#told.at <= everyMs) return this.#told.answer;
    const answer = this.#ask();
    this.#told = { at, answer };
    void answer.then((told) => (this.#answered = { at, told }));
    return answer;
  }

  #snapshot(of: Readonly<Record<Side, Histogram>>, side: Side): LatencySnapshot {
    return this.context.sequencer.latencies[side].snapshot(of[side]);
  }

  /** A minute that is not over tells something, too. */
  #runningMinute(): LatencyWindow {
    const of = (side: Side): LatencySnapshot => {
      const all = latencyHistogram();
      all.add(this.#minute[side]);
      all.add(this.#recent[side]);
      return this.context.sequencer.latencies[side].snapshot(all);
    };
    return { at: new Date().toISOString(), source: of('source'), target: of('target') };
  }

  #sample(): void {
    this.#sampledAt = performance.now();
    this.context.sampled({
      source: this.#snapshot(this.#recent, 'source'),
      target: this.#snapshot(this.#recent, 'target'),
    });
    for (const side of SIDES) {
      this.#minute[side].add(this.#recent[side]);
      this.#recent[side].reset();
    }
  }

  #time(now: Date): void {
    this.#sample();
    this.#timedAt = performance.now();
    this.#book.timed(now, this.#snapshot(this.#minute, 'source'), this.#snapshot(this.#minute, 'target'));
    for (const side of SIDES) this.#minute[side].reset();
  }

  #save(): void {
    this.#savedAt = performance.now();
    try {
      this.#book.save();
    } catch (problem) {
      this.context.logger.error(
        { problem: (problem as Error).message },
        'the evidence cannot be written: after a restart the gates count from what was written last',
      );
    }
  }

  /** Clients at the source that are neither the kit's nor known; replicas and Sentinels are none. */
  async #bypassing(known: readonly string[]): Promise<readonly string[] | null> {
    const { source } = this.context.sequencer.servers;
    const listed = await soon(listClients((...args) => source.ask(...args)));
    if (listed === null) return null;
    const foreign = [...listed.values()].filter(
      (line) =>
        !clientField(line, 'name').startsWith(KIT) &&
        !/[SMO]/.test(clientField(line, 'flags')) &&
        clientField(line, 'cmd') !== 'ping|sentinel',
    );
    const who = foreign.map((line) => ({
      name: clientField(line, 'name'),
      host: clientField(line, 'addr').replace(/:\d+$/, ''),
      cmd: clientField(line, 'cmd'),
    }));
    return who
      .filter(({ name, host }) => !known.includes(name) && !known.includes(host))
      .map(({ name, host, cmd }) => `${name === '' ? host : `${name} at ${host}`} (${cmd})`);
  }

  async #passedWrites(): Promise<PassedWrites> {
    await this.#count();
    return this.#passedSoFar();
  }

  #passedSoFar(): PassedWrites {
    return { since: this.#countedSince?.toISOString() ?? null, last: this.#passed };
  }

  /** Holds the source's counts against ours; only while it gets nothing but clients' commands from us. */
  async #count(): Promise<void> {
    const { sequencer, sent, authorities } = this.context;
    const { source } = sequencer.servers;
    const comparable = (): boolean =>
      sequencer.router.oneAuthority &&
      sequencer.router.default.keylessRule.authority === 'source' &&
      authorities.frozen === null &&
      source.up;
    if (!comparable()) return this.#forgetCounts();
    const before = sent();
    const lanes = [...sequencer.lanes.source.all(), ...sequencer.lanes.source.private()];
    const inFlight = lanes.reduce((all, { commandsInFlight }) => all + commandsInFlight, 0);
    const reply = await soon(source.ask('INFO', 'commandstats'));
    if (reply === null || isError(reply) || !comparable()) return this.#forgetCounts();
    const after = sent();
    const calls = parseCalls(
      parseInfo(text(reply)),
      new Set(before.writes.keys()),
      (subcommand) => sequencer.table.byName(subcommand)?.write === false,
    );
    const now: CallCounts = {
      runId: source.runId,
      calls,
      sentBefore: before.writes,
      sentAfter: after.writes,
      inFlight,
      scripts: after.scripts,
    };
    const [earlier, last] = this.#counts;
    this.#counts = last === undefined ? [...this.#counts, now] : [last, now];
    // A script that was on its way at the last look may have run since.
    if (last === undefined || earlier.scripts !== last.scripts) return;
    const found = foreignWrites(last, now);
    this.#countedSince = found === null ? null : (this.#countedSince ?? new Date());
    if (found === null || sum(found) === 0) return;
    this.#passed = { at: new Date().toISOString(), writes: found };
    this.#passedWritesSeen += sum(found);
  }

  #forgetCounts(): void {
    this.#counts = [];
    this.#countedSince = null;
  }

  /** While keys are written twice: what one server removes by itself, the other keeps. */
  async watchLosses(): Promise<void> {
    const { router, servers } = this.context.sequencer;
    if (!router.workloads.some(({ keylessRule }) => keylessRule.mirrorsWrites)) return;
    await Promise.all(SIDES.filter((side) => servers[side].up).map((side) => soon(servers[side].losses.read())));
  }

  async #evicted(): Promise<number | null> {
    return soon(this.context.sequencer.servers.target.losses.read());
  }
}

/** Null where it fails, or a server that hangs does not answer. */
const soon = <T>(asked: Promise<T>): Promise<T | null> =>
  inTime(asked, ANSWER_MS, () => new Error('no answer')).catch(() => null);

/** What the names of the kit's own connections begin with. */
const KIT = 'shadow-proxy';

function seen({
  name,
  stage,
  percent,
  counters: { compared, explained, mismatches, inconclusive, unsupported },
}: Workload): Seen {
  return {
    name,
    stage,
    percent,
    compared,
    explained,
    mismatches,
    unsupported,
    inconclusive: [...inconclusive.values()].reduce((a, b) => a + b, 0),
  };
}

/**
 * What a server says of its users. Before Redis 6 there is only the password of `default`, which the kit's own must be.
 */
async function readUsers(server: Server): Promise<UserFacts> {
  const { commands, needsPassword, version, endpoint } = server;
  const { categories } = server.supported;
  const reply = await soon(server.ask('ACL', 'LIST'));
  if (reply?.items) return { lines: reply.items.map(text), commands, categories };
  const password = endpoint.credentials?.password;
  if (!/^[1-5]\./.test(version) || (needsPassword && password === undefined))
    return { lines: null, commands, categories };
  const login = needsPassword ? `#${createHash('sha256').update(password!).digest('hex')}` : 'nopass';
  return { lines: [`user default on ${login} ~* &* +@all`], commands, categories };
}
