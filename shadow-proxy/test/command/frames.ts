/** Commands as the session has them: bytes, and where the arguments lie. */
import { keysOf, KeyList } from '../../src/command/keys.js';
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

/** The keys with their access, or the negative number that `keysOf` gives instead. */
export function keys(spec: CommandSpec, args: readonly string[]): readonly (readonly [key: string, access: number])[] | number {
  const { frame, argStart, argEnd, argc } = parse(args);
  const list = new KeyList();
  const count = keysOf(spec, frame, argStart, argEnd, argc, list);
  if (count < 0) return count;
  return Array.from({ length: count }, (_, i) => [args[list.index[i]], list.access[i]] as const);
}
