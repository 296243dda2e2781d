/**
 * The server part of the gate `servers`: source and target must be two servers, each in the right role, and no other
 * proxy may use them. Nothing is changed: the target is asked for a write that has no effect.
 */
import { listClients } from '../upstream/handshake.js';
import { isReplica, oneServer, type Identity } from '../upstream/identity.js';
import { inTime } from '../io/in-time.js';
import type { Server } from '../upstream/server.js';
import { NEEDED, notNamed } from '../upstream/server-commands.js';
import { isError, text, errorText } from '../resp/decode.js';
import type { NewerServer } from '../command/known.js';
import { tagOf } from '../route/slot.js';
import { SIDES, type Side } from '../route/stage.js';
import type { AcceptableServer } from './gate-facts.js';

/** One server, from its present answers. */
export interface ServerFacts {
  /** Null if the server does not answer, or must not be used. */
  readonly identity: Identity | null;
  /** Why `identity` is null; empty if it is not. */
  readonly unreachable: string;
  /** `host:port` at which the proxy reaches the server; null if it does not. */
  readonly address: string | null;
  /** The server's error for a write that has no effect; null if it accepts writes, or was not asked. */
  readonly refusal: string | null;
  /** Commands that the kit needs, and that the server has renamed or disabled. */
  readonly lacks: readonly string[];
  /** The server's error for SELECT, if it is not about the number of databases; null if the proxy's user may SELECT. */
  readonly selectRefusal: string | null;
  /** What is unknown about a server that is newer than this release knows; null if nothing is. */
  readonly newer: NewerServer | null;
  /** Shards of the proxies that are connected to the server. */
  readonly shards: readonly string[];
}

/** How long to wait for a server that hangs, in ms. */
const ANSWER_MS = 2_000;
/**
 * The key of a ZADD XX, which sets the score of an existing member; there is none. It creates nothing, but the server
 * treats it as a write that needs memory. `guard` must not take it for a counter (`command/counting.ts`).
 * @param slot the slot that the key must have in a cluster; null if any will do
 */
export const probeKey = (slot: number | null): string =>
  slot === null ? 'shadow-proxy:probe' : `shadow-proxy:probe{${tagOf(slot)}}`;
/** Connections for data, or for the lease of the process that has the shard. */
const PROXY = /(?:^| )name=shadow-proxy(?:-lease:([^:@\s]+)(?:@[^:\s]+)?:[^:\s]+:holds|:([^:\s]+)):/;

/** @param probe the key of a write without effect that the server is asked for; null for no write */
export async function readFacts(server: Server, probe: string | null): Promise<ServerFacts> {
  const asked = async (): Promise<ServerFacts> => {
    await server.identify();
    const [refusal, needed, clients] = await Promise.all([
      probe === null ? null : server.ask('ZADD', probe, 'XX', 0, 'none'),
      server.ask('COMMAND', 'INFO', ...NEEDED),
      listClients((...args) => server.ask(...args)).catch(() => null),
    ]);
    const names = [...(clients?.values() ?? [])]
      .map((line) => PROXY.exec(line))
      .map((found) => found?.[1] ?? found?.[2]);
    const { address } = server.connections;
    return {
      identity: server.identity,
      unreachable: '',
      address: address === undefined ? null : `${address.host}:${address.port}`,
      refusal:
        refusal !== null && isError(refusal) && !text(refusal).startsWith('WRONGTYPE') ? errorText(refusal) : null,
      lacks: notNamed(NEEDED, needed),
      selectRefusal: selectRefusalOf(server),
      newer: server.traits.newer,
      shards: [...new Set(names.filter((name) => name !== undefined))],
    };
  };
  try {
    return await inTime(asked(), ANSWER_MS, () => new Error(`no answer within ${ANSWER_MS / 1000} s`));
  } catch (problem) {
    return {
      identity: null,
      unreachable: server.problem ?? (problem as Error).message,
      address: null,
      refusal: null,
      lacks: [],
      selectRefusal: null,
      newer: null,
      shards: [],
    };
  }
}

/** The error of a user who may not SELECT. The number of databases is a setting, which is compared with the others. */
function selectRefusalOf({ databaseLimit }: Server): string | null {
  const refusal = databaseLimit?.count === 1 ? databaseLimit.refusal : null;
  return refusal === null || /index|cluster mode/.test(refusal) ? null : refusal;
}

/**
 * Problems of the two servers; empty if there are none. Pure.
 * @param shard name of the shard
 * @param sharing the other shards that may share each server by the plan
 * @param cluster whether the plan names a cluster
 */
export function serverProblems(
  { source, target }: Readonly<Record<Side, ServerFacts>>,
  shard: string,
  sharing: Readonly<Record<Side, readonly string[]>>,
  cluster: boolean,
): string[] {
  const problems: string[] = [];
  const [from, to] = [source.identity, target.identity];
  for (const [side, { identity, unreachable, lacks, selectRefusal }] of [
    ['source', source],
    ['target', target],
  ] as const) {
    if (identity === null) problems.push(`the ${side} cannot be used: ${unreachable}`);
    else if (identity.mode === 'cluster' && !cluster)
      problems.push(
        `the ${side} is in cluster mode, and would redirect clients to servers that the proxy does not serve: write \`cluster\` instead of \`shards\` in the plan`,
      );
    else if (identity.mode === 'sentinel')
      problems.push(`the ${side} is a Sentinel: use a URL redis+sentinel://host:port/master`);
    if (lacks.length > 0)
      problems.push(
        `the ${side} has no ${lacks.join(', ')} (renamed or disabled), which the proxy needs: give these commands back their names (rename-command; rename-commands on ElastiCache)`,
      );
    if (selectRefusal !== null && !lacks.includes('SELECT'))
      problems.push(
        `the ${side} lets the proxy's user into database 0 only (${selectRefusal}): allow SELECT to this user (ACL SETUSER … +select)`,
      );
  }
  if (from !== null && to !== null && from.runId !== '' && from.runId === to.runId)
    problems.push(oneServer('target', to.runId));
  if (from !== null && isReplica(from))
    problems.push(
      `the source is a replica of ${from.replicates ?? 'another server'}, and accepts no writes: use its master as the source, or promote it`,
    );
  if (to !== null && follows(to, source))
    problems.push(
      'the target is a replica of the source, and would get every write twice: end its replication first (REPLICAOF NO ONE)',
    );
  else if (to !== null && isReplica(to))
    problems.push(
      `the target is a replica of ${to.replicates ?? 'another server'}, which replaces its data: use its master as the target, or promote it`,
    );
  else if (target.refusal !== null) problems.push(`the target refuses writes: ${target.refusal}`);
  const others = (shards: readonly string[], allowed: readonly string[]): string[] =>
    shards.filter((name) => name !== shard && !allowed.includes(name));
  for (const name of others(source.shards, sharing.source))
    problems.push(
      `a proxy of shard ${name} uses the source, too, and its writes bypass this proxy: each source belongs to one shard`,
    );
  for (const name of others(target.shards, sharing.target))
    problems.push(
      `a proxy of shard ${name} uses the target, too, but the plan has another address for it: give both shards the same target address, and set \`owns\` of each shard`,
    );
  return problems;
}

/** Servers that are newer than this release knows. @param accepted names of those that an operator has accepted */
export const newerServers = (
  servers: Readonly<Record<Side, ServerFacts>>,
  accepted: readonly string[],
): AcceptableServer[] =>
  SIDES.flatMap((side) => {
    const { newer } = servers[side];
    if (newer === null) return [];
    const { name, evidence } = newer;
    return [{ name, evidence: `the ${side} is ${evidence}`, accepted: accepted.includes(name) }];
  });

/** Whether the target replicates from the source: its INFO says so, or it has the same replication ID. */
const follows = (target: Identity, { identity, address }: ServerFacts): boolean =>
  target.replicates !== null &&
  (sameAddress(target.replicates, address) ||
    (isReplica(target) && target.replId !== '' && target.replId === identity?.replId));

const sameAddress = (a: string, b: string | null): boolean => b !== null && loopback(a) === loopback(b);
const loopback = (address: string): string =>
  address.replace(/^(localhost|127\.\d+\.\d+\.\d+|::1):(?=\d+$)/, 'loopback:');
