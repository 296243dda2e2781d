import { wordOf } from '../resp/decode.js';

/** Where the arguments of a command have a TTL, or an absolute expiry. */
export interface TtlArgument {
  /** Index of the argument. */
  readonly at: number;
  readonly ms: number;
  /** The command that accepts it in ms, at the same index. */
  readonly inMs: string;
  /** The option before it that means ms; null if the command has no such option. */
  readonly option: string | null;
}

export type TtlReader = (args: readonly Buffer[]) => TtlArgument | null;

const ofArgument = (args: readonly Buffer[], at: number, unit: number): Pick<TtlArgument, 'at' | 'ms'> => ({
  at,
  ms: (args[at] === undefined ? NaN : Number(wordOf(args[at]))) * unit,
});

/** The argument after the key, in units of this many ms. */
export const ttlAt2 =
  (unit: 1 | 1000, inMs: string): TtlReader =>
  (args) => ({ ...ofArgument(args, 2, unit), inMs, option: null });

/** The value of the option in seconds or in ms, whichever is present, from the argument `from` on. */
export const ttlOption =
  (from: number, seconds: string, milliseconds: string, inMs: string): TtlReader =>
  (args) => {
    const names = args.map((arg) => wordOf(arg).toUpperCase());
    const at = names.findIndex((name, i) => i >= from && (name === seconds || name === milliseconds));
    if (at === -1) return null;
    return { ...ofArgument(args, at + 1, names[at] === seconds ? 1000 : 1), inMs, option: milliseconds };
  };
