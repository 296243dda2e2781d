/** What metrics of Prometheus are called in Datadog, as its OpenMetrics check sends them by the kit's configuration. */
import { METRICS } from '../../../shadow-proxy/src/telemetry/metrics.js';

export type Kind =
  | 'counter'
  | 'gauge'
  /** A moment: the check sends how long ago it was. */
  | 'time_elapsed';

export interface Named {
  /** As Prometheus has it; of a counter the check wants it without `_total`. */
  readonly raw: string;
  readonly namespace: string;
  /** Behind the namespace; a counter has `.count` in addition. */
  readonly name: string;
  readonly kind: Kind;
}

/** Counters of exporters that are not called so, or are not typed. */
const COUNTERS =
  /^(redis_replica_resyncs_full|redis_replica_partial_resync_(accepted|denied)|node_vmstat_\w+|node_netstat_\w+)$/;
/** A number of threads. */
const NO_COUNTERS = ['redis_server_threads_total'];
/** A moment of which Datadog could not compute the age: it has no `time()`. */
const MOMENT = /_timestamp_seconds$/;

const NAMESPACES: readonly (readonly [prefix: RegExp, namespace: string])[] = [
  [/^shadow_proxy_/, 'shadow_proxy'],
  [/^(?=process_|nodejs_)/, 'shadow_proxy'],
  [/^redis_/, 'redis_exporter'],
  [/^node_/, 'node_exporter'],
];

const OWN = new Map(METRICS.map(({ name, type }) => [name, type]));
const LABELS = new Map(METRICS.map(({ name, labels }) => [name, labels]));
/** Of the exporters', those that the kit gives to each of their targets. */
const TARGET_LABELS: Readonly<Record<string, readonly string[]>> = {
  shadow_proxy: ['shard', 'instance'],
  redis_exporter: ['side', 'shard', 'instance'],
  node_exporter: ['instance'],
};

/** By which the series of a metric are distinguished. */
export const labelsOf = (metric: string): readonly string[] =>
  LABELS.get(metric) ?? TARGET_LABELS[named(metric).namespace];

/** @throws {Error} where no exporter of the kit has it */
export function named(metric: string): Named {
  const [prefix, namespace] = NAMESPACES.find(([start]) => start.test(metric)) ?? [];
  if (prefix === undefined || namespace === undefined) throw new Error(`${metric} comes from no exporter of the kit`);
  const kind = kindOf(metric);
  const raw = kind === 'counter' ? metric.replace(/_total$/, '') : metric;
  const name = kind === 'time_elapsed' ? raw.replace(MOMENT, '_elapsed_seconds') : raw;
  return { raw, namespace, name: name.replace(prefix, ''), kind };
}

function kindOf(metric: string): Kind {
  if (MOMENT.test(metric)) return 'time_elapsed';
  const own = OWN.get(metric);
  if (own !== undefined) return own;
  const counts = (/_total$/.test(metric) && !NO_COUNTERS.includes(metric)) || COUNTERS.test(metric);
  return counts ? 'counter' : 'gauge';
}

/** Datadog has a meaning of its own for a tag of that name. */
export const RENAMED: Readonly<Record<string, string>> = { version: 'server_version' };

export const tagOf = (label: string): string => RENAMED[label] ?? label;

/** Whole, as queries have it. */
export const datadogName = (metric: string): string => {
  const { namespace, name, kind } = named(metric);
  return `${namespace}.${name}${kind === 'counter' ? '.count' : ''}`;
};
