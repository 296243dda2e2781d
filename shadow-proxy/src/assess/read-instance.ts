/**
 * Reads the facts of a live server. Read-only, with small questions.
 *
 *   connect ─▶ INFO ─▶ (watch: a PING every 20 ms) ─▶ INFO ─▶ the rest, question by question
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { latencyHistogram } from '../io/latency.js';
import { isNewer, newerServer, rdbVersionOf, type NewerServer } from '../command/known.js';
import { softwareOf } from '../command/release.js';
import { commandCategories, supportedCommands } from '../command/table.js';
import { usersSeenBy } from '../command/users.js';
import { COMMANDS } from '../command/table.generated.js';
import { asking, callsOf, clockOf, type Asker } from '../upstream/asker.js';
import { clientField } from '../upstream/handshake.js';
import { modeOf } from '../upstream/identity.js';
import { isKeydb } from '../upstream/server.js';
import { NEEDED, notNamed } from '../upstream/server-commands.js';
import { cacheEndpointOf } from '../plan/elasticache.js';
import { formatAddress, type Endpoint } from '../plan/endpoint.js';
import { text, type Reply } from '../resp/decode.js';
import { recognise, UNAVAILABLE } from './about-elasticache.js';
import type { ConnectedClient, InstanceFacts, LargestKey, Replica } from './instance-facts.js';
import { sampleKeys, type SampledKey } from './key-sample.js';

const PING_MS = 20;
/** Number of keys that are sampled to find large ones. */
const SAMPLED_KEYS = 2_000;
const LARGEST = 5;
/** Results of TYPE for a key that KeyDB can hold, or that has disappeared meanwhile. */
const TYPES = /^(string|list|set|zset|hash|stream|none)$/;

export interface ReadOptions {
  /** How long CPU, commands and round trips are watched. */
  readonly watchMs: number;
  /** How many keys are sampled. */
  readonly keys?: number;
  /** Called for each sampled key. */
  readonly seeKey?: (key: SampledKey) => void;
}
const READS = new Set(COMMANDS.filter(([, , , flags]) => /\breadonly\b/.test(flags)).map(([name]) => name));

/** @throws {AskError} if the server cannot be reached, or refuses INFO */
export const readInstance = (endpoint: Endpoint, options: ReadOptions, signal?: AbortSignal): Promise<InstanceFacts> =>
  asking(endpoint, (asker) => read(asker, endpoint, options), signal);

async function read(asker: Asker, endpoint: Endpoint, options: ReadOptions): Promise<InstanceFacts> {
  const scans = async (): Promise<number> => callsOf(await asker.info('commandstats')).get('scan') ?? 0;
  const scansBefore = await scans();
  const before = await moment(asker);
  const ping = await watch(asker, options.watchMs);
  const now = await moment(asker);
  const scansWatched = (await scans()) - scansBefore;
  const seconds = (now.at - before.at) / 1000;
  const info = now.fields;
  const number = (name: string): number => Number(info.get(name) ?? 0);
  const clock = await clockOf(asker);
  const calls = callsOf(await asker.info('commandstats'));
  const listed = await asker.must('COMMAND');
  const commands = namesOf(listed);
  const settings = mapOf(await asker.may('CONFIG', 'GET', '*'));
  const databases = databasesOf(info);
  const users = (await asker.may('ACL', 'LIST'))?.items?.map(text) ?? null;
  const login = { name: endpoint.username ?? 'default', password: endpoint.password };
  return {
    label: endpoint.label,
    version: info.get('redis_version') ?? 'unknown',
    software: softwareOf(info, isKeydb(info)),
    newer: await newerThanKnown(asker, info),
    isKeydb: isKeydb(info),
    mode: modeOf(info) || 'unknown',
    role: info.get('role') ?? 'unknown',
    opsPerSecond: Math.max(0, (now.commands - before.commands) / seconds - ping.count / seconds),
    cpu: before.cpu === null || now.cpu === null ? null : (now.cpu - before.cpu) / seconds,
    clients: {
      // Without the connection of this tool.
      connected: Math.max(0, number('connected_clients') - 1),
      max: Number(info.get('maxclients') ?? settings?.get('maxclients')) || null,
      rejected: number('rejected_connections'),
    },
    memory: {
      used: number('used_memory'),
      peak: number('used_memory_peak'),
      dataset: Number(info.get('used_memory_dataset')) || null,
      max: number('maxmemory') || null,
      policy: info.get('maxmemory_policy') ?? null,
    },
    evicted: number('evicted_keys'),
    databases,
    ping,
    calls,
    scansWatched,
    commands,
    modules: modulesOf(await asker.may('MODULE', 'LIST')),
    functions: commands.has('function') ? ((await asker.may('FUNCTION', 'LIST'))?.items?.length ?? 0) : 0,
    settings,
    connections: connectionsOf(await asker.may('CLIENT', 'LIST')),
    users: (await asker.may('ACL', 'USERS'))?.items?.length ?? null,
    elastiCache: recognise(endpoint, info, await missing(asker, UNAVAILABLE)),
    lacks: await missing(asker, NEEDED),
    // In a cluster, another node takes over the slots, and the plan may name any node.
    oneNode: endpoint.kind === 'server' && cacheEndpointOf(endpoint.host) === 'node' && modeOf(info) !== 'cluster',
    acl: {
      ...(users === null ? { lines: null } : usersSeenBy(users, login)),
      commands: supportedCommands(listed),
      categories: commandCategories(listed),
      release: { version: info.get('redis_version') ?? '', isKeydb: isKeydb(info) },
    },
    askedAs: endpoint.username ?? 'default',
    replicas: await replicasOf(info, endpoint),
    clock,
    fieldTtls: fieldTtlsOf(info),
    keySample: await largestKeys(asker, databases, options),
    refusals: asker.refusals,
    monitored: null,
  };
}

/**
 * What is unknown about a server because it is newer than this release knows; null if nothing is.
 * @param info `INFO`, with the sections server and cpu
 */
export async function newerThanKnown(asker: Asker, info: ReadonlyMap<string, string>): Promise<NewerServer | null> {
  const software = softwareOf(info, isKeydb(info));
  if (!isNewer(software)) return null;
  return newerServer(software, rdbVersionOf((await asker.may('FUNCTION', 'DUMP'))?.data ?? null));
}

async function missing(asker: Asker, names: readonly string[]): Promise<string[]> {
  const info = await asker.may('COMMAND', 'INFO', ...names);
  return info === null ? [] : notNamed(names, info);
}

interface Moment {
  readonly at: number;
  readonly fields: ReadonlyMap<string, string>;
  readonly commands: number;
  /** CPU seconds of the thread that runs commands. */
  readonly cpu: number | null;
}

async function moment(asker: Asker): Promise<Moment> {
  const fields = await asker.info();
  const at = performance.now();
  // Before 6.2 only the whole process is shown, which is little more while nothing is saved.
  const names = fields.has('used_cpu_user_main_thread')
    ? ['used_cpu_user_main_thread', 'used_cpu_sys_main_thread']
    : ['used_cpu_user', 'used_cpu_sys'];
  const cpu = names.every((name) => fields.has(name))
    ? names.reduce((total, name) => total + Number(fields.get(name)), 0)
    : null;
  return { at, fields, commands: Number(fields.get('total_commands_processed') ?? 0), cpu };
}

async function watch(asker: Asker, ms: number): Promise<InstanceFacts['ping']> {
  const micros = latencyHistogram();
  for (const end = performance.now() + ms; performance.now() < end; await sleep(PING_MS)) {
    const since = performance.now();
    await asker.must('PING');
    micros.recordValue(Math.max(1, Math.round((performance.now() - since) * 1000)));
  }
  return {
    p50: micros.getValueAtPercentile(50) / 1000,
    p99: micros.getValueAtPercentile(99) / 1000,
    count: micros.totalCount,
  };
}

/** Commands and subcommands; servers before 7.0 do not list subcommands. */
function namesOf(reply: Reply): Set<string> {
  const names = new Set<string>();
  const add = (commands: Reply): void => {
    for (const { items } of commands.items ?? []) {
      if (items === null) continue;
      names.add(text(items[0]).toLowerCase());
      if (items.length > 9) add(items[9]);
    }
  };
  add(reply);
  return names;
}

function mapOf(reply: Reply | null): Map<string, string> | null {
  if (reply === null || reply.items === null) return null;
  const map = new Map<string, string>();
  for (let i = 0; i + 1 < reply.items.length; i += 2) map.set(text(reply.items[i]), text(reply.items[i + 1]));
  return map;
}

function databasesOf(info: ReadonlyMap<string, string>): Map<number, number> {
  const databases = new Map<number, number>();
  for (const [field, value] of info) {
    const [, db] = /^db(\d+)$/.exec(field) ?? [];
    if (db !== undefined) databases.set(Number(db), Number(/keys=(\d+)/.exec(value)?.[1] ?? 0));
  }
  return databases;
}

/** Redis counts them as `subexpiry`, Valkey as `keys_with_volatile_items`. */
function fieldTtlsOf(info: ReadonlyMap<string, string>): number {
  let found = 0;
  for (const [field, value] of info)
    if (/^db\d+$/.test(field)) found += Number(/(?:subexpiry|keys_with_volatile_items)=(\d+)/.exec(value)?.[1] ?? 0);
  return found;
}

/** Each module is a flat list of names and values, or a map. */
const modulesOf = (reply: Reply | null): string[] =>
  (reply?.items ?? []).map(({ items }) => {
    const at = items?.findIndex((item) => text(item) === 'name') ?? -1;
    return at === -1 ? 'unknown' : text(items![at + 1]);
  });

function connectionsOf(reply: Reply | null): ConnectedClient[] | null {
  if (reply === null) return null;
  const lines = text(reply)
    .split('\n')
    .filter((line) => line.length > 0);
  // This tool, replicas, and the kit's proxy do not count.
  const clients = lines.filter(
    (line) =>
      !['client|list', 'client'].includes(clientField(line, 'cmd')) &&
      !/[SM]/.test(clientField(line, 'flags')) &&
      !clientField(line, 'name').startsWith('shadow-proxy'),
  );
  return clients.map((line) => ({
    host: clientField(line, 'addr').replace(/:\d+$/, ''),
    name: clientField(line, 'name'),
    library: ['lib-name', 'lib-ver']
      .map((name) => clientField(line, name))
      .filter(Boolean)
      .join(' '),
    user: clientField(line, 'user') || 'default',
  }));
}

/** Whether clients read from replicas: those reads do not come through the proxy. */
async function replicasOf(info: ReadonlyMap<string, string>, endpoint: Endpoint): Promise<Replica[]> {
  const replicas: Replica[] = [];
  for (let i = 0; info.has(`slave${i}`); i++) {
    const [, host, port] = /ip=([^,]+),port=(\d+)/.exec(info.get(`slave${i}`)!) ?? [];
    if (host === undefined) continue;
    const address = { host, port: Number(port) };
    replicas.push({
      address: formatAddress(address),
      reads: await readsAt({ ...endpoint, ...address, kind: 'server', label: formatAddress(address) }),
    });
  }
  return replicas;
}

async function readsAt(endpoint: Endpoint): Promise<number | null> {
  try {
    const calls = callsOf(await asking(endpoint, (asker) => asker.info('commandstats')));
    return [...calls].reduce((total, [name, count]) => total + (READS.has(name) ? count : 0), 0);
  } catch {
    return null;
  }
}

/** The largest of some sampled keys. */
async function largestKeys(
  asker: Asker,
  databases: InstanceFacts['databases'],
  { keys: most = SAMPLED_KEYS, seeKey }: ReadOptions,
): Promise<InstanceFacts['keySample']> {
  let keys = 0;
  let largest: LargestKey[] = [];
  const foreignTypes = new Map<string, number>();
  for await (const key of sampleKeys(asker, databases, most)) {
    keys++;
    seeKey?.(key);
    const { db, bytes, type } = key;
    if (!TYPES.test(type)) foreignTypes.set(type, (foreignTypes.get(type) ?? 0) + 1);
    if (largest.length === LARGEST && bytes <= largest[LARGEST - 1].bytes) continue;
    largest = [...largest, { db, bytes, type }].sort((a, b) => b.bytes - a.bytes).slice(0, LARGEST);
  }
  return { keys, largest, foreignTypes };
}
