/** A command, what its reply may be, and how often it is sent. */
import type { Argument, Plain } from './reply.js';
import type { Values } from './values.js';

/** What a reply may be, apart from an error; with `?` also null. */
export type Kind =
  | 'status'
  | 'status?'
  | 'int'
  | 'int?'
  | 'bulk'
  | 'bulk?'
  | 'double'
  | 'double?'
  | 'array'
  | 'array?'
  | 'map'
  | 'map?'
  | 'set'
  | 'any';

export interface Call {
  readonly args: readonly Argument[];
  readonly kind: Kind;
  /** What is wrong with the reply, if anything: for replies that only one connection can get. */
  readonly check?: (reply: Plain) => string | null;
  /** Takes from the reply what later commands need. */
  readonly learn?: (reply: Plain) => void;
}

export interface Rule {
  readonly weight: number;
  readonly make: (g: Values) => Call;
}

export const rule = (weight: number, make: (g: Values) => Call): Rule => ({ weight, make });

/** Numbers become decimal text. */
export const call = (kind: Kind, ...args: readonly (Argument | number)[]): Call => ({
  kind,
  args: args.map((arg) => (typeof arg === 'number' ? String(arg) : arg)),
});
