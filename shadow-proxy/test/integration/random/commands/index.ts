import type { Rule } from '../command.js';
import { HASHES } from './hashes.js';
import { KEYS } from './keys.js';
import { LISTS } from './lists.js';
import { SCRIPTS } from './scripts.js';
import { SETS } from './sets.js';
import { SORTED_SETS } from './zsets.js';
import { STREAMS } from './streams.js';
import { STRINGS } from './strings.js';

/** Every command that the driver sends, with how often. */
export const RULES: readonly Rule[] = [
  ...KEYS,
  ...STRINGS,
  ...LISTS,
  ...HASHES,
  ...SETS,
  ...SORTED_SETS,
  ...STREAMS,
  ...SCRIPTS,
];
