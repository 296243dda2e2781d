/** docs/metrics.md: the metrics of `/metrics`, from the table that defines them (`npm run docs:metrics`). */
import { METRICS, type Metric } from '../telemetry/metrics.js';

const ABOUT = `# Metrics

The proxy serves these metrics at \`/metrics\` of its admin address (\`admin.listen\`). If the plan sets a token, send \`Authorization: Bearer\`. Made by
\`npm run docs:metrics\` from the table in \`shadow-proxy/src/telemetry/metrics.ts\`.

A scrape reads plain fields. It costs the data path nothing, and no server is asked while a scrape waits. Some values come from the servers: the gates
\`bypass\`, \`counters\` and \`evictions\`, the verdicts of guard, \`bypassing_clients\`, the expiry of a server's certificate. After a scrape the proxy asks for them,
at most once a minute, and reports them at the next scrape. They are \`unknown\` or absent before the first answer, and after five minutes without one.

Counters count since the start of the process. A metric with \`workload\` has a series for each workload of the plan and for \`default\`. If a label
has fixed values (\`stage\`, \`answer\`, \`verdict\`, \`how\`), each value has a series: 1 for the current value, 0 for the others. Of names that clients choose
(\`command\`), the first 200 are kept.
`;

const AFTER = `## Of the process

[prom-client's](https://github.com/siimon/prom-client#default-metrics), without a shard: \`process_*\` and \`nodejs_*\`. Those that tell of a proxy:
\`process_cpu_seconds_total\` (it has one thread: 1 is all), \`process_resident_memory_bytes\`, \`process_open_fds\` beside \`process_max_fds\`,
\`process_start_time_seconds\`, and \`nodejs_eventloop_lag_p99_seconds\`: what it adds to a client's reply.
`;

export const renderMetrics = (): string =>
  [ABOUT, '| metric | type | labels | |', '| --- | --- | --- | --- |', ...METRICS.map(row), '', AFTER].join('\n');

const row = ({ name, type, labels, help }: Metric): string =>
  `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help.replaceAll('|', '\\|')} |`;
