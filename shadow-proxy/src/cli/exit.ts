/** How the programs end: four exit codes, and errors that say what to do. */
import { CommanderError, InvalidArgumentError, type Command } from 'commander';
import { redactUrl } from '../plan/endpoint.js';

/**
 * 0: it holds. 1: it does not hold, or was refused. 2: wrong option, argument or plan. 3: inconclusive. 130: Ctrl-C, as
 * shells have it.
 */
export const exitCode = { holds: 0, fails: 1, usage: 2, inconclusive: 3, interrupted: 130 } as const;

/** Printed where the proxy answers but serves no shard. */
export const NO_SHARD =
  'the proxy serves no shard: it is starting, or it is the standby of another proxy (see /readyz)';

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

/** The exit code of an error whose message is all that the operator needs; undefined for those that nobody foresaw. */
function exitCodeOf(error: Error & { readonly code?: string }): number | undefined {
  if (error instanceof CliError) return error.exit;
  if (error.name === 'LaunchError' && error.code === 'servers') return exitCode.inconclusive;
  if (['ServerMissing', 'ServerFailed'].includes(error.name)) return exitCode.inconclusive;
  if (error.name === 'StageError' || (error.name === 'LaunchError' && error.code === 'lease')) return exitCode.fails;
  return ['PlanError', 'StateError', 'AdminError', 'LaunchError', 'LogError'].includes(error.name)
    ? exitCode.usage
    : undefined;
}

/** The same for the program and all its commands: errors name the option, then point to `--help`, and exit with 2. */
export function usage(program: Command): Command {
  // A URL in the wrong place is repeated, and not its password.
  program
    .exitOverride()
    .showHelpAfterError(`See ${path(program)} --help`)
    .configureOutput({ outputError: (text, write) => write(redactUrl(text)) });
  for (const command of program.commands) usage(command);
  return program;
}

const path = (command: Command): string =>
  command.parent ? `${path(command.parent)} ${command.name()}` : command.name();

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
    const { message, stack } = error as Error;
    const known = exitCodeOf(error as Error);
    process.stderr.write(`${redactUrl(known === undefined ? (stack ?? message) : message)}\n`);
    process.exitCode = known ?? exitCode.fails;
  }
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** `500ms`, `60s`, `5m` or `1h`, as milliseconds. */
export function duration(text: string): number {
  const [, digits, unit] = /^(\d+)(ms|s|m|h)$/.exec(text) ?? [];
  const value = Number(digits) * UNITS[unit];
  if (!(value > 0)) throw new InvalidArgumentError('Give a number with a unit, such as 500ms, 60s, 5m or 1h.');
  return value;
}

/** `host:port`, or a whole URL. */
export function listenAddress(text: string): string {
  if (text.includes('://') || /:\d+$/.test(text)) return text;
  throw new InvalidArgumentError('Give an address, such as 127.0.0.1:6400.');
}

/** A number from 0 to 100. */
export function percentage(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (!(value >= 0 && value <= 100)) throw new InvalidArgumentError('Give a number from 0 to 100.');
  return value;
}

/** A number above 0. */
export function positive(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (!(value > 0)) throw new InvalidArgumentError('Give a number above 0.');
  return value;
}
