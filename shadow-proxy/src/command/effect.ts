/**
 * The effect of a write, which the mirror gets: what the write did on the authority, as its reply shows.
 *
 * A command whose row (rows/) has no effect is replicated as it was sent: with the same state it does the same, and its
 * reply is compared. Commands with an effect have a random or assigned result, depend on the time or on the machine, or
 * are unknown to the older server.
 */
import { isNull, wordOf, type Reply } from '../resp/decode.js';
import { encodeCommand, integer, type Argument } from '../resp/encode.js';

export interface EffectCommand {
  readonly frame: Buffer;
  /** The expected reply of the mirror: a frame; `same`: the authority's reply; null: anything but an error. */
  readonly reply: Buffer | 'same' | null;
}

/** A read of the mirror in the command's place: nothing was changed. */
export interface EffectRead {
  /** In lower case. */
  readonly name: string;
  readonly read: Buffer;
  /** The expected reply of the mirror. */
  readonly reply: Buffer;
}

/**
 * - null: nothing was changed.
 * - `verbatim`: the command is its own effect.
 * - `copy`: only the written keys show it; copy them.
 * - commands, or a read: what to send instead.
 */
export type Effect = null | 'verbatim' | 'copy' | readonly EffectCommand[] | EffectRead;

/**
 * @param args the command's arguments; `args[0]` is its name
 * @param reply the authority's reply, never an error
 * @param probe the reply to the command's `probe`, if it has one
 * @param between the two servers; absent: they behave alike
 */
export type EffectOf = (
  args: readonly Buffer[],
  reply: Reply,
  protocol: 2 | 3,
  probe?: Reply,
  between?: EffectTraitPair,
) => Effect;

/** Behaviour of a server on which an effect may depend, besides its set of commands. */
export interface EffectTraits {
  /** Whether XREADGROUP, XCLAIM and XAUTOCLAIM always create the consumer that they name; since Redis 7.2. */
  readonly createsConsumers: boolean;
  /** Whether streams count their entries, and groups the entries that they read; since Redis 7.0. */
  readonly countsEntries: boolean;
}

/** The authority, which has answered, and the mirror, which follows. */
export interface EffectTraitPair {
  readonly authority: EffectTraits;
  readonly mirror: EffectTraits;
}

export interface CommandEffect {
  readonly of: EffectOf;
  /** A description of the effect for docs/commands.md. */
  readonly description: string;
  /** Minimum number of arguments, including the name; with fewer, the command is its own effect. */
  readonly least: number;
  /** A second read that the effect needs. It must run in the same transaction, right after the command. */
  readonly probe: ((args: readonly Buffer[]) => Buffer | null) | null;
  /**
   * The effect of a blocked command that was woken, whatever other clients took at the same time: it takes the same
   * value from the same end. Null if the order would stay open: then the keys are copied.
   */
  readonly ofWoken: EffectOf | null;
  /** A form that one of the servers does not support, if the authority's reply shows it (forms.ts). */
  readonly form: ((reply: Reply) => string | null) | null;
}

export const effect = (of: EffectOf, description: string, more: Partial<CommandEffect> = {}): CommandEffect => ({
  of,
  description,
  least: 0,
  probe: null,
  ofWoken: null,
  form: null,
  ...more,
});

/**
 * A command that takes a value, or elements from one end of a key. If it found none, the mirror is only asked how many
 * it has: an authority that has lost its keys must not empty the mirror, too.
 *
 * @param name of the command that asks
 * @param limit which argument is the greatest number of elements; 0 if there is none
 */
export const taking = (name: 'exists' | 'llen' | 'zcard', limit: number): CommandEffect =>
  effect((args, reply) => {
    const isNothing = isNull(reply) || (reply.items?.length === 0 && word(args[limit]) !== '0');
    return isNothing ? { name, read: encodeCommand([name, args[1]]), reply: integer(0) } : 'verbatim';
  }, `as sent; if nothing was taken, \`${name.toUpperCase()}\``);

/** Only the state of the keys shows what the command did. */
export const copied: EffectOf = () => 'copy';

/** An argument in upper case; cut if it is too long for a word or number; empty if it is absent. */
export const word = (arg: Buffer | undefined): string => (arg === undefined ? '' : wordOf(arg).toUpperCase());

export const command = (args: readonly Argument[], reply: EffectCommand['reply']): EffectCommand => ({
  frame: encodeCommand(args),
  reply,
});

export const one = (args: readonly Argument[], reply: EffectCommand['reply']): Effect => [command(args, reply)];

export const strings = (items: readonly Reply[]): Buffer[] => items.map((item) => item.data!);

/** A blocking command, as its form without B; its timeout comes first, and is left out. */
export const blocking =
  (effect: EffectOf): EffectOf =>
  (args, reply, protocol) =>
    effect([args[0], ...args.slice(2)], reply, protocol);
