/** Who plays: the hosts, the inventory as terraform/README.md describes it, the plan, the passwords. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Host } from './hosts/hosts.js';

export const SHARDS = ['cache-0', 'cache-1'] as const;
export const SOURCES = ['redis-0', 'redis-1'] as const;
export const NODES = ['keydb-0-1', 'keydb-0-2', 'keydb-0-3'] as const;
/** Of each shard: the first one serves at first, the second one stands by. */
export const PROXIES_OF = {
  'cache-0': ['proxy-cache-0', 'proxy-cache-0-b'],
  'cache-1': ['proxy-cache-1', 'proxy-cache-1-b'],
} as const;
export const PROXIES = SHARDS.flatMap((shard) => [...PROXIES_OF[shard]]);
export const LOAD = 'monitoring';
export const HOSTS = [...SOURCES, ...NODES, ...PROXIES, LOAD];
/** As the plan names them; `default` has the rest. */
export const WORKLOADS = ['sessions', 'rate-limits', 'leaderboards', 'default'] as const;

export const PORTS = {
  keydb: 6390,
  writer: 6379,
  any: 6380,
  haproxy: 8404,
  admin: 9400,
  node_exporter: 9100,
  redis_exporter: 9121,
  prometheus: 9090,
  grafana: 3000,
  alertmanager: 9093,
  sentinel: 26379,
};
/** Of the first shard's proxies; the second's is the next one. */
const LISTEN = 6400;
/** On the load host: the port of each shard's name. */
export const NAMES = [6500, 6501] as const;
/** Of the receiver of alerts, on the monitoring host. */
export const RECEIVER_PORT = 9999;
const SECRETS = [
  'keydb-admin',
  'keydb-replication',
  'keydb-proxy',
  'keydb-exporter',
  'keydb-haproxy',
  'keydb-sentinel',
  'keydb-app',
  'proxy-admin-token',
  'grafana-admin',
  'source-proxy',
  'source-admin',
  'source-exporter',
] as const;
export type Secret = (typeof SECRETS)[number];

/** What the sources may hold; the target takes it over. */
export const SOURCE_MAXMEMORY = 96 * 1024 * 1024;
export const SOURCE_POLICY = 'volatile-lru';

export interface Ssh {
  readonly key: string;
  /** Each `-o` with what follows it. */
  readonly options: readonly string[];
}

export interface Scene {
  readonly inventory: string;
  readonly plan: string;
  readonly passwords: string;
  /** For ssh by name. */
  readonly sshConfig: string;
  readonly hosts: readonly string[];
  readonly secret: (name: Secret) => string;
}

export interface Programs {
  readonly keydb: string;
  readonly node: string;
  /** The kit as a .tar.gz. */
  readonly archive: string;
}

/** Writes inventory, plan and passwords into the rehearsal's directory. */
export function writeScene(directory: string, hosts: readonly Host[], ssh: Ssh, programs: Programs): Scene {
  const secrets = new Map<Secret, string>(SECRETS.map((name) => [name, randomBytes(18).toString('hex')]));
  const secret = (name: Secret): string => secrets.get(name)!;
  const put = (name: string, content: unknown): string => {
    const path = join(directory, name);
    mkdirSync(directory, { recursive: true });
    writeFileSync(path, stringify(content), { mode: 0o600 });
    return path;
  };
  const address = new Map(hosts.map((host) => [host.name, host.address]));
  return {
    inventory: put('inventory.yml', inventoryOf(address, ssh, programs)),
    plan: put('migration.yaml', planOf(address)),
    passwords: put('passwords.yml', {
      passwords: Object.fromEntries([...secrets].map(([name, value]) => [name, { use: value, accept: [value] }])),
    }),
    sshConfig: writeSshConfig(directory, hosts, ssh),
    hosts: hosts.map(({ name }) => name),
    secret,
  };
}

/** For ssh by name. @returns the path */
export function writeSshConfig(directory: string, hosts: readonly Host[], { key, options }: Ssh): string {
  const path = join(directory, 'ssh_config');
  const common = [
    'User root',
    `IdentityFile ${key}`,
    ...options.filter((option) => option !== '-o').map((option) => option.replace('=', ' ')),
  ];
  writeFileSync(
    path,
    hosts.map(({ name, address }) => [`Host ${name}`, `HostName ${address}`, ...common].join('\n  ')).join('\n') + '\n',
  );
  return path;
}

function inventoryOf(address: ReadonlyMap<string, string>, ssh: Ssh, programs: Programs): object {
  const host = (name: string, more: object = {}): [string, object] => [
    name,
    { ansible_host: address.get(name), infra_address: address.get(name), ...more },
  ];
  const node = (name: string, i: number): [string, object] =>
    host(name, { infra_target: 'keydb-0', infra_initial_role: i === 0 ? 'primary' : 'replica' });
  const proxy = (name: string, i: number): [string, object] =>
    host(name, {
      infra_shard: SHARDS[Math.floor(i / 2)],
      infra_listen_port: LISTEN + Math.floor(i / 2),
      infra_admin_port: PORTS.admin,
    });
  return {
    all: {
      vars: {
        ansible_user: 'root',
        ansible_ssh_private_key_file: ssh.key,
        ansible_ssh_common_args: ssh.options.join(' '),
        infra_migration: 'rehearsal',
        infra_ports: PORTS,
        infra_targets: {
          'keydb-0': {
            name: 'keydb-0',
            writer_port: PORTS.writer,
            any_port: PORTS.any,
            nodes: NODES,
            primary: NODES[0],
            pinned: false,
            shards: SHARDS,
          },
        },
        infra_sources: Object.fromEntries(
          SHARDS.map((shard, i) => [shard, { host: address.get(SOURCES[i]), port: 6379, tls: false, kind: 'redis' }]),
        ),
        // The hosts share this machine's kernel.
        host_tuning_sysctl_enabled: false,
        host_tuning_thp_enabled: false,
        // Two files a connection, and their limit of open files is this machine's.
        haproxy_maxconn: 4_000,
        keydb_install_method: 'binary',
        keydb_binary_src: programs.keydb,
        keydb_binary_checksum: sha256(programs.keydb),
        migration_kit_node_method: 'binary',
        migration_kit_node_src: programs.node,
        migration_kit_node_checksum: sha256(programs.node),
        migration_kit_archive: programs.archive,
        migration_kit_version: 'rehearsal',
        grafana_install_method: 'none',
        alertmanager_receivers: [
          { name: 'rehearsal', webhook_configs: [{ url: `http://127.0.0.1:${RECEIVER_PORT}/` }] },
        ],
        alertmanager_route: { group_wait: '1s' },
        source_exporter_user: 'exporter',
        source_maxmemory: SOURCE_MAXMEMORY,
        source_policy: SOURCE_POLICY,
      },
      children: {
        redis: { hosts: Object.fromEntries(SOURCES.map((name) => host(name))) },
        keydb: { hosts: Object.fromEntries(NODES.map(node)) },
        sentinel: { children: { keydb: {} } },
        haproxy: { children: { keydb: {}, shadow_proxy: {} } },
        shadow_proxy: { hosts: Object.fromEntries(PROXIES.map(proxy)) },
        monitoring: { hosts: Object.fromEntries([host(LOAD)]) },
        loadgen: { hosts: { [LOAD]: {} } },
      },
    },
  };
}

/**
 * The two shards share one target; each owns half of the hash slots. The gates are those of a minute, not of a week.
 */
function planOf(address: ReadonlyMap<string, string>): object {
  return {
    version: 1,
    name: 'rehearsal',
    shards: SHARDS.map((name, i) => ({
      name,
      listen: `redis://0.0.0.0:${LISTEN + i}`,
      source: {
        url: `redis://proxy@${address.get(SOURCES[i])}:6379`,
        passwordFile: '/etc/shadow-proxy/secrets/source-password',
      },
      // HAProxy on the proxy's host finds the node that takes writes.
      target: {
        url: `redis://proxy@127.0.0.1:${PORTS.writer}`,
        passwordFile: '/etc/shadow-proxy/secrets/target-password',
      },
      owns: { slots: i === 0 ? '0-8191' : '8192-16383' },
    })),
    workloads: [
      { name: 'sessions', keys: ['session:*'], class: 'read-mostly' },
      { name: 'rate-limits', keys: ['rl:*'], class: 'counter' },
      { name: 'leaderboards', keys: ['board:*'], class: 'leaderboard' },
    ],
    admin: { listen: `0.0.0.0:${PORTS.admin}`, tokenFile: '/etc/shadow-proxy/secrets/admin-token' },
    gates: {
      minCompared: 200,
      minMinutes: 0,
      maxMismatches: 0,
      maxP99Ratio: 20,
      maxVerifyHours: 1,
      drill: true,
      steps: false,
    },
    knownClients: ['redis_exporter'],
    knownUsers: ['admin', 'exporter'],
    state: '/var/lib/shadow-proxy',
  };
}

/**
 * The names of the shards on the load host, as a network load balancer has them: connections go to the proxy that
 * answers `/readyz` with 200, and are ended where it does so no more.
 */
export function namesOf(address: (name: string) => string): string {
  const shard = (name: (typeof SHARDS)[number], i: number): string => `
listen ${name}
  bind 127.0.0.1:${NAMES[i]}
  option httpchk GET /readyz
  default-server check inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${PROXIES_OF[name].map((proxy) => `  server ${proxy} ${address(proxy)}:${LISTEN + i} port ${PORTS.admin}`).join('\n')}
`;
  return `global
  maxconn 1000
defaults
  mode tcp
  timeout connect 2s
  timeout check 1s
  timeout client 1h
  timeout server 1h
${SHARDS.map(shard).join('')}`;
}

export const sha256 = (file: string): string =>
  `sha256:${createHash('sha256').update(readFileSync(file)).digest('hex')}`;
