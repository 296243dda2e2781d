/** The interface of a load generator: its input, and its results. */
import type { Profile } from '../workload/profile.js';
import type { Naming } from '../workload/keys.js';

/** The server that gets the load. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly username: string | null;
  readonly password: string | null;
  /** Null without TLS; otherwise paths of PEM files. The server's certificate is always verified. */
  readonly tls: TlsFiles | null;
}

export interface TlsFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface Load {
  readonly profile: Profile;
  /** The prefix of all keys, including its separator. */
  readonly prefix: string;
  /** Connections of all threads together, and the pipeline depth of each. A sweep replaces the profile's values. */
  readonly connections: number;
  readonly pipeline: number;
  readonly seconds: number;
  /** Commands per second of all connections together; null: as many as the server answers. */
  readonly rate: number | null;
}

/** One second of a measurement, over all connections. */
export interface Second {
  /** Unix time at which it began, in seconds. */
  readonly at: number;
  readonly operations: number;
  /** Milliseconds; null if nothing was answered. */
  readonly p50: number | null;
  readonly p99: number | null;
}

/** The results of one measurement. */
export interface Driven {
  /** Unix milliseconds, by the load generator's clock. */
  readonly startedAt: number;
  readonly durationMs: number;
  /**
   * Whether the generator reported a length that is off by more than a tenth: then `durationMs` is the requested one.
   */
  readonly doubtful: boolean;
  /** Answered commands: in total, and by their name in capital letters. */
  readonly operations: number;
  readonly counts: Readonly<Record<string, number>>;
  /** All latencies in microseconds, as an HdrHistogram (V2, compressed, base64); null if the generator has none. */
  readonly histogram: string | null;
  /** Milliseconds, if there is no histogram. */
  readonly percentiles: { readonly p50: number; readonly p99: number } | null;
  readonly series: readonly Second[];
  /** CPU seconds that the load generator used; null if the system does not show them. */
  readonly cpu: number | null;
}

export interface Driver {
  /** The name and the version. */
  readonly label: string;
  readonly naming: Naming;
  /**
   * Rejects only after the load has ended.
   * @throws {LoadtestError} if a connection failed, a command was refused, or `stop` was aborted
   */
  drive(address: Address, load: Load, stop: AbortSignal): Promise<Driven>;
}
