/**
 * Functions (FUNCTION LOAD) of the servers. `FUNCTION LIST` is read when an unknown function is called, to find what it
 * may write. After a command that changes functions, all of them are unknown again. Changes that bypass the proxy are
 * not noticed.
 */
import type { CommandTable } from '../command/table.js';
import { monotonicMs } from '../io/clock.js';
import { isError, text, type Reply } from '../resp/decode.js';
import { Routine } from './routine.js';
import type { Server } from '../upstream/server.js';

/** How long to assume, in ms, that a server still lacks a function. */
const MISSING_MS = 1_000;

/** One function; its text is that of its whole library. */
class LibraryFunction extends Routine {
  constructor(
    code: string,
    private readonly noWrites: boolean,
  ) {
    super(code, true);
  }

  override writesNothing(table: CommandTable): boolean {
    return this.noWrites || super.writesNothing(table);
  }
}

interface KnownFunctions {
  readonly runId: string;
  readonly at: number;
  readonly functions: ReadonlyMap<string, LibraryFunction>;
}

export class Functions {
  readonly #known = new Map<Server, KnownFunctions>();

  /** Undefined for a function that no server is known to have. */
  find(name: string): Routine | undefined {
    for (const { functions } of this.#known.values()) {
      const found = functions.get(name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Whether the server need not be asked about the function. */
  knows(server: Server, name: string): boolean {
    const known = this.#known.get(server);
    if (known === undefined || known.runId !== server.runId) return false;
    return known.functions.has(name) || monotonicMs() - known.at < MISSING_MS;
  }

  /** Reads the server's functions; if it refuses, they are unknown. */
  async learn(server: Server): Promise<void> {
    const { runId } = server;
    const reply = await server.ask('FUNCTION', 'LIST', 'WITHCODE').catch(() => null);
    this.#known.set(server, {
      runId,
      at: monotonicMs(),
      functions: reply === null || isError(reply) ? new Map() : functionsOf(reply),
    });
  }

  /** Called when functions have changed. */
  forget(): void {
    this.#known.clear();
  }
}

function functionsOf(list: Reply): Map<string, LibraryFunction> {
  const functions = new Map<string, LibraryFunction>();
  for (const library of list.items ?? []) {
    const code = field(library, 'library_code');
    for (const each of field(library, 'functions')?.items ?? []) {
      const flags = (field(each, 'flags')?.items ?? []).map(text);
      functions.set(text(field(each, 'name')!), new LibraryFunction(text(code!), flags.includes('no-writes')));
    }
  }
  return functions;
}

/** A field of a map in RESP2's form, in which names and values alternate. */
function field({ items }: Reply, name: string): Reply | undefined {
  const at = (items ?? []).findIndex((item, i) => i % 2 === 0 && text(item) === name);
  return at === -1 ? undefined : items![at + 1];
}
