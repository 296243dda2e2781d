/** What a server says of itself: INFO, CONFIG, COMMAND, ROLE, TIME, OBJECT, MEMORY, DEBUG. */
import { VERSIONS } from './clients.js';
import { commandReply } from './command-reply.js';
import { matches } from './glob.js';
import { lower } from './options.js';
import {
  array,
  arrayOf,
  bulk,
  bulks,
  EMPTY_ARRAY,
  integer,
  mapOf,
  nil,
  NO_SUCH_KEY,
  OK,
  Refusal,
  SYNTAX,
  verbatim,
} from './reply.js';
import type { SortedSet } from './sorted-set.js';
import type { Client, Command, Run, State } from './state.js';
import type { Stream } from './stream.js';
import { container } from './subcommand.js';
import type { Entry } from './values.js';
import { integerOf } from './numbers.js';

type Lines = readonly (readonly [string, string | number])[];

/** An estimate that never changes; half of it is the keys'. */
export const USED_BYTES = 1_000_000;

const commandStats = ({ engine, calls }: State): Lines => {
  const counts = new Map<string, number>();
  for (const [name, count] of calls) {
    const shown = engine === 'keydb' ? name.split('|', 1)[0] : name;
    counts.set(shown, (counts.get(shown) ?? 0) + count);
  }
  return [...counts].map(([name, count]) => [`cmdstat_${name}`, `calls=${count},usec=${count},usec_per_call=1.00`]);
};

const SECTIONS: Readonly<Record<string, (server: State) => Lines>> = {
  Server: (server) => [
    ['redis_version', VERSIONS[server.engine]],
    ['redis_git_sha1', '00000000'],
    ['redis_git_dirty', 0],
    ['redis_mode', server.config.get('cluster-enabled') === 'yes' ? 'cluster' : 'standalone'],
    ['os', 'simulated'],
    ['arch_bits', 64],
    ['multiplexing_api', 'epoll'],
    ['process_id', 1],
    ['run_id', server.runId],
    ['tcp_port', server.config.get('port')!],
    ['server_time_usec', server.now * 1000],
    ['uptime_in_seconds', Math.floor((server.now - server.startedAt) / 1000)],
    ['uptime_in_days', Math.floor((server.now - server.startedAt) / 86_400_000)],
    ['hz', 10],
    ['executable', `/usr/bin/${server.engine}-server`],
    ['config_file', ''],
  ],
  Clients: (server) => [
    ['connected_clients', server.clients.size],
    ['cluster_connections', 0],
    ['maxclients', server.config.get('maxclients')!],
    ['blocked_clients', [...server.clients.values()].filter(({ blocked }) => blocked !== null).length],
    ['tracking_clients', server.tracking.count],
    ...(server.engine === 'keydb' ? [['thread_0_clients', server.clients.size] as const] : []),
  ],
  Memory: (server) => [
    ['used_memory', USED_BYTES],
    ['used_memory_dataset', USED_BYTES / 2],
    ['used_memory_rss', 7_000_000],
    ['used_memory_peak', 1_000_000],
    ['total_system_memory', 2 ** 34],
    ['used_memory_lua', 32_768],
    ['maxmemory', server.config.get('maxmemory')!],
    ['maxmemory_policy', server.config.get('maxmemory-policy')!],
    ['mem_fragmentation_ratio', '1.00'],
    ['mem_allocator', server.engine === 'redis' ? 'jemalloc-5.3.0' : 'libc'],
  ],
  Persistence: ({ troubles }) => [
    ['loading', troubles.loading ? 1 : 0],
    ['rdb_changes_since_last_save', 0],
    ['rdb_bgsave_in_progress', 0],
    ['rdb_last_bgsave_status', troubles.cannotSave ? 'err' : 'ok'],
    ['aof_enabled', 0],
    ['aof_rewrite_in_progress', 0],
    ['aof_last_bgrewrite_status', 'ok'],
    ['aof_last_write_status', 'ok'],
  ],
  Stats: (server) => [
    ['total_connections_received', server.connections],
    ['total_commands_processed', server.commands],
    ['instantaneous_ops_per_sec', 0],
    ['total_net_input_bytes', 0],
    ['total_net_output_bytes', 0],
    ['instantaneous_input_kbps', '0.00'],
    ['instantaneous_output_kbps', '0.00'],
    ['rejected_connections', 0],
    ['sync_full', 0],
    ['sync_partial_ok', 0],
    ['sync_partial_err', 0],
    ['expired_keys', server.expired],
    ['evicted_keys', server.evicted],
    ['keyspace_hits', 0],
    ['keyspace_misses', 0],
    ['pubsub_channels', 0],
    ['pubsub_patterns', 0],
    ['total_error_replies', 0],
  ],
  Replication: (server) => [
    ['role', server.replicaOf === null ? 'master' : 'slave'],
    ...(server.replicaOf === null
      ? []
      : ([
          ['master_host', server.replicaOf.host],
          ['master_port', server.replicaOf.port],
          ['master_link_status', server.replicaOf.up ? 'up' : 'down'],
          ['master_last_io_seconds_ago', server.replicaOf.up ? 0 : -1],
          ['master_sync_in_progress', 0],
          ['slave_repl_offset', server.offset],
          ['slave_read_only', 1],
        ] as const)),
    ['connected_slaves', 0],
    ['master_failover_state', 'no-failover'],
    ['master_replid', server.replId],
    ['master_replid2', '0'.repeat(40)],
    ['master_repl_offset', server.offset],
    ['second_repl_offset', -1],
    ['repl_backlog_active', 0],
    ['repl_backlog_size', 1_048_576],
  ],
  CPU: (server) => [
    ['used_cpu_sys', '0.000000'],
    ['used_cpu_user', '0.000000'],
    ['used_cpu_sys_children', '0.000000'],
    ['used_cpu_user_children', '0.000000'],
    ...(server.engine === 'keydb'
      ? ([
          ['server_threads', 1],
          ['long_lock_waits', 0],
        ] as const)
      : []),
  ],
  Modules: () => [],
  Commandstats: commandStats,
  Errorstats: () => [],
  Latencystats: () => [],
  Cluster: (server) => [['cluster_enabled', server.config.get('cluster-enabled') === 'yes' ? 1 : 0]],
  Keyspace: (server) =>
    server.databases
      .filter(({ keys }) => keys.size > 0)
      .map(({ id, keys, expiring }) => [`db${id}`, `keys=${keys.size},expires=${expiring.size},avg_ttl=0`] as const),
};

const NAMED_SECTIONS = Object.entries(SECTIONS);

/** Sections that INFO shows only when they are asked for. */
const ON_DEMAND = ['commandstats', 'latencystats'];
const ALL = ['all', 'everything'];

const info: Run = ({ server, protocol }, args) => {
  if (server.engine === 'keydb' && args.length > 2) throw SYNTAX;
  const asked = args.length === 1 ? ['default'] : args.slice(1).map(lower);
  const all = asked.some((each) => ALL.includes(each));
  const isDefault = asked.includes('default');
  const isAsked = (name: string): boolean =>
    all || asked.includes(lower(name)) || (isDefault && !ON_DEMAND.includes(lower(name)));
  const shown = NAMED_SECTIONS.filter(([name]) => isAsked(name)).map(
    ([name, lines]) =>
      `# ${name}\r\n${lines(server)
        .map(([key, value]) => `${key}:${value}\r\n`)
        .join('')}`,
  );
  if (server.engine === 'keydb' && isAsked('keydb')) shown.push('# KeyDB\r\nmvcc_depth:0\r\n');
  return verbatim(shown.join('\r\n'), protocol);
};

/** Settings that both have, with their defaults. */
export const SETTINGS: Readonly<Record<string, string>> = {
  databases: '16',
  maxclients: '10000',
  maxmemory: '0',
  'maxmemory-policy': 'noeviction',
  'maxmemory-samples': '5',
  timeout: '0',
  'tcp-keepalive': '300',
  'lua-time-limit': '5000',
  'proto-max-bulk-len': '536870912',
  'client-query-buffer-limit': '1073741824',
  'client-output-buffer-limit': 'normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60',
  'notify-keyspace-events': '',
  'replica-read-only': 'yes',
  'replica-serve-stale-data': 'yes',
  'min-replicas-to-write': '0',
  appendonly: 'no',
  save: '',
  'cluster-enabled': 'no',
  'acl-pubsub-default': 'resetchannels',
  requirepass: '',
  'active-expire-effort': '1',
  'hash-max-ziplist-entries': '512',
  'hash-max-ziplist-value': '64',
  'hll-sparse-max-bytes': '3000',
  'stop-writes-on-bgsave-error': 'yes',
  'list-max-ziplist-size': '-2',
  'set-max-intset-entries': '512',
  'zset-max-ziplist-entries': '128',
  'zset-max-ziplist-value': '64',
  'stream-node-max-bytes': '4096',
  'stream-node-max-entries': '100',
  port: '6379',
};
/** Settings that only Redis 7 has. */
export const SETTINGS_OF_REDIS: Readonly<Record<string, string>> = {
  'busy-reply-threshold': '5000',
  'enable-debug-command': 'no',
  'enable-module-command': 'no',
  'enable-protected-configs': 'no',
  'hash-max-listpack-entries': '512',
  'list-max-listpack-size': '-2',
  'zset-max-listpack-entries': '128',
  'io-threads': '1',
  'maxmemory-clients': '0',
  'latency-tracking': 'yes',
};

/** What CONFIG GET does not show. */
const HIDDEN = new Set(['address']);

const EVENTS = 'notify-keyspace-events';
/** KeyDB knows no events of keys that are new. */
const EVENT_CLASSES = { redis: /^[Ag$lshzxeKEtmdn]*$/, keydb: /^[Ag$lshzxeKEtmd]*$/ };

const config = container({
  get({ server, protocol }, args) {
    const patterns = args.slice(2).map(lower);
    const found = [...server.config].filter(
      ([name]) => !HIDDEN.has(name) && patterns.some((pattern) => matches(pattern, name)),
    );
    return mapOf(found.length, protocol) + found.map(([name, value]) => bulk(name) + bulk(value)).join('');
  },
  set({ server }, args) {
    for (let i = 2; i < args.length; i += 2) {
      const name = lower(args[i]);
      if (i + 1 >= args.length || !server.config.has(name) || HIDDEN.has(name))
        throw new Refusal(
          server.engine === 'redis'
            ? `ERR Unknown option or number of arguments for CONFIG SET - '${args[i]}'`
            : `ERR Unsupported CONFIG parameter: ${args[i]}`,
        );
    }
    for (let i = 2; i < args.length; i += 2)
      if (lower(args[i]) === EVENTS && !EVENT_CLASSES[server.engine].test(args[i + 1]))
        throw new Refusal(
          server.engine === 'redis'
            ? `ERR CONFIG SET failed (possibly related to argument '${args[i]}') - Invalid event class character. Use 'Ag$lshzxeKEtmdn'.`
            : `ERR Invalid argument '${args[i + 1]}' for CONFIG SET '${args[i]}'`,
        );
    for (let i = 2; i < args.length; i += 2) server.config.set(lower(args[i]), args[i + 1]);
    return OK;
  },
  resetstat({ server }) {
    server.expired = server.evicted = server.commands = server.connections = 0;
    server.calls.clear();
    return OK;
  },
});

/** About as many bytes as the value takes. */
function memoryOf(key: string, { type, value }: Entry): number {
  const sum = (texts: Iterable<string>): number => {
    let size = 0;
    for (const text of texts) size += text.length + 16;
    return size;
  };
  const own = (): number => {
    switch (type) {
      case 'string':
        return (value as string).length;
      case 'list':
        return sum(value as string[]);
      case 'set':
        return sum(value as Set<string>);
      case 'hash':
        return sum((value as Map<string, string>).keys()) + sum((value as Map<string, string>).values());
      case 'zset':
        return sum((value as SortedSet).scores.keys()) * 2;
      case 'stream':
        return (value as Stream).entries.reduce((size, { fields }) => size + sum(fields) + 16, 0);
    }
  };
  return 56 + key.length + own();
}

/** The encoding that a server gives a value as it is now; it may keep another one from before. */
function encodingOf({ type, value }: Entry, { engine }: State): string {
  const packed = engine === 'redis' ? 'listpack' : 'ziplist';
  const isShort = (texts: Iterable<string>): boolean => [...texts].every((text) => text.length <= 64);
  switch (type) {
    case 'string': {
      const text = value as string;
      if (!Number.isNaN(integerOf(text))) return 'int';
      return text.length <= 44 ? 'embstr' : 'raw';
    }
    case 'list':
      return 'quicklist';
    case 'set': {
      const members = value as Set<string>;
      return members.size <= 512 && [...members].every((each) => !Number.isNaN(integerOf(each)))
        ? 'intset'
        : 'hashtable';
    }
    case 'hash': {
      const fields = value as Map<string, string>;
      return fields.size <= 512 && isShort(fields.keys()) && isShort(fields.values()) ? packed : 'hashtable';
    }
    case 'zset': {
      const { scores } = value as SortedSet;
      return scores.size <= 128 && isShort(scores.keys()) ? packed : 'skiplist';
    }
    case 'stream':
      return 'stream';
  }
}

/** Of an existing key; nil where there is none. */
const ofKey =
  (show: (entry: Entry, client: Client, key: string) => string): Run =>
  (client, args) => {
    const entry = client.database.get(args[2]);
    return entry === undefined ? nil(client.protocol) : show(entry, client, args[2]);
  };

const NO_DEBUG = new Refusal(
  'ERR DEBUG command not allowed. If the enable-debug-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.',
);

const role: Run = ({ server }) => {
  if (server.replicaOf === null) return arrayOf(3) + bulk('master') + integer(server.offset) + EMPTY_ARRAY;
  const { host, port, up } = server.replicaOf;
  return (
    arrayOf(5) +
    bulk('slave') +
    bulk(host) +
    integer(port) +
    bulk(up ? 'connected' : 'connect') +
    integer(up ? server.offset : -1)
  );
};

/** @param table the commands of the server */
export const infoCommands = (table: () => ReadonlyMap<string, Command>): Readonly<Record<string, Run>> => ({
  info,
  config,
  role,
  time: ({ server }) => {
    const now = server.surroundings.unixMs();
    return bulks([String(Math.floor(now / 1000)), String(Math.floor((now % 1000) * 1000))]);
  },
  lastsave: ({ server }) => integer(Math.floor(server.startedAt / 1000)),
  command: commandReply(table),
  object: container({
    encoding: ofKey((entry, { server }) => bulk(encodingOf(entry, server))),
    refcount: ofKey(() => integer(1)),
    idletime: ofKey(() => integer(0)),
    freq: ofKey(() => {
      throw new Refusal(
        'ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.',
      );
    }),
  }),
  memory: container({
    usage: ofKey((entry, { server }, key) => integer(memoryOf(key, entry) * server.memoryFactor)),
  }),
  debug({ server, database }, args) {
    if (server.engine === 'redis') throw NO_DEBUG;
    const word = lower(args[1]);
    if (word === 'object') {
      if (database.get(args[2]) === undefined) throw NO_SUCH_KEY;
      return '+Value at:0x0 refcount:1 encoding:raw serializedlength:1 lru:0 lru_seconds_idle:0\r\n';
    }
    if (['sleep', 'set-active-expire', 'change-repl-id'].includes(word)) return OK;
    throw new Refusal(`ERR Unknown subcommand or wrong number of arguments for '${args[1]}'. Try DEBUG HELP.`);
  },
  slowlog: container({ get: () => array([]), len: () => integer(0), reset: () => OK }),
  latency: container({ latest: () => array([]), reset: () => integer(0) }),
  module: container({ list: () => array([]) }),
  function: container({ list: () => array([]), flush: () => OK }),
});
