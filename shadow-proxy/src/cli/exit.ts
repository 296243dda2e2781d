/** How the programs end: four exit codes, and errors that say what to do. */
import { CommanderError, InvalidArgumentError, type Command } from 'commander';

/** 0 it holds, 1 it does not, 2 wrong usage or plan, 3 it could not be told. */
export const exitCode = { holds: 0, fails: 1, usage: 2, inconclusive: 3 } as const;

/** The command cannot go on; its message is all that the operator needs. */
export class CliError extends Error {
  override readonly name = 'CliError';
  constructor(
    readonly code: string,
    message: string,
    readonly exit: (typeof exitCode)[keyof typeof exitCode],
  ) {
    super(message);
  }
}

/** Errors of the operator's making, told by message and without a stack. */
const TOLD: Readonly<Record<string, number>> = {
  PlanError: exitCode.usage,
  StateError: exitCode.usage,
  AdminError: exitCode.usage,
};

/** The same for the program and all its commands: errors name the option, then point to `--help`, and exit with 2. */
export function usage(program: Command): Command {
  program.exitOverride().showHelpAfterError(`See ${path(program)} --help`);
  for (const command of program.commands) usage(command);
  return program;
}

const path = (command: Command): string => (command.parent ? `${path(command.parent)} ${command.name()}` : command.name());

/** Parses the command line, runs the command, and sets the exit code. */
export async function parseArguments(program: Command, argv: readonly string[] = process.argv): Promise<void> {
  try {
    await program.parseAsync(argv);
  } catch (error) {
    if (error instanceof CommanderError) {
      // It has spoken already; asking for help or the version is no error.
      process.exitCode = error.exitCode === 0 ? exitCode.holds : exitCode.usage;
      return;
    }
    const { name, message, stack } = error as Error;
    const known = error instanceof CliError ? error.exit : TOLD[name];
    process.stderr.write(`${known === undefined ? (unexpected(error) ?? stack) : message}\n`);
    process.exitCode = known ?? exitCode.fails;
  }
}

/** Errors of the network say enough without a stack. */
function unexpected(error: unknown): string | undefined {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === undefined ? undefined : `${message} (${code})`;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** `500ms`, `60s`, `5m` or `1h`, as milliseconds. */
export function duration(text: string): number {
  const [, digits, unit] = /^(\d+)(ms|s|m|h)$/.exec(text) ?? [];
  const value = Number(digits) * UNITS[unit];
  if (!(value > 0)) throw new InvalidArgumentError('A number and its unit is allowed: 500ms, 60s, 5m or 1h.');
  return value;
}

/** A number from 0 to 100. */
export function percentage(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (!(value >= 0 && value <= 100)) throw new InvalidArgumentError('A number from 0 to 100 is allowed.');
  return value;
}
