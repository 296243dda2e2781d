/**
 * A relay between a server and its client, which may be the proxy or another server. It can hold or delay bytes, cut
 * all connections and refuse new ones. It can also cut the client's end while the server's end stays open, with
 * everything that the server has not read yet.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** `up` is the direction to the server. */
export type Direction = 'up' | 'down';

const DIRECTIONS = ['up', 'down'] as const;
/** Minimum number of bytes that a connection holds before its sender notices. */
const MAX_WAITING = 256 * 1024;

interface Chunk {
  readonly bytes: Buffer;
  /** Time of arrival, in ms of `performance.now`. */
  readonly at: number;
}

/** One connection: the client's end (the proxy's), and the server's end. */
export class Link {
  /** Number of bytes that were passed on to the server, and to the client. */
  readonly passed = { up: 0, down: 0 };
  readonly #waiting: Record<Direction, Chunk[]> = { up: [], down: [] };
  readonly #held = new Set<Direction>();
  readonly #busy = new Set<Direction>();
  /** Number of bytes that may still pass before the direction is held, and the callback for then. */
  readonly #quota: Partial<Record<Direction, { bytes: number; readonly spent: () => void }>> = {};
  #abandoned = false;

  constructor(
    readonly client: Socket,
    readonly server: Socket,
    private readonly pace: { readonly delayMs: number; readonly bytesPerSecond: number },
  ) {
    for (const socket of [client, server]) socket.setNoDelay(true).on('error', () => undefined);
    client.on('data', (chunk: Buffer) => this.#take('up', chunk));
    server.on('data', (chunk: Buffer) => this.#take('down', chunk));
    client.on('close', () => {
      if (!this.#abandoned) server.destroy();
    });
    server.on('close', () => client.destroy());
  }

  /** Whether the server has closed or lost its end. */
  get ended(): boolean {
    return this.server.destroyed;
  }

  /** Whether the link holds one direction, or both. */
  get stalled(): boolean {
    return this.#held.size > 0;
  }

  /** Number of bytes that were read from one end and not passed on. */
  waiting(direction: Direction): number {
    return this.#waiting[direction].reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  /** Holds these directions: nothing is passed on. */
  hold(...directions: readonly Direction[]): void {
    for (const direction of directions) this.#held.add(direction);
  }

  /** Passes on this number of bytes in the direction, even if it is held, and then holds it; resolves then. */
  holdAfter(direction: Direction, bytes: number): Promise<void> {
    if (bytes === 0) {
      this.hold(direction);
      return Promise.resolve();
    }
    return new Promise((spent) => {
      this.#quota[direction] = { bytes, spent };
      this.#held.delete(direction);
      void this.#passOn(direction);
    });
  }

  /** Passes on the held bytes, in order. */
  release(): void {
    this.#held.clear();
    delete this.#quota.up;
    delete this.#quota.down;
    for (const direction of DIRECTIONS) void this.#passOn(direction);
  }

  /** From now on the server's end stays open when the client's end closes. */
  keepServerEnd(): void {
    this.#abandoned = true;
  }

  /** Cuts the client's end, and leaves the server's end open; resolves when it is cut. */
  async abandon(): Promise<void> {
    this.keepServerEnd();
    if (this.client.destroyed) return;
    this.client.destroy();
    await once(this.client, 'close');
  }

  /** Cuts both ends. */
  cut(): void {
    this.client.destroy();
    this.server.destroy();
  }

  #take(direction: Direction, bytes: Buffer): void {
    this.#waiting[direction].push({ bytes, at: performance.now() });
    if (this.waiting(direction) > MAX_WAITING) this.#sender(direction).pause();
    void this.#passOn(direction);
  }

  #sender(direction: Direction): Socket {
    return direction === 'up' ? this.client : this.server;
  }

  async #passOn(direction: Direction): Promise<void> {
    if (this.#busy.has(direction)) return;
    this.#busy.add(direction);
    const to = this.#sender(direction === 'up' ? 'down' : 'up');
    while (this.#waiting[direction].length > 0 && !this.#held.has(direction)) {
      const late = this.#waiting[direction][0].at + this.pace.delayMs - performance.now();
      if (this.pace.delayMs > 0 && late > 0) await sleep(late);
      if (this.#held.has(direction)) break;
      const bytes = this.#takeQuota(direction, this.#waiting[direction].shift()!);
      this.passed[direction] += bytes.length;
      if (!to.destroyed && !to.write(bytes)) await drained(to);
      const takes = (bytes.length / this.pace.bytesPerSecond) * 1000;
      if (takes > 0) await sleep(takes);
    }
    this.#busy.delete(direction);
    if (this.#waiting[direction].length === 0) this.#sender(direction).resume();
  }

  /** The bytes of the chunk that the quota allows; the rest waits, and the direction is held. */
  #takeQuota(direction: Direction, chunk: Chunk): Buffer {
    const quota = this.#quota[direction];
    if (quota === undefined || chunk.bytes.length < quota.bytes) {
      if (quota !== undefined) quota.bytes -= chunk.bytes.length;
      return chunk.bytes;
    }
    const passes = chunk.bytes.subarray(0, quota.bytes);
    if (passes.length < chunk.bytes.length)
      this.#waiting[direction].unshift({ bytes: chunk.bytes.subarray(quota.bytes), at: chunk.at });
    delete this.#quota[direction];
    this.#held.add(direction);
    quota.spent();
    return passes;
  }
}

/** Resolves when the socket accepts more, or is closed. */
function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off('drain', done);
      socket.off('close', done);
      resolve();
    };
    socket.on('drain', done);
    socket.on('close', done);
  });
}

export class Relay {
  /** Each chunk is passed on this number of milliseconds after it came. */
  delayMs = 0;
  /** Maximum rate in each direction. */
  bytesPerSecond = Infinity;
  #down = false;
  readonly #holding = new Set<Direction>();
  readonly #links = new Set<Link>();
  /** Clients whose connection to the server is being opened. */
  readonly #connecting = new Set<Socket>();
  readonly #listener = createServer({ pauseOnConnect: true }, (client) => void this.#accept(client));

  private constructor(private to: number) {}

  /** Listens on a free port of loopback, and relays everything to `server`. */
  static async start(server: { readonly port: number }): Promise<Relay> {
    const relay = new Relay(server.port);
    relay.#listener.listen(0, '127.0.0.1');
    await once(relay.#listener, 'listening');
    return relay;
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** The connections whose client's end is open. */
  get links(): readonly Link[] {
    return [...this.#links].filter(({ client }) => !client.destroyed);
  }

  /** Bytes that were passed on so far, on all connections that the server has open. */
  passed(direction: Direction): number {
    return [...this.#links].reduce((sum, link) => sum + link.passed[direction], 0);
  }

  /** Bytes that are held, on all connections that the server has open. */
  waiting(direction: Direction): number {
    return [...this.#links].reduce((sum, link) => sum + link.waiting(direction), 0);
  }

  /** Holds these directions, on present and later connections. */
  hold(...directions: readonly Direction[]): void {
    for (const direction of directions) this.#holding.add(direction);
    for (const link of this.links) link.hold(...directions);
  }

  /** Holds these directions, on later connections only. */
  holdLater(...directions: readonly Direction[]): void {
    for (const direction of directions) this.#holding.add(direction);
  }

  /** Ends every `hold`. */
  release(): void {
    this.#holding.clear();
    for (const link of this.#links) link.release();
  }

  /**
   * Cuts the client's end of all present connections. The server does not notice: it still has what was passed on, and
   * held bytes are passed on after `release`.
   * @returns the connections that were cut
   */
  async cutClients(): Promise<readonly Link[]> {
    const cut = this.links;
    await Promise.all(cut.map((link) => link.abandon()));
    return cut;
  }

  /** Cuts both ends of all present connections, and those that are being opened. */
  cut(): void {
    for (const link of this.links) link.cut();
    for (const client of this.#connecting) client.destroy();
  }

  /** Cuts all connections, and refuses new ones until `up`. */
  down(): void {
    this.#down = true;
    this.cut();
  }

  /** Accepts connections again. */
  up(): void {
    this.#down = false;
  }

  /** Later connections lead to another server. */
  leadTo(server: { readonly port: number }): void {
    this.to = server.port;
  }

  /** Cuts all connections, including those that are being opened; resolves when none is left. */
  async close(): Promise<void> {
    this.#down = true;
    for (const link of this.#links) link.cut();
    this.#listener.close();
    await once(this.#listener, 'close');
  }

  async #accept(client: Socket): Promise<void> {
    client.on('error', () => undefined);
    if (this.#down) {
      client.destroy();
      return;
    }
    const server = connect({ host: '127.0.0.1', port: this.to });
    this.#connecting.add(client);
    try {
      await once(server, 'connect');
    } catch {
      client.destroy();
      return;
    } finally {
      this.#connecting.delete(client);
    }
    if (this.#down || client.destroyed) {
      client.destroy();
      server.destroy();
      return;
    }
    const link = new Link(client, server, this);
    this.#links.add(link);
    server.on('close', () => this.#links.delete(link));
    link.hold(...this.#holding);
    client.resume();
  }
}
