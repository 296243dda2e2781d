/**
 * Well-behaved clients. Each sends its commands by a timetable, without waiting for replies: so a stall affects every
 * command that falls into it. Replies are checked and timed, by the wall clock and by a clock that counts only the work
 * of the servers and the proxy: on a busy machine the wall clock measures other programs, too. There are also three
 * waiting clients: one idle, one blocked, one subscribed.
 */
import { connect, type Socket } from 'node:net';
import { scheduled } from '../../rig/proc.js';
import { encodeCommand, type Argument } from '../../../shadow-proxy/src/resp/encode.js';

/** Milliseconds from a command to its reply. */
export interface Times {
  readonly p50: number;
  readonly p99: number;
  readonly worst: number;
}

/** What the clients observed during a time. */
export interface Seen {
  readonly replies: number;
  readonly wall: Times;
  readonly work: Times;
  /** Connections that ended. */
  readonly lost: number;
  /** Replies that do not match their commands. */
  readonly wrong: readonly string[];
}

const TICK_MS = 2;
/** Each client sends once in this number of ticks. */
const TICKS = 2;
/** Maximum number of commands that a client sends before it waits for a reply. */
const MAX_WAITING = 2_000;
const RECONNECT_MS = 100;

/** A time on both clocks, in ms. */
interface Moment {
  readonly wall: number;
  readonly work: number;
  /** How long these clients themselves have just waited for a core, while replies may have been unread here. */
  readonly late: number;
}

interface Asked {
  readonly command: string;
  readonly expected: string;
  since: Moment;
}

/** Times and faults since the last call of `take`. */
class Log {
  #wall: number[] = [];
  #work: number[] = [];
  #lost = 0;
  readonly #wrong: string[] = [];

  took(since: Moment, now: Moment): void {
    const wall = now.wall - since.wall;
    this.#wall.push(wall);
    // The servers may work in parallel, and continue while a reply is still unread here.
    this.#work.push(Math.max(0, Math.min(wall, now.work - since.work) - now.late));
  }

  lost(): void {
    this.#lost++;
  }

  wrong(what: string): void {
    if (this.#wrong.length < 5) this.#wrong.push(what);
  }

  take(): Seen {
    const seen = {
      replies: this.#wall.length,
      wall: timesOf(this.#wall),
      work: timesOf(this.#work),
      lost: this.#lost,
      wrong: this.#wrong.splice(0),
    };
    this.#wall = [];
    this.#work = [];
    this.#lost = 0;
    return seen;
  }
}

/** One connection that logs in, and reconnects if it is lost. */
class Client {
  readonly waiting: Asked[] = [];
  #socket!: Socket;
  #rest = '';
  #stopped = false;
  #sent = 0;

  constructor(
    private readonly key: string,
    private readonly at: {
      readonly port: number;
      readonly password: string;
      readonly first: readonly Argument[] | null;
    },
    private readonly log: Log,
    private readonly now: () => Moment,
  ) {}

  /** Resolves once it is logged in. */
  connect(): Promise<void> {
    const { port, password, first } = this.at;
    const socket = connect(port, '127.0.0.1').setNoDelay(true);
    this.#socket = socket;
    this.waiting.length = 0;
    this.#rest = '';
    socket.on('error', () => undefined);
    socket.once('close', () => {
      if (this.#stopped) return;
      this.log.lost();
      setTimeout(() => void (this.#stopped || this.connect()), RECONNECT_MS);
    });
    return new Promise((resolve) => {
      socket.once('close', resolve).once('data', () => {
        socket.on('data', (chunk: Buffer) => this.#received(chunk));
        if (first !== null) socket.write(encodeCommand(first));
        resolve();
      });
      socket.write(encodeCommand(['AUTH', password]));
    });
  }

  /** Sends a write, and then a read of the written value. */
  send(since: Moment): void {
    if (this.waiting.length >= MAX_WAITING || this.#socket.readyState !== 'open') return;
    const value = `value-${this.#sent >> 1}`;
    if (this.#sent++ % 2 === 0) this.#ask(since, '+OK\r\n', 'SET', this.key, value);
    else this.#ask(since, `$${value.length}\r\n${value}\r\n`, 'GET', this.key);
  }

  stop(): void {
    this.#stopped = true;
    this.#socket.destroy();
  }

  #ask(since: Moment, expected: string, ...args: string[]): void {
    this.waiting.push({ command: args.join(' '), expected, since });
    this.#socket.write(encodeCommand(args));
  }

  #received(chunk: Buffer): void {
    // Replies to a waiting client are ignored.
    if (this.at.first !== null) return;
    this.#rest += chunk.toString('latin1');
    const now = this.now();
    for (
      let [asked] = this.waiting;
      asked !== undefined && this.#rest.length >= asked.expected.length;
      [asked] = this.waiting
    ) {
      if (!this.#rest.startsWith(asked.expected)) {
        this.log.wrong(`${asked.command}: ${this.#rest.slice(0, 100)}`);
        this.#socket.destroy();
        return;
      }
      this.#rest = this.#rest.slice(asked.expected.length);
      this.waiting.shift();
      this.log.took(asked.since, now);
    }
  }
}

export class Victims {
  readonly #log = new Log();
  readonly #clients: Client[];
  readonly #bystanders: Client[];
  #timer: NodeJS.Timeout | undefined;
  #moment: Moment | null = null;
  #waited = 0;

  private constructor(
    port: number,
    password: string,
    count: number,
    private readonly workMs: () => number,
  ) {
    const client = (name: string, first: Argument[] | null): Client =>
      new Client(name, { port, password, first }, this.#log, () => this.#now);
    this.#clients = Array.from({ length: count }, (_, i) => client(`victim:${i}`, null));
    this.#bystanders = [['PING'], ['BLPOP', 'victim:never', 0], ['SUBSCRIBE', 'victim:channel']].map((first) =>
      client('', first),
    );
  }

  /** @param workMs the clock that counts work, in ms */
  static async start(port: number, password: string, count: number, workMs: () => number): Promise<Victims> {
    const victims = new Victims(port, password, count, workMs);
    await Promise.all([...victims.#clients, ...victims.#bystanders].map((client) => client.connect()));
    let tick = 0;
    victims.#timer = setInterval(() => {
      tick++;
      const now = victims.#now;
      victims.#clients.forEach((client, i) => i % TICKS === tick % TICKS && client.send(now));
    }, TICK_MS);
    return victims;
  }

  /** The observations since the last call. A reply that is still awaited counts with the time so far. */
  seen(): Seen {
    const now = this.#now;
    for (const { waiting } of this.#clients) {
      for (const asked of waiting) {
        this.#log.took(asked.since, now);
        asked.since = now;
      }
    }
    return this.#log.take();
  }

  /** Everything that arrives in one turn of the event loop counts as read at one time, however long reading takes. */
  get #now(): Moment {
    if (this.#moment === null) {
      const { waited } = scheduled(process.pid);
      this.#moment = { wall: performance.now(), work: this.workMs(), late: waited - this.#waited };
      this.#waited = waited;
      setImmediate(() => (this.#moment = null));
    }
    return this.#moment;
  }

  stop(): void {
    clearInterval(this.#timer);
    for (const client of [...this.#clients, ...this.#bystanders]) client.stop();
  }
}

function timesOf(unsorted: readonly number[]): Times {
  const times = [...unsorted].sort((a, b) => a - b);
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Infinity;
  return { p50: at(0.5), p99: at(0.99), worst: at(1) };
}
