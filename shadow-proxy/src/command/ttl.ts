/** Times to live and moments of expiry in a command's arguments: read, and written again. */
import { wordOf } from '../resp/decode.js';
import { encodeCommand, type Argument } from '../resp/encode.js';
import { rowOf } from './rows.js';
import type { TtlArgument } from './ttl-argument.js';

const rowOfArguments = (args: readonly Buffer[]): ReturnType<typeof rowOf> => rowOf(wordOf(args[0]).toLowerCase());

/** A command's time to live that counts from the moment it runs; null if it has none. */
export const relativeTtl = (args: readonly Buffer[]): TtlArgument | null =>
  rowOfArguments(args)?.relativeTtl?.(args) ?? null;

/** A command's moment of expiry, in ms of Unix time; null if it has none. */
export const absoluteTtl = (args: readonly Buffer[]): TtlArgument | null =>
  rowOfArguments(args)?.absoluteTtl?.(args) ?? null;

/**
 * The same command with its time to live as what is left of it after `elapsedMs`; null if it has none.
 * What ran out meanwhile expires on arrival.
 */
export function shortenTtl(args: readonly Buffer[], elapsedMs: number): Buffer | null {
  const found = relativeTtl(args);
  return found && withTime(args, found, Math.round(found.ms - elapsedMs));
}

/** The same command with its moment of expiry by a clock that is ahead by `aheadMs`; null if it has none. */
export function shiftTtl(args: readonly Buffer[], aheadMs: number): Buffer | null {
  const found = absoluteTtl(args);
  return found && withTime(args, found, found.ms + aheadMs);
}

/** The same command with another time, in ms. */
function withTime(args: readonly Buffer[], { at, inMs, option }: TtlArgument, ms: number): Buffer {
  // Only EXPIRE and its like take what is past; for the others it is an error.
  const time = String(/EXPIRE(AT)?$/.test(inMs) ? ms : Math.max(1, ms));
  const command: Argument[] = [inMs, ...args.slice(1, at), time, ...args.slice(at + 1)];
  if (option !== null) command[at - 1] = option;
  return encodeCommand(command);
}
