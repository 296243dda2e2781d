/**
 * Who a server is: its process (run ID), the history that its data belong to (replication ID), and its role. Pure.
 *
 * A server that was a replica for a moment has another server's data under the same run ID. Redis and KeyDB then show
 * another `master_replid`. Two changes of it are harmless. A master takes a new ID when it begins or ends its backlog.
 * A server that was promoted without having synchronized continues its own history, which it shows as `master_replid2`.
 */

import { otherSide, type Side } from '../route/stage.js';

export interface Identity {
  /** The run ID of the process; empty if the server does not show it. */
  readonly runId: string;
  /** The replication ID of the history of its data; empty if the server does not show it. */
  readonly replId: string;
  /** The history that the server continues since its promotion; empty if it was not promoted. */
  readonly replIdBefore: string;
  /** `master`, `slave`, or KeyDB's `active-replica`; empty if the server does not show it. */
  readonly role: string;
  /** `standalone`, `cluster` or `sentinel`; empty if the server does not show it. */
  readonly mode: string;
  /** `host:port` of the server's master; null if it has none. */
  readonly replicates: string | null;
}

/** What is saved of a server for the next process; `replId` is empty if it was unknown. */
export type KnownIdentity = Pick<Identity, 'runId' | 'replId'>;

const NO_HISTORY = '0'.repeat(40);
/** How long a promoted server shows the history that it continues, in ms: the default of `repl-backlog-ttl`. */
const HISTORY_SHOWN_MS = 3_600_000;

/** @param server `INFO server` @param replication `INFO replication` */
export function identityOf(server: ReadonlyMap<string, string>, replication: ReadonlyMap<string, string>): Identity {
  const [host, port, before] = ['master_host', 'master_port', 'master_replid2'].map((field) => replication.get(field));
  return {
    runId: server.get('run_id') ?? '',
    replId: replication.get('master_replid') ?? '',
    replIdBefore: before === undefined || before === NO_HISTORY ? '' : before,
    role: replication.get('role') ?? '',
    mode: modeOf(server),
    replicates: host === undefined ? null : `${host}:${port}`,
  };
}

/**
 * Valkey since 8.0 has another name for the field, unless `extended-redis-compatibility` is set.
 * @param server `INFO server`
 */
export const modeOf = (server: ReadonlyMap<string, string>): string =>
  server.get('redis_mode') ?? server.get('server_mode') ?? '';

/** Whether the server only takes data from another server. */
export const isReplica = ({ role }: Pick<Identity, 'role'>): boolean => role === 'slave' || role === 'replica';

/** Distinguishes two states of a server, which may have different data. */
export const fingerprint = ({ runId, replId }: KnownIdentity): string => (replId === '' ? runId : `${runId}/${replId}`);

/**
 * Why the server may hold other data than at the last check; null if it has the same history.
 * @param sinceMs time since the last check
 */
export function changeOf(before: KnownIdentity, now: Identity, sinceMs: number): string | null {
  if (before.runId === '') return null;
  if (before.runId !== now.runId)
    return `restarted or was replaced (run ID changed: ${short(before.runId)} → ${short(now.runId)})`;
  // Active replicas merge their peers' data; their replication IDs say nothing about that.
  if (before.replId === '' || now.replId === '' || before.replId === now.replId || now.role === 'active-replica')
    return null;
  const replaced = `was a replica of another server meanwhile (replication ID changed: ${short(before.replId)} → ${short(now.replId)})`;
  if (isReplica(now)) return replaced;
  if (now.replIdBefore === before.replId) return null;
  return now.replIdBefore === '' && sinceMs < HISTORY_SHOWN_MS ? null : replaced;
}

/** The oldest version of Redis that a server may be compatible with. */
const OLDEST = [6, 2] as const;

/** Whether the version is that of Redis `major.minor` or newer; true if the server does not show it. */
export function isSince(version: string, [major, minor]: readonly [major: number, minor: number]): boolean {
  const [ours, next = 0] = version.split('.').map(Number);
  if (version === '') return true;
  return !(ours < major || (ours === major && next < minor));
}

/** Why a server of this version is refused; null if it is not. */
export const tooOld = (side: Side, version: string): string | null =>
  isSince(version, OLDEST)
    ? null
    : `the ${side} is Redis ${version}, and the oldest that is supported is ${OLDEST.join('.')}: upgrade the ${side} first, with a replica of ${OLDEST.join('.')} or 7.0 and a failover to it`;

/** The refusal if both addresses of a shard lead to one server. */
export const oneServer = (side: Side, runId: string): string =>
  `the ${side} is the same server as the ${otherSide(side)} (run ID ${short(runId)}): every write would run twice; configure two different servers`;

/** An ID for people. */
export const short = (id: string): string => `${id.slice(0, 8)}…`;
