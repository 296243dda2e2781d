/** Programs that tests run. */
import { spawnSync } from 'node:child_process';

/** Exit code, and all that it said. */
export function run(
  program: string,
  ...args: readonly string[]
): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return { status, said: `${stdout}${stderr}` };
}
