/**
 * Limits the length of arguments that become text in the proxy. V8 throws at a text that is too long, and so would an
 * error that quotes it. Values never become text: they may be as long as Redis allows.
 */
import { constants } from 'node:buffer';
import { KeyList, keysOf, UNKNOWN_KEYS } from '../command/keys.js';
import type { Handling } from '../command/policy.js';
import type { CommandSpec } from '../command/table.js';
import type { CommandBytes } from './routing.js';

export interface TextLimits {
  /**
   * Bytes of one argument of AUTH, HELLO, CLIENT and the like. Redis has the same limit for a client that must log in.
   */
  readonly argument: number;
  /** Bytes of all keys, channels and scripts of one command, with room for the text around them. */
  readonly names: number;
}

export const TEXT_LIMITS: TextLimits = { argument: 16 << 10, names: constants.MAX_STRING_LENGTH - (64 << 10) };

/** Kinds of commands whose other arguments become text, too: scripts and channels. */
const WHOLE: ReadonlySet<Handling> = new Set<Handling>(['script', 'broadcast', 'subscribe']);

/** Bytes that an argument takes in addition to its own when arguments are joined. */
const JOINT = 1;

/** Why the command at hand is refused for its length; null if it is not. Called for long commands only. */
export function refusalOfLength(
  spec: CommandSpec | undefined,
  command: CommandBytes,
  { argument, names }: TextLimits,
): string | null {
  const { argStart, argEnd, argc } = command;
  if (spec?.handling === 'local' && spec.keySpecs.length === 0) {
    for (let i = 1; i < argc; i++) {
      const bytes = argEnd[i] - argStart[i];
      if (bytes > argument)
        return `ERR shadow-proxy: argument ${i} of ${titleOf(spec)} has ${bytes} bytes: at most ${argument} are allowed`;
    }
    return null;
  }
  const bytes = argEnd[argc - 1] - argStart[0] > names ? bytesOfNames(spec, command) : 0;
  if (bytes <= names) return null;
  const what = spec === undefined ? 'arguments of an unknown command' : `keys, channels or text of ${titleOf(spec)}`;
  return `ERR shadow-proxy: the ${what} have ${bytes} bytes: at most ${names} are allowed`;
}

const titleOf = ({ name }: CommandSpec): string => name.replace('|', ' ').toUpperCase();

function bytesOfNames(spec: CommandSpec | undefined, { frame, argStart, argEnd, argc }: CommandBytes): number {
  const length = (i: number): number => argEnd[i] - argStart[i] + JOINT;
  const all = argEnd[argc - 1] - argStart[0];
  // An unknown command may have keys anywhere, and so may a script.
  if (spec === undefined || WHOLE.has(spec.handling)) return all;
  if (spec.handling === 'publish') return argc > 1 ? length(1) : 0;
  const keys = new KeyList();
  const found = keysOf(spec, frame, argStart, argEnd, argc, keys);
  const count = found === UNKNOWN_KEYS ? keys.known : found;
  let sum = 0;
  for (let i = 0; i < count; i++) sum += length(keys.index[i]);
  return sum;
}
