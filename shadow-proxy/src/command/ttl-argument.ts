import { wordOf } from '../resp/decode.js';

/** Where a command's arguments hold a time to live, or a moment of expiry. */
export interface TtlArgument {
  /** Which argument it is. */
  readonly at: number;
  readonly ms: number;
  /** The command that takes it in ms, in the same place. */
  readonly inMs: string;
  /** The option before it that says that it is in ms; null if it has none. */
  readonly option: string | null;
}

export type TtlReader = (args: readonly Buffer[]) => TtlArgument | null;

const ofArgument = (args: readonly Buffer[], at: number, unit: number): Pick<TtlArgument, 'at' | 'ms'> => ({
  at,
  ms: (args[at] === undefined ? NaN : Number(wordOf(args[at]))) * unit,
});

/** The argument behind the key, in units of so many ms. */
export const ttlAt2 =
  (unit: 1 | 1000, inMs: string): TtlReader =>
  (args) => ({ ...ofArgument(args, 2, unit), inMs, option: null });

/** The value of the option in seconds or of that in ms, whichever is there, from the argument `from` on. */
export const ttlOption =
  (from: number, seconds: string, milliseconds: string, inMs: string): TtlReader =>
  (args) => {
    const names = args.map((arg) => wordOf(arg).toUpperCase());
    const at = names.findIndex((name, i) => i >= from && (name === seconds || name === milliseconds));
    if (at === -1) return null;
    return { ...ofArgument(args, at + 1, names[at] === seconds ? 1000 : 1), inMs, option: milliseconds };
  };
