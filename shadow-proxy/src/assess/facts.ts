/** What was read off a live server; what could not be read is null, and `refusals` says why. */

import type { Monitored } from './monitor.js';
import type { NewerServer } from '../command/known.js';
import type { Software } from '../command/release.js';
import type { UserFacts } from '../command/users.js';

/** A command that clients sent since the server started, by its name in lower case (`config|get`). */
export type Calls = ReadonlyMap<string, number>;

export interface ConnectedClient {
  /** Without the port. */
  readonly host: string;
  readonly name: string;
  /** `lib-name` and `lib-ver`, where the client says so. */
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
  /** Reads that its clients sent, since it started; null if it cannot be asked. */
  readonly reads: number | null;
}

export interface InstanceFacts {
  /** For people: no password in it. */
  readonly label: string;
  readonly version: string;
  readonly software: Software;
  /** What is not known of it because it is newer than this release knows; null if all is. */
  readonly newer: NewerServer | null;
  readonly isKeydb: boolean;
  readonly mode: string;
  readonly role: string;
  /** Over the time of watching. */
  readonly opsPerSecond: number;
  /**
   * Share of one core that the thread which runs commands took over the time of watching, 0 to 1; null if the server
   * does not tell.
   */
  readonly cpu: number | null;
  readonly clients: { readonly connected: number; readonly max: number | null; readonly rejected: number };
  readonly memory: {
    readonly used: number;
    readonly peak: number;
    /** Bytes of the keys and values alone; null if the server does not say. */
    readonly dataset: number | null;
    readonly max: number | null;
    readonly policy: string | null;
  };
  readonly evicted: number;
  /** Keys by number of database. */
  readonly databases: ReadonlyMap<number, number>;
  /** Round trips of a PING every 20 ms, in ms. */
  readonly ping: { readonly p50: number; readonly p99: number; readonly count: number };
  readonly calls: Calls;
  /** Calls of SCAN while it was watched: none of this reading. */
  readonly scansWatched: number;
  readonly commands: ReadonlySet<string>;
  readonly modules: readonly string[];
  /** Libraries of functions. */
  readonly functions: number;
  /** Null if CONFIG is refused, as managed services do. */
  readonly settings: ReadonlyMap<string, string> | null;
  readonly connections: readonly ConnectedClient[] | null;
  readonly users: number | null;
  /** How it was recognised as ElastiCache, or as a server without the same commands; null if it was not. */
  readonly elastiCache: string | null;
  /** Commands that the kit needs, and the server does not know by their names. */
  readonly lacks: readonly string[];
  /** The endpoint names one node, which may be a replica after a failover. */
  readonly oneNode: boolean;
  /** The server's users, with digests of their passwords: for comparison only, never shown. */
  readonly acl: UserFacts;
  /** As whom it was asked. */
  readonly askedAs: string;
  readonly replicas: readonly Replica[];
  /** The server's clock minus that of this machine, in ms, and by how much that may be off. */
  readonly clock: { readonly offsetMs: number; readonly errorMs: number };
  readonly keySample: {
    readonly keys: number;
    readonly largest: readonly LargestKey[];
    /** Keys of types that KeyDB does not have, by type. */
    readonly foreignTypes: ReadonlyMap<string, number>;
  };
  /** Hashes that have fields with a TTL; 0 where the server does not count them. */
  readonly fieldTtls: number;
  readonly refusals: readonly string[];
  /** What MONITOR showed; null if it was not asked for. */
  readonly monitored: Monitored | null;
}
