/** What the linter found in one line. */

export interface Finding {
  readonly check: 'terms' | 'sentences' | 'npx';
  /** Relative to the root. */
  readonly file: string;
  /** From 1 on. */
  readonly line: number;
  readonly message: string;
}
