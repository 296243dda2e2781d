/**
 * Effects, not guesses: what the mirror gets is what a write did on the authority, read from its reply.
 *
 * A command whose row (rows/) has no effect is repeated as it was asked: given the same state it does the same, and its
 * reply is compared. Those with one are the commands whose result is random, assigned, depends on the moment or on the
 * machine, or that the older server does not know.
 */
import { wordOf, type Reply } from '../resp/decode.js';
import { encodeCommand, type Argument } from '../resp/encode.js';

export interface EffectCommand {
  readonly frame: Buffer;
  /** What the mirror must answer: a frame; `same`: what the authority answered; null: anything but an error. */
  readonly reply: Buffer | 'same' | null;
}

/**
 * - null: nothing happened.
 * - `verbatim`: the command is its own effect.
 * - `copy`: only the keys that it wrote show it; copy them.
 * - commands: what to send instead.
 */
export type Effect = null | 'verbatim' | 'copy' | readonly EffectCommand[];

/**
 * @param args the command's arguments, `args[0]` its name
 * @param reply the authority's reply, never an error
 * @param probe the reply to the command's `probe`, where that asked for one
 * @param between the two servers; absent: they do the same
 */
export type EffectOf = (
  args: readonly Buffer[],
  reply: Reply,
  protocol: 2 | 3,
  probe?: Reply,
  between?: Between,
) => Effect;

/** What of a server an effect may depend on, beside the commands that it knows. */
export interface Habits {
  /** XREADGROUP, XCLAIM and XAUTOCLAIM create the consumer that they name, whatever they find: since Redis 7.2. */
  readonly createsConsumers: boolean;
  /** Streams count their entries, and their groups what they read: since Redis 7.0. */
  readonly countsEntries: boolean;
}

/** The server that has answered, and the one that follows. */
export interface Between {
  readonly authority: Habits;
  readonly mirror: Habits;
}

export interface CommandEffect {
  readonly of: EffectOf;
  /** The same in words, for docs/commands.md. */
  readonly description: string;
  /** With fewer arguments, the name among them, the command is its own effect. */
  readonly least: number;
  /** The second read that the effect needs; it must run in the same transaction, right after the command. */
  readonly probe: ((args: readonly Buffer[]) => Buffer | null) | null;
  /**
   * What a blocked client took, whatever it was that others took at the same time: from the end that it took it from,
   * the same value. Null if that leaves an order open: the keys are copied.
   */
  readonly ofWoken: EffectOf | null;
  /** What the authority's reply shows that one of the servers does not support (forms.ts). */
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

/** Only the state of its keys shows what it did. */
export const copied: EffectOf = () => 'copy';

/** An argument in upper case, cut where no word or number is that long; empty if there is none. */
export const word = (arg: Buffer | undefined): string => (arg === undefined ? '' : wordOf(arg).toUpperCase());

export const command = (args: readonly Argument[], reply: EffectCommand['reply']): EffectCommand => ({
  frame: encodeCommand(args),
  reply,
});

export const one = (args: readonly Argument[], reply: EffectCommand['reply']): Effect => [command(args, reply)];

export const strings = (items: readonly Reply[]): Buffer[] => items.map((item) => item.data!);

/** Of a command that blocks as the one without B does, behind its timeout, which comes first. */
export const blocking =
  (effect: EffectOf): EffectOf =>
  (args, reply, protocol) =>
    effect([args[0], ...args.slice(2)], reply, protocol);
