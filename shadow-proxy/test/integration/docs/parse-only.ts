/**
 * Preloaded (`node --import`) before a program that reads its command line with commander: in place of running, it
 * prints for each command line of $COMMAND_LINES (JSON, an array of arrays) what commander says against it: `{ code,
 * message }`, or null.
 */
import { writeSync } from 'node:fs';
import { Command, CommanderError } from 'commander';

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

function judge(this: Command): never {
  disarm(this);
  const said = (JSON.parse(process.env.COMMAND_LINES!) as string[][]).map((line) => {
    try {
      parse.call(this, line, { from: 'user' });
      return null;
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      return error.exitCode === 0 ? null : { code: error.code, message: error.message };
    }
  });
  writeSync(1, `${JSON.stringify(said)}\n`);
  process.exit(0);
}

Object.assign(Command.prototype, { parse: judge, parseAsync: judge });
