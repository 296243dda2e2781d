/** The facts from which gates are judged. */
import type { UserComparison } from '../command/users.js';
import type { TargetKeys } from '../copy/foreign/target-keys.js';
import type { Verdict } from '../guard/judge.js';
import type { Gates } from '../plan/plan.js';
import type { LatencyWindow, WorkloadEvidence } from '../storage/evidence.js';
import type { SettingsComparison } from '../upstream/settings.js';
import type { FenceReport } from './fence-gate.js';
import type { CheckResult } from './external-checks.js';

/** Writes to the source that the proxy did not send, by the source's own counts. */
export interface PassedWrites {
  /**
   * Since when the counts are compared (ISO 8601); null if they cannot be compared now: scripts run, or the target is
   * an authority.
   */
  readonly since: string | null;
  /** When such writes were last seen, and the minimum number by command; null if there never were any. */
  readonly last: { readonly at: string; readonly writes: Readonly<Record<string, number>> } | null;
}

/** What the target holds of a workload. */
export interface TargetFacts {
  /**
   * Since when the shard has written all of the workload's keys there (ISO 8601); null if it has not, or that is
   * unknown.
   */
  readonly ownSince: string | null;
  /** Null if the keys were not counted. */
  readonly keys: TargetKeys | null;
  /** Number of keys of the whole target; null if it does not answer. */
  readonly of: number | null;
  /** Why the keys are not known; null if they are. */
  readonly problem: string | null;
}

/** What an operator allows for keys of the target that the shard did not write. */
export interface Consent {
  /** Whether keys that the source has, too, and keys that clients write, may be overwritten. */
  readonly overwrite: boolean;
  /** Whether keys that the source lacks may be deleted. */
  readonly deleteForeign: boolean;
  /** Maximum number of such keys: the number that the operator was shown. */
  readonly confirm: number;
}

export const NO_CONSENT: Consent = { overwrite: false, deleteForeign: false, confirm: 0 };

/** A server that is newer than the servers that this release knows. */
export interface AcceptableServer {
  /** Its software and release, such as `Redis 8.12`. */
  readonly name: string;
  readonly evidence: string;
  /** Whether an operator has accepted that release, for this step or before. */
  readonly accepted: boolean;
}

export interface GateFacts {
  /** The workload's name. */
  readonly workload: string;
  /** Known before the first write to the target; else null. */
  readonly target: TargetFacts | null;
  readonly consent: Consent;
  readonly evidence: WorkloadEvidence;
  /** Pairs of replies that are compared per second at present; null if unknown. */
  readonly comparedPerSecond: number | null;
  readonly gates: Gates;
  /** Users that lose writes behind the fence; null if the plan has no fence. */
  readonly fence: FenceReport | 'unknown' | null;
  /** The answers of the plan's checks; null if there are none for the workload. */
  readonly checks: readonly CheckResult[] | null;
  /** Commands that spanned slots or hid their keys. If there are any, `live` is not possible in shares. */
  readonly spanning: number;
  /** Number of suspect keys, including differences without a verdict. */
  readonly suspects: number;
  /** Why all keys of the workload are suspect; null if they are not. */
  readonly suspect: string | null;
  readonly frozen: string | null;
  /** Whether a server does not answer now. */
  readonly down: boolean;
  /** Latencies of the workload's own commands, by minute, since it entered its stage. */
  readonly latencies: readonly LatencyWindow[];
  /** Problems of the two servers and their roles; null if unknown. */
  readonly servers: readonly string[] | null;
  /** Servers that are newer than this release knows; empty if they were not asked. */
  readonly newer: readonly AcceptableServer[];
  /** How the settings of the two servers differ; null if they were not asked yet. */
  readonly settings: SettingsComparison | null;
  /** How the users of the two servers differ; null if they were not asked yet. */
  readonly users: UserComparison | null;
  /**
   * Users whose login the target refused just now, of those that clients have logged in as; null if this was not tried.
   */
  readonly refusedLogins: readonly string[] | null;
  /** Clients that are connected to the source bypassing the proxy; null if the source does not list them. */
  readonly bypassing: readonly string[] | null;
  /** Whether the workload's counters are safe on the target's present nodes; null if the nodes do not answer. */
  readonly counters: Verdict | 'none' | null;
  /** The region that writes the workload, if it is another region than the shard's; else null. */
  readonly writtenIn: string | null;
  readonly passed: PassedWrites;
  /** Keys that the target has evicted; null if it does not answer. */
  readonly evicted: number | null;
  /** Keys that the source has evicted since the proxy started. */
  readonly sourceEvicted: number;
}
