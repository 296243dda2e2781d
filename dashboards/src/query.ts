/**
 * The words of which the dashboards' expressions are made. `$shard`, `$workload` and `$instance` are Grafana's
 * variables.
 */
import { STAGES } from '../../shadow-proxy/src/route/stage.js';

/** A metric of the proxy, by its name without the prefix. */
export const proxy = (name: string, labels = ''): string => series(`shadow_proxy_${name}`, 'shard=~"$shard"', labels);

/** A metric that the proxy has for each workload. */
export const ofWorkload = (name: string, labels = ''): string =>
  series(`shadow_proxy_workload_${name}`, 'shard=~"$shard"', 'workload=~"$workload"', labels);

/** A metric of the proxies' processes. */
export const processOf = (name: string): string => series(name, 'job="shadow-proxy"', 'instance=~"$instance"');

/** A metric of redis_exporter, which runs beside sources and targets alike. */
export const server = (name: string, labels = ''): string =>
  series(`redis_${name}`, 'job="redis-exporter"', 'shard=~"$shard"', 'instance=~"$instance"', labels);

/** A metric of node_exporter. */
export const host = (name: string, labels = ''): string =>
  series(`node_${name}`, 'job="node"', 'instance=~"$instance"', labels);

const series = (name: string, ...labels: readonly string[]): string => `${name}{${labels.filter(Boolean).join(',')}}`;

/** What a counter grows by in a second. */
export const perSecond = (counter: string): string => `rate(${counter}[$__rate_interval])`;

export const sumBy = (labels: string, expression: string): string => `sum by (${labels}) (${expression})`;
export const maxBy = (labels: string, expression: string): string => `max by (${labels}) (${expression})`;

/** The expression, and 0 for each shard whose proxy is seen and has no such thing, under the name `none`. */
export const orNone = (label: string, expression: string): string =>
  `${expression} or on (shard) label_replace(0 * ${maxBy('shard', proxy('uptime_seconds'))}, "${label}", "none", "shard", ".*")`;

/** 0 (off) to 5 (complete) for each workload of each shard. */
export const stageNumber = maxBy(
  'shard, workload',
  STAGES.map((stage, at) => `${at} * (${ofWorkload('stage', `stage="${stage}"`)} == 1)`).join(' or '),
);

/** Reply time in the last minute. */
export const quantile = (q: string): string =>
  maxBy('server, shard', proxy('latency_minute_seconds', `quantile="${q}"`));

const p99 = (side: string): string =>
  `clamp_min(${maxBy('shard', proxy('latency_minute_seconds', `server="${side}",quantile="0.99"`))}, 0.001)`;

/** The target's p99 by the source's in the last minute; below 1 ms both count as 1 ms, as the gate `latency` has it. */
export const p99Ratio = `${p99('target')} / ${p99('source')}`;

/**
 * 1 where a rollback would lose nothing: there is a way back, no key is suspect, and the mirror is less behind than a
 * flip waits by default (flipMs). `workload_clean` would flap: with traffic, something is always on its way.
 */
export const wayBack = `(${maxBy('shard, workload', ofWorkload('suspects'))} == bool 0) * (${maxBy('shard, workload', ofWorkload('all_suspect'))} == bool 0) * (${maxBy('shard, workload', ofWorkload('stage', 'stage="complete"'))} == bool 0) * on (shard) group_left () (${maxBy('shard', proxy('mirror_lag_seconds'))} < bool 5)`;

/** How many gates of each workload's next stage are not open; 0 behind the last stage. */
export const gatesClosed = `${sumBy('shard, workload', ofWorkload('gate', 'answer!="yes"'))} or on (shard, workload) 0 * ${maxBy('shard, workload', ofWorkload('clean'))}`;

/** 0 no, 1 unknown, 2 yes, for each gate. */
export const gateNumber = sumBy(
  'shard, workload, gate',
  `2 * ${ofWorkload('gate', 'answer="yes"')} or ${ofWorkload('gate', 'answer="unknown"')}`,
);

/** 0 unsafe, 1 unknown, 2 safe for the counters of each workload, 3 where it does not count. */
export const guardNumber = `${sumBy('shard, workload', `2 * ${ofWorkload('guard', 'verdict="safe"')} or ${ofWorkload('guard', 'verdict="unknown"')}`)} or on (shard, workload) 3 + 0 * ${maxBy('shard, workload', ofWorkload('clean'))}`;
