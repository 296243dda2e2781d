/**
 * Runs a step of a runbook that is a single command of this program in this process: another process takes a second to
 * start.
 */
import type { Command } from 'commander';
import type { Outcome, Variables } from '../runbook/expect.js';
import { parseArguments } from './exit.js';

/** Returns the program with the command of this name. */
export type LoadProgram = (name: string) => Promise<Command>;

/** Words, each followed by spaces; quotes are only around whole words. */
const WORDS = /^(?:(?:"[^"]*"|'[^']*'|[^\s"']+)(?: +|$))+$/;
const PREFIX = 'npx --no-install shadow-compare ';

/**
 * The arguments of a command line that consists of `shadow-compare` only: no pipe, no second command, no other
 * variable. Null for any other command line, which needs a shell; also for a command that writes a file, because of its
 * current folder.
 */
export function argumentsOf(command: string, variables: Variables): readonly string[] | null {
  const line = command.trim();
  if (!line.startsWith(PREFIX) || /[|&;<>()`\\\n*?#~]| --out\b/.test(line)) return null;
  if (!WORDS.test(line.slice(PREFIX.length))) return null;
  const words = line.slice(PREFIX.length).match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? [];
  const filled = words.map((word) => {
    const isLiteral = word.startsWith("'");
    const bare = word.replace(/^(["'])(.*)\1$/, '$2');
    return isLiteral ? bare : bare.replace(/\$(\w+)/g, (name, each: string) => variables[each] ?? name);
  });
  return words.some((word, i) => !word.startsWith("'") && word.includes('$') && filled[i].includes('$'))
    ? null
    : filled;
}

/**
 * Runs the command, with the result of a shell: standard output is kept, standard error is shown at once.
 * @param show gets the standard output as it arrives
 */
export async function runInProcess(
  load: LoadProgram,
  words: readonly string[],
  environment: Variables,
  show: (text: string) => void,
): Promise<Outcome> {
  const before = { exitCode: process.exitCode, out: process.stdout.write, err: process.stderr.write };
  const kept = Object.keys(environment).map((name) => [name, process.env[name]] as const);
  let [stdout, printed] = ['', ''];
  process.stdout.write = ((text: string | Uint8Array) => {
    stdout += String(text);
    printed += String(text);
    show(String(text));
    return true;
  }) as typeof process.stdout.write;
  process.stderr.write = ((text: string | Uint8Array, ...more: []) => {
    printed += String(text);
    return before.err.call(process.stderr, text, ...more);
  }) as typeof process.stderr.write;
  Object.assign(process.env, environment);
  process.exitCode = 0;
  try {
    await parseArguments(await load(words[0]), ['node', 'shadow-compare', ...words]);
    return { exit: Number(process.exitCode), stdout, printed };
  } finally {
    process.stdout.write = before.out;
    process.stderr.write = before.err;
    process.exitCode = before.exitCode;
    for (const [name, value] of kept)
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  }
}
