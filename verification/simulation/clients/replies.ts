/** Replies of a server, RESP2 or RESP3, as a client reads them. */

/**
 * A status or an error keeps its first byte: `+OK`, `-ERR …`. A bulk string is its text behind `$`. What only RESP3 has
 * is read as RESP2 gives it: a map is an array, a double a bulk string.
 */
export type Reply = string | number | null | readonly Reply[];

const MORE = Symbol('more');

export class ReplyReader {
  #text = '';
  #at = 0;
  /** Whether the reply that was read last is a push. */
  isPush = false;

  feed(bytes: Buffer): void {
    this.#text = this.#text.slice(this.#at) + bytes.toString('latin1');
    this.#at = 0;
  }

  /** The next reply; undefined where it has not come whole. @throws {Error} where this is no reply */
  next(): Reply | undefined {
    const from = this.#at;
    if (from === this.#text.length) return undefined;
    const isPush = this.#text[from] === '>';
    const reply = this.#read();
    if (reply !== MORE) {
      this.isPush = isPush;
      return reply;
    }
    this.#at = from;
    return undefined;
  }

  #read(): Reply | typeof MORE {
    const text = this.#text;
    const end = text.indexOf('\r\n', this.#at);
    if (end === -1) return MORE;
    const head = text.slice(this.#at + 1, end);
    const type = text[this.#at];
    this.#at = end + 2;
    switch (type) {
      case '+':
      case '-':
        return type + head;
      case '_':
        return null;
      case ',':
        return `$${head}`;
      case '#':
        return head === 't' ? 1 : 0;
    }
    const number = Number(head);
    if (!Number.isInteger(number)) throw new Error(`no reply: ${JSON.stringify(type + head)}`);
    switch (type) {
      case ':':
        return number;
      case '$':
      case '=':
        return number === -1 ? null : this.#bulk(number, type === '=' ? 4 : 0);
      case '*':
      case '~':
      case '>':
        return number === -1 ? null : this.#array(number);
      case '%':
        return this.#array(2 * number);
      default:
        throw new Error(`no reply: ${JSON.stringify(type + head)}`);
    }
  }

  /** @param skipped bytes that say what kind of text follows */
  #bulk(length: number, skipped: number): Reply | typeof MORE {
    if (this.#text.length < this.#at + length + 2) return MORE;
    const value = `$${this.#text.slice(this.#at + skipped, this.#at + length)}`;
    this.#at += length + 2;
    return value;
  }

  #array(length: number): Reply | typeof MORE {
    const replies: Reply[] = [];
    for (let i = 0; i < length; i++) {
      const each = this.#read();
      if (each === MORE) return MORE;
      replies.push(each);
    }
    return replies;
  }
}

export const isError = (reply: Reply): reply is string => typeof reply === 'string' && reply[0] === '-';
