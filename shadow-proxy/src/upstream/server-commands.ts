/** The commands of a server, by what its own `COMMAND` says. */
import { commandCategories, supportedCommands, type CommandSpec } from '../command/table.js';
import type { Reply } from '../resp/decode.js';

export class ServerCommands {
  #names: ReadonlySet<string> = new Set();
  #categories: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  /** By command id: 0 not asked yet, 1 known, 2 not known. */
  readonly #knows = new Uint8Array(1024);

  /** @param reply of `COMMAND` */
  learn(reply: Reply): void {
    this.#names = supportedCommands(reply);
    this.#categories = commandCategories(reply);
    this.#knows.fill(0);
  }

  /** In lower case, as in `config|get`; empty before the server was asked. */
  get names(): ReadonlySet<string> {
    return this.#names;
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
