/** The commands of a server, by its own `COMMAND`. */
import { listedCommands, type ListedCommand } from '../command/listed.js';
import { commandCategories, supportedCommands, type CommandSpec } from '../command/table.js';
import { decodeReply, isError, isNull, text, type Reply } from '../resp/decode.js';

/**
 * The commands that the kit itself sends: to copy keys, to read databases, and to replicate what happened at the other
 * server.
 */
export const NEEDED = ['DEL', 'DUMP', 'EXEC', 'EXISTS', 'MULTI', 'PTTL', 'RESTORE', 'SCAN', 'SELECT'] as const;

/**
 * The commands that a server does not know by their names. `COMMAND` lists a renamed command by its former name; only
 * `COMMAND INFO` looks for the present one.
 * @param info of `COMMAND INFO` with these names; an error names none
 */
export const notNamed = <T extends string>(names: readonly T[], { items }: Reply): T[] =>
  items === null ? [] : names.filter((_, i) => items[i] !== undefined && isNull(items[i]));

/** What a server's reply to `COMMAND` says. */
export interface Commands {
  readonly names: ReadonlySet<string>;
  readonly categories: ReadonlyMap<string, ReadonlySet<string>>;
  readonly listed: ReadonlyMap<string, ListedCommand>;
}

/** How many replies are kept. Most servers of a plan give one of two: that of the sources, or that of the targets. */
const KEPT = 4;
const kept: { readonly reply: Buffer; readonly commands: Commands }[] = [];

/** @param reply the bytes of a reply to `COMMAND` @returns the text of an error, if it is one */
export function commandsIn(reply: Buffer): Commands | string {
  const known = kept.find((each) => each.reply.equals(reply));
  if (known !== undefined) return known.commands;
  const decoded = decodeReply(reply).reply;
  if (isError(decoded)) return text(decoded);
  const commands = {
    names: supportedCommands(decoded),
    categories: commandCategories(decoded),
    listed: listedCommands(decoded),
  };
  if (kept.length === KEPT) kept.shift();
  kept.push({ reply: Buffer.from(reply), commands });
  return commands;
}

const NONE: Commands = { names: new Set(), categories: new Map(), listed: new Map() };

export class ServerCommands {
  #commands = NONE;
  /** By command id: 0 not asked yet, 1 known, 2 not known. */
  readonly #knows = new Uint8Array(1024);

  learn(commands: Commands): void {
    this.#commands = commands;
    this.#knows.fill(0);
  }

  /** In lower case, as in `config|get`; empty before the server was asked. */
  get names(): ReadonlySet<string> {
    return this.#commands.names;
  }

  /** What the server says of a command, by its name in lower case; undefined if it has no such command. */
  listed(name: string): ListedCommand | undefined {
    return this.#commands.listed.get(name);
  }

  /** ACL categories by command. */
  get categories(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#commands.categories;
  }

  /** Whether the server has the command; true before it was asked. */
  knows(spec: CommandSpec): boolean {
    const known = this.#knows[spec.id];
    if (known !== 0) return known === 1;
    if (this.names.size === 0) return true;
    const answer = this.names.has(spec.name);
    this.#knows[spec.id] = answer ? 1 : 2;
    return answer;
  }
}
