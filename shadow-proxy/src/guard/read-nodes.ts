/**
 * Reads a target and every node that replicates with it. Read-only.
 *
 *   target ─▶ INFO … (watch) … INFO ─▶ its masters and replicas ─▶ the same for each, until no new node is named
 */
import { COMMANDS } from '../command/table.generated.js';
import { monotonicMs } from '../io/clock.js';
import { sleep } from '../io/timers.js';
import { asking, callsOf, clockOf, type Asker } from '../upstream/asker.js';
import { clientField } from '../upstream/handshake.js';
import { isKeydb } from '../upstream/server.js';
import { formatAddress, parseAddress, type Endpoint } from '../plan/endpoint.js';
import type { Plan, ShardPlan } from '../plan/plan.js';
import { text, type Reply } from '../resp/decode.js';
import type { Cluster, NodeFacts, Peer, UnreadNode, Writer } from './node-facts.js';

/** Further nodes are not followed: no topology of KeyDB has as many. */
const MAX_NODES = 16;
const WRITES = new Set(
  COMMANDS.filter(([, , , flags]) => /\bwrite\b/.test(flags))
    .map(([name]) => name)
    .concat('eval', 'evalsha'),
);

/** @param watchMs how long the growth of the replication streams is watched */
export async function readClusters(shards: readonly ShardPlan[], watchMs: number): Promise<Cluster[]> {
  const clusters: { shards: Cluster['shards'][number][]; nodes: NodeFacts[]; unread: UnreadNode[] }[] = [];
  const found = await Promise.all(shards.map(async (shard) => ({ shard, ...(await readFrom(shard.target, watchMs)) })));
  for (const { shard, nodes, unread } of found) {
    const own = {
      name: shard.name,
      region: shard.region,
      runId: nodes[0]?.label === labelOf(shard.target) ? nodes[0].runId : null,
    };
    const same = clusters.find((cluster) =>
      cluster.nodes.some(({ runId }) => nodes.some((node) => node.runId === runId)),
    );
    if (same === undefined) {
      clusters.push({ shards: [own], nodes: [...nodes], unread: [...unread] });
      continue;
    }
    same.shards.push(own);
    same.nodes.push(...nodes.filter(({ runId }) => same.nodes.every((node) => node.runId !== runId)));
    same.unread.push(...unread.filter(({ label }) => same.unread.every((node) => node.label !== label)));
  }
  return clusters;
}

/** One shard of the plan for each target. */
export const targetsOf = ({ shards }: Plan): readonly ShardPlan[] =>
  shards.filter(({ target }, i) => shards.findIndex((other) => other.target.label === target.label) === i);

async function readFrom(target: Endpoint, watchMs: number): Promise<{ nodes: NodeFacts[]; unread: UnreadNode[] }> {
  const nodes: NodeFacts[] = [];
  const unread: UnreadNode[] = [];
  const asked = new Set<string>();
  let next: readonly Endpoint[] = [target];
  while (next.length > 0 && asked.size < MAX_NODES) {
    next.forEach((endpoint) => asked.add(labelOf(endpoint)));
    const read = await Promise.all(next.map((endpoint) => readNode(endpoint, watchMs)));
    for (const each of read) {
      if ('why' in each) unread.push(each);
      else if (nodes.every(({ runId }) => runId !== each.runId)) nodes.push(each);
    }
    const named = new Set(
      nodes.flatMap(({ masters, replicas }) => [...masters, ...replicas].map(({ address }) => address)),
    );
    next = [...named]
      .filter((address) => !asked.has(address))
      .map((address) => ({ ...target, ...parseAddress(address), kind: 'server', label: address }));
  }
  return { nodes, unread };
}

/** `host:port`, as nodes name each other. */
const labelOf = (endpoint: Endpoint): string => (endpoint.kind === 'server' ? formatAddress(endpoint) : endpoint.label);

async function readNode(endpoint: Endpoint, watchMs: number): Promise<NodeFacts | UnreadNode> {
  try {
    return await asking(endpoint, (asker) => read(asker, labelOf(endpoint), watchMs));
  } catch (problem) {
    return { label: labelOf(endpoint), why: (problem as Error).message.replace(`${endpoint.label}: `, '') };
  }
}

async function read(asker: Asker, label: string, watchMs: number): Promise<NodeFacts> {
  const before = await asker.info('replication');
  const since = monotonicMs();
  await sleep(watchMs);
  const info = await asker.info();
  const seconds = (monotonicMs() - since) / 1000;
  const number = (name: string): number => Number(info.get(name) ?? 0);
  const grown = number('master_repl_offset') - Number(before.get('master_repl_offset') ?? 0);
  return {
    label,
    runId: info.get('run_id') ?? label,
    version: info.get('redis_version') ?? 'unknown',
    isKeydb: isKeydb(info),
    role: info.get('role') ?? 'unknown',
    readOnly: info.get('slave_read_only') === '1',
    masters: mastersOf(info),
    replicas: replicasOf(info),
    backlogBytes: number('repl_backlog_size'),
    // A restarted or resynchronised process counts from 0.
    streamBytesPerSecond: Math.max(0, grown / seconds),
    syncFull: number('sync_full'),
    aof: info.get('aof_enabled') === '1',
    maxmemory: number('maxmemory'),
    policy: info.get('maxmemory_policy') ?? 'unknown',
    evicted: number('evicted_keys'),
    clock: await clockOf(asker),
    calls: callsOf(await asker.info('commandstats')),
    writers: writersOf(await asker.may('CLIENT', 'LIST')),
  };
}

/** Reads `master_host`, and with several masters `master_1_host` and so on. */
function mastersOf(info: ReadonlyMap<string, string>): Peer[] {
  const prefixes = [...info.keys()].flatMap((name) => /^(master(?:_\d+)?)_host$/.exec(name)?.[1] ?? []);
  return prefixes.map((prefix) => ({
    address: formatAddress({ host: info.get(`${prefix}_host`)!, port: Number(info.get(`${prefix}_port`)) }),
    up: info.get(`${prefix}_link_status`) === 'up',
  }));
}

function replicasOf(info: ReadonlyMap<string, string>): Peer[] {
  return [...info].flatMap(([name, value]) => {
    const [, host, port, state] = (/^slave\d+$/.test(name) && /ip=([^,]+),port=(\d+),state=(\w+)/.exec(value)) || [];
    return host === undefined ? [] : [{ address: formatAddress({ host, port: Number(port) }), up: state === 'online' }];
  });
}

/** Replicas and masters do not count as writers. */
function writersOf(reply: Reply | null): Writer[] | null {
  if (reply === null) return null;
  const lines = text(reply)
    .split('\n')
    .filter((line) => line !== '' && !/[SM]/.test(clientField(line, 'flags')));
  // For the kit's own connections, the shard is enough.
  const whoOf = (line: string): string =>
    clientField(line, 'name').replace(/^(shadow-proxy:[^:]+):.*/, '$1') ||
    clientField(line, 'addr').replace(/:\d+$/, '');
  return lines
    .map((line) => ({ who: whoOf(line), command: clientField(line, 'cmd') }))
    .filter(({ command }) => WRITES.has(command));
}
