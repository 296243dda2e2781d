/** What a gate says. */

export type Answer = 'yes' | 'no' | 'unknown';

export interface GateAnswer {
  readonly answer: Answer;
  /** What was seen, and what is wanted. */
  readonly evidence: string;
  /** What to run first so that a closed gate opens, for `shadow-compare`. */
  readonly command?: string;
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
