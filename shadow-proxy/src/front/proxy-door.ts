/**
 * Reads the PROXY header of connections without TLS, on the sequencing thread, before a session sees a byte. (With TLS
 * the header comes before the handshake: `tcp-server.ts`.)
 *
 * Where the header is required, a client is admitted when it is read. Where it is optional, a client is admitted at
 * once, and has the address of its socket until its first bytes show another: one that sends nothing yet is listed.
 */
import type { ClientSocket, Connect } from '../io/client-socket.js';
import type { Take } from '../io/intake.js';
import { after, clearTimer, nextTurn, type Timer } from '../io/timers.js';
import type { ProxyProtocol } from '../plan/endpoint.js';
import { Networks } from '../plan/networks.js';
import { readHeader, type HeaderProblem, type Peer } from './proxy-header.js';

/** Gives a socket the address of the client behind the load balancer. */
export function readdress(socket: Pick<ClientSocket, 'remoteAddress' | 'remotePort'>, { address, port }: Peer): void {
  Object.defineProperties(socket, {
    remoteAddress: { value: address, configurable: true },
    remotePort: { value: port, configurable: true },
  });
}

/**
 * What follows from the bytes that a connection has sent so far: more are needed, it is refused, or it passes.
 * `length`: bytes of its header, 0 if it has none. `peer`: null if no header names a client.
 */
type Verdict =
  'unfinished' | { readonly problem: HeaderProblem } | { readonly length: number; readonly peer: Peer | null };

/** @param isTrusted whether the socket's address may send a header */
export function judge(bytes: Buffer, isRequired: boolean, isTrusted: () => boolean): Verdict {
  const header = readHeader(bytes);
  if (header.is === 'unfinished') return header.is;
  if (header.is === 'absent') return isRequired ? { problem: 'missing' } : { length: 0, peer: null };
  if (!isTrusted()) return { problem: 'outside' };
  return header.is === 'whole' ? header : { problem: header.is };
}

/** A connection is not admitted, because of its header. @param from the address of its socket */
export type RefuseHeader = (problem: HeaderProblem, from: string) => void;

export class ProxyDoor {
  readonly #from: Networks;
  /** Connections whose header is not read. */
  readonly #waiting = new Set<Arrival>();

  constructor(
    private readonly protocol: ProxyProtocol,
    /** How long a header may take, in ms. */
    private readonly deadlineMs: () => number,
    /** The caller answers the client, and closes the socket. */
    private readonly refused: (socket: ClientSocket, ...refusal: Parameters<RefuseHeader>) => void,
  ) {
    this.#from = new Networks(protocol.from);
  }

  /** A client has connected. @param admit called once, or never if the connection is refused before it is admitted */
  enter(connect: Connect, admit: (connect: Connect) => void): void {
    const isRequired = this.protocol.mode === 'required';
    const arrival: Arrival = new Arrival({
      isRequired,
      trusts: (address) => this.#from.has(address),
      deadlineMs: this.deadlineMs(),
      read: (socket) => {
        if (isRequired)
          admit((take) => {
            arrival.passTo(take);
            return socket;
          });
      },
      refused: this.refused,
      decided: () => void this.#waiting.delete(arrival),
    });
    this.#waiting.add(arrival);
    if (isRequired) arrival.begin(connect);
    else
      admit((take) => {
        arrival.passTo(take);
        return arrival.begin(connect);
      });
  }

  /** Closes the connections that wait for a header to be read, and were not admitted. */
  close(): void {
    for (const arrival of this.#waiting) arrival.abandon();
  }
}

interface ArrivalContext {
  readonly isRequired: boolean;
  trusts(address: string): boolean;
  readonly deadlineMs: number;
  /** The header was read, or there is none and none is required. */
  read(socket: ClientSocket): void;
  readonly refused: (socket: ClientSocket, ...refusal: Parameters<RefuseHeader>) => void;
  /** The connection was accepted, refused or closed. */
  decided(): void;
}

/** One connection until its header is read. */
class Arrival {
  #socket!: ClientSocket;
  #from = '';
  #held: Buffer = Buffer.alloc(0);
  /** Gets what follows the header. */
  #take: Take = () => undefined;
  #isOver = false;
  #isRefused = false;
  #timer: Timer | undefined;

  constructor(private readonly by: ArrivalContext) {}

  passTo(take: Take): void {
    this.#take = take;
  }

  begin(connect: Connect): ClientSocket {
    const socket = connect(this.#received);
    this.#socket = socket;
    this.#from = socket.remoteAddress ?? '';
    socket.on('end', this.#ended).on('close', this.#closed);
    if (!this.by.isRequired) return socket;
    // The connection is lost already.
    if (this.#from === '') this.abandon();
    else if (!this.by.trusts(this.#from)) this.#refuse('outside');
    else this.#limitTime();
    return socket;
  }

  abandon(): void {
    if (!this.by.isRequired) return;
    this.#end();
    this.#socket.destroy();
  }

  readonly #received: Take = (buffer, start, end) => {
    if (this.#isRefused) return;
    if (this.#isOver) return this.#take(buffer, start, end);
    // The header is short: a copy costs less than to keep the buffer.
    const bytes = Buffer.concat([this.#held, buffer.subarray(start, end)]);
    const verdict = judge(bytes, this.by.isRequired, () => this.by.trusts(this.#from));
    if (verdict === 'unfinished') {
      this.#held = bytes;
      this.#limitTime();
    } else if ('problem' in verdict) this.#refuse(verdict.problem);
    else {
      if (verdict.peer !== null) readdress(this.#socket, verdict.peer);
      this.#pass(bytes, verdict.length);
    }
  };

  #pass(bytes: Buffer, from: number): void {
    this.#end();
    this.by.read(this.#socket);
    if (from < bytes.length) this.#take(bytes, from, bytes.length);
  }

  /** Begins when something is to come: a client without a header may be silent for as long as it wants. */
  #limitTime(): void {
    this.#timer ??= after(this.by.deadlineMs, () => nextTurn(this.#late)).unref();
  }

  /** What had arrived by the deadline was read. */
  readonly #late = (): void => {
    if (!this.#isOver) this.#refuse('late');
  };

  readonly #ended = (): void => {
    // Load balancers check whether a port is open, and send nothing.
    if (this.#held.length > 0) this.#refuse('cut');
    else if (this.by.isRequired) this.abandon();
    else this.#end();
  };

  readonly #closed = (): void => {
    if (this.#held.length > 0) this.#refuse('cut');
    else this.#end();
  };

  #refuse(problem: HeaderProblem): void {
    this.#isRefused = true;
    this.#end();
    this.by.refused(this.#socket, problem, this.#from);
  }

  #end(): void {
    this.#isOver = true;
    this.#held = Buffer.alloc(0);
    clearTimer(this.#timer);
    this.#socket.off('end', this.#ended).off('close', this.#closed);
    this.by.decided();
  }
}
