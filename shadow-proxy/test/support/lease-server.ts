/** A server in memory that knows what a lease asks of one: its connections, their names, and how long they are idle. */
import { Duplex } from 'node:stream';
import { array, bulk, error, integer, OK, simple } from '../../src/resp/encode.js';
import { RequestParser } from '../../src/resp/request.js';
import type { Dialer } from '../../src/upstream/dialer.js';
import type { FakeClock } from './fake-clock.js';

/** One connection, as the server sees it. */
export interface Caller {
  readonly id: number;
  readonly end: Duplex;
  name: string;
  readonly since: number;
  /** When it has sent something last, in ms of the clock. */
  at: number;
}

export class LeaseServer {
  runId = 'r'.repeat(40);
  /** Whether new connections are refused. */
  refuses = false;
  /** Whether it answers nothing, and what was asked meanwhile is lost. */
  silent = false;
  readonly callers = new Map<number, Caller>();
  #nextId = 1;

  constructor(
    private readonly clock: FakeClock,
    readonly label: string,
  ) {}

  /** What a lease connects with. */
  get dialer(): Dialer {
    return {
      label: this.label,
      timeoutMs: 1_000,
      credentials: undefined,
      followsMaster: false,
      resolve: () => Promise.resolve({ host: this.label, port: 1 }),
      connect: () =>
        this.refuses ? Promise.reject(new Error('connect ECONNREFUSED')) : Promise.resolve(this.#connect()),
    } as unknown as Dialer;
  }

  /** Words that its connections have given for themselves, such as `waits`, by number. */
  get words(): string[] {
    return [...this.callers.values()].map(({ name }) => name.split(':')[3]);
  }

  /** A process that holds the lease, and says nothing more. */
  hold(shard: string): void {
    this.#stalled(`shadow-proxy-lease:${shard}:stalled:holds:`);
  }

  /** A process that has released the lease, and whose end does not reach this server. */
  goodbye(shard: string, word: 'clean' | 'left', process = 'gone'): void {
    this.#stalled(`shadow-proxy-lease:${shard}:${process}:${word}:note1`);
  }

  /** A process that waits for the lease. */
  wait(shard: string): void {
    this.#stalled(`shadow-proxy-lease:${shard}:another:waits:`);
  }

  /** A process that waits has asked the server something. */
  look(): void {
    for (const caller of this.callers.values()) if (caller.name.includes(':another:')) caller.at = this.clock.now;
  }

  #stalled(name: string): void {
    const [id, at] = [this.#nextId++, this.clock.now];
    const end = new Duplex({
      read: () => undefined,
      destroy: (problem, done) => {
        this.callers.delete(id);
        done(problem);
      },
    });
    this.callers.set(id, { id, end, name, since: at, at });
  }

  /** Ends every connection, or that one. */
  cut(id?: number): void {
    for (const caller of [...this.callers.values()]) if (id === undefined || caller.id === id) caller.end.destroy();
  }

  #connect(): Duplex {
    const parser = new RequestParser();
    const caller: Caller = {
      id: this.#nextId++,
      name: '',
      since: this.clock.now,
      at: this.clock.now,
      end: new Duplex({
        read: () => undefined,
        write: (chunk: Buffer, _encoding, done) => {
          parser.feed(Buffer.from(chunk));
          while (parser.next()) {
            const args = Array.from({ length: parser.argc }, (_, i) =>
              parser.frame.toString('latin1', parser.argStart[i], parser.argEnd[i]),
            );
            if (!this.silent) caller.end.push(this.#answer(caller, args));
          }
          done();
        },
        destroy: (problem, done) => {
          this.callers.delete(caller.id);
          done(problem);
        },
      }),
    };
    Object.assign(caller.end, { setNoDelay: () => undefined, setKeepAlive: () => undefined });
    this.callers.set(caller.id, caller);
    return caller.end;
  }

  #answer(caller: Caller, [name, word = '', ...more]: readonly string[]): Buffer {
    caller.at = this.clock.now;
    switch (`${name} ${word}`.toUpperCase()) {
      case 'HELLO 2':
        caller.name = more.at(-1)!;
        return array([bulk('id'), integer(caller.id)]);
      case 'INFO SERVER':
        return bulk(`run_id:${this.runId}\r\n`);
      case 'PING ':
        return simple('PONG');
      case 'CLIENT SETNAME':
        caller.name = more[0];
        return OK;
      case 'CLIENT KILL': {
        const known = this.callers.has(Number(more[1]));
        this.cut(Number(more[1]));
        return integer(Number(known));
      }
      case 'CLIENT LIST':
        return bulk(
          [...this.callers.values()]
            .filter(({ id }) => more.length === 0 || Number(more[1]) === id)
            .map((each) => this.#line(each))
            .join(''),
        );
      default:
        return error(`ERR ${name} ${word} is not known here`);
    }
  }

  #line({ id, name, since, at }: Caller): string {
    const seconds = (from: number): number => Math.floor((this.clock.now - from) / 1_000);
    return `id=${id} addr=127.0.0.1:${4_000 + id} name=${name} age=${seconds(since)} idle=${seconds(at)} flags=N\n`;
  }
}
