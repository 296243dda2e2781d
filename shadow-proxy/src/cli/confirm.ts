/**
 * All confirmations that commands ask for, in one style. The larger the effect, the more the operator has to type:
 *
 *   a change that has an undo           y or yes
 *   keys that are deleted, overwritten  their number, or --yes <number>
 *   a change without a way back         the migration's name, or --point-of-no-return <name>; no other option passes it
 */
import { createInterface } from 'node:readline';
import { InvalidArgumentError } from 'commander';
import { count } from '../text/figures.js';
import { CliError, exitCode } from './exit.js';
import { stderr } from './output.js';
import { printable } from '../text/printable.js';

/** Parses the value of `--yes <number>`. */
export function keysConfirmed(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Give a whole number: how many keys may be deleted or overwritten.');
}

export const YES = ['--yes <number>', 'confirm this number of keys without a prompt (for scripts)'] as const;

export const POINT_OF_NO_RETURN = [
  '--point-of-no-return <migration>',
  'with complete: the name of the migration, which is asked for otherwise',
] as const;

const UNCHANGED = 'nothing was changed';

interface Question {
  /** The consequence: a sentence without its full stop. */
  readonly what: string;
  /** Whether the terminal already shows it. */
  readonly shown?: boolean;
  /** Whether standard output is JSON: then there is no prompt. */
  readonly json?: boolean;
  /** The code of the error if the change is not confirmed. */
  readonly code?: string;
  /** The state if it is not confirmed. */
  readonly otherwise?: string;
}

/**
 * Asks for yes or no.
 * @param option the option that confirms it without a terminal
 * @throws {CliError} code `not-confirmed`
 */
export async function confirmYes(question: Question, asked: string, option: string): Promise<void> {
  mustAsk(question, option);
  await ask(question, `${asked} [y/N] `, 'Answer y or n.', (answer) =>
    /^y(es)?$/i.test(answer) ? true : isNo(answer) ? false : null,
  );
}

/**
 * Asks for the number of keys, unless `yes` contains it.
 * @param question the consequence for the keys
 * @throws {CliError} code `not-confirmed`, with nothing changed
 */
export async function confirmKeys(keys: number, question: Question, yes: number | undefined): Promise<void> {
  const counted = { otherwise: 'nothing was deleted or overwritten', ...question };
  const full = { ...counted, what: `${question.what}: ${count(keys, 'key')}` };
  if (yes !== undefined) {
    if (yes >= keys) return;
    throw refused(full, `--yes ${yes} is too small: ${full.otherwise}`, exitCode.fails);
  }
  mustAsk(full, `--yes ${keys}`);
  await askFor(full, String(keys), (answer) => answer.replaceAll(/[,_ ]/g, ''));
}

/**
 * Asks for the migration's name, unless `named` contains it.
 * @throws {CliError} code `point-of-no-return`, with nothing changed
 */
export async function confirmEnd(migration: string, question: Question, named: string | undefined): Promise<void> {
  const full = { code: 'point-of-no-return', ...question };
  if (named === migration) return;
  if (named !== undefined)
    throw refused(
      full,
      `--point-of-no-return ${named} is not the name of the migration, ${migration}: ${UNCHANGED}`,
      exitCode.usage,
    );
  mustAsk(full, `--point-of-no-return ${migration}`);
  await askFor(full, migration);
}

/** The warning before workloads move to `complete`. */
export const endOf = (workloads: readonly string[]): string =>
  `Point of no return: in stage complete, ${workloads.join(', ')} ${workloads.length === 1 ? 'is' : 'are'} written to the target only. The only way back is a backfill from the target to the source`;

/** Asks for a text that must be typed as shown. */
const askFor = (question: Question, wanted: string, read = (answer: string): string => answer): Promise<void> =>
  ask(question, `Type ${wanted} to continue: `, `This is not ${wanted}; n stops.`, (answer) =>
    read(answer) === wanted ? true : isNo(answer) ? false : null,
  );

const isNo = (answer: string): boolean => /^(no?)?$/i.test(answer);

/** Asks again until the answer is understood. The end of the input means no. */
async function ask(
  question: Question,
  prompt: string,
  hint: string,
  understood: (answer: string) => boolean | null,
): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Lines that are typed in advance wait for their question.
  const lines = terminal[Symbol.asyncIterator]();
  let interrupted = false;
  let hasEnded = false;
  terminal.once('close', () => (hasEnded = true));
  terminal.once('SIGINT', () => {
    interrupted = true;
    terminal.close();
  });
  try {
    if (question.shown !== true) stderr.write(`${question.what}.\n`);
    for (;;) {
      // Node 24 refuses to prompt after the end of the input, although lines may still wait.
      if (hasEnded) stderr.write(printable(prompt));
      else {
        terminal.setPrompt(printable(prompt));
        terminal.prompt();
      }
      const { value: answer, done = false } = (await lines.next()) as IteratorResult<string, undefined>;
      const yes = done ? false : understood(answer!.trim());
      if (yes === true) return;
      if (yes === null) {
        stderr.write(`${hint}\n`);
        continue;
      }
      if (done) stderr.write('\n');
      throw new CliError(
        question.code ?? 'not-confirmed',
        `Not confirmed: ${question.otherwise ?? UNCHANGED}`,
        interrupted ? exitCode.interrupted : exitCode.fails,
      );
    }
  } finally {
    terminal.close();
  }
}

/** @throws {CliError} if no person can be asked */
function mustAsk(question: Question, option: string): void {
  if (question.json !== true && process.stdin.isTTY) return;
  const otherwise = question.otherwise ?? UNCHANGED;
  throw refused(question, `No terminal to ask on: ${otherwise}. Confirm with ${option}`, exitCode.usage);
}

const refused = ({ what, code = 'not-confirmed' }: Question, why: string, exit: CliError['exit']): CliError =>
  new CliError(code, `${what}. ${why}`, exit);
