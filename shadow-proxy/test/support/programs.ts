/** The programs as the files that tests start; bundled in a run of many files. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DIST = process.env.TEST_PROGRAMS ?? fileURLToPath(new URL('../../../', import.meta.url));

export const PROGRAMS = {
  'shadow-proxy': join(DIST, 'shadow-proxy/src/main.js'),
  'shadow-compare': join(DIST, 'shadow-proxy/src/cli/shadow-compare.js'),
  /** Runs many commands of `shadow-compare`. */
  'many-commands': join(DIST, 'shadow-proxy/test/integration/cli/many-commands.js'),
};
