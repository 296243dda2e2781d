/** The commands of a server, by its own `COMMAND`. */
import { listedCommands, type ListedCommand } from '../command/listed.js';
import { commandCategories, supportedCommands, type CommandSpec } from '../command/table.js';
import { isNull, type Reply } from '../resp/decode.js';

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

export class ServerCommands {
  #names: ReadonlySet<string> = new Set();
  #categories: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  #listed: ReadonlyMap<string, ListedCommand> = new Map();
  /** By command id: 0 not asked yet, 1 known, 2 not known. */
  readonly #knows = new Uint8Array(1024);

  /** @param reply of `COMMAND` */
  learn(reply: Reply): void {
    this.#names = supportedCommands(reply);
    this.#categories = commandCategories(reply);
    this.#listed = listedCommands(reply);
    this.#knows.fill(0);
  }

  /** In lower case, as in `config|get`; empty before the server was asked. */
  get names(): ReadonlySet<string> {
    return this.#names;
  }

  /** What the server says of a command, by its name in lower case; undefined if it has no such command. */
  listed(name: string): ListedCommand | undefined {
    return this.#listed.get(name);
  }

  /** ACL categories by command. */
  get categories(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#categories;
  }

  /** Whether the server has the command; true before it was asked. */
  knows(spec: CommandSpec): boolean {
    const known = this.#knows[spec.id];
    if (known !== 0) return known === 1;
    if (this.#names.size === 0) return true;
    const answer = this.#names.has(spec.name);
    this.#knows[spec.id] = answer ? 1 : 2;
    return answer;
  }
}
