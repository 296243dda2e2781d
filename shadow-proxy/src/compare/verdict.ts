/** What a comparison is about, and what it may say. */
import type { Reply } from '../resp/decode.js';

/** A command as the comparison needs it. */
export interface CommandView {
  /** In lower case, with the subcommand where the command has one: `hgetall`, `xinfo|stream`. */
  readonly name: string;
  /** `args[0]` is the command's name. */
  readonly args: readonly Buffer[];
  /** The commands of the transaction, for `exec`. */
  readonly inner?: readonly CommandView[];
}

export interface Tolerances {
  /** By how much two times to live may differ, in ms. */
  readonly ttlMs: number;
  /** By how much the mirror's clock is ahead of the authority's, in ms; 0 when absent. */
  readonly clockAheadMs?: number;
  /** Whether both servers run the same software in the same version; true when absent. */
  readonly sameRelease?: boolean;
}

/** Two replies to one command that are not equal byte by byte. */
export interface Difference {
  readonly command: CommandView;
  readonly authority: Reply;
  readonly mirror: Reply;
  readonly limits: Tolerances;
}

/**
 * The rule that allows a difference. The first thirteen decide by the replies alone (rules.ts), the next two by
 * evidence (absence.ts), and the last one by the plan.
 */
export type RuleName =
  | 'unordered'
  | 'random'
  | 'ttl-tolerance'
  | 'cursor'
  | 'encoding'
  | 'time-dependent'
  | 'newer-fields'
  | 'estimates'
  | 'error-wording'
  | 'null-form'
  | 'score-form'
  | 'hll-cache'
  | 'server-identity'
  | 'expiry-edge'
  | 'evicted'
  | 'unsupported';

export type MismatchKind =
  /** Both sides have a value, and the values differ. */
  | 'value'
  | 'type'
  /** Aggregates of different sizes. */
  | 'length'
  /** The same elements in another order. */
  | 'order'
  /** One side's reply is that for a missing key, and the other's is not. */
  | 'missing-on-mirror'
  | 'missing-on-authority'
  /** An error on one side, or two different ones. */
  | 'error'
  /** One side does not know the command, or its options. */
  | 'unsupported';

export interface Mismatch {
  readonly kind: 'mismatch';
  readonly what: MismatchKind;
  /** Where the replies' bytes differ first. */
  readonly offset?: number;
}

export type Verdict =
  | { readonly kind: 'match' }
  | { readonly kind: 'allowed'; readonly rule: RuleName }
  | Mismatch
  /** The replies do not decide; `reason` is one of a few fixed words. */
  | { readonly kind: 'inconclusive'; readonly reason: string };

const SEVERITY: Record<Verdict['kind'], number> = { match: 0, allowed: 1, inconclusive: 2, mismatch: 3 };

/** Whether `a` is a worse verdict than `b`. */
export const isWorse = (a: Verdict, b: Verdict): boolean => SEVERITY[a.kind] > SEVERITY[b.kind];
