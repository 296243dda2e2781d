/** Source against target: what the two servers say of themselves, side by side. */
import { dashboard, SERVER, SHARD } from './frame.js';
import { badFrom, lines, type Lines, rows, SIDES, tile, words, worthALook } from './panel.js';
import { perSecond, server } from './query.js';

const NAME = '{{side}} {{instance}}';

/** One line a server, in the colour of its side. */
const each = (asked: Omit<Lines, 'queries' | 'width' | 'colors'>, expression: string, width = 8) =>
  lines({ ...asked, width, colors: SIDES, queries: { [NAME]: expression } });

const BY = 'side, shard, instance';
const sum = (expression: string): string => `sum by (${BY}) (${expression})`;

/** KeyDB’s exporter has no `redis_config_*`, and names the limit `redis_memory_max_bytes`; 0 is no limit. */
const memoryShare = `${server('memory_used_bytes')} / (${server('memory_max_bytes')} > 0) or 0 * ${server('memory_used_bytes')}`;

export const servers = dashboard({
  name: 'source-target',
  description: 'Both servers by redis_exporter: is the target as fast as the source, and does it hold the same?',
  choices: [SHARD, SERVER],
  sections: [
    {
      title: 'Now',
      panels: [
        rows({
          title: 'Servers',
          description:
            'Each server as its exporter sees it: a target with fewer keys than the source it took over has not been copied whole, unless several sources share it.',
          width: 16,
          height: 7,
          rows: ['side', 'shard', 'instance'],
          columns: [
            {
              name: 'up',
              query: `max by (${BY}) (${server('up')})`,
              mappings: words({ 0: ['down', 'red'], 1: ['up', 'green'] }),
            },
            { name: 'keys', query: sum(server('db_keys')) },
            { name: 'memory', query: sum(server('memory_used_bytes')), unit: 'bytes', decimals: 1 },
            { name: 'clients', query: sum(server('connected_clients')) },
            { name: 'ops/s', query: sum(perSecond(server('commands_processed_total'))), decimals: 1 },
            { name: 'up for', query: `max by (${BY}) (${server('uptime_in_seconds')})`, unit: 's' },
          ],
        }),
        tile({
          title: 'Unreachable servers',
          description:
            'Servers that their exporter cannot query, so that the plots below have gaps. Check whether the server is down or the exporter’s login fails.',
          width: 4,
          height: 7,
          queries: { down: `sum(1 - ${server('up')})` },
          thresholds: badFrom(1),
        }),
        tile({
          title: 'Keys evicted in the last hour',
          description:
            'Eviction makes the servers differ, and the gates stay closed. Give the target more memory, or the keys a TTL.',
          width: 4,
          height: 7,
          decimals: 0,
          queries: { '{{side}}': `sum by (side) (increase(${server('evicted_keys_total')}[1h]))` },
          thresholds: badFrom(1),
        }),
      ],
    },
    {
      title: 'Work',
      panels: [
        each(
          {
            title: 'Commands',
            description:
              'In shadow the target runs what the source does, copies and verifications besides: much less means that the mirror is behind.',
            unit: 'ops',
          },
          sum(perSecond(server('commands_processed_total'))),
        ),
        each(
          {
            title: 'Time a command takes inside the server',
            description:
              'Mean over all commands, without the network: if the target is slower here, look at its slow log; if not, at the network.',
            unit: 's',
          },
          `${sum(perSecond(server('commands_duration_seconds_total')))} / clamp_min(${sum(perSecond(server('commands_total')))}, 1e-9)`,
        ),
        each(
          {
            title: 'CPU',
            description:
              'Cores that the server keeps busy: Redis ends at 1; KeyDB runs commands under one lock, so beyond about 1 more threads help little.',
            unit: 'none',
            decimals: 2,
            thresholds: worthALook(0.9),
          },
          `${sum(perSecond(server('cpu_user_seconds_total')))} + ${sum(perSecond(server('cpu_sys_seconds_total')))}`,
        ),
        lines({
          title: 'The busiest commands',
          description:
            'The five busiest of each side: one that only the source runs is not mirrored, and shadow-compare status lists it as unsupported.',
          width: 12,
          unit: 'ops',
          colors: SIDES,
          queries: {
            '{{side}} {{cmd}}': `topk by (side) (5, sum by (side, cmd) (${perSecond(server('commands_total'))}))`,
          },
        }),
        each(
          {
            title: 'Slow log',
            description:
              'Entries of the slow log: a rise on the target alone names commands that KeyDB runs worse, so read SLOWLOG GET there.',
          },
          server('slowlog_length'),
          12,
        ),
      ],
    },
    {
      title: 'Memory and keys',
      panels: [
        each(
          {
            title: 'Memory',
            description: 'Both hold the same keys, so a target that needs half as much again is worth an INFO memory.',
            unit: 'bytes',
          },
          sum(server('memory_used_bytes')),
        ),
        each(
          {
            title: 'Memory, share of the limit',
            description:
              'Beyond 90 % the server evicts or refuses writes soon: raise maxmemory before; 0 where there is no limit.',
            unit: 'percentunit',
            max: 1,
            thresholds: badFrom(0.9, 0.8),
          },
          memoryShare,
        ),
        each(
          {
            title: 'Memory beyond the keys',
            description:
              'What the process has and its keys do not need: if it grows by gigabytes, switch on activedefrag, or restart by a failover.',
            unit: 'bytes',
            thresholds: worthALook(4 * 2 ** 30),
          },
          `clamp_min(${server('memory_used_rss_bytes')} - ${server('memory_used_bytes')}, 0)`,
        ),
        each(
          {
            title: 'Keys',
            description:
              'Lines that come together are a backfill; lines that part afterwards are worth a shadow-compare verify.',
          },
          sum(server('db_keys')),
        ),
        each(
          {
            title: 'Keys with a TTL',
            description:
              'Share of the keys; KeyDB’s count may be a few per cent off, but sides that are far apart have lost TTLs, and shadow-compare verify names the keys.',
            unit: 'percentunit',
            max: 1,
          },
          `${sum(server('db_keys_expiring'))} / clamp_min(${sum(server('db_keys'))}, 1)`,
        ),
        each(
          {
            title: 'Keys expired and evicted',
            description: 'Both sides expire alike; whatever is evicted on one side alone is missing there.',
            unit: 'ops',
          },
          `${sum(perSecond(server('expired_keys_total')))} + ${sum(perSecond(server('evicted_keys_total')))}`,
        ),
        each(
          {
            title: 'Hits',
            description:
              'Share of reads that found their key: a target in shadow with fewer hits than the source lacks keys.',
            unit: 'percentunit',
            max: 1,
          },
          `${sum(perSecond(server('keyspace_hits_total')))} / clamp_min(${sum(perSecond(server('keyspace_hits_total')))} + ${sum(perSecond(server('keyspace_misses_total')))}, 1e-9)`,
        ),
        each(
          {
            title: 'Traffic in',
            description: 'Bytes that the server is sent: a backfill shows on the target.',
            unit: 'Bps',
          },
          sum(perSecond(server('net_input_bytes_total'))),
        ),
        each(
          {
            title: 'Traffic out',
            description: 'Bytes that it sends: near the host’s bandwidth, replies wait and the p99 rises.',
            unit: 'Bps',
          },
          sum(perSecond(server('net_output_bytes_total'))),
        ),
      ],
    },
    {
      title: 'Clients and replication',
      panels: [
        each(
          {
            title: 'Clients',
            description:
              'The proxy multiplexes, so a few are expected. Many on the source are clients that bypass the proxy.',
          },
          sum(server('connected_clients')),
        ),
        each(
          {
            title: 'Blocked clients',
            description: 'Clients in blocking commands: they belong to the authority’s side.',
          },
          sum(server('blocked_clients')),
        ),
        each(
          {
            title: 'Connections refused',
            description:
              'Refused since the server started because maxclients was reached. Raise it, or find the clients that do not close connections.',
            thresholds: badFrom(1),
          },
          sum(server('rejected_connections_total')),
        ),
        each(
          {
            title: 'Replicas',
            description: 'Connected replicas of each server: one fewer than you built is a server without its reserve.',
          },
          sum(server('connected_slaves')),
        ),
        each(
          {
            title: 'Full resyncs served',
            description:
              'Since the server started: each copied a whole data set, and between active replicas each may have lost writes.',
          },
          sum(server('replica_resyncs_full')),
        ),
        each(
          {
            title: 'Seconds since the last save',
            description: 'What a crash would cost a server that saves: if it grows without end, saves are off or fail.',
            unit: 's',
          },
          `time() - ${server('rdb_last_save_timestamp_seconds')}`,
        ),
      ],
    },
    {
      title: 'KeyDB internals',
      panels: [
        each(
          {
            title: 'Server threads',
            description: 'What KeyDB runs with: never more than the cores of the host, and a change needs a restart.',
          },
          server('server_threads_total'),
        ),
        each(
          {
            title: 'Long waits for the lock',
            description:
              'Waits for the one lock of all threads, in a second: if they rise with the load, fewer threads are faster.',
            unit: 'ops',
          },
          perSecond(server('long_lock_waits_total')),
        ),
        each(
          {
            title: 'Keys in memory of all keys',
            description: 'Less than 1 only with FLASH storage, which this kit advises against.',
            unit: 'percentunit',
            max: 1,
          },
          `${sum(server('db_keys_cached'))} / clamp_min(${sum(server('db_keys', 'side="target"'))}, 1)`,
        ),
      ],
    },
  ],
});
