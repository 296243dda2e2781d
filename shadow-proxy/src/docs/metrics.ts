/** docs/metrics.md: what `/metrics` tells, from the table that it is made of (`npm run docs:metrics`). */
import { METRICS, type Metric } from '../telemetry/metrics.js';

const ABOUT = `# Metrics

What the proxy tells at \`/metrics\` of its admin address (\`admin.listen\`; where the plan sets a token, with \`Authorization: Bearer\`). Made by
\`npm run docs:metrics\` from the table in \`shadow-proxy/src/telemetry/metrics.ts\`.

Everything is read from plain fields when somebody scrapes; the data path knows nothing of it, and no server is asked while a scrape waits. What only
the servers can tell (the gates \`bypass\`, \`counters\` and \`evictions\`, the guard's verdicts, \`bypassing_clients\`, the end of a server's
certificate) is asked for at most once a minute, while somebody scrapes, and told at the next scrape: a minute old at most, \`unknown\` or absent before
the first answer and after five minutes without one.

Counters count since the start of the process. A metric with \`workload\` has a series for each workload of the plan and for \`default\`. Where a label
has fixed values (\`stage\`, \`answer\`, \`verdict\`, \`how\`), each has a series, 1 for what holds and 0 for the others. Names that clients make up
(\`command\`) are cut off at 200.
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
