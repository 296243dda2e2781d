/**
 * Builds the parts of a shard, each from the parts before it, which are named one by one: no field of a part is set
 * later. If one part must react to another, it listens to an event (`connect.ts`).
 */
import { join } from 'node:path';
import { allowedForms } from '../command/forms.js';
import { CommandTable } from '../command/table.js';
import { redactKey } from '../compare/redact.js';
import { isContested } from '../copy/foreign/shared-target.js';
import { Permissions } from '../copy/foreign/permissions.js';
import { Jobs } from '../copy/job/jobs.js';
import { Report } from '../copy/job/report.js';
import { Recheck } from '../copy/repair/recheck.js';
import { Repairer } from '../copy/repair/repairer.js';
import { WritesSinceRestart } from '../copy/repair/writes-since-restart.js';
import { nativeFor } from '../front/native.js';
import { frontThreads } from '../front/threads.js';
import { Clocks } from '../health/clocks.js';
import { Failover } from '../health/failover.js';
import { Logins } from '../health/logins.js';
import { SlotWatch } from '../health/slot-watch.js';
import { HealthMonitor } from '../health/monitor.js';
import { Trust } from '../health/trust.js';
import { monotonicMs } from '../io/clock.js';
import { Turn } from '../io/turn.js';
import { Authorities } from '../pipeline/authorities.js';
import { Sequencer, type SequencerOptions } from '../pipeline/sequencer.js';
import { neighboursOf, sharersOf } from '../plan/normalise.js';
import { workloadIn, type Plan } from '../plan/plan.js';
import { Regional } from '../regional/regional.js';
import { Owners } from '../route/owner.js';
import { Router, type Workload } from '../route/router.js';
import { SIDES, type Side, type StagePoint } from '../route/stage.js';
import { Scripts } from '../script/catalog.js';
import { Failures } from '../pipeline/failures.js';
import type { Suspicion } from '../pipeline/suspicion.js';
import { Clients } from '../session/clients.js';
import { ClusterFace } from '../session/cluster-face.js';
import { LaneNames } from '../session/lane-names.js';
import { ReadShares } from '../session/read-shares.js';
import { Admitted } from '../stages/admitted.js';
import { Automatic } from '../stages/automatic.js';
import { guardShard, type ObservedCounting } from '../stages/counters-gate.js';
import { EvidenceCollector, type EvidenceContext } from '../stages/evidence-collector.js';
import { Fence } from '../stages/fence.js';
import { drained, Flipper } from '../stages/flip.js';
import { Hooks } from '../stages/hooks.js';
import { promote, rollback } from '../stages/promotion.js';
import { Journal } from '../storage/journal.js';
import { Adjudicator, type Finding } from '../suspects/adjudicator.js';
import { Expiry } from '../suspects/expiry.js';
import { FieldTtlTracker } from '../suspects/field-ttls.js';
import { DeferredPairs } from '../suspects/deferred.js';
import { Suspects } from '../suspects/suspects.js';
import { SuspectTracker } from '../suspects/tracker.js';
import { SuspectWorkloads } from '../suspects/workloads.js';
import { Series } from '../telemetry/series.js';
import type { ShardSnapshot } from '../telemetry/snapshot.js';
import { Counters } from '../telemetry/workload-counters.js';
import { Dialer } from '../upstream/dialer.js';
import { Liveness, type WatchedServer } from '../upstream/liveness.js';
import { Server } from '../upstream/server.js';
import { changeStage, promotionContext } from './control.js';
import { connect } from './connect.js';
import { abandon, hindrance, twinRefusal } from './connections.js';
import type { ShardOptions } from './contract.js';
import { Events, serverEvents } from './events.js';
import { factsOf } from './snapshot-facts.js';
import { Listener } from './listener.js';
import type { Core, Health, OrderParts, Parts, Staging, ClientParts } from './parts.js';
import { replicaOf } from './replica.js';
import { Settings } from './settings.js';
import { sharingOf } from './sharing.js';
import { snapshotOf } from './snapshot.js';
import { StateKeeper } from './state-keeper.js';

/** How long effects wait, in ms, so that several share one write to the mirror. */
const MIRROR_BATCH_MS = 2;

/** Connects to nothing yet. @throws {Error} if the state's directory cannot be written */
export function compose(options: ShardOptions): Parts {
  const core = composeCore(options);
  const orderParts = composeOrderParts(options, core);
  const clientParts = composeClientParts(options, { ...core, ...orderParts });
  const health = composeHealth({ ...core, ...orderParts, ...clientParts });
  const staging = composeStaging({ ...core, ...orderParts, ...clientParts, ...health });
  const parts: Parts = { ...core, ...orderParts, ...clientParts, ...health, ...staging };
  connect(parts);
  return parts;
}

function composeCore({ plan, shard, state, ownership, hashKey, logger }: ShardOptions): Core {
  const settings = new Settings(shard.name, plan);
  const neighbours = shard.sharedTarget ? neighboursOf(plan, shard) : [];
  const others = neighbours.map(({ owns }) => owns);
  return {
    name: shard.name,
    since: monotonicMs(),
    settings,
    events: new Events(),
    logger: logger.child({ shard: shard.name }),
    state,
    directory: join(plan.state, shard.name),
    author: { process: ownership.process, before: state.previous?.journal ?? null },
    redact: (key) => (settings.plan.ledger.redact ? redactKey(key, hashKey) : key.toString()),
    neighbourSources: new Map(neighbours.map(({ name, source }) => [name, new Dialer(source, plan.limits.connectMs)])),
    owners:
      shard.slots !== null
        ? new Owners({ slots: shard.slots }, [], true)
        : shard.sharedTarget
          ? new Owners(shard.owns, others)
          : null,
  };
}

function composeOrderParts(options: ShardOptions, core: Core): OrderParts {
  const { plan, left, ownership } = options;
  const { events, directory, author } = core;
  const journal: Journal = new Journal({
    directory,
    id: author.process,
    before: author.before,
    left,
    settle: () => drained(sequencer),
    carry: () => void events.emit('carry'),
    failed: ({ message }) =>
      core.logger.error(
        { problem: message },
        'the journal cannot be written: if the process crashes now, every key is a suspect at the next start',
      ),
  });
  const turn = new Turn(() => journal.flush());
  const server = (side: Side): Server =>
    new Server(
      side,
      ownership.leases[side],
      turn,
      serverEvents(events, ({ side: asked }, runId) => twinRefusal(servers, asked, runId)),
    );
  const servers: OrderParts['servers'] = { source: server('source'), target: server('target') };
  const router = routerOf(options, core);
  const counters = new Counters(router);
  const permissions = new Permissions(router);
  const suspects = new Suspects(
    router,
    (suspect) => void events.emit('suspect', suspect),
    (suspect) => void events.emit('suspectCleared', suspect),
  );
  const deferred = new DeferredPairs(suspects);
  const suspectWorkloads = new SuspectWorkloads(router, suspects.workloads, journal);
  const authorities = new Authorities(router, () => void events.emit('unfrozen'));
  const mirrorLimits = { queueBytes: plan.limits.queueBytes, batchMs: MIRROR_BATCH_MS };
  const { adjudicator, sequencer, fieldTtls } = sequencerOf(options, core, {
    servers,
    router,
    counters,
    journal,
    turn,
    limits: mirrorLimits,
    suspects,
    deferred,
    authorities,
  });
  const keeper = new StateKeeper({
    directory,
    author,
    state: core.state,
    redact: core.redact,
    logger: core.logger,
    left,
    journal,
    sequencer,
    suspects,
    suspectWorkloads,
    authorities,
  });
  return {
    turn,
    servers,
    router,
    counters,
    permissions,
    journal,
    suspects,
    deferred,
    suspectWorkloads,
    authorities,
    adjudicator,
    sequencer,
    fieldTtls,
    mirrorLimits,
    keeper,
  };
}

/** The shares of reads that are compared, by the workload's index. */
export const readSharesOf = ({ workloads }: Router, plan: Plan): number[] =>
  workloads.map(({ name }) => workloadIn(plan, name).shadowReads);

/** Workloads begin in the stages of the durable state; new ones in the plan's. */
function routerOf({ plan, shard, state }: ShardOptions, { owners }: Core): Router {
  const point = (name: string, first: StagePoint): StagePoint => state.current.workloads[name] ?? first;
  return new Router(
    plan.workloads.map((workload) => ({ ...workload, ...point(workload.name, workload) })),
    { ...point('default', plan.default), writer: plan.default.writer },
    owners?.ofOtherShards ?? null,
    shard.region,
    plan.topology.secondWriter,
  );
}

/** It does not change: all shards of a thread share it. */
let commandTable: CommandTable | undefined;

/** The parts that compare replies and suspect keys, as one order of operations has them. */
interface SuspicionParts extends Suspicion {
  readonly verdicts: Adjudicator;
  readonly fieldTtls: FieldTtlTracker | null;
}

/**
 * The sequencer and the parts that suspect keys call each other: it makes them, as its last step
 * (`SequencerOptions.suspicion`).
 */
function sequencerOf(
  { plan, ledger, observer }: ShardOptions,
  { events, logger, settings }: Core,
  by: Omit<
    SequencerOptions,
    'table' | 'scripts' | 'suspicion' | 'mirrorChanged' | 'mirrorDatabase' | 'journal' | 'observer' | 'failures'
  > &
    Pick<OrderParts, 'journal' | 'suspects' | 'deferred'>,
): Pick<OrderParts, 'adjudicator' | 'sequencer' | 'fieldTtls'> {
  const { router, suspects, deferred, journal } = by;
  const found = (finding: Finding): void =>
    ledger.record({
      ...finding,
      pattern: finding.key && (router.named(finding.workload)?.patternOf(finding.key) ?? null),
    });
  const sequencer = new Sequencer({
    servers: by.servers,
    router,
    counters: by.counters,
    journal,
    authorities: by.authorities,
    limits: by.limits,
    turn: by.turn,
    table: (commandTable ??= new CommandTable()),
    scripts: new Scripts(),
    failures: new Failures((problem, { spec, workload }) =>
      logger.error({ workload: workload.name, command: spec?.name, err: problem }, 'the proxy failed at a reply'),
    ),
    suspicion: (sequencer): SuspicionParts => {
      const closed = (): void => void events.emit('connectionClosed');
      const allows = ({ name }: Workload, form: string): boolean =>
        allowedForms(workloadIn(settings.plan, name).gates.allowUnsupported).has(form.toLowerCase());
      const adjudicator = new Adjudicator(sequencer, found, closed, deferred, allows, observer);
      return {
        verdicts: adjudicator,
        suspects: new SuspectTracker({ sequencer, suspects, adjudicator, journal }),
        expiry: new Expiry(sequencer),
        fieldTtls: plan.hashFieldTtl === 'strip' ? new FieldTtlTracker(sequencer, journal) : null,
      };
    },
    mirrorChanged: (side, up) => void events.emit('mirror', side, up),
    mirrorDatabase: (side, db, why) => void events.emit('database', side, db, why),
    observer,
  });
  const { verdicts: adjudicator, fieldTtls } = sequencer.suspicion;
  return { adjudicator, sequencer, fieldTtls };
}

function composeClientParts({ plan, shard, shards, shardCount }: ShardOptions, parts: Core & OrderParts): ClientParts {
  const { name, settings, owners, router, servers, sequencer, adjudicator, keeper } = parts;
  const regional = router.rewrites
    ? new Regional({ server: servers.target, region: shard.region!, shard: name })
    : null;
  const { native, problem: missing } = nativeFor(plan.sockets, shard.listen);
  if (missing !== null)
    parts.logger.warn(
      { problem: missing },
      "the native module cannot be loaded: Node reads and writes the clients' sockets, which takes more CPU time",
    );
  const { threads, problem } = frontThreads(plan.threads, shardCount, native !== null);
  if (problem !== null) parts.logger.warn({ problem }, 'fewer front threads than the plan says');
  const face = ClusterFace.of(plan, shard.name);
  const replica = replicaOf(plan, shard, sequencer);
  const { sharedTarget, sharedSource } = shard;
  const clients = new Clients({
    sequencer,
    sharedTarget,
    sharedSource,
    owned: sharedTarget ? (owners?.mine ?? null) : null,
    foreignKeys: parts.permissions,
    bounds: plan.limits,
    readShares: new ReadShares(readSharesOf(router, plan)),
    regional,
    face,
    replicas: replica?.lanes ?? null,
    onFailure: (problem, { id, host }) =>
      parts.logger.error(
        { client: id, address: host, err: problem },
        'a client is closed: the proxy failed at its command',
      ),
  });
  const limits = (): Plan['limits'] => settings.plan.limits;
  const sharing = sharingOf({
    name,
    sequencer,
    suspects: parts.suspects,
    turn: parts.turn,
    owners,
    neighbourSources: parts.neighbourSources,
    shards,
  });
  const laneNames = new LaneNames(clients.sessions, sequencer.lanes, () => settings.plan.laneNames === 'clients');
  return {
    regional,
    clients,
    laneNames,
    listener: new Listener(shard.listen, clients, limits, threads, native, parts.logger),
    replica,
    replicaListener:
      shard.replica && new Listener(shard.replica.listen, clients, limits, 0, native, parts.logger, true),
    sharing,
    repairer: new Repairer({
      permissions: parts.permissions,
      sequencer,
      suspects: parts.suspects,
      authorities: parts.authorities,
      logger: parts.logger,
      owners,
      recheck: new Recheck({
        sequencer,
        suspects: parts.suspects,
        deferred: parts.deferred,
        adjudicator,
        large: settings.large,
      }),
      allClosed: () => adjudicator.allClosed(),
      large: settings.large,
      isContested: owners && ((db, key) => isContested(sharing, db, key)),
    }),
    admitted: new Admitted({
      owners,
      readers: sharing.readers,
      neighbours: sharing.neighbours,
      settled: sharing.settled,
      knowsAll: sharing.knowsAll,
      sequencer,
      permissions: parts.permissions,
      redact: parts.redact,
      state: () => keeper.current,
      persist: (patch) => keeper.update(patch),
      logger: parts.logger,
    }),
  };
}

function composeHealth(parts: Core & OrderParts & ClientParts): Health {
  const { settings, events, logger, servers, sequencer, suspects, keeper, listener, replica } = parts;
  const silenced = { source: 0, target: 0 };
  const silence = {
    silentMs: () => settings.plan.limits.silentMs,
    closed: ({ side }: WatchedServer, { clientId }: { readonly clientId: number }, silentMs: number) => {
      silenced[side]++;
      logger.warn(
        { server: side, clientId, silentMs: Math.round(silentMs) },
        'a connection does not answer, but the server answers on another one: closed it; the keys of its unanswered writes are suspects',
      );
    },
  };
  return {
    silenced,
    liveness: [...SIDES.map((side) => servers[side]), ...(replica === null ? [] : [replica])].map(
      (watched) => new Liveness(watched, silence),
    ),
    logins: new Logins(parts),
    slotWatch: new SlotWatch({
      servers,
      authorities: parts.authorities,
      suspectWorkloads: parts.suspectWorkloads,
      logger,
      face: parts.clients.face,
    }),
    clocks: new Clocks({
      servers,
      authorities: parts.authorities,
      suspectWorkloads: parts.suspectWorkloads,
      logger,
      mirrors: sequencer.mirrors,
      knownAheadMs: keeper.current.targetAheadMs,
      changed: () => keeper.rememberSoon(),
    }),
    monitor: new HealthMonitor({
      servers,
      authorities: parts.authorities,
      mayBeBusy: (side) => sequencer.mayBeBusy(side, monotonicMs()),
      repliedAt: (side) => sequencer.repliedAt(side),
      downAfterMs: () => settings.plan.limits.downAfterMs,
      down: (side) => void events.emit('down', side),
    }),
    trust: new Trust({
      servers,
      authorities: parts.authorities,
      suspectWorkloads: parts.suspectWorkloads,
      logger,
      onAuthorityChange: settings.plan.onAuthorityChange,
      remember: (event) => keeper.remember(event),
      distrusted: (side) => void events.emit('distrusted', side),
      // Before the first client comes, another process may have served clients.
      watch: (side) => (listener.wasOpened ? new WritesSinceRestart(sequencer, suspects, side) : null),
    }),
  };
}

function composeStaging(parts: Core & OrderParts & ClientParts & Health): Staging {
  const { settings, events, directory, author, clients, keeper, admitted, monitor } = parts;
  const { shard } = settings;
  const jobs = jobsOf(parts);
  const hooks = new Hooks(
    () => shard.name,
    () => settings.plan.hooks,
    parts.logger,
  );
  const { servers, sequencer } = parts;
  const fence = new Fence({
    source: servers.source,
    lanes: sequencer.lanes.source,
    router: parts.router,
    plan: () => settings.plan,
    sharedSource: shard.sharedSource,
    state: () => keeper.current,
    persist: (patch, event) => keeper.update(patch, event),
    resend: async () => {
      await Promise.all([...clients.blocked].map((each) => each.interrupt()));
      clients.waitingRoom.open();
    },
    patienceMs: () => settings.plan.limits.flipMs,
    logger: parts.logger,
  });
  const flipper = new Flipper(
    {
      sequencer,
      clients,
      suspects: parts.suspects,
      suspectWorkloads: parts.suspectWorkloads,
      adjudicator: parts.adjudicator,
      authorities: parts.authorities,
      redact: parts.redact,
      sharedTarget: shard.sharedTarget && shard.owns === null,
      target: (workload) => admitted.facts(workload),
      persist: (...change) => keeper.moved(change, admitted),
      moved: () => void events.emit('moved'),
      isDown: (side) => monitor.isDown(side),
      abandon: (side) => abandon(parts, side),
      counters: () => parts.regional!.counters(),
      hooks,
    },
    () => settings.plan.limits.flipMs,
  );
  const collector = new EvidenceCollector(evidenceContext(parts, jobs, fence), directory, author);
  const failover = new Failover({
    router: parts.router,
    suspects: parts.suspects,
    servers,
    redact: parts.redact,
    logger: parts.logger,
    policy: ({ name }) => workloadIn(settings.plan, name).failover,
    unsupported: (workload, side) => collector.unsupportedBy(workload, side),
    usersWithoutSource: () => collector.usersWithoutSource(),
    change: (request) => changeStage({ collector, flipper, fence }, request),
    open: () => clients.waitingRoom.open(),
  });
  const context = promotionContext({ keeper, collector, flipper, fence });
  const automatic = new Automatic({
    router: parts.router,
    counters: parts.counters,
    logger: parts.logger,
    collector,
    plan: () => settings.plan,
    holds: () => keeper.current.holds,
    hold: (...change) => keeper.hold(...change),
    promote: (request) => promote(context, request),
    rollback: (request) => rollback(context, request),
  });
  const snapshot = (): ShardSnapshot =>
    snapshotOf(
      factsOf({
        name: parts.name,
        since: parts.since,
        settings,
        clients,
        silenced: parts.silenced,
        slotWatch: parts.slotWatch,
        sequencer,
        suspects: parts.suspects,
        adjudicator: parts.adjudicator,
        deferred: parts.deferred,
        monitor,
        authorities: parts.authorities,
        jobs,
        flipper,
        fence,
        failover,
        automatic,
      }),
    );
  return { jobs, flipper, fence, series: new Series(), collector, automatic, failover, snapshot };
}

function jobsOf(parts: Core & OrderParts & ClientParts & Health): Jobs {
  const { settings, authorities, keeper, trust, admitted, sharing, directory, redact, logger } = parts;
  const path = join(directory, 'differences.jsonl');
  const report = new Report(
    path,
    () => settings.plan.ledger,
    redact,
    ({ message: problem }) =>
      logger.error({ path, problem }, 'the list of differences cannot be written: the job counts the rest of them'),
  );
  return new Jobs(
    {
      readers: sharing.readers,
      neighbours: sharing.neighbours,
      settled: sharing.settled,
      knowsAll: sharing.knowsAll,
      suspectWorkloads: parts.suspectWorkloads,
      logger,
      sequencer: parts.sequencer,
      suspects: parts.suspects,
      permissions: parts.permissions,
      owners: parts.owners,
      redact,
      large: settings.large,
      planned: () => settings.plan.jobs,
      hindrance: (copies) => hindrance(parts, copies),
      awaySlots: () => parts.slotWatch.checkAway(),
      settle: () => drained(parts.sequencer),
      since: () => trust.since,
      repairs: () => authorities.frozen === null,
      proven: (workloads) => {
        admitted.proven(workloads).catch((problem: Error) => {
          logger.error(
            { problem: problem.message },
            'cannot save that the target holds only keys written by the proxy: after a restart this is unknown',
          );
        });
      },
      cleared: () => parts.journal.rotate(),
      begun: () => report.begin(),
      report: (key, difference) => report.add(key, difference),
      reportKey: (key) => report.list(key),
      save: (record) => keeper.saveJob(record),
    },
    authorities,
  );
}

const observedCounting = ({
  router,
  clients: { counterWatch, counts },
}: OrderParts & ClientParts): ObservedCounting => ({
  counting: counterWatch.snapshot(),
  workloads: router.workloads.map((workload) => ({
    name: workload.name,
    secondWriterWrites: counts.secondWriterWrites(workload),
    byCommand: counts.byCommand(workload),
  })),
});

function evidenceContext(parts: Core & OrderParts & ClientParts, jobs: Jobs, fence: Fence): EvidenceContext {
  const { settings, events, suspects, adjudicator, servers, clients, admitted } = parts;
  return {
    logger: parts.logger,
    sequencer: parts.sequencer,
    authorities: parts.authorities,
    plan: () => settings.plan,
    suspicion: (workload) => suspects.workloads.of(workload),
    suspects: (workload) => suspects.count(workload) + (adjudicator.asksOf(workload) ? 1 : 0),
    job: () => jobs.snapshot(),
    sampled: (latest, workloads) => void events.emit('sampled', latest, workloads),
    target: (workload, counted) => (counted ? admitted.facts(workload) : admitted.glance(workload)),
    counters: () => guardShard(settings.plan, settings.shard, observedCounting(parts)),
    seenUsers: () => clients.logins.names(),
    refusedLogins: () => clients.logins.refusedBy(servers.target, servers.source.up ? servers.source : null),
    sent: () => clients.counts.writes(),
    shard: () => parts.name,
    sharing: () => sharersOf(settings.plan, settings.shard),
    acceptedReleases: () => parts.state.current.acceptedReleases,
    slot: settings.shard.slots?.[0][0] ?? null,
    sharedSource: settings.shard.sharedSource,
    fence: () => (settings.plan.fence === 'off' ? Promise.resolve(null) : fence.report()),
  };
}
