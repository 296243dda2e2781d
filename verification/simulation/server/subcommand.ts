/** Commands with subcommands, and how each engine refuses one that it does not know. */
import { Refusal } from './reply.js';
import { lower } from './options.js';
import type { Client, Run, State } from './state.js';

export const unknownSubcommand = (server: State, args: readonly string[]): Refusal =>
  new Refusal(
    server.engine === 'redis'
      ? `ERR unknown subcommand or wrong number of arguments for '${args[1].slice(0, 128)}'. Try ${args[0].toUpperCase()} HELP.`
      : `ERR Unknown subcommand or wrong number of arguments for '${args[1]}'. Try ${args[0].toUpperCase()} HELP.`,
  );

/** One function for all subcommands, by `args[1]` in lower case. */
export const container =
  (runs: Readonly<Record<string, Run>>): Run =>
  (client: Client, args) => {
    const run = runs[lower(args[1])];
    if (run === undefined) throw unknownSubcommand(client.server, args);
    return run(client, args);
  };
