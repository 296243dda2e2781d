/** Tests that cannot run say so. */
import type { TestContext } from 'node:test';
import { MEMTIER } from '../driver/memtier.js';
import { onPath } from '../../shadow-proxy/src/local/program.js';

/** False, with the test skipped and a line on the error stream, where memtier_benchmark is missing. */
export function needsMemtier(t: TestContext): boolean {
  if (onPath(MEMTIER) !== null) return true;
  const reason = `NOT TESTED: "${t.name}" needs memtier_benchmark on the PATH`;
  process.stderr.write(`${reason}\n`);
  t.skip(reason);
  return false;
}
