/** Questions that only a number answers: how many keys would be deleted or overwritten. */
import { createInterface } from 'node:readline/promises';
import { InvalidArgumentError } from 'commander';
import { count } from '../text/figures.js';
import { CliError, exitCode } from './exit.js';

/** For `--yes <number>`. */
export function keysConfirmed(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('A whole number is allowed: how many keys may be deleted or overwritten.');
}

export const YES = ['--yes <number>', 'confirm so many keys without a question, as a script has to'] as const;

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
    throw refused(`--yes ${yes} is less: nothing of that was done`);
  }
  if (json === true || !process.stdin.isTTY)
    throw refused(
      `This is no terminal to ask on: confirm with --yes ${keys}. Nothing of that was done`,
      exitCode.usage,
    );
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    process.stderr.write(`${told}.\n`);
    if ((await terminal.question(`Type ${keys} to go on: `)).trim() !== String(keys))
      throw refused('Nothing of that was done');
  } finally {
    terminal.close();
  }
}
