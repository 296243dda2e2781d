/** Additions to `--help` and docs/cli.md for a command: its exit codes, and an example. */
import type { Command } from 'commander';
import { typed } from '../text/invocation.js';
import { exitCode } from './exit.js';

export interface Manual {
  /** A command line that begins with the program. */
  readonly example: string;
  /** The meaning of each exit code for this command, in the order of the codes. */
  readonly exits: readonly (readonly [code: number, meaning: string])[];
}

/** The meanings of a command's exit codes; code 2 is the same for all commands. */
interface Exits {
  readonly 0: string;
  readonly 1?: string;
  readonly 3?: string;
}

export const USAGE = 'wrong option, argument or plan';
/** Code 3 of the commands that ask a proxy. */
export const NO_PROXY = 'no proxy answers';

const manuals = new WeakMap<Command, Manual>();

/** Adds example and exit codes to the help of a command. */
export function withManual(command: Command, example: string, { 0: holds, 1: fails, 3: inconclusive }: Exits): Command {
  const exits = [
    [exitCode.holds, holds],
    [exitCode.fails, fails],
    [exitCode.usage, USAGE],
    [exitCode.inconclusive, inconclusive],
  ] as const;
  const manual = {
    example,
    exits: exits.flatMap(([code, meaning]) => (meaning === undefined ? [] : [[code, meaning] as const])),
  };
  manuals.set(command, manual);
  const lines = manual.exits.map(([code, meaning]) => `  ${code}  ${meaning}`);
  return command.addHelpText('after', `\nExit codes:\n${lines.join('\n')}\n\nExample:\n  ${typed(example)}`);
}

export const manualOf = (command: Command): Manual | undefined => manuals.get(command);
