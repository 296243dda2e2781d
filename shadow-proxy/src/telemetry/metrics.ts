/**
 * Metrics for Prometheus: one table, read from snapshots at each scrape. The hot path does not use it.
 *
 *   GET /metrics → scrape() of each shard → METRICS → text
 */
import { printableAll } from '../text/printable.js';
import {
  collectDefaultMetrics,
  Counter,
  Gauge,
  Registry,
  type MetricObjectWithValues,
  type MetricValue,
} from 'prom-client';
import {
  ACCESS_ERRORS,
  sum,
  type LatencySnapshot,
  type ReceiverSnapshot,
  type ScrapedShard,
  type ServerSnapshot,
  type WorkloadSnapshot,
  type WorkloadWatch,
} from './snapshot.js';
import { stageRule, STAGES } from '../route/stage.js';

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number];

export interface Metric {
  /** The name with its prefix; counters end in `_total`, and the name contains the unit. */
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly labels: readonly string[];
  readonly read: (scrape: Scrape) => readonly Sample[];
}

/** What one process reports at one moment. */
export interface Scrape {
  readonly shards: readonly ScrapedShard[];
  /** Names of the shards that the process takes over when another process ends. */
  readonly waiting: readonly string[];
  readonly receivers: readonly ReceiverSnapshot[];
}

/**
 * Maximum number of names that clients can choose (commands), so that no client can let the scrape grow without a
 * limit.
 */
const MAX_NAMES = 200;

const JOB_KINDS = ['backfill', 'verify', 'restore'] as const;
const JOB_ENDS = ['done', 'stopped', 'failed'] as const;
const ANSWERS = ['yes', 'no', 'unknown'] as const;
const SAFETIES = ['safe', 'unsafe', 'unknown'] as const;

export const METRICS: readonly Metric[] = [
  gauge('up', 'The server answers; absent where no workload uses it', ['server'], (s) =>
    bothServers(s, ({ up }) => (up === null ? null : Number(up))),
  ),
  gauge(
    'server_silent_seconds',
    'For how long a server that clients are sent to has not answered; 0 where it does',
    ['server'],
    (s) => bothServers(s, ({ silentMs }) => silentMs / 1000),
  ),
  counter(
    'server_evicted_keys_total',
    'Keys that the server has evicted while keys were written twice: the other server keeps them',
    ['server'],
    (s) => bothServers(s, ({ evicted }) => evicted),
  ),
  counter(
    'server_expired_keys_total',
    'Keys that the server has expired while keys were written twice',
    ['server'],
    (s) => bothServers(s, ({ expired }) => expired),
  ),
  counter(
    'silent_connections_total',
    'Connections that were closed because they brought nothing while the server answered on others',
    ['server'],
    (s) => bothServers(s, ({ silentConnections }) => silentConnections),
  ),
  gauge('server_full', 'The server has just refused a write because its memory is full', ['server'], (s) =>
    bothServers(s, ({ full }) => Number(full)),
  ),
  gauge('clock_ahead_seconds', "By how much the target's clock is ahead of the source's; 0 where they agree", [], (s) =>
    one(s.clockAheadMs / 1000),
  ),
  gauge(
    'server_info',
    'Always 1; names the server behind the endpoint',
    ['server', 'version', 'run_id', 'url'],
    serverInfo,
  ),
  {
    name: 'shadow_proxy_standby',
    type: 'gauge',
    help: 'The process waits for the end of the one that has the shard',
    labels: ['shard'],
    read: standby,
  },
  gauge('lease', 'The process holds the lease of the shard at the server', ['server'], (s) =>
    SIDES.map((server) => [{ server }, Number(s.watch.leases[server])]),
  ),
  gauge(
    'certificate_end_timestamp_seconds',
    'When the certificate ends: the listener’s, the servers’, and those that the proxy shows to them',
    ['certificate'],
    (s) =>
      byName(
        'certificate',
        mapValues(s.watch.certificates, (ms) => ms / 1000),
      ),
  ),
  gauge('clients', 'Connected clients', [], (s) => one(s.clients)),
  gauge('uptime_seconds', 'Time since the shard was started', [], (s) => one(s.uptimeMs / 1000)),
  counter('operations_total', 'Commands of clients that were answered', [], (s) => one(s.operations)),
  counter('compared_total', 'Pairs of replies that were compared', [], (s) => one(s.compared)),
  counter('matched_total', 'Pairs that were equal', [], (s) => one(s.matched)),
  counter('allowed_total', 'Pairs that differed as a rule allows', ['rule'], (s) => byName('rule', s.allowed)),
  counter('mismatches_total', 'Pairs that differed', ['kind'], (s) => byName('kind', s.mismatches)),
  counter('inconclusive_total', 'Inconclusive comparisons', ['reason'], (s) => byName('reason', s.inconclusive)),
  gauge('undecided', 'Differences about which the servers are being asked', [], (s) => one(s.undecided)),
  ofWorkload(
    'unsupported_total',
    'counter',
    'Commands and forms of commands that clients use and only one of the two servers supports',
    ['command'],
    (w) => byName('command', w.unsupported),
  ),
  counter('cross_workload_total', 'Commands over workloads of different authorities', ['outcome'], (s) =>
    byName('outcome', { split: s.crossWorkload.split, refused: s.crossWorkload.refused }),
  ),
  counter('other_shard_total', 'Commands on keys of another shard, where several shards share a target', [], (s) =>
    one(s.otherShardCommands),
  ),
  counter('replica_reads_total', 'Reads that a replica of the source answered, of workloads in off', [], (s) =>
    one(s.replicaReads),
  ),
  counter('unmirrored_errors_total', 'Commands that the authority refused, so that they were not repeated', [], (s) =>
    one(s.unmirroredErrors),
  ),
  gauge('client_bytes', 'Memory that clients take: unread replies, unfinished commands, queued transactions', [], (s) =>
    one(s.clientBytes),
  ),
  counter(
    'clients_closed_total',
    'Clients that were closed, or not taken, by the limit: output, memory, connections, login, idle; failure: the proxy failed at a command; header: their PROXY header',
    ['reason'],
    (s) => byName('reason', s.clientsClosed),
  ),
  counter(
    'reply_failures_total',
    'Replies of a server at which the proxy failed: it threw; what the command may have changed is suspect',
    [],
    (s) => one(s.replyFailures),
  ),
  counter(
    'client_errors_total',
    'Errors that clients got, by the server that answers them and by code; PROXY is what the proxy refuses',
    ['server', 'kind'],
    clientErrors,
  ),
  gauge(
    'latency_seconds',
    'Reply time of the server since the start, as the proxy sees it',
    ['server', 'quantile'],
    (s) => latencies(s.latency),
  ),
  gauge(
    'latency_minute_seconds',
    'Reply time of the server in the last minute, as the proxy sees it; 0 where nothing was answered',
    ['server', 'quantile'],
    (s) => latencies(s.watch.latency),
  ),
  gauge(
    'workload_latency_minute_seconds',
    "Reply time of the server to the workload's commands in the last minute; 0 where nothing was answered",
    ['workload', 'server', 'quantile'],
    (s) =>
      s.watch.workloads.flatMap(({ workload, latency }) =>
        latencies(latency).map(([labels, value]): Sample => [{ workload, ...labels }, value]),
      ),
  ),
  counter('latency_observations_total', 'Replies behind the latency', ['server'], (s) =>
    byName('server', { source: s.latency.source.count, target: s.latency.target.count }),
  ),
  gauge('mirror_connected', 'The mirror is connected', [], (s) => one(Number(s.mirror.connected))),
  gauge('mirror_lag_seconds', 'Age of the oldest effect that the mirror has not confirmed', [], (s) =>
    one(s.mirror.lagMs / 1000),
  ),
  gauge('mirror_queued_bytes', 'Effects that wait for the mirror', [], (s) => one(s.mirror.queuedBytes)),
  gauge('mirror_queue_limit_bytes', 'Beyond this the keys of effects that wait become suspects', [], (s) =>
    one(s.watch.queueLimitBytes),
  ),
  gauge('mirror_queued_effects', 'Effects that wait for the mirror', [], (s) => one(s.mirror.queuedEffects)),
  counter('mirror_dropped_total', 'Writes dropped on their way to the mirror; their keys are suspects', [], (s) =>
    one(s.mirror.dropped),
  ),
  gauge('reservations', 'Reservations of keys, which one command each has to itself, by their age', ['age'], (s) =>
    byName('age', s.reservations.byAge),
  ),
  gauge('oldest_reservation_seconds', 'Age of the oldest reservation of keys; 0 where there is none', [], (s) =>
    one(s.reservations.oldestMs / 1000),
  ),
  gauge(
    'longest_wait_for_keys_seconds',
    'For how long a command has waited for its keys, at most; 0 where none waits',
    [],
    (s) => one(s.reservations.longestWaitMs / 1000),
  ),
  gauge('suspects', 'Suspect keys', ['reason'], (s) => byName('reason', s.suspects.byReason)),
  gauge('field_ttl_keys', 'Keys that have fields with a TTL, which the mirror has without it', [], (s) =>
    one(s.fieldTtls?.keys ?? 0),
  ),
  counter('field_ttls_stripped_total', 'TTLs of fields that copies have left out: again with each copy', [], (s) =>
    one(s.fieldTtls?.stripped ?? 0),
  ),
  gauge(
    'bypassing_clients',
    'Clients that are connected to the source directly, bypassing the proxy; absent where the source does not list them',
    [],
    (s) => known(s.watch.bypassing),
  ),
  counter('bypassing_writes_total', 'Writes that the source has run at least and the proxy did not send', [], (s) =>
    one(s.watch.passedWrites),
  ),
  gauge(
    'bypassing_writes_known',
    '1 while such writes can be counted: only the source answers clients, and no scripts run',
    [],
    (s) => one(Number(s.watch.passedWritesKnown)),
  ),
  counter('flips_total', 'Changes of stage that were carried out', [], (s) => one(s.flips)),
  counter(
    'failovers_total',
    'Workloads whose clients were sent to the mirror because their authority was lost',
    [],
    (s) => one(s.failovers),
  ),
  gauge('frozen', 'Repairs and deletes are frozen; the status page says why', [], (s) =>
    one(Number(s.frozen !== null)),
  ),
  gauge('slots_moved', '1 while slots of the shard are not with its masters; the status page says which', [], (s) =>
    one(Number(s.movedSlots !== '')),
  ),
  gauge('job_running', '1 for the backfill or verification that is under way', ['kind'], (s) =>
    JOB_KINDS.map((kind) => [{ kind }, Number(s.job?.kind === kind && s.job.state === 'running')]),
  ),
  gauge('job_ended', '1 for how the last backfill or verification has ended', ['kind', 'how'], (s) =>
    JOB_KINDS.flatMap((kind) =>
      JOB_ENDS.map((how): Sample => [{ kind, how }, Number(s.job?.kind === kind && s.job.state === how)]),
    ),
  ),
  gauge('job_end_timestamp_seconds', 'When it has ended; absent while it is under way', [], (s) =>
    known(s.job?.endedAt ? Date.parse(s.job.endedAt) / 1000 : null),
  ),
  gauge('job_waiting', 'The backfill or verification waits; the status says why', [], (s) =>
    one(Number(s.job?.state === 'running' && s.job.reason !== null)),
  ),
  gauge('job_expected_keys', 'Keys that the keyspace scan reads, those of other workloads included', [], (s) =>
    one(s.job?.total ?? 0),
  ),
  gauge(
    'job_keys',
    'Keys of the running keyspace scan, or of the last one, by what was done to them',
    ['what'],
    ({ job }) =>
      byName('what', {
        scanned: job?.scanned ?? 0,
        seen: job?.seen ?? 0,
        copied: job?.copied ?? 0,
        verified: job?.verified ?? 0,
        repaired: job?.repaired ?? 0,
        overwritten: job?.overwritten ?? 0,
        deleted: job?.deleted ?? 0,
        kept_foreign: job?.keptForeign ?? 0,
        failed: job?.failed ?? 0,
        unsure: job?.unsure ?? 0,
      }),
  ),
  gauge('job_bytes', 'Bytes that it has copied or compared', [], (s) => one(s.job?.bytes ?? 0)),
  gauge('job_differences', 'Keys that it found to differ', ['kind'], (s) => byName('kind', s.job?.differences ?? {})),
  gauge('job_listed', 'Keys that it came by, and which are not its to judge', ['kind'], (s) =>
    byName('kind', s.job?.listed ?? {}),
  ),
  ofWorkload('workload_stage', 'gauge', '1 for the stage that the workload is in', ['stage'], (w) =>
    STAGES.map((stage) => [{ stage }, Number(w.stage === stage)]),
  ),
  ofWorkload('workload_authority_target', 'gauge', '1 where the target answers the clients', [], (w) =>
    one(Number(stageRule(w.stage).authority === 'target')),
  ),
  ofWorkload('workload_percent', 'gauge', 'Share of the hash slots that follow the stage', [], (w) => one(w.percent)),
  ofWatch('workload_stage_start_timestamp_seconds', 'When it entered its stage', [], (w) => one(w.since / 1000)),
  ofWatch('workload_verified_timestamp_seconds', 'When all its keys were verified last; absent where never', [], (w) =>
    known(w.verifiedAt && w.verifiedAt / 1000),
  ),
  ofWatch(
    'workload_gate',
    '1 for what the gate of its next stage says: yes is open; what only servers tell is up to a minute old',
    ['gate', 'answer'],
    (w) =>
      Object.entries(w.gates).flatMap(([gate, said]) =>
        ANSWERS.map((answer): Sample => [{ gate, answer }, Number(said === answer)]),
      ),
  ),
  gauge(
    'workload_guard',
    '1 for the verdict on its counters, on the target’s nodes as they are; absent where it does not count',
    ['workload', 'verdict'],
    (s) =>
      s.watch.guard.flatMap(({ workload, verdict: said }) =>
        SAFETIES.map((verdict): Sample => [{ workload, verdict }, Number(said === verdict)]),
      ),
  ),
  ofWorkload('workload_operations_total', 'counter', 'Commands on its keys', ['type'], (w) =>
    byName('type', { read: w.reads, write: w.writes, other: Math.max(0, w.operations - w.reads - w.writes) }),
  ),
  ofWorkload('workload_compared_total', 'counter', 'Pairs of replies by verdict', ['verdict'], (w) =>
    byName('verdict', {
      match: w.matched,
      allowed: w.allowed,
      mismatch: w.mismatches,
      inconclusive: w.inconclusive,
    }),
  ),
  ofWorkload(
    'workload_new_client_errors_total',
    'counter',
    'Errors that clients got from the target and the source would not have given; the status names the commands',
    [],
    (w) => one(sum(w.newErrors)),
  ),
  ofWorkload(
    'workload_second_writer_writes_total',
    'counter',
    'Writes in this region although the plan names another region as the only writer; with counterLayout per-region, samples that found a plain key on the target',
    [],
    (w) => one(w.secondWriterWrites),
  ),
  ofWorkload('workload_suspects', 'gauge', 'Suspect keys', [], (w) => one(w.suspects)),
  ofWorkload('workload_all_suspect', 'gauge', 'All its keys are suspect; the status page says why', [], (w) =>
    one(Number(w.suspect !== null)),
  ),
  ofWorkload(
    'workload_clean',
    'gauge',
    'The mirror has confirmed everything that was acknowledged, and no key is suspect',
    [],
    (w) => one(Number(w.clean)),
  ),
  ofReceiver('notifications_sent_total', 'counter', 'Notifications that the receiver accepted', [], (r) => one(r.sent)),
  ofReceiver(
    'notifications_dropped_total',
    'counter',
    'Notifications that were dropped: the queue was full, they were older than an hour, or the receiver refused them',
    ['reason'],
    (r) => byName('reason', r.dropped),
  ),
  ofReceiver(
    'notification_attempts_failed_total',
    'counter',
    'Attempts to send a notification that failed and are repeated',
    [],
    (r) => one(r.failedAttempts),
  ),
  ofReceiver('notifications_queued', 'gauge', 'Notifications that wait to be sent', [], (r) => one(r.queued)),
];

type ReadSamples = (shard: ScrapedShard) => readonly Sample[];

function gauge(name: string, help: string, labels: readonly string[], read: ReadSamples): Metric {
  return ofShard(name, 'gauge', help, labels, read);
}

function counter(name: string, help: string, labels: readonly string[], read: ReadSamples): Metric {
  return ofShard(name, 'counter', help, labels, read);
}

function ofShard(
  name: string,
  type: Metric['type'],
  help: string,
  labels: readonly string[],
  read: ReadSamples,
): Metric {
  return {
    name: `shadow_proxy_${name}`,
    type,
    help,
    labels: ['shard', ...labels],
    read: ({ shards }) =>
      shards.flatMap((shard) => read(shard).map(([own, value]): Sample => [{ shard: shard.name, ...own }, value])),
  };
}

function ofWorkload(
  name: string,
  type: Metric['type'],
  help: string,
  labels: readonly string[],
  read: (workload: WorkloadSnapshot) => readonly Sample[],
): Metric {
  return ofShard(name, type, help, ['workload', ...labels], ({ workloads }) =>
    workloads.flatMap((workload) =>
      read(workload).map(([own, value]): Sample => [{ workload: workload.name, ...own }, value]),
    ),
  );
}

function ofWatch(
  name: string,
  help: string,
  labels: readonly string[],
  read: (workload: WorkloadWatch) => readonly Sample[],
): Metric {
  return gauge(name, help, ['workload', ...labels], ({ watch }) =>
    watch.workloads.flatMap((each) =>
      read(each).map(([own, value]): Sample => [{ workload: each.workload, ...own }, value]),
    ),
  );
}

function ofReceiver(
  name: string,
  type: Metric['type'],
  help: string,
  labels: readonly string[],
  read: (receiver: ReceiverSnapshot) => readonly Sample[],
): Metric {
  return {
    name: `shadow_proxy_${name}`,
    type,
    help,
    labels: ['receiver', ...labels],
    read: ({ receivers }) =>
      receivers.flatMap((each) => read(each).map(([own, value]): Sample => [{ receiver: each.name, ...own }, value])),
  };
}

function standby({ shards, waiting }: Scrape): readonly Sample[] {
  return [...shards.map(({ name }): Sample => [{ shard: name }, 0]), ...waiting.map((shard): Sample => [{ shard }, 1])];
}

function one(value: number): readonly Sample[] {
  return [[{}, value]];
}

/** An unknown value has no sample. */
const known = (value: number | null): readonly Sample[] => (value === null ? [] : one(value));

const mapValues = (
  counts: Readonly<Record<string, number>>,
  change: (value: number) => number,
): Record<string, number> => Object.fromEntries(Object.entries(counts).map(([name, value]) => [name, change(value)]));

function byName(label: string, counts: Readonly<Record<string, number>>): readonly Sample[] {
  const all = Object.entries(counts);
  const samples = all.slice(0, MAX_NAMES).map(([name, value]): Sample => [{ [label]: name }, value]);
  if (all.length <= MAX_NAMES) return samples;
  return [...samples, [{ [label]: '(other)' }, sum(Object.fromEntries(all.slice(MAX_NAMES)))]];
}

const SIDES = ['source', 'target'] as const;

function bothServers(shard: ScrapedShard, value: (server: ServerSnapshot) => number | null): readonly Sample[] {
  return SIDES.flatMap((server) => known(value(shard[server])).map(([, figure]): Sample => [{ server }, figure]));
}

function clientErrors({ clientErrors: errors }: ScrapedShard): readonly Sample[] {
  // Present from the start: Prometheus only sees an increase from an earlier value.
  const none = Object.fromEntries(ACCESS_ERRORS.map((kind) => [kind, 0]));
  return SIDES.flatMap((server) =>
    byName('kind', { ...none, ...errors[server] }).map(([labels, value]): Sample => [{ server, ...labels }, value]),
  );
}

function serverInfo(shard: ScrapedShard): readonly Sample[] {
  return SIDES.map((server) => {
    const { version, runId, url } = shard[server];
    return [{ server, version: version ?? '', run_id: runId ?? '', url }, 1];
  });
}

function latencies(latency: ScrapedShard['latency']): readonly Sample[] {
  const quantiles: [string, keyof LatencySnapshot][] = [
    ['0.5', 'p50'],
    ['0.99', 'p99'],
    ['0.999', 'p999'],
  ];
  return SIDES.flatMap((server) =>
    quantiles.map(([quantile, key]): Sample => [{ server, quantile }, latency[server][key] / 1e6]),
  );
}

/** The text of `/metrics` for the result of `scrape`, and for the process itself (`process_*`, `nodejs_*`). */
export class Metrics {
  readonly #registry = new Registry();
  #scraped: Scrape = { shards: [], waiting: [], receivers: [] };

  constructor(private readonly scrape: () => Scrape) {
    collectDefaultMetrics({ register: this.#registry });
    for (const metric of METRICS) this.#register(metric);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async text(): Promise<string> {
    // Called once for each scrape, so that its figures belong together.
    this.#scraped = this.scrape();
    return this.#registry.metrics();
  }

  /** The same figures as objects, for other formats than text. */
  async samples(): Promise<readonly MetricObjectWithValues<MetricValue<string>>[]> {
    this.#scraped = this.scrape();
    return this.#registry.getMetricsAsJSON();
  }

  #register({ name, type, help, labels: labelNames, read }: Metric): void {
    const registers = [this.#registry];
    if (type === 'gauge') {
      const made: Gauge = new Gauge({
        name,
        help,
        labelNames,
        registers,
        collect: () => refill(read(this.#scraped), made, (l, v) => made.set(l, v)),
      });
    } else {
      const made: Counter = new Counter({
        name,
        help,
        labelNames,
        registers,
        collect: () => refill(read(this.#scraped), made, (l, v) => made.inc(l, v)),
      });
    }
  }
}

/** Labels appear and disappear with servers and commands, so each scrape begins empty. */
function refill(
  samples: readonly Sample[],
  metric: { reset(): void },
  put: (labels: Labels, value: number) => void,
): void {
  metric.reset();
  for (const [labels, value] of samples) put(printableAll(labels), value);
}
