/** What a gate says. */

export type Answer = 'yes' | 'no' | 'unknown';

export interface GateAnswer {
  readonly answer: Answer;
  /** What was seen, and what is wanted. */
  readonly evidence: string;
}

export const says = (holds: boolean, evidence: string): GateAnswer => ({ answer: holds ? 'yes' : 'no', evidence });

export const unknown = (evidence: string): GateAnswer => ({ answer: 'unknown', evidence });
