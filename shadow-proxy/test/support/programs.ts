/** The programs as the files that tests start; bundled, as users have them, in a run of many files. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const place = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const SRC = process.env.TEST_PROGRAMS ?? place('../../src/');

export const PROGRAMS = {
  'shadow-proxy': join(SRC, 'main.js'),
  'shadow-compare': join(SRC, 'cli/shadow-compare.js'),
  /** Runs many commands of `shadow-compare`. */
  'many-commands': process.env.TEST_COMMANDS ?? place('../integration/cli/many-commands.js'),
};
