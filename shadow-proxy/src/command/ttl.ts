/** Reads and rewrites TTLs and absolute expiries in a command's arguments. */
import { wordOf } from '../resp/decode.js';
import { encodeCommand, type Argument } from '../resp/encode.js';
import { rowOf } from './rows.js';
import type { TtlArgument } from './ttl-argument.js';

const rowOfArguments = (args: readonly Buffer[]): ReturnType<typeof rowOf> => rowOf(wordOf(args[0]).toLowerCase());

/** The TTL of a command, which counts from the time it runs; null if it has none. */
export const relativeTtl = (args: readonly Buffer[]): TtlArgument | null =>
  rowOfArguments(args)?.relativeTtl?.(args) ?? null;

/** The absolute expiry of a command, in ms of Unix time; null if it has none. */
export const absoluteTtl = (args: readonly Buffer[]): TtlArgument | null =>
  rowOfArguments(args)?.absoluteTtl?.(args) ?? null;

/**
 * The same command with the TTL that is left after `elapsedMs`; null if it has none. If nothing is left, the key
 * expires at once.
 */
export function shortenTtl(args: readonly Buffer[], elapsedMs: number): Buffer | null {
  const found = relativeTtl(args);
  return found && withTime(args, found, Math.round(found.ms - elapsedMs));
}

/** The same command with its absolute expiry for a clock that is ahead by `aheadMs`; null if it has none. */
export function shiftTtl(args: readonly Buffer[], aheadMs: number): Buffer | null {
  const found = absoluteTtl(args);
  return found && withTime(args, found, found.ms + aheadMs);
}

/** The same command with another time, in ms. */
function withTime(args: readonly Buffer[], { at, inMs, option }: TtlArgument, ms: number): Buffer {
  // Only EXPIRE and similar commands accept a time in the past; for the others it is an error.
  const time = String(/EXPIRE(AT)?$/.test(inMs) ? ms : Math.max(1, ms));
  const command: Argument[] = [inMs, ...args.slice(1, at), time, ...args.slice(at + 1)];
  if (option !== null) command[at - 1] = option;
  return encodeCommand(command);
}
