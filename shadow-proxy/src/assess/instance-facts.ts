/** Facts that were read from a live server. A fact that could not be read is null, and `refusals` says why. */

import type { MonitorResult } from './monitor.js';
import type { NewerServer } from '../command/known.js';
import type { Software } from '../command/release.js';
import type { UserFacts } from '../command/users.js';

/** A command that clients sent since the server started, by its name in lower case (`config|get`). */
export type Calls = ReadonlyMap<string, number>;

export interface ConnectedClient {
  /** The host without the port. */
  readonly host: string;
  readonly name: string;
  /** `lib-name` and `lib-ver`, if the client reports them. */
  readonly library: string;
  readonly user: string;
}

export interface LargestKey {
  readonly type: string;
  readonly bytes: number;
  readonly db: number;
}

export interface Replica {
  readonly address: string;
  /** Reads by the replica's clients since it started; null if it cannot be asked. */
  readonly reads: number | null;
}

export interface InstanceFacts {
  /** The URL for people, without a password. */
  readonly label: string;
  readonly version: string;
  readonly software: Software;
  /** What is unknown about the server because it is newer than this release knows; null if nothing is. */
  readonly newer: NewerServer | null;
  readonly isKeydb: boolean;
  readonly mode: string;
  readonly role: string;
  /** Average while it was watched. */
  readonly opsPerSecond: number;
  /**
   * Share of one core that the thread for commands used while it was watched, 0 to 1; null if the server does not show
   * it.
   */
  readonly cpu: number | null;
  readonly clients: { readonly connected: number; readonly max: number | null; readonly rejected: number };
  readonly memory: {
    readonly used: number;
    readonly peak: number;
    /** Bytes of keys and values only; null if the server does not show it. */
    readonly dataset: number | null;
    readonly max: number | null;
    readonly policy: string | null;
  };
  readonly evicted: number;
  /** Number of keys, by database. */
  readonly databases: ReadonlyMap<number, number>;
  /** Round trips of a PING every 20 ms, in ms. */
  readonly ping: { readonly p50: number; readonly p99: number; readonly count: number };
  readonly calls: Calls;
  /** Calls of SCAN while it was watched, without those of this tool. */
  readonly scansWatched: number;
  readonly commands: ReadonlySet<string>;
  readonly modules: readonly string[];
  /** Number of function libraries. */
  readonly functions: number;
  /** Null if CONFIG is refused, as by managed services. */
  readonly settings: ReadonlyMap<string, string> | null;
  readonly connections: readonly ConnectedClient[] | null;
  readonly users: number | null;
  /** How the server was recognised as ElastiCache, or as a server that lacks the same commands; null if it was not. */
  readonly elastiCache: string | null;
  /** Commands that the kit needs, and that the server does not know by their names. */
  readonly lacks: readonly string[];
  /** Whether the endpoint names one node, which may be a replica after a failover. */
  readonly oneNode: boolean;
  /** The server's users, with digests of their passwords: for comparison only, never shown. */
  readonly acl: UserFacts;
  /** The user with which it was asked. */
  readonly askedAs: string;
  readonly replicas: readonly Replica[];
  /** The server's clock minus this machine's, in ms, and the possible error of that. */
  readonly clock: { readonly offsetMs: number; readonly errorMs: number };
  readonly keySample: {
    readonly keys: number;
    readonly largest: readonly LargestKey[];
    /** Number of keys of types that KeyDB lacks, by type. */
    readonly foreignTypes: ReadonlyMap<string, number>;
  };
  /** Number of hashes that have fields with a TTL; 0 if the server does not count them. */
  readonly fieldTtls: number;
  readonly refusals: readonly string[];
  /** The results of MONITOR; null if it was not requested. */
  readonly monitored: MonitorResult | null;
}
