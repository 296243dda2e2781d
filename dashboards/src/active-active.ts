/** Two nodes that both accept writes, and the counters that live there. */
import { GUARD_WORDS } from './overview.js';
import { dashboard, SERVER, SHARD, WORKLOAD } from './frame.js';
import { badFrom, lines, rows, states, tile, words, worthALook } from './panel.js';
import { guardNumber, maxBy, ofWorkload, perSecond, proxy, server, sumBy } from './query.js';

const TARGET = 'side="target"';
const BY = 'shard, instance';
const target = (name: string, labels = ''): string => server(name, [TARGET, labels].filter(Boolean).join(','));

/** 0 down, 1 up, 2 for a node that answers and replicates from nobody. */
const link = `${maxBy(BY, target('master_link_up'))} or on (shard, instance) 2 + 0 * (${maxBy(BY, target('up'))} == 1)`;

/** Increments by all names: what a node runs for its peer is counted there, too. */
const COUNTING = 'cmd=~"incr|incrby|incrbyfloat|decr|decrby|hincrby|hincrbyfloat|zincrby"';

export const activeActive = dashboard({
  name: 'active-active',
  description:
    'The links between the target’s nodes, who writes where, and whether the counters are safe. KeyDB has no conflict-free types: a counter needs one writer, or a layout without shared keys.',
  choices: [SHARD, WORKLOAD, SERVER],
  sections: [
    {
      title: 'Now',
      panels: [
        tile({
          title: 'Counters unsafe',
          description:
            'Workloads that lose increments at the next full resync: give each one writer, or the counters package, before you promote.',
          width: 4,
          queries: {
            workloads: `count(${ofWorkload('guard', 'verdict="unsafe"')} == 1) or 0 * sum(${proxy('uptime_seconds')})`,
          },
          thresholds: badFrom(1),
        }),
        tile({
          title: 'Verdict unknown',
          description:
            'A node could not be asked, or the proxy does not know all writers: shadow-compare guard says which.',
          width: 4,
          queries: {
            workloads: `count(${ofWorkload('guard', 'verdict="unknown"')} == 1) or 0 * sum(${proxy('uptime_seconds')})`,
          },
          thresholds: worthALook(1),
        }),
        tile({
          title: 'Links down',
          description:
            'Nodes that are disconnected from their peer. Its writes are kept only as long as its backlog lasts: repair the link before that.',
          width: 4,
          queries: { links: `count(${target('master_link_up')} == 0) or 0 * count(${target('up')})` },
          thresholds: badFrom(1),
        }),
        tile({
          title: 'Full resyncs, last day',
          description: 'Each may have lost one node’s increments: recount what was written meanwhile.',
          width: 4,
          decimals: 0,
          queries: { resyncs: `sum(increase(${target('replica_resyncs_full')}[1d]))` },
          thresholds: badFrom(1),
        }),
        tile({
          title: 'Writes of a second writer, last hour',
          description:
            'Writes in a region that is not the workload’s only writer. The plan decides whether they are refused or counted: find the client.',
          width: 4,
          decimals: 0,
          queries: { writes: `sum(increase(${ofWorkload('second_writer_writes_total')}[1h]))` },
          thresholds: badFrom(1),
        }),
        tile({
          title: 'Clock difference',
          description: 'A full resync takes the newer value by the nodes’ clocks: above 20 ms repair the time service.',
          width: 4,
          unit: 's',
          queries: { clocks: `max(abs(${proxy('clock_ahead_seconds')}))` },
          thresholds: worthALook(0.02),
        }),
      ],
    },
    {
      title: 'Links',
      panels: [
        states({
          title: 'Link of each node to its peer',
          description:
            'After a short cut the nodes do a partial resync. After a cut that outlasts the backlog they do a full one, which loses writes.',
          width: 12,
          height: 6,
          queries: { '{{shard}} {{instance}}': link },
          mappings: words({ 0: ['down', 'red'], 1: ['up', 'green'], 2: ['no peer', 'text'] }),
        }),
        lines({
          title: 'Replicas connected',
          description: 'Who replicates from each node: an active pair shows 1 on both.',
          width: 6,
          height: 6,
          queries: { '{{instance}}': maxBy(BY, target('connected_slaves')) },
        }),
        lines({
          title: 'Full resyncs served',
          description: 'Since the node started: a step is an incident, even if nobody noticed.',
          width: 6,
          height: 6,
          queries: { '{{instance}}': maxBy(BY, target('replica_resyncs_full')) },
        }),
        lines({
          title: 'Replication stream',
          description:
            'Bytes a second that a node produces for its peer: the backlog divided by it is how long a cut may last.',
          width: 8,
          unit: 'Bps',
          queries: { '{{instance}}': maxBy(BY, perSecond(target('master_repl_offset'))) },
        }),
        lines({
          title: 'Longest outage with partial resync',
          description:
            'Backlog by the stream of the last minutes, at most a day: shorter than your longest outage means a full resync, so raise repl-backlog-size.',
          width: 8,
          unit: 's',
          queries: {
            '{{instance}}': `clamp_max(${maxBy(BY, target('replication_backlog_bytes'))} / clamp_min(${maxBy(BY, `rate(${target('master_repl_offset')}[5m])`)}, 1), 86400)`,
          },
        }),
        lines({
          title: 'Partial resyncs',
          description: 'Accepted and refused since the node started: a refused one became a full one.',
          width: 8,
          queries: {
            'accepted {{instance}}': maxBy(BY, target('replica_partial_resync_accepted')),
            'refused {{instance}}': maxBy(BY, target('replica_partial_resync_denied')),
          },
        }),
      ],
    },
    {
      title: 'Writers',
      panels: [
        rows({
          title: 'Nodes',
          description:
            'Two nodes that accept writes are safe only for keys that one of them writes: see the counters below.',
          width: 12,
          height: 7,
          rows: ['shard', 'instance'],
          columns: [
            { name: 'clients', query: sumBy(BY, target('connected_clients')) },
            {
              name: 'counting/s',
              query: `${sumBy(BY, perSecond(target('commands_total', COUNTING)))} or 0 * ${maxBy(BY, target('up'))}`,
              decimals: 1,
            },
            { name: 'keys', query: sumBy(BY, target('db_keys')) },
            { name: 'evicted', query: sumBy(BY, target('evicted_keys_total')), thresholds: badFrom(1) },
          ],
        }),
        lines({
          title: 'Counting commands on each node',
          description:
            'INCR and its like; a node counts what its peer sent as well, so lines that are equal are healthy and lines that part are a cut.',
          width: 12,
          height: 7,
          unit: 'ops',
          queries: {
            '{{instance}}': `${sumBy(BY, perSecond(target('commands_total', COUNTING)))} or 0 * ${maxBy(BY, target('up'))}`,
          },
        }),
        lines({
          title: 'Writes of a second writer',
          description: 'By workload, since the proxy started. A client of another region is connected to this proxy.',
          width: 12,
          height: 7,
          queries: { '{{shard}} {{workload}}': maxBy('shard, workload', ofWorkload('second_writer_writes_total')) },
          thresholds: badFrom(1),
        }),
        lines({
          title: 'Keys evicted',
          description: 'Each node evicts by itself, and the other keeps the key: the nodes differ from then on.',
          width: 12,
          height: 7,
          queries: { '{{instance}}': maxBy(BY, target('evicted_keys_total')) },
          thresholds: badFrom(1),
        }),
      ],
    },
    {
      title: 'Counters',
      panels: [
        states({
          title: 'Verdicts of guard',
          description:
            'Of each workload’s counters on the nodes as they are: run shadow-compare guard for the reasons.',
          width: 24,
          height: 8,
          queries: { '{{shard}} {{workload}}': guardNumber },
          mappings: GUARD_WORDS,
        }),
      ],
    },
  ],
});
