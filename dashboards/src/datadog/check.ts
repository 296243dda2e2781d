/** The configuration of Datadog's OpenMetrics check: what is sent, and under which names. */
import { stringify } from 'yaml';
import { METRICS } from '../../../shadow-proxy/src/telemetry/metrics.js';
import { named, RENAMED } from './names.js';

/** Those of the process that say something of a proxy, as docs/metrics.md has them. */
const OF_PROCESS = [
  'process_cpu_seconds_total',
  'process_resident_memory_bytes',
  'process_open_fds',
  'process_max_fds',
  'nodejs_eventloop_lag_p99_seconds',
];

const HEAD = `# Datadog's OpenMetrics check for the proxy and the two exporters: /etc/datadog-agent/conf.d/openmetrics.d/conf.yaml.
# Made by npm run dashboards. Change endpoints and tags; one instance for each proxy, server and host.
`;

/** Metrics under the names that the dashboards and monitors ask for. */
const mapped = (metrics: readonly string[]): object[] =>
  [...new Set(metrics)].toSorted().map((metric) => {
    const { raw, name, kind } = named(metric);
    return { [raw]: { name, type: kind } };
  });

/** @param used metrics of exporters that dashboards and alerts ask for */
export function checkConfiguration(used: readonly string[]): string {
  const from = (prefix: RegExp): string[] => used.filter((metric) => prefix.test(metric));
  const instances = [
    {
      openmetrics_endpoint: 'http://127.0.0.1:9400/metrics',
      namespace: 'shadow_proxy',
      // Of the plan's admin.token, where it has one.
      // headers: { Authorization: 'Bearer …' }
      max_returned_metrics: 20_000,
      rename_labels: RENAMED,
      tags: ['instance:127.0.0.1:9400', 'shard:cache-0'],
      metrics: mapped([...METRICS.map(({ name }) => name), ...OF_PROCESS]),
    },
    {
      openmetrics_endpoint: 'http://127.0.0.1:9121/scrape?target=redis://10.0.0.11:6379',
      namespace: 'redis_exporter',
      max_returned_metrics: 20_000,
      tags: ['instance:10.0.0.11:6379', 'side:source', 'shard:cache-0'],
      metrics: mapped(from(/^redis_/)),
    },
    {
      openmetrics_endpoint: 'http://127.0.0.1:9100/metrics',
      namespace: 'node_exporter',
      tags: ['instance:10.0.0.11:9100'],
      metrics: mapped(from(/^node_/)),
    },
  ];
  return HEAD + stringify({ init_config: {}, instances }, { lineWidth: 0 });
}
