/**
 * One running shard: how it starts, what it can be asked, and how it ends. `compose.ts` builds its parts.
 *
 * Room: shard: one shard, composed and run; the daemon that has several.
 * Called by: cli.
 * Calls: every room before it.
 */
import type { AutomationRequest, FenceAction, Note, WaitNote } from '../admin/shard-control.js';
import { monotonicMs } from '../io/clock.js';
import { sleep } from '../io/timers.js';
import type { Plan } from '../plan/plan.js';
import { authoritiesOf, SIDES, type Side } from '../route/stage.js';
import type { ConnectedClient } from '../session/clients.js';
import type { FenceNote } from '../stages/fence.js';
import type { FenceReport } from '../stages/fence-gate.js';
import { drained } from '../stages/flip.js';
import type { ShardEvidence } from '../stages/next-stage.js';
import {
  promote,
  rollback,
  type PromoteRequest,
  type Promotion,
  type Rollback,
  type RollbackRequest,
} from '../stages/promotion.js';
import type { StageChange, StageRequest } from '../stages/stage-change.js';
import type { JobChange } from '../copy/job/jobs.js';
import type { JobRequest } from '../storage/job-file.js';
import type { HistoryEvent } from '../storage/state.js';
import type { SeriesSnapshot } from '../telemetry/series.js';
import type { JobSnapshot, ScrapedShard, ShardSnapshot } from '../telemetry/snapshot.js';
import { compose, readSharesOf } from './compose.js';
import { FailoverWatch, startMirrors } from './connections.js';
import type { Shard, ShardOptions } from './contract.js';
import { changeStage, promotionContext } from './control.js';
import { admitFirst, beginCopies } from './first-start.js';
import type { Listener } from './listener.js';
import type { Parts } from './parts.js';
import { watchOf } from './scraped.js';
import { settledHere } from './sharing.js';

/** Maximum number of changes that are listed. */
const HISTORY_EVENTS = 500;
const COLLECT_MS = 5;

/**
 * Connects to both servers and listens.
 * @throws {Error} if an authority cannot be reached or the address is in use
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
  readonly #options: ShardOptions;
  /** For tests that inspect the parts. */
  readonly parts: Parts;
  readonly #failovers: FailoverWatch;
  #stopping = false;

  constructor(options: ShardOptions) {
    this.#options = options;
    this.parts = compose(options);
    this.#failovers = new FailoverWatch(this.parts);
  }

  get name(): string {
    return this.parts.name;
  }

  get port(): number {
    return this.parts.listener.port;
  }

  async start(): Promise<void> {
    const { state, unknownBecause, listenMs } = this.#options;
    const parts = this.parts;
    const { servers, router, keeper } = parts;
    const first = state.current.source === null && state.current.target === null;
    for (const side of SIDES) {
      const seen = state.current[side];
      if (seen !== null) servers[side].expect(seen, Date.parse(seen.seenAt));
    }
    for (const liveness of parts.liveness) void liveness.watch();
    for (const side of authoritiesOf(router.positions)) await servers[side].identify();
    if (router.workloads.some(({ isRewritten }) => isRewritten)) await parts.regional!.counters();
    if (first) await admitFirst(parts, this.#options);
    startMirrors(parts.sequencer);
    const certain = keeper.takeOver(unknownBecause);
    if (first) await beginCopies(parts, this.#options);
    await keeper.begun();
    await parts.collector.rememberUsers();
    await parts.fence.start();
    parts.journal.serve();
    for (const listener of listenersOf(parts)) await listener.open(monotonicMs() + listenMs);
    this.#failovers.watch();
    for (const watcher of [parts.clocks, parts.monitor, parts.logins, parts.slotWatch]) watcher.watch();
    parts.collector.start();
    parts.automatic.start();
    parts.jobs.begin(unknownBecause === null ? keeper.job() : null, certain);
  }

  ready(): boolean {
    const { listener, router, servers } = this.parts;
    if (!listener.wasOpened || this.#stopping) return false;
    return router.workloads.every((workload) => servers[workload.position.keylessRule.authority].up);
  }

  settled<T extends { readonly key: Buffer }>(db: number, keys: readonly T[]): Promise<readonly T[]> {
    return settledHere(this.parts, db, keys);
  }

  // ── what operators ask for ──────────────────────────────────────────────────────────────────────────────────

  startJob(request: JobRequest, by?: string): JobSnapshot {
    const begun = this.parts.jobs.start(request);
    const { kind, deletes, dryRun } = request;
    if (deletes > 0 && !dryRun)
      this.parts.keeper.noteDeletes({ event: 'deletes', kind, workloads: begun.workloads, keys: deletes, by }, deletes);
    return begun;
  }

  changeJob(change: JobChange): JobSnapshot {
    const job = this.parts.jobs.change(change);
    const { kind, workloads } = job;
    this.parts.keeper.noteJob({ event: 'job', kind, workloads, ...change });
    return job;
  }

  stopJob(): JobSnapshot {
    return this.parts.jobs.stop();
  }

  acceptAuthority(runIds: readonly string[] | null): Promise<Side[]> {
    return this.parts.trust.accept(runIds);
  }

  changeStage(request: StageRequest): Promise<StageChange> {
    return changeStage(this.parts, request);
  }

  promote(request: PromoteRequest): Promise<Promotion> {
    return promote(promotionContext(this.parts), request);
  }

  rollback(request: RollbackRequest): Promise<Rollback> {
    return rollback(promotionContext(this.parts), request);
  }

  fence(action: FenceAction, note: FenceNote = {}): Promise<FenceReport> {
    const { fence } = this.parts;
    return action === 'show' ? fence.report() : action === 'apply' ? fence.apply(note) : fence.lift(note);
  }

  async automate({ workload, state, reason, by }: AutomationRequest): Promise<void> {
    await this.parts.automatic[state](workload, reason, by ?? null);
  }

  note(note: Note | WaitNote): Promise<void> {
    return this.#options.state.update({}, { event: 'state' in note ? 'wait' : 'runbook', ...note });
  }

  // ── what it reports ───────────────────────────────────────────────────────────────────────────────────────────

  snapshot(): ShardSnapshot {
    return this.parts.snapshot();
  }

  scrape(): ScrapedShard {
    const { settings, collector } = this.parts;
    const { leases } = this.#options.ownership;
    return { ...this.snapshot(), watch: watchOf(settings.plan, settings.shard, leases, collector.glance()) };
  }

  async evidence(): Promise<ShardEvidence> {
    const { collector } = this.parts;
    const workloads = await collector.outlook();
    return {
      shard: this.name,
      workloads,
      latencies: collector.latencies(),
      mismatches: this.#options.ledger.tail(),
    };
  }

  series(since: number): SeriesSnapshot {
    return this.parts.series.since(since);
  }

  history(): Promise<readonly HistoryEvent[]> {
    return this.#options.state.history(HISTORY_EVENTS);
  }

  // ── how it ends ─────────────────────────────────────────────────────────────────────────────────────────────

  async drain(timeoutMs: number): Promise<boolean> {
    const { clients, sequencer, suspects, adjudicator, authorities, collector, regional, keeper, jobs } = this.parts;
    const { fieldTtls } = sequencer;
    this.#stopping = true;
    for (const listener of listenersOf(this.parts)) void listener.close();
    const deadline = monotonicMs() + timeoutMs;
    const sessions = (): ConnectedClient[] => [...clients.sessions.values()];
    for (const session of sessions()) session.end();
    const isQuiet = ({ inFlight, isWorking }: ConnectedClient): boolean => inFlight === 0 && !isWorking;
    const quiet = await until(() => sessions().every(isQuiet), deadline);
    const timedOut = sleep(Math.max(0, deadline - monotonicMs()), false, { ref: false });
    const unblocked = await until(() => clients.blocked.size === 0, deadline);
    const confirmed = await Promise.race([drained(sequencer).then(() => true), timedOut]);
    const repaired = await until(
      () => adjudicator.undecided === 0 && (suspects.size === 0 || authorities.frozen !== null),
      deadline,
    );
    await Promise.race([collector.watchLosses(), timedOut]);
    await Promise.race([regional?.leave().catch(() => undefined), timedOut]);
    jobs.close();
    await until(() => sequencer.isEmpty, deadline);
    const clean = quiet && unblocked && confirmed && repaired && suspects.size === 0 && sequencer.isEmpty;
    // A command of a client that has left may still send something: a write after this point would be in no journal.
    if (clean) sequencer.closeLanes();
    // The journal names keys whose fields expire: the next process needs them.
    if (!clean || (fieldTtls?.size ?? 0) > 0) return clean;
    try {
      await keeper.ended();
      return true;
    } catch (problem) {
      this.#options.logger.error(
        { shard: this.name, problem: (problem as Error).message },
        'all writes are confirmed, but that cannot be saved: the next start verifies the keys of the last ones',
      );
      return false;
    }
  }

  async stop(): Promise<void> {
    const { clients, sequencer, servers, sharing, ...parts } = this.parts;
    this.#stopping = true;
    for (const watcher of [
      this.#failovers,
      parts.clocks,
      parts.monitor,
      parts.logins,
      parts.slotWatch,
      ...parts.liveness,
    ])
      watcher.stop();
    for (const part of [
      parts.admitted,
      parts.jobs,
      parts.automatic,
      parts.fence,
      parts.collector,
      clients.counterWatch,
      parts.laneNames,
    ])
      part.close();
    clients.limits.end();
    parts.repairer.close();
    parts.fieldTtls?.close();
    for (const reader of [...Object.values(sharing.readers), ...sharing.neighbours]) reader.close();
    const closed = listenersOf(this.parts).map((listener) => listener.close());
    for (const session of clients.sessions.values()) session.destroy();
    sequencer.close();
    parts.regional?.close();
    await Promise.all([servers.source.end(), servers.target.end(), parts.replica?.lanes.close()]);
    parts.journal.close();
    await Promise.all(closed);
  }

  reload(plan: Plan): void {
    const { settings, mirrorLimits, clients, replica, servers, neighbourSources, router } = this.parts;
    settings.reload(plan);
    const { limits, shards } = plan;
    const { source, target, listen } = settings.shard;
    mirrorLimits.queueBytes = limits.queueBytes;
    clients.limits.reload(limits);
    for (const listener of listenersOf(this.parts)) listener.reload(listen);
    replica?.dialer.renew(source, limits.connectMs);
    servers.source.endpoint.renew(source, limits.connectMs);
    servers.target.endpoint.renew(target, limits.connectMs);
    for (const shard of shards) neighbourSources.get(shard.name)?.renew(shard.source, limits.connectMs);
    clients.readShares.reload(readSharesOf(router, plan));
  }
}

const listenersOf = ({ listener, replicaListener }: Parts): Listener[] =>
  replicaListener === null ? [listener] : [listener, replicaListener];

/** Whether the condition becomes true before the deadline, in ms of the monotonic clock. */
async function until(holds: () => boolean, deadline: number): Promise<boolean> {
  while (!holds()) {
    if (monotonicMs() > deadline) return false;
    await sleep(COLLECT_MS);
  }
  return true;
}
