/**
 * How much one client may have in flight: commands, and bytes of replies by what its replies took of late. Others wait
 * behind both on the lane.
 */

/** Commands of one client in flight at a time. Reading from it stops meanwhile. */
const MAX_IN_FLIGHT = 256;
/** Bytes of replies that one client may have coming on the lane, by what its replies take. */
const MAX_COMING = 1 << 20;
/**
 * What a reply to a client is taken to need before the first has come: so many commands that a short pipeline waits for
 * nothing.
 */
const FIRST_REPLY = 32 << 10;
/** The same for a write: its reply is a status or a number most of the time. */
const FIRST_WRITE_REPLY = 1 << 10;
/** The power of two of how many replies a large one is remembered for. */
const REPLY_MEMORY = 4;

export class Window {
  #inFlight = 0;
  /** How many of the commands in flight are writes. */
  #writes = 0;
  /** Bytes of a reply to a read, and to a write: those of the largest of late. */
  #replyBytes = FIRST_REPLY;
  #writeReplyBytes = FIRST_WRITE_REPLY;

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Bytes of the largest reply of late. */
  get largestReply(): number {
    return Math.max(this.#replyBytes, this.#writeReplyBytes);
  }

  /** Whether nothing more is to be sent until something is answered. */
  get isFull(): boolean {
    const coming = (this.#inFlight - this.#writes) * this.#replyBytes + this.#writes * this.#writeReplyBytes;
    return this.#inFlight >= MAX_IN_FLIGHT || coming >= MAX_COMING;
  }

  sent(isWrite: boolean): void {
    this.#inFlight++;
    if (isWrite) this.#writes++;
  }

  /** A reply of so many bytes has come; `settled` follows. */
  answered(isWrite: boolean, bytes: number): void {
    if (isWrite) {
      this.#writes--;
      this.#writeReplyBytes = largestOfLate(this.#writeReplyBytes, bytes);
    } else this.#replyBytes = largestOfLate(this.#replyBytes, bytes);
  }

  /** A command is answered, or lost. @returns how many are left */
  settled(): number {
    const left = --this.#inFlight;
    // A command that was lost was not answered.
    if (left === 0) this.#writes = 0;
    return left;
  }
}

/** What the next reply is taken to need: a large one is remembered for about `2 ** REPLY_MEMORY` replies. */
const largestOfLate = (known: number, bytes: number): number =>
  bytes > known ? bytes : known - ((known - bytes) >> REPLY_MEMORY);
