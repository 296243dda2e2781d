/** Programs that tests run; a test that cannot run says so. */
import { spawnSync } from 'node:child_process';
import type { TestContext } from 'node:test';
import { onPath } from '../../shadow-proxy/src/local/program.js';

/**
 * False, with the test skipped and a line on the error stream, where the program is missing. @param from the package
 * that has it
 */
export function needsProgram(t: TestContext, program: string, from: string): boolean {
  if (onPath(program) !== null) return true;
  const reason = `NOT TESTED: "${t.name}" needs ${program} on the PATH (${from})`;
  process.stderr.write(`${reason}\n`);
  t.skip(reason);
  return false;
}

/** Exit code, and all that it said. */
export function run(
  program: string,
  ...args: readonly string[]
): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return { status, said: `${stdout}${stderr}` };
}
