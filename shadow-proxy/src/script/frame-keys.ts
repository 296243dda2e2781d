/** Finds the keys that a command frame names, and whether it may write other keys. */
import { Command } from '../command/command.js';
import { keysOf, KeyList, READS, UNKNOWN_KEYS, WRITES } from '../command/keys.js';
import type { CommandSpec, CommandTable } from '../command/table.js';
import { locateArguments, wordOf } from '../resp/decode.js';
import type { Scripts } from './catalog.js';

export class FrameKeys {
  readonly #argStart: number[] = [];
  readonly #argEnd: number[] = [];

  constructor(
    private readonly table: CommandTable,
    private readonly scripts: Scripts,
  ) {}

  specOf(frame: Buffer, start: number): CommandSpec | undefined {
    const argc = locateArguments(frame, start, this.#argStart, this.#argEnd);
    return this.table.find(frame, this.#argStart, this.#argEnd, argc);
  }

  /**
   * Calls `visit(key, access)` for each key of the command frame at `start`; access is 1 (reads), 2 (writes) or 3. If a
   * script declares no keys, these are the keys that its text names. Returns whether these are all the keys.
   */
  each(frame: Buffer, start: number, visit: (key: Buffer, access: number) => void): boolean {
    return this.eachOf(new Command(frame, start), visit);
  }

  eachOf(command: Command, visit: (key: Buffer, access: number) => void): boolean {
    const { frame, start } = command;
    const [argStart, argEnd] = [this.#argStart, this.#argEnd];
    const argc = locateArguments(frame, start, argStart, argEnd);
    const spec = this.table.find(frame, argStart, argEnd, argc);
    if (spec === undefined) return false;
    const keys = new KeyList();
    const named = keysOf(spec, frame, argStart, argEnd, argc, keys);
    if (named === 0 && spec.handling === 'script') return this.#eachNamed(command.args, visit);
    const count = named === UNKNOWN_KEYS ? keys.known : named;
    const found: Buffer[] = [];
    for (let i = 0; i < count; i++) found.push(frame.subarray(argStart[keys.index[i]], argEnd[keys.index[i]]));
    for (let i = 0; i < count; i++) visit(found[i], keys.access[i]);
    return named >= 0;
  }

  /**
   * Calls `visit` for each key of a command that runs in that database, with the database that contains the key: MOVE
   * uses both databases, COPY … DB writes its key in the other. Returns whether these are all the keys.
   */
  eachPlaced(db: number, command: Command, visit: (db: number, key: Buffer, access: number) => void): boolean {
    const otherDb = otherDatabase(command);
    if (otherDb === null) return this.eachOf(command, (key, access) => visit(db, key, access));
    let keys = 0;
    return this.eachOf(command, (key, access) => {
      if (keys++ === 0) visit(db, key, access);
      if ((access & WRITES) !== 0) visit(otherDb, key, access);
    });
  }

  /**
   * Calls `visit` for each key that a command in that database may write. Returns false if the command may write, but
   * none of its keys is known.
   */
  eachWritten(db: number, command: Command, visit: (db: number, key: Buffer) => void): boolean {
    let known = false;
    this.eachPlaced(db, command, (placed, key, access) => {
      known = true;
      if ((access & WRITES) !== 0) visit(placed, key);
    });
    return known || !this.#hidesWrites(command);
  }

  /** The keys as IDs, for the order of several lanes. */
  ids(frame: Buffer, start: number): string[] {
    const ids: string[] = [];
    this.each(frame, start, (key) => ids.push(key.toString('latin1')));
    return ids;
  }

  #eachNamed(args: readonly Buffer[], visit: (key: Buffer, access: number) => void): boolean {
    const { reads, writes } = this.scripts.undeclared(args, this.table);
    for (const key of reads ?? []) visit(key, READS);
    for (const key of writes ?? []) visit(key, READS | WRITES);
    return reads !== null && writes !== null;
  }

  /** Whether a command without a known key may still write keys. */
  #hidesWrites(command: Command): boolean {
    const spec = this.specOf(command.frame, command.start);
    if (spec === undefined) return true;
    if (spec.handling === 'script') return this.scripts.undeclared(command.args, this.table).writes === null;
    return spec.handling === 'exclusive' && !spec.aboutCode;
  }
}

/** The database to which MOVE, or COPY with DB, writes; null for all other commands. */
export function otherDatabase(command: Command): number | null {
  const { frame, start } = command;
  const name = frame.toString('latin1', start, Math.min(start + 24, frame.length));
  if (!/^\*\d+\r\n\$4\r\n(move|copy)\r/i.test(name)) return null;
  const args = command.args.map((arg) => wordOf(arg).toUpperCase());
  if (args[0] === 'MOVE') return Number(args[2]);
  const at = args.indexOf('DB', 3);
  return at === -1 ? null : Number(args[at + 1]);
}
