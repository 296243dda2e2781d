/**
 * Runs programs that read their command line with commander, in one process, as far as that. In place of what they do,
 * it prints by file what commander says against each command line of $COMMAND_LINES (JSON: arrays, by file):
 * `{ code, message }`, or null. A program that reads no command line is an error.
 */
import { writeSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Command, CommanderError } from 'commander';

type Said = { readonly code: string; readonly message: string } | null;

const parse = Reflect.get(Command.prototype, 'parse') as (
  this: Command,
  argv: readonly string[],
  options: { readonly from: 'user' },
) => Command;

/** Nothing is run, printed or ended. */
function disarm(command: Command): void {
  command
    .exitOverride((error) => {
      throw error;
    })
    .configureOutput({ writeOut: () => undefined, writeErr: () => undefined, outputError: () => undefined });
  if (command.commands.length === 0) command.action(() => undefined);
  for (const each of command.commands) disarm(each);
}

function judge(command: Command, lines: readonly (readonly string[])[]): Said[] {
  disarm(command);
  return lines.map((line) => {
    try {
      parse.call(command, line, { from: 'user' });
      return null;
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      return error.exitCode === 0 ? null : { code: error.code, message: error.message };
    }
  });
}

/** Ends a program where it would go on. */
class Read extends Error {}

/** The program's file is loaded until it reads its command line, and never goes on from there. */
function load(file: string, lines: readonly (readonly string[])[]): Promise<Said[]> {
  return new Promise((resolve, reject) => {
    const read = (command: Command): void => {
      try {
        resolve(judge(command, lines));
      } catch (error) {
        reject(error as Error);
      }
    };
    Object.assign(Command.prototype, {
      parse(this: Command): never {
        read(this);
        throw new Read();
      },
      parseAsync(this: Command): Promise<never> {
        read(this);
        return new Promise(() => undefined);
      },
    });
    import(pathToFileURL(file).href).then(
      () => setImmediate(reject, new Error(`${file} has read no command line`)),
      reject,
    );
  });
}

process.on('unhandledRejection', (error) => {
  if (!(error instanceof Read)) throw error;
});
const exit = process.exit.bind(process);
process.exit = () => {
  throw new Read();
};

const said: Record<string, Said[]> = {};
for (const [file, lines] of Object.entries(JSON.parse(process.env.COMMAND_LINES!) as Record<string, string[][]>))
  said[file] = await load(file, lines);
writeSync(1, `${JSON.stringify(said)}\n`);
exit(0);
