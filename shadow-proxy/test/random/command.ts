/** A command, what its reply may be, and how often it is sent. */
import type { Generator } from './generator.js';

export type Argument = string | Buffer;

/** What a reply may be, apart from an error; with `?` also null. */
export type Kind =
  | 'status' | 'status?' | 'int' | 'int?' | 'bulk' | 'bulk?' | 'double' | 'double?' | 'array' | 'array?' | 'map' | 'map?' | 'set' | 'any';

/** A reply as JavaScript: integers as numbers, bulks as Buffers, maps as flat arrays. */
export type Plain = string | number | bigint | boolean | Buffer | null | Error | readonly Plain[];

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
  readonly make: (g: Generator) => Call;
}

export const rule = (weight: number, make: (g: Generator) => Call): Rule => ({ weight, make });

/** Numbers become decimal text. */
export const call = (kind: Kind, ...args: readonly (Argument | number)[]): Call => ({
  kind,
  args: args.map((arg) => (typeof arg === 'number' ? String(arg) : arg)),
});

/** A scalar's text (bytes as latin1); null for null and aggregates. */
export function textOf(reply: Plain): string | null {
  if (Buffer.isBuffer(reply)) return reply.toString('latin1');
  return reply === null || typeof reply === 'object' ? null : String(reply);
}
