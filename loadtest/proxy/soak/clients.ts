/**
 * A process with many connected clients (raw sockets) that send at a moderate rate. `main.ts` starts it with one
 * argument, a JSON `ClientsTask`. It prints `connected` when all clients are, and its `Totals` when it is stopped.
 */
import { connect, type Socket } from 'node:net';
import { decodeReply, text } from '../../../shadow-proxy/src/resp/decode.js';
import { encodeCommand } from '../../../shadow-proxy/src/resp/encode.js';
import { FrameScanner } from '../../../shadow-proxy/src/resp/frame-scanner.js';
import { judgeReply, nextRequest, type Request } from './traffic.js';

export interface ClientsTask {
  readonly port: number;
  readonly clients: number;
  /** Commands per second, over all of the process's clients. */
  readonly rate: number;
  /** Maximum size of a value, in bytes. */
  readonly maxValue: number;
  /** Clients per second that disconnect, perhaps in the middle of a command, and reconnect. */
  readonly churn: number;
}

export interface Totals {
  commands: number;
  replies: number;
  /** Error replies, with the first few texts. */
  errors: number;
  errorTexts: string[];
  /** Replies that cannot belong to their command. */
  wrong: number;
  /** Connections that ended although the client did not disconnect. */
  lost: number;
  hungUp: number;
  /** Commands that were not sent because the client still waited for too many replies. */
  heldBack: number;
}

export type ClientsMessage = { readonly type: 'connected' } | { readonly type: 'totals'; readonly totals: Totals };

const MAX_IN_FLIGHT = 32;
const TICK_MS = 10;

const totals: Totals = {
  commands: 0,
  replies: 0,
  errors: 0,
  errorTexts: [],
  wrong: 0,
  lost: 0,
  hungUp: 0,
  heldBack: 0,
};
let stopping = false;

class Client {
  readonly #waiting: Request[] = [];
  readonly #scanner = new FrameScanner();
  #socket!: Socket;
  #rest: Buffer = Buffer.alloc(0);

  constructor(readonly task: ClientsTask) {}

  connect(): Promise<void> {
    this.#waiting.length = 0;
    this.#rest = Buffer.alloc(0);
    const socket = connect(this.task.port, '127.0.0.1').setNoDelay(true);
    this.#socket = socket;
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('error', () => undefined);
    socket.once('close', () => {
      if (stopping || socket !== this.#socket) return;
      totals.lost++;
      setTimeout(() => void this.connect(), 200);
    });
    return new Promise((resolve) => socket.once('connect', resolve).once('close', () => resolve()));
  }

  /** Sends one to `max` commands at once; returns how many. */
  send(max: number): number {
    const count = Math.random() < 0.7 ? 1 : 1 + Math.floor(Math.random() * max);
    if (this.#waiting.length + count > MAX_IN_FLIGHT || this.#socket.connecting) {
      totals.heldBack += count;
      return count;
    }
    const requests = Array.from({ length: count }, () => nextRequest(this.task.maxValue));
    this.#waiting.push(...requests);
    this.#socket.write(Buffer.concat(requests.map((request) => encodeCommand(request.args))));
    totals.commands += count;
    return count;
  }

  hangUp(): void {
    const socket = this.#socket;
    totals.hungUp++;
    void this.connect(); // first, so that the end of the old socket does not count as a lost connection
    socket.destroy();
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  #receive(chunk: Buffer): void {
    const buffer = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    let at = 0;
    for (;;) {
      const end = this.#scanner.scan(buffer, at, buffer.length);
      if (end < 0) break;
      this.#judge(buffer.subarray(at, end));
      at = end;
    }
    this.#rest = buffer.subarray(at);
  }

  #judge(frame: Buffer): void {
    const { reply } = decodeReply(frame);
    const request = this.#waiting.shift();
    totals.replies++;
    const verdict = request ? judgeReply(request, reply) : 'wrong';
    if (verdict === 'wrong') totals.wrong++;
    if (verdict !== 'error') return;
    totals.errors++;
    if (totals.errorTexts.length < 5) totals.errorTexts.push(`${request!.args[0]}: ${text(reply)}`);
  }
}

async function main(task: ClientsTask): Promise<void> {
  const clients = Array.from({ length: task.clients }, () => new Client(task));
  for (let i = 0; i < clients.length; i += 50)
    await Promise.all(clients.slice(i, i + 50).map((client) => client.connect()));
  tell({ type: 'connected' });

  let next = 0;
  let owed = 0;
  const sending = setInterval(() => {
    for (owed += (task.rate * TICK_MS) / 1000; owed >= 1; next++) owed -= clients[next % clients.length].send(8);
  }, TICK_MS);
  const churning = setInterval(() => clients[Math.floor(Math.random() * clients.length)].hangUp(), 1000 / task.churn);

  process.once('message', () => {
    clearInterval(sending);
    clearInterval(churning);
    const deadline = Date.now() + 10_000;
    const finishing = setInterval(() => {
      if (clients.some((client) => client.waiting > 0) && Date.now() < deadline) return;
      stopping = true;
      clearInterval(finishing);
      process.send!({ type: 'totals', totals } satisfies ClientsMessage, () => process.exit(0));
    }, 50);
  });
}

const tell = (message: ClientsMessage): void => void process.send!(message);

process.once('disconnect', () => process.exit(1));
process.once('SIGINT', () => undefined); // Ctrl-C reaches the whole group; the parent decides
await main(JSON.parse(process.argv[2]) as ClientsTask);
