/** A Redis Cluster or a KeyDB cluster on this machine: masters, their replicas, and their slots. */
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeReply, isError, text, type Reply, errorText } from '../resp/decode.js';
import { encodeCommand, type Argument } from '../resp/encode.js';
import { FrameScanner } from '../resp/frame-scanner.js';
import { SLOTS } from '../route/slot.js';
import type { SlotRange } from '../route/owner.js';
import { connectTo, type Endpoint } from './ping.js';
import {
  startKeydb,
  startRedis,
  startTarget,
  type LocalServer,
  type ServerConfig,
  type ServerOptions,
} from './servers.js';

const READY_MS = 20_000;
/** How long a node may be silent before the others consider it failed, in ms: then a failover begins. */
const NODE_TIMEOUT_MS = 1_500;

const START = { redis: startRedis, keydb: startKeydb, target: startTarget };

export interface ClusterOptions {
  /** `target` is KeyDB, or its stand-in. */
  readonly program: 'redis' | 'keydb' | 'target';
  /** 1 to 16. A failover needs a majority of at least 3. */
  readonly masters: number;
  /** Replicas of each master. */
  readonly replicas?: number;
  /** Slots of each master; equal shares if absent. */
  readonly ranges?: readonly (readonly SlotRange[])[];
  /** The first node's port; the others follow. Free ports if absent. */
  readonly port?: number;
  readonly config?: ServerConfig;
  /** TLS for all nodes, also between each other. */
  readonly tls?: ServerOptions['tls'];
}

export interface LocalCluster {
  /**
   * Masters first, in the order of their ranges; then replicas: replica i belongs to master i modulo the number of
   * masters.
   */
  readonly nodes: readonly LocalServer[];
  readonly masters: readonly LocalServer[];
  /** `host:port,host:port` of every node, as in a plan. */
  readonly seeds: string;
  stop(): Promise<void>;
}

/** Splits the slots into equal, adjoining ranges. */
export const equalRanges = (parts: number): SlotRange[][] =>
  Array.from({ length: parts }, (_, i) => [
    [Math.floor((i * SLOTS) / parts), Math.floor(((i + 1) * SLOTS) / parts) - 1] as const,
  ]);

/** Resolves when every node sees that all slots are served. @throws {ServerMissing} {ServerFailed} {Error} */
export async function startCluster(options: ClusterOptions): Promise<LocalCluster> {
  const { program, masters: count, replicas = 0, ranges = equalRanges(count), tls } = options;
  const start = START[program];
  const config = {
    'cluster-enabled': 'yes',
    'cluster-config-file': 'nodes.conf',
    'cluster-node-timeout': NODE_TIMEOUT_MS,
    'cluster-replica-validity-factor': 0,
    ...(tls && { 'tls-cluster': 'yes', 'tls-replication': 'yes' }),
    ...options.config,
  };
  const nodes = await Promise.all(
    Array.from({ length: count * (1 + replicas) }, (_, i) =>
      start({ config, ...(tls && { tls }), ...(options.port === undefined ? {} : { port: options.port + i }) }),
    ),
  );
  const masters = nodes.slice(0, count);
  await Promise.all(
    masters.flatMap((node, i) =>
      // One by one, because KeyDB 6.3 has no ADDSLOTSRANGE.
      ranges[i].map(([first, last]) =>
        askNode(node, 'CLUSTER', 'ADDSLOTS', ...Array.from({ length: last - first + 1 }, (_, n) => first + n)),
      ),
    ),
  );
  for (const [i, node] of nodes.entries()) await askNode(node, 'CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
  for (const node of nodes.slice(1)) await askNode(node, 'CLUSTER', 'MEET', nodes[0].host, nodes[0].port);
  await until(async () => (await knownNodes(nodes)).every((known) => known === nodes.length));
  for (const [i, replica] of nodes.slice(count).entries()) {
    const id = text(await askNode(masters[i % count], 'CLUSTER', 'MYID'));
    await askNode(replica, 'CLUSTER', 'REPLICATE', id);
  }
  await until(async () => (await Promise.all(nodes.map(isOk))).every(Boolean));
  await until(async () => (await Promise.all(nodes.slice(count).map(isLinked))).every(Boolean));
  return {
    nodes,
    masters,
    seeds: nodes.map(({ host, port }) => `${host}:${port}`).join(','),
    stop: async () => void (await Promise.all(nodes.map((node) => node.stop()))),
  };
}

const knownNodes = (nodes: readonly LocalServer[]): Promise<number[]> =>
  Promise.all(
    nodes.map(
      async (node) =>
        text(await askNode(node, 'CLUSTER', 'NODES'))
          .trim()
          .split('\n').length,
    ),
  );

const isOk = async (node: LocalServer): Promise<boolean> =>
  text(await askNode(node, 'CLUSTER', 'INFO')).includes('cluster_state:ok');

const isLinked = async (replica: LocalServer): Promise<boolean> =>
  text(await askNode(replica, 'INFO', 'replication')).includes('master_link_status:up');

async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + READY_MS;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`the cluster is not ready after ${READY_MS} ms`);
    await sleep(50);
  }
}

/** Sends one command on a connection of its own, without a login. @throws {Error} with an error reply */
export async function askNode(node: Endpoint, ...args: Argument[]): Promise<Reply> {
  const reply = await askRaw(node, ...args);
  if (isError(reply))
    throw new Error(`${node.host}:${node.port} refuses ${args.slice(0, 2).join(' ')}: ${errorText(reply)}`);
  return reply;
}

/**
 * Sends one command as `askNode` does, but returns an error reply. @throws {Error} if the connection is refused or
 * closed
 */
export async function askRaw(node: Endpoint, ...args: Argument[]): Promise<Reply> {
  const socket = connectTo(node);
  try {
    socket.write(encodeCommand(args));
    const scanner = new FrameScanner();
    let received = Buffer.alloc(0);
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk as Buffer]);
      if (scanner.scan(received, 0, received.length) !== -1) return decodeReply(received).reply;
    }
    throw new Error(`${node.host}:${node.port} closed the connection`);
  } finally {
    socket.destroy();
  }
}

/**
 * Moves a slot with all its keys from one master to another, as `redis-cli --cluster reshard` does. @param between
 * called when the keys have moved and the slot has not
 */
export async function moveSlot(
  slot: number,
  from: LocalServer,
  to: LocalServer,
  masters: readonly LocalServer[],
  between: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const [fromId, toId] = await Promise.all(
    [from, to].map(async (node) => text(await askNode(node, 'CLUSTER', 'MYID'))),
  );
  await askNode(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId);
  await askNode(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId);
  for (;;) {
    const { items } = await askNode(from, 'CLUSTER', 'GETKEYSINSLOT', slot, 100);
    if (items!.length === 0) break;
    await askNode(from, 'MIGRATE', to.host, to.port, '', 0, 5000, 'KEYS', ...items!.map(({ data }) => data!));
  }
  await between();
  for (const node of [to, from, ...masters.filter((each) => each !== to && each !== from)])
    await askNode(node, 'CLUSTER', 'SETSLOT', slot, 'NODE', toId);
}
