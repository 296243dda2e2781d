/** How the programs exit: four exit codes, and error messages that say what to do. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CommanderError, InvalidArgumentError, type Command } from 'commander';
import { redactUrl } from '../plan/endpoint.js';
import { stderr } from './output.js';
import { printableLines } from '../text/printable.js';

/**
 * 0: success. 1: failure, or refused. 2: wrong option, argument or plan. 3: inconclusive. 130: Ctrl-C, as in shells.
 */
export const exitCode = { holds: 0, fails: 1, usage: 2, inconclusive: 3, interrupted: 130 } as const;

/** Printed if the proxy answers but serves no shard. */
export const NO_SHARD =
  'the proxy serves no shard: it is starting, or it is the standby of another proxy (see /readyz)';

/** The command cannot continue. The message is all that the operator needs. */
export class CliError extends Error {
  override readonly name = 'CliError';
  constructor(
    readonly code: string,
    message: string,
    readonly exit: (typeof exitCode)[keyof typeof exitCode],
    /** Details of a refusal, from the proxy. */
    readonly details?: unknown,
  ) {
    super(message);
  }
}

/** The message and exit code for an error. */
export interface Failure {
  readonly message: string;
  readonly exit: (typeof exitCode)[keyof typeof exitCode];
}

/** Exit codes of errors whose message is all that the operator needs, by the name of the error. */
const FORESEEN: Readonly<Record<string, Failure['exit']>> = {
  AskError: exitCode.inconclusive,
  ServerFailed: exitCode.inconclusive,
  ServerMissing: exitCode.inconclusive,
  StageError: exitCode.fails,
  AdminError: exitCode.usage,
  LogError: exitCode.usage,
  PlanError: exitCode.usage,
  RunbookError: exitCode.usage,
  SentinelError: exitCode.usage,
  StateError: exitCode.usage,
};
const LAUNCH: Readonly<Record<string, Failure['exit']>> = { servers: exitCode.inconclusive, lease: exitCode.fails };

/** If this environment variable is set, errors are printed with their stack. */
const STACK = 'SHADOW_PROXY_STACK';

/** The only place at which an error becomes a message and an exit code. No message contains a stack or a password. */
export function failureOf(thrown: unknown): Failure {
  const error = (thrown instanceof Error ? thrown : new Error(String(thrown))) as NodeJS.ErrnoException;
  const { name, code = '', stack } = error;
  const known =
    error instanceof CliError ? error.exit : name === 'LaunchError' ? (LAUNCH[code] ?? exitCode.usage) : FORESEEN[name];
  // The system's message names the call and the file: `EACCES: permission denied, open 'x'`.
  const isSystem = error.syscall !== undefined;
  const text =
    known === undefined && !isSystem
      ? `unexpected error: ${error.message}. Please report it, with what ${STACK}=1 adds to this message`
      : error.message;
  const shown = process.env[STACK] === '1' ? `${text}\n${stack ?? ''}` : text;
  return { message: redactUrl(shown), exit: known ?? exitCode.inconclusive };
}

/** The same for the program and all its commands: errors name the option, point to `--help`, and exit with code 2. */
export function usage(program: Command): Command {
  // A URL in the wrong place is repeated without its password.
  program
    .exitOverride()
    .showHelpAfterError(`See ${path(program)} --help`)
    .configureOutput({ outputError: (text, write) => write(printableLines(redactUrl(text))) });
  for (const command of program.commands) usage(command);
  return program;
}

const path = (command: Command): string =>
  command.parent ? `${path(command.parent)} ${command.name()}` : command.name();

const output = new AbortController();
/**
 * Aborted when the reader of the standard output has ended, as `head` does after its lines. Then repeated output ends.
 */
export const outputClosed: AbortSignal = output.signal;

/**
 * The reader of the output may end first: a change still runs to its end, and its exit code stays. Any other write
 * error, such as a full disk, is reported.
 */
export function watchOutput(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (!output.signal.aborted && error.code !== 'EPIPE') {
      stderr.write(`the output cannot be written (${error.code})\n`);
      process.once('exit', () => (process.exitCode ||= exitCode.inconclusive));
    }
    output.abort();
  });
  process.stderr.on('error', () => undefined);
}

/** Repeats until Ctrl-C, or until the reader of the output has ended. */
export async function repeat(everyMs: number, once: () => Promise<void>): Promise<void> {
  while (!outputClosed.aborted) {
    await once();
    await sleep(everyMs, undefined, { signal: outputClosed }).catch(() => undefined);
  }
}

function fail(thrown: unknown): void {
  const { message, exit } = failureOf(thrown);
  stderr.write(`${message}\n`);
  process.exitCode = exit;
}

/** Parses the command line, runs the command, and sets the exit code. */
export async function parseArguments(program: Command, argv: readonly string[] = process.argv): Promise<void> {
  // A command may wait for a promise only, which does not keep the process alive.
  const alive = setInterval(() => undefined, 60_000);
  try {
    await program.parseAsync(argv);
  } catch (error) {
    // commander has already printed the message. Asking for help or the version is no error.
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? exitCode.holds : exitCode.usage;
    else fail(error);
  } finally {
    clearInterval(alive);
  }
}

/** An uncaught error ends the program like any other: with its message, and without a stack. */
export function exitOnUncaughtErrors(): void {
  process.on('uncaughtException', (error) => {
    fail(error);
    process.exit();
  });
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Reads `500ms`, `60s`, `5m` or `1h` as milliseconds. */
export function duration(text: string): number {
  const [, digits, unit] = /^(\d+)(ms|s|m|h)$/.exec(text) ?? [];
  const value = Number(digits) * UNITS[unit];
  if (!(value > 0)) throw new InvalidArgumentError('Give a number with a unit, such as 500ms, 60s, 5m or 1h.');
  return value;
}

/** Accepts `host:port`, or a whole URL. */
export function listenAddress(text: string): string {
  if (text.includes('://') || /:\d+$/.test(text)) return text;
  throw new InvalidArgumentError('Give an address, such as 127.0.0.1:6400.');
}

/** A share of the keys above 0: a share of 0 would check nothing. */
export function share(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (!(value > 0 && value <= 100)) throw new InvalidArgumentError('Give a number above 0, up to 100.');
  return value;
}

/** A number from 0 to 100. */
export function percentage(text: string): number {
  const value = decimalIn(text);
  if (!(value >= 0 && value <= 100)) throw new InvalidArgumentError('Give a number from 0 to 100.');
  return value;
}

/** A number above 0, or `none`. */
export function positiveOrNone(text: string): number | 'none' {
  return text === 'none' ? text : numberAbove0(text, 'Give a number above 0, or none.');
}

/** A number above 0. */
export function positive(text: string): number {
  return numberAbove0(text, 'Give a number above 0.');
}

/** @param refusal what is said of any other text */
function numberAbove0(text: string, refusal: string): number {
  const value = decimalIn(text);
  if (!(value > 0)) throw new InvalidArgumentError(refusal);
  return value;
}

/** NaN if the text is no decimal number without a sign. */
const decimalIn = (text: string): number => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN);
