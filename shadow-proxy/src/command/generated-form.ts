/** The shape of a row of `forms.generated.ts`. */
import type { Side } from '../route/stage.js';

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
