/**
 * The commands of several keys' copies as one frame. Strings without a time to live go first, as one MSET: that costs
 * the mirror little more than half of what a SET for each does. Then come the commands of each other key.
 *
 * First, because a key that is met twice may be evicted in between, and is then deleted.
 */
import { PERSISTENT, type KeyLife } from '../../resp/key-life.js';
import type { Scalars } from '../../resp/scalars.js';
import { CommandWriter } from '../../resp/command-writer.js';
import type { CopiedKey, KeyDump } from './key-dump.js';
import {
  isLastingString,
  isRemoval,
  isTimed,
  appendPair,
  appendCopy,
  refusalOf,
  withTtlsShortened,
  type PendingCopy,
  type CopyTarget,
} from './copy-commands.js';
import { printableBytes } from '../../text/printable.js';

const MSET = Buffer.from('$4\r\nMSET\r\n');
/** The largest size of the head of an MSET, in bytes. */
const HEAD_BYTES = 32;

/** What the mirror said of a key. */
interface Outcome {
  /** The first refusal, or null. */
  readonly refusal: string | null;
  /** If the authority has no such key, or loses it within 1 ms: the mirror's key was deleted, or neither has one. */
  readonly removed: 'deleted' | 'neither' | null;
  /** As the authority reported it. */
  readonly life: KeyLife;
  readonly miscounted: boolean;
}

const SET: Outcome = { refusal: null, removed: null, life: PERSISTENT, miscounted: false };

export class CopyBatch<K extends Pick<CopiedKey, 'key'>> {
  /** What the MSET sets. */
  readonly #strings: K[] = [];
  readonly #pairs: CommandWriter;
  readonly #others: PendingCopy<K>[] = [];
  readonly #commands: CommandWriter;

  /**
   * @param bytes that all of it takes, about
   * @param together whether one command may set several keys: a cluster's node takes keys of one slot only
   * @param taker as of `put`
   */
  constructor(
    bytes: number,
    private readonly together: boolean,
    private readonly taker?: CopyTarget,
  ) {
    this.#pairs = new CommandWriter(bytes >> 1);
    this.#commands = new CommandWriter(bytes >> 1);
  }

  /** @throws {TranscodeError} as `put`; nothing is added then */
  add(key: K, dump: KeyDump): void {
    if (this.together && isLastingString(dump)) {
      appendPair(key.key, dump.payload, this.#pairs);
      this.#strings.push(key);
    } else this.#others.push(appendCopy(key, dump, this.#commands, this.taker));
  }

  get keys(): K[] {
    return [...this.#strings, ...this.#others.map(({ key }) => key)];
  }

  /** The number of commands. */
  get replies(): number {
    return this.#others.reduce((sum, { commands }) => sum + commands, this.#strings.length > 0 ? 1 : 0);
  }

  /** Nothing may be added after it. */
  finish(): { readonly frame: Buffer; readonly shorten: ((ms: number) => Buffer) | null } {
    const others = this.#commands.finish();
    const strings = this.#strings.length;
    const pairs = this.#pairs.finish();
    const out = new CommandWriter(HEAD_BYTES + pairs.length + others.length);
    if (strings > 0)
      out
        .command(1 + 2 * strings)
        .raw(MSET)
        .raw(pairs);
    const from = out.length;
    const frame = out.raw(others).finish();
    const timed = this.#others.some(isTimed);
    return { frame, shorten: timed ? (ms) => withTtlsShortened(frame, this.#others, ms, from) : null };
  }

  /** Passes the mirror's replies, from the first one on. */
  each(replies: Scalars, outcome: (key: K, outcome: Outcome) => void): void {
    if (this.#strings.length > 0) {
      const refusal = replies.isError ? printableBytes(replies.text()) : null;
      if (refusal === null) replies.skipLine();
      const all = refusal === null ? SET : { ...SET, refusal };
      for (const key of this.#strings) outcome(key, all);
    }
    for (const one of this.#others) {
      const removed = !isRemoval(one) ? null : replies.isOne ? 'deleted' : 'neither';
      outcome(one.key, { refusal: refusalOf(one, replies), removed, life: one.life, miscounted: one.miscounted });
    }
  }
}
