/** What a gate says. */

export type Answer = 'yes' | 'no' | 'unknown';

export interface GateAnswer {
  readonly answer: Answer;
  /** What was seen, and what is wanted. */
  readonly evidence: string;
  /** What to run first so that a closed gate opens, for `shadow-compare`. */
  readonly command?: string;
  /**
   * Of a closed gate that opens by waiting: in how many ms, at the present rate; null if that is soon, and cannot be
   * estimated. Absent if an operator has to act.
   */
  readonly opensInMs?: number | null;
}

/** @param command only for a gate that is closed */
export const says = (holds: boolean, evidence: string, command?: string): GateAnswer => ({
  answer: holds ? 'yes' : 'no',
  evidence,
  ...(!holds && command !== undefined && { command }),
});

/** Closed, and open soon without anybody's help. */
export const soonOpen = (gate: GateAnswer): GateAnswer => (gate.answer === 'yes' ? gate : { ...gate, opensInMs: null });

export const unknown = (evidence: string, command?: string): GateAnswer => ({
  answer: 'unknown',
  evidence,
  ...(command !== undefined && { command }),
});
