/** The answer of a gate. */

export type Answer = 'yes' | 'no' | 'unknown';

export interface GateAnswer {
  readonly answer: Answer;
  /** The observation, and what is needed. */
  readonly evidence: string;
  /** The command for `shadow-compare` that helps to open a closed gate. */
  readonly command?: string;
  /**
   * For a closed gate that opens by waiting: after how many ms, at the present rate; null if that is soon but cannot be
   * estimated. Absent if an operator has to act.
   */
  readonly opensInMs?: number | null;
}

/** @param command only for a closed gate */
export const says = (holds: boolean, evidence: string, command?: string): GateAnswer => ({
  answer: holds ? 'yes' : 'no',
  evidence,
  ...(!holds && command !== undefined && { command }),
});

/** The same answer, for a gate that will open soon without help. */
export const soonOpen = (gate: GateAnswer): GateAnswer => (gate.answer === 'yes' ? gate : { ...gate, opensInMs: null });

export const unknown = (evidence: string, command?: string): GateAnswer => ({
  answer: 'unknown',
  evidence,
  ...(command !== undefined && { command }),
});
