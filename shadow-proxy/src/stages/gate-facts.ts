/** What gates are judged by. */
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
   * Since when the counts were compared (ISO 8601); null if they cannot be now: scripts run, or the target is an
   * authority.
   */
  readonly since: string | null;
  /** When some were seen last, and how many at least, by command; null if never. */
  readonly last: { readonly at: string; readonly writes: Readonly<Record<string, number>> } | null;
}

/** What the target holds of a workload. */
export interface TargetFacts {
  /** Since when the shard has written all of it (ISO 8601); null if that is not so, or not known. */
  readonly ownSince: string | null;
  /** Null if it was not counted. */
  readonly keys: TargetKeys | null;
  /** Keys of the whole target; null if it does not tell. */
  readonly of: number | null;
  /** Why it does not tell, or could not be counted. */
  readonly problem: string | null;
}

/** What an operator allows to happen to keys of the target that the shard did not write. */
export interface Consent {
  /** Keys that the source has, too, and keys that clients write, may be overwritten. */
  readonly overwrite: boolean;
  /** Keys that the source does not have may be deleted. */
  readonly deleteForeign: boolean;
  /** How many of them at most: the number that the operator was shown. */
  readonly confirm: number;
}

export const NO_CONSENT: Consent = { overwrite: false, deleteForeign: false, confirm: 0 };

/** A server that is newer than this release knows. */
export interface AcceptableServer {
  /** Its software with the release, such as `Redis 8.12`. */
  readonly name: string;
  readonly evidence: string;
  /** Whether an operator has accepted that release, for this step or before. */
  readonly accepted: boolean;
}

export interface GateFacts {
  /** The workload's name. */
  readonly workload: string;
  /** Before the first write to the target; else null. */
  readonly target: TargetFacts | null;
  readonly consent: Consent;
  readonly evidence: WorkloadEvidence;
  /** Pairs of replies compared per second, at present; null if that is not known. */
  readonly comparedPerSecond: number | null;
  readonly gates: Gates;
  /** Who loses writes behind the fence; null if the plan has none. */
  readonly fence: FenceReport | 'unknown' | null;
  /** What the plan's checks answered; null if it has none for the workload. */
  readonly checks: readonly CheckResult[] | null;
  /** Commands that spanned slots or hid their keys: then `live` cannot be taken by shares. */
  readonly spanning: number;
  /** Suspect keys, differences without a verdict among them. */
  readonly suspects: number;
  /** Why all its keys are suspect; null if they are not. */
  readonly suspect: string | null;
  readonly frozen: string | null;
  /** Whether a server does not answer just now. */
  readonly down: boolean;
  /** Of its own commands, by the minute, since it entered its stage. */
  readonly latencies: readonly LatencyWindow[];
  /** What is wrong with the two servers and their roles; null if that is not known. */
  readonly servers: readonly string[] | null;
  /** The servers that are newer than this release knows; empty if they were not asked. */
  readonly newer: readonly AcceptableServer[];
  /** How the settings of the two servers differ; null if they were not asked yet. */
  readonly settings: SettingsComparison | null;
  /** How the users of the two servers differ; null if they were not asked yet. */
  readonly users: UserComparison | null;
  /**
   * Users as whom clients have logged in, and whom the target refused when that was tried just now; null if it was
   * not tried.
   */
  readonly refusedLogins: readonly string[] | null;
  /** Clients that are connected to the source bypassing the proxy; null if it does not list them. */
  readonly bypassing: readonly string[] | null;
  /** Whether its counters are safe on the target's nodes as they are; null if the nodes do not tell. */
  readonly counters: Verdict | 'none' | null;
  /** The region that writes it, where that is another one than the shard's. */
  readonly writtenIn: string | null;
  readonly passed: PassedWrites;
  /** Keys that the target has evicted; null if it does not tell. */
  readonly evicted: number | null;
  /** Keys that the source has evicted since the proxy started. */
  readonly sourceEvicted: number;
}
