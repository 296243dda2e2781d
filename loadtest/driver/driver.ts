/** What a load generator is asked for, and what it reports. */
import type { Profile } from '../workload/profile.js';
import type { Naming } from '../workload/keys.js';

/** The server that gets the load. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly username: string | null;
  readonly password: string | null;
  /** Null in the clear; paths of PEM files otherwise. The server's certificate is always verified. */
  readonly tls: TlsFiles | null;
}

export interface TlsFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface Load {
  readonly profile: Profile;
  /** The prefix of all keys, with its separator at the end. */
  readonly prefix: string;
  /** Connections of all threads together, and the pipeline depth of each. In a sweep they replace the profile's. */
  readonly connections: number;
  readonly pipeline: number;
  readonly seconds: number;
  /** Commands a second of all connections together; null for as many as the server answers. */
  readonly rate: number | null;
}

/** One second of a measurement, over all connections. */
export interface Second {
  /** Unix time of its beginning, in seconds. */
  readonly at: number;
  readonly operations: number;
  /** Milliseconds; null where nothing was answered. */
  readonly p50: number | null;
  readonly p99: number | null;
}

/** What one measurement gave. */
export interface Driven {
  /** Unix milliseconds, by the load generator's clock. */
  readonly startedAt: number;
  readonly durationMs: number;
  /** The generator gave a length that is off by more than a tenth: `durationMs` is the one that was asked for. */
  readonly doubtful: boolean;
  /** Commands that were answered, in all and by their name in capital letters. */
  readonly operations: number;
  readonly counts: Readonly<Record<string, number>>;
  /** All latencies in microseconds, an HdrHistogram (V2, compressed, base64); null where the generator has none. */
  readonly histogram: string | null;
  /** Milliseconds, where there is no histogram. */
  readonly percentiles: { readonly p50: number; readonly p99: number } | null;
  readonly series: readonly Second[];
  /** CPU seconds that the load generator used; null where the system does not tell. */
  readonly cpu: number | null;
}

export interface Driver {
  /** With its version. */
  readonly label: string;
  readonly naming: Naming;
  /**
   * Rejects only once the load has ended.
   * @throws {LoadtestError} when a connection failed, a command was refused, or `stop` was given
   */
  drive(address: Address, load: Load, stop: AbortSignal): Promise<Driven>;
}
