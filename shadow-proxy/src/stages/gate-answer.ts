/** What a gate says. */

export type Answer = 'yes' | 'no' | 'unknown';

export interface GateAnswer {
  readonly answer: Answer;
  /** What was seen, and what is wanted. */
  readonly evidence: string;
  /** What to run first so that a closed gate opens, for `shadow-compare`. */
  readonly command?: string;
  /**
   * Of a closed gate that counts: in how many ms it opens at the present rate; null where that cannot be estimated.
   * Absent where a gate does not open by waiting.
   */
  readonly opensInMs?: number | null;
}

/** @param command only for a gate that is closed */
export const says = (holds: boolean, evidence: string, command?: string): GateAnswer => ({
  answer: holds ? 'yes' : 'no',
  evidence,
  ...(!holds && command !== undefined && { command }),
});

export const unknown = (evidence: string, command?: string): GateAnswer => ({
  answer: 'unknown',
  evidence,
  ...(command !== undefined && { command }),
});
