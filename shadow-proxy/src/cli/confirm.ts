/** Questions that only a number answers: how many keys would be deleted or overwritten. */
import { createInterface } from 'node:readline/promises';
import { InvalidArgumentError } from 'commander';
import { count } from '../text/figures.js';
import { CliError, exitCode } from './exit.js';

/** For `--yes <number>`. */
export function keysConfirmed(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Give a whole number: how many keys may be deleted or overwritten.');
}

export const YES = ['--yes <number>', 'confirm this number of keys without a prompt (for scripts)'] as const;

/**
 * Asks for the number of keys on the terminal, unless `yes` gives it.
 * @param what would happen to them
 * @throws {CliError} code `not-confirmed`, with nothing changed
 */
export async function confirmKeys(
  keys: number,
  what: string,
  { yes, json }: { readonly yes?: number; readonly json?: boolean },
): Promise<void> {
  const told = `${what}: ${count(keys, 'key')}`;
  const refused = (why: string, exit: CliError['exit'] = exitCode.fails): CliError =>
    new CliError('not-confirmed', `${told}. ${why}`, exit);
  if (yes !== undefined) {
    if (yes >= keys) return;
    throw refused(`--yes ${yes} is too small: nothing was deleted or overwritten`);
  }
  if (json === true || !process.stdin.isTTY)
    throw refused(
      `No terminal to ask on: confirm with --yes ${keys}. Nothing was deleted or overwritten`,
      exitCode.usage,
    );
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    process.stderr.write(`${told}.\n`);
    if ((await terminal.question(`Type ${keys} to continue: `)).trim() !== String(keys))
      throw refused('Not confirmed: nothing was deleted or overwritten');
  } finally {
    terminal.close();
  }
}
