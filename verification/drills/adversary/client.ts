/** A client of a program: writes bytes, and holds each reply against the command that it is for. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { FrameReader } from '../../../shadow-proxy/src/resp/frame-reader.js';
import { encode } from '../../../shadow-proxy/test/integration/random/raw.js';
import { APP_USER } from '../../../shadow-proxy/test/integration/random/driver.js';
import { COUNTERS, TOKEN } from './generate.js';
import { argumentAt, type Login } from './program.js';

export const NARROW_USER = {
  name: 'narrow',
  password: 'narrow-password',
  acl: 'narrow on >narrow-password ~a:* ~cnt:* &* +@all -set -lpush -swapdb',
};
const USERS = { app: APP_USER, narrow: NARROW_USER };

/** What became of the increments of a counter. */
export interface Counted {
  acknowledged: number;
  /** Sent, and never answered: they may have run. */
  open: number;
}

export interface Watcher {
  /** What no proxy may do. */
  violation(kind: 'misdelivered' | 'closed', what: string): void;
  /** Whether a connection may be lost just now. */
  mayLose(): boolean;
  /** Increments of `COUNTERS`, by their place there. */
  readonly counted: readonly Counted[];
}

type Args = readonly string[];

export class Client {
  /** Commands that were answered. */
  answered = 0;
  /** Commands under way when the connection ended. */
  unanswered = 0;
  #socket: Socket | null = null;
  #pending: Args[] = [];
  #leaving = false;
  #paused = false;
  /** By the SELECTs that were answered. The counters that count are those of database 0, which nothing flushes. */
  #db: number;
  #queue: Args[] | null = null;

  constructor(
    private readonly number: number,
    private readonly login: Login,
    private readonly port: number,
    private readonly watcher: Watcher,
  ) {
    this.#db = login.db;
  }

  /** The oldest command without a reply, as text. */
  get waitsFor(): string | null {
    return this.#pending.length === 0 ? null : this.#pending[0].join(' ').slice(0, 300);
  }

  /** Writes the commands, on a new connection where there is none. */
  async send(commands: readonly (readonly string[])[], pieces: readonly number[] = []): Promise<void> {
    if (this.#socket === null && !(await this.#open())) return;
    const now = Date.now();
    const sent = commands.map((args) => args.map((arg) => argumentAt(arg, now)));
    this.#pending.push(...sent);
    const bytes = Buffer.concat(sent.map((args) => encode(args.map((arg) => Buffer.from(arg, 'latin1')))));
    let from = 0;
    for (const to of [...pieces, bytes.length]) {
      if (to <= from) continue;
      this.#socket?.write(bytes.subarray(from, to));
      from = to;
      if (from < bytes.length) await sleep(1);
    }
  }

  /** Waits until it has all replies, at most `ms`; false where it has not. */
  async idle(ms: number): Promise<boolean> {
    if (this.#paused) this.read();
    for (const deadline = performance.now() + ms; this.#pending.length > 0; await sleep(2)) {
      if (performance.now() > deadline) return false;
    }
    return true;
  }

  leave(how: 'half-close' | 'reset'): void {
    const socket = this.#socket;
    if (socket === null) return;
    this.#leaving = true;
    if (how === 'half-close') socket.end();
    else {
      socket.resetAndDestroy();
      this.#ended(socket);
    }
  }

  /** Takes no replies until `read`. */
  stopReading(): void {
    this.#paused = true;
    this.#socket?.pause();
  }

  read(): void {
    this.#paused = false;
    this.#socket?.resume();
  }

  close(): void {
    this.#leaving = true;
    this.#socket?.destroy();
  }

  async #open(): Promise<boolean> {
    const socket = connect({ host: '127.0.0.1', port: this.port, allowHalfOpen: true });
    socket.setNoDelay(true);
    const opened = await new Promise<boolean>((resolve) =>
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false)),
    );
    if (!opened) return false;
    const reader = new FrameReader();
    this.#leaving = false;
    this.#queue = null;
    this.#db = 0;
    this.#pending = [];
    this.#socket = socket;
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      reader.feed(chunk);
      while (reader.next()) this.#take(reader.buffer.toString('latin1', reader.start, reader.end));
    });
    socket.on('end', () => this.#ended(socket));
    socket.on('close', () => this.#ended(socket));
    const { protocol, user, db } = this.login;
    const auth = user === null ? [] : [user, USERS[user].password];
    const first =
      protocol === 3
        ? ['HELLO', '3', ...(auth.length > 0 ? ['AUTH', ...auth] : [])]
        : auth.length > 0
          ? ['AUTH', ...auth]
          : null;
    await this.send([...(first ? [first] : []), ['SELECT', String(db)]]);
    return true;
  }

  #ended(socket: Socket): void {
    if (this.#socket !== socket) return;
    this.#socket = null;
    socket.destroy();
    const lost = this.#pending;
    this.#pending = [];
    this.unanswered += lost.length;
    // Which of the SELECTs before them ran is not known.
    for (const args of [...lost, ...(this.#queue ?? [])]) this.#count(args, 'open');
    this.#queue = null;
    if (!this.#leaving && !this.watcher.mayLose())
      this.watcher.violation(
        'closed',
        `client ${this.number} was closed while it waited for ${lost[0]?.join(' ').slice(0, 200) ?? 'nothing'}`,
      );
    // A client that has closed its end and blocks is closed, as by Redis.
    if (this.#leaving && lost.length > 0 && !mayBlock(lost[0]) && !this.watcher.mayLose() && socket.readableEnded) {
      this.watcher.violation(
        'closed',
        `client ${this.number} closed its end, and ${lost.length} replies never came, the first to ${lost[0].join(' ').slice(0, 200)}`,
      );
    }
  }

  #take(frame: string): void {
    const sent = this.#pending.shift();
    if (sent === undefined)
      return this.watcher.violation(
        'misdelivered',
        `client ${this.number} got a reply that nothing asked for: ${frame.slice(0, 100)}`,
      );
    this.answered++;
    const strange = new RegExp(`${TOKEN}(?!${this.number}-)\\d+-`).exec(frame);
    if (strange !== null)
      this.watcher.violation(
        'misdelivered',
        `client ${this.number} got ${strange[0]} for ${sent.join(' ').slice(0, 100)}`,
      );
    this.#look(sent, frame);
  }

  #look(args: Args, frame: string): void {
    const name = args[0].toUpperCase();
    const failed = frame.startsWith('-');
    if (this.#queue !== null && frame.startsWith('+QUEUED')) {
      this.#queue.push(args);
      return;
    }
    if (name === 'ECHO' && !failed && !frame.includes(args[1]))
      this.watcher.violation('misdelivered', `client ${this.number} got ${frame.slice(0, 100)} for ECHO ${args[1]}`);
    else if (name === 'SELECT' && !failed) this.#db = Number(args[1]);
    else if (name === 'MULTI' && !failed) this.#queue = [];
    else if (name === 'DISCARD') this.#queue = null;
    else if (name === 'EXEC') {
      const ran = frame.startsWith('*') && !frame.startsWith('*-1');
      for (const queued of ran ? (this.#queue ?? []) : []) {
        if (queued[0] === 'SELECT') this.#db = Number(queued[1]);
        if (this.#db === 0) this.#count(queued, 'acknowledged');
      }
      this.#queue = null;
    } else if (!failed && this.#db === 0) this.#count(args, 'acknowledged');
  }

  #count(args: Args, how: keyof Counted): void {
    const at = args[0] === 'INCR' ? COUNTERS.indexOf(args[1]) : -1;
    if (at >= 0) this.watcher.counted[at][how]++;
  }
}

const mayBlock = (args: Args): boolean =>
  /^(BL|BR|BZ)/i.test(args[0]) || args.some((arg) => arg.toUpperCase() === 'BLOCK');
