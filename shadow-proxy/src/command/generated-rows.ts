/** The rows of generated tables. */
import type { Side } from '../route/stage.js';

/** A row of `forms.generated.ts`; see there. */
export type GeneratedForm = readonly [
  command: string,
  lacks: Side,
  how: 'refused' | 'reply',
  /** Separated by spaces; a token, `TOKEN:upper`, `<name>`, `<name>...`. */
  words: string,
  from: number,
  example: string,
  says: string,
  ...strings: string[],
];

/** A row of `rights.generated.ts`; see there. */
export type GeneratedRight = readonly [
  command: string,
  wider: 'source' | 'target',
  words: string,
  ways: string,
  example: string,
];
