/** Sends every call of a command to one server, with keys and without. */
import { connect, type Socket } from 'node:net';
import { decodeReply, type Reply } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import { FrameScanner } from '../resp/frame-scanner.js';
import { DUMP, HOLDS, HOLDS_FOR, SHORT, WITH_LIBRARY, type Command, type Probe } from './form-calls.js';

/** Groups whose commands do not change their connection. */
const DATA = new Set([...Object.keys(HOLDS).filter((group) => group !== 'generic'), 'scripting']);

/** Maximum time for all calls of a command, in ms. */
const ANSWER_MS = 10_000;

/** One server; the connection is opened again after calls that may change it. */
export class Prober {
  readonly #url: URL;
  #socket: Socket;
  #bytes = Buffer.alloc(0);
  #wanted = 0;
  #done: (replies: Reply[]) => void = () => undefined;
  #failed: (problem: Error) => void = () => undefined;

  constructor(url: string) {
    this.#url = new URL(url);
    this.#socket = this.#open();
  }

  #open(): Socket {
    const socket = connect(Number(this.#url.port), this.#url.hostname);
    socket.on('data', (chunk) => socket === this.#socket && this.#data(chunk));
    socket.on('error', (problem) => this.#failed(problem));
    socket.on(
      'close',
      () => socket === this.#socket && this.#failed(new Error(`${this.#url.host} closed the connection`)),
    );
    return socket;
  }

  #data(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    const replies: Reply[] = [];
    for (let at = 0; replies.length < this.#wanted;) {
      const end = new FrameScanner().scan(this.#bytes, at, this.#bytes.length);
      if (end === -1) return;
      replies.push(decodeReply(this.#bytes, at).reply);
      at = end;
    }
    this.#bytes = Buffer.alloc(0);
    this.#done(replies);
  }

  ask(commands: readonly Command[]): Promise<Reply[]> {
    return new Promise((resolve, reject) => {
      const late = (): void =>
        reject(new Error(`${this.#url.host} does not answer to ${commands.map(String).join('; ').slice(0, 2_000)}`));
      const timer = setTimeout(late, ANSWER_MS);
      this.#done = (replies) => (clearTimeout(timer), resolve(replies));
      this.#failed = (problem) => (clearTimeout(timer), reject(problem));
      this.#wanted = commands.length;
      this.#socket.write(Buffer.concat(commands.map((command) => encodeCommand(command))));
    });
  }

  /** The replies to each call of one command: with keys that hold data, and with keys that do not exist. */
  async answers(probes: readonly Probe[]): Promise<Reply[][]> {
    const [{ command, group }] = probes;
    const holds = (HOLDS_FOR[command] ?? HOLDS[group] ?? []).map((line) => line.split(' '));
    const functions = group === 'scripting' ? WITH_LIBRARY : [];
    const before: readonly Command[] = [['FLUSHALL'], ['SCRIPT', 'LOAD', 'return 1'], ...functions];
    const calls: Command[][] = [];
    for (const { args } of probes) {
      const call = args.includes(DUMP) ? await this.#withDump(command, args) : args;
      // A call that would block is sent only with keys that hold data.
      calls.push([...before, ...holds, call], [...before, ...(args.includes(SHORT) ? holds : []), call]);
    }
    const replies: Reply[] = [];
    // After a command that blocked, or KEYS, KeyDB reads on only when more bytes arrive.
    if (DATA.has(group) && !probes.some(({ args }) => args.includes('block'))) {
      const all = await this.ask(calls.flat());
      for (let i = 0, at = -1; i < calls.length; i++) replies.push(all[(at += calls[i].length)]);
    } else {
      for (const call of calls) {
        replies.push((await this.ask(call)).at(-1)!);
        this.reopen();
      }
    }
    return probes.map((_, i) => [replies[2 * i], replies[2 * i + 1]]);
  }

  /** A payload of one server cannot be used on another. */
  async #withDump(command: string, args: readonly string[]): Promise<Command> {
    const made: readonly Command[] =
      command === 'restore'
        ? [
            ['SET', 'dumped', 'v'],
            ['DUMP', 'dumped'],
          ]
        : [...WITH_LIBRARY, ['FUNCTION', 'DUMP']];
    const dumped = (await this.ask(made)).at(-1)!;
    return args.map((arg) => (arg === DUMP ? (dumped.data ?? '') : arg));
  }

  /** Continues over a new connection. */
  reopen(): void {
    const old = this.#socket;
    this.#socket = this.#open();
    this.#bytes = Buffer.alloc(0);
    old.destroy();
  }

  close(): void {
    this.#failed = () => undefined;
    this.#socket.destroy();
  }
}
