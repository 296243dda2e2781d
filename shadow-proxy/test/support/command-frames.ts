/** Commands as the session has them: bytes, and where the arguments lie. */
import { keysOf, KeyList, UNKNOWN_KEYS } from '../../src/command/keys.js';
import type { CommandSpec, CommandTable } from '../../src/command/table.js';
import { encodeCommand, type Argument } from '../../src/resp/encode.js';
import { RequestParser } from '../../src/resp/request.js';

export function parse(args: readonly Argument[]): RequestParser {
  const parser = new RequestParser();
  parser.feed(encodeCommand(args));
  if (!parser.next()) throw new Error('an incomplete command');
  return parser;
}

export function find(table: CommandTable, args: readonly Argument[]): CommandSpec | undefined {
  const { frame, argStart, argEnd, argc } = parse(args);
  return table.find(frame, argStart, argEnd, argc);
}

type KeyAccess = readonly (readonly [key: string, access: number])[];

/**
 * What `keysOf` returns, and the keys that it finds, with their access. With UNKNOWN_KEYS these are the keys that are
 * known all the same.
 */
export function reportedKeys(
  spec: CommandSpec,
  args: readonly string[],
): { readonly count: number; readonly keys: KeyAccess } {
  const { frame, argStart, argEnd, argc } = parse(args);
  const list = new KeyList();
  const count = keysOf(spec, frame, argStart, argEnd, argc, list);
  const length = count === UNKNOWN_KEYS ? list.known : Math.max(count, 0);
  return { count, keys: Array.from({ length }, (_, i) => [args[list.index[i]], list.access[i]] as const) };
}

/** The keys with their access, or the negative number that `keysOf` gives instead. */
export function keys(spec: CommandSpec, args: readonly string[]): KeyAccess | number {
  const { count, keys } = reportedKeys(spec, args);
  return count < 0 ? count : keys;
}
