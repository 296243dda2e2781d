/** What happens to a key during a chunked copy. */
import { absoluteTtl, relativeTtl } from '../../command/ttl.js';
import { WRITES } from '../../command/keys.js';
import { WRITE, type Operation } from '../../pipeline/operation.js';
import type { ChunkedCopy } from '../../pipeline/suspicion.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { swappedBy } from '../../pipeline/swaps.js';
import type { Side } from '../../route/stage.js';
import { CopyError } from '../key/copier.js';

/** The copy does not hold: what was copied is not what there is. It may be begun again. */
export class Disturbed extends Error {}

/** A suspicion that its end settles anyway: it sets the TTL again. */
const ABOUT_TIME = new Set(['ttl-lag', 'ttl-unknown']);
/** Servers look at their clocks once a turn, and count in whole ms. */
export const EXPIRY_MARGIN_MS = 30;

/** Writes that are about the key's end, and not its value. */
export const ENDS = ['EXPIRE', 'PEXPIRE', 'EXPIREAT', 'PEXPIREAT', 'PERSIST', 'TOUCH'];

/** A command that the mirror gets about the key: its name in upper case. */
export type Written = (name: string, args: readonly Buffer[], operation: Operation) => void;

/** The chunked copy of a key. */
export interface Copy {
  /** Whether an operation is its own. */
  owns(operation: Operation): boolean;
  /** The database is about to become another one on the mirror: what was copied is of no use. */
  discard(): void;
}

export class Meanwhile implements ChunkedCopy {
  #disturbed: string | null = null;
  #swapped = false;
  #expiresAt = Infinity;
  #written: Written | null = null;
  #copy: Copy | null = null;

  constructor(
    private readonly sequencer: Sequencer,
    private readonly authority: Side,
    private readonly db: number,
    private readonly key: Buffer,
  ) {}

  /** Why the copy has to begin again; null if it holds so far. */
  get disturbed(): string | null {
    return this.#disturbed;
  }

  /** @throws {CopyError} if the key is in another database by now: nothing that was done holds */
  assertInPlace(): void {
    if (this.#swapped) throw new CopyError('swapped', 'SWAPDB gave its database another number meanwhile');
  }

  /** When the key may expire at the earliest, in ms of the monotonic clock. */
  get expiresAt(): number {
    return this.#expiresAt;
  }

  /** What a write means for the copy is its type's to say; null if it means nothing. */
  onWritten(written: Written | null): void {
    this.#written = written;
  }

  /** The copy that it is about. */
  belongsTo(copy: Copy): void {
    this.#copy = copy;
  }

  /** @param at when the key may expire at the earliest, in ms of the monotonic clock */
  expiresFrom(at: number): void {
    this.#expiresAt = at;
  }

  /** The copy begins (again): nothing has happened yet. */
  begin(): void {
    this.#disturbed = null;
    this.#expiresAt = Infinity;
    this.#written = null;
  }

  disturb(why: string): void {
    this.#disturbed ??= why;
  }

  suspected(reason: string): void {
    if (!ABOUT_TIME.has(reason)) this.disturb(`it is a suspect again (${reason})`);
  }

  /** @throws {Disturbed} */
  assertUndisturbed(): void {
    if (this.#disturbed !== null) throw new Disturbed(this.#disturbed);
  }

  /** An operation has got its place in the mirror's order. */
  ordered(operation: Operation): void {
    if (operation.follow !== WRITE || this.#copy?.owns(operation)) return;
    const { spec, frame, start, end } = operation;
    if (spec?.handling === 'exclusive') return this.#exclusive(operation);
    if (operation.db !== this.db) return;
    if (operation.bundle?.keys) {
      if (operation.bundle.keys.some((key) => key.equals(this.key))) this.disturb('it was copied whole');
      return;
    }
    if (spec?.handling === 'script') return this.#script(operation);
    // Most writes are to other keys.
    if (!frame.subarray(start, end).includes(this.key) || !this.#isWritten(operation)) return;
    const { args } = operation.command;
    const name = args[0].toString('latin1').toUpperCase();
    this.#time(args, operation);
    this.#written?.(name, args, operation);
  }

  #isWritten({ frame, start }: Operation): boolean {
    let written = false;
    const all = this.sequencer.keys.each(frame, start, (key, access) => {
      written ||= (access & WRITES) !== 0 && key.equals(this.key);
    });
    return written || !all;
  }

  #exclusive({ command, frame, start, end, db }: Operation): void {
    const { args } = command;
    const name = args[0].toString('latin1').toUpperCase();
    if (name === 'SWAPDB') {
      if (!swappedBy(args).includes(this.db)) return;
      this.#swapped = true;
      this.disturb('SWAPDB has run');
      this.#copy?.discard();
    } else if (
      name === 'FLUSHALL' ||
      (name === 'FLUSHDB' && db === this.db) ||
      frame.subarray(start, end).includes(this.key)
    )
      this.disturb(`${name} has run`);
  }

  /** What a script did that is replicated on the mirror. */
  #script(operation: Operation): void {
    const { args } = operation.command;
    if (args[0].toString('latin1').toUpperCase() === 'SCRIPT') return;
    const { writes } = this.sequencer.scripts.undeclared(args, this.sequencer.table);
    if (this.#isWritten(operation) || writes === null || writes.some((key) => key.equals(this.key)))
      this.disturb('a script may have changed it');
  }

  /** A time to live that a client gives counts from here on, whether or not the mirror has the key to give it to. */
  #time(args: readonly Buffer[], { answeredAt }: Operation): void {
    const relative = relativeTtl(args);
    if (relative !== null) this.#expiresAt = Math.min(this.#expiresAt, answeredAt + relative.ms);
    const absolute = absoluteTtl(args);
    const { unixTimeAtZero, errorMs } = this.sequencer.servers[this.authority].clock;
    if (absolute !== null) this.#expiresAt = Math.min(this.#expiresAt, absolute.ms - unixTimeAtZero - errorMs);
  }
}
