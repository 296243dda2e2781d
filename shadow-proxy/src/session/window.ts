/**
 * How much one client may have in flight: commands, and bytes of replies, estimated from its recent replies. Other
 * clients wait behind both on the lane.
 */

/** The most commands of one client in flight. At that number its socket is not read. */
const MAX_IN_FLIGHT = 256;
/** Bytes of replies that one client may expect on the lane, by the size of its recent replies. */
const MAX_COMING = 1 << 20;
/** The assumed size of a client's first reply: small enough that a short pipeline is sent at once. */
const FIRST_REPLY = 32 << 10;
/** The same for a write: most of its replies are a status or a number. */
const FIRST_WRITE_REPLY = 1 << 10;
/** A large reply is remembered for about `2 ** REPLY_MEMORY` replies. */
const REPLY_MEMORY = 4;

export class Window {
  #inFlight = 0;
  /** How many of the commands in flight are writes. */
  #writes = 0;
  /** The assumed size of a reply to a read, and to a write: that of the largest recent one. */
  #replyBytes = FIRST_REPLY;
  #writeReplyBytes = FIRST_WRITE_REPLY;

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Bytes of the largest recent reply. */
  get largestReply(): number {
    return Math.max(this.#replyBytes, this.#writeReplyBytes);
  }

  /** Whether no further command may be sent until one is answered. */
  get isFull(): boolean {
    const coming = (this.#inFlight - this.#writes) * this.#replyBytes + this.#writes * this.#writeReplyBytes;
    return this.#inFlight >= MAX_IN_FLIGHT || coming >= MAX_COMING;
  }

  sent(isWrite: boolean): void {
    this.#inFlight++;
    if (isWrite) this.#writes++;
  }

  /** A reply of `bytes` bytes has come; `settled` follows. */
  answered(isWrite: boolean, bytes: number): void {
    if (isWrite) {
      this.#writes--;
      this.#writeReplyBytes = largestOfLate(this.#writeReplyBytes, bytes);
    } else this.#replyBytes = largestOfLate(this.#replyBytes, bytes);
  }

  /** A command was answered or lost. @returns how many are left */
  settled(): number {
    const left = --this.#inFlight;
    // A command that was lost got no reply.
    if (left === 0) this.#writes = 0;
    return left;
  }
}

/** The assumed size of the next reply. A large reply is remembered for about `2 ** REPLY_MEMORY` replies. */
const largestOfLate = (known: number, bytes: number): number =>
  bytes > known ? bytes : known - ((known - bytes) >> REPLY_MEMORY);
