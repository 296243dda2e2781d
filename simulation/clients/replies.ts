/** Replies of a server, RESP2, as a client reads them. */

/** A status or an error keeps its first byte: `+OK`, `-ERR …`. A bulk string is its text behind `$`. */
export type Reply = string | number | null | readonly Reply[];

const MORE = Symbol('more');

export class ReplyReader {
  #text = '';
  #at = 0;

  feed(bytes: Buffer): void {
    this.#text = this.#text.slice(this.#at) + bytes.toString('latin1');
    this.#at = 0;
  }

  /** The next reply; undefined where it has not come whole. @throws {Error} where this is no reply */
  next(): Reply | undefined {
    const from = this.#at;
    if (from === this.#text.length) return undefined;
    const reply = this.#read();
    if (reply !== MORE) return reply;
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
    if (type === '+' || type === '-') return type + head;
    const number = Number(head);
    if (!Number.isInteger(number)) throw new Error(`no reply: ${JSON.stringify(type + head)}`);
    if (type === ':') return number;
    if (type !== '$' && type !== '*') throw new Error(`no reply: ${JSON.stringify(type + head)}`);
    if (number === -1) return null;
    if (type === '$') {
      if (text.length < this.#at + number + 2) return MORE;
      const value = `$${text.slice(this.#at, this.#at + number)}`;
      this.#at += number + 2;
      return value;
    }
    const replies: Reply[] = [];
    for (let i = 0; i < number; i++) {
      const each = this.#read();
      if (each === MORE) return MORE;
      replies.push(each);
    }
    return replies;
  }
}

export const isError = (reply: Reply): reply is string => typeof reply === 'string' && reply[0] === '-';
