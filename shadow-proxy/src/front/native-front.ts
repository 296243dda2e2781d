/** A front in C: on the sequencing thread, or in a thread of its own. It has no TLS. */
import type { Intake } from '../io/intake.js';
import { nextTurn } from '../io/timers.js';
import { Connections, type ConnectionEvents } from './front-connections.js';
import { RING_BYTES, type Front, type ListenAt } from './front.js';
import type { Sender } from './link.js';
import type { Handle, Native } from './native.js';
import { TO_FRONT } from './records.js';
import type { ServerOptions } from './tcp-server.js';

/** Orders to the front itself wait for room, as data for a client does. */
const ORDERS: Sender = { queued: 0, emptied: () => undefined };

/** The descriptor inside a `Server` of Node. */
interface ServerWithHandle {
  readonly _handle: { readonly fd: number };
}

export class NativeFront implements Front {
  readonly #handle: Handle;
  readonly #connections: Connections;
  #most: number;
  #listens = false;
  #over: () => void = () => undefined;

  constructor(
    private readonly native: Native,
    threaded: boolean,
    intake: Intake,
    { maxConnections }: Pick<ServerOptions, 'maxConnections'>,
    events: ConnectionEvents,
  ) {
    this.#most = maxConnections;
    const { handle, ...memory } = native.open(RING_BYTES, threaded, () => this.#connections.link.rung());
    this.#handle = handle;
    this.#connections = new Connections(
      memory,
      () => this.#send(),
      intake,
      events,
      () => this.#over(),
    );
    this.#connections.link.open();
  }

  async listen({ host, port, first }: ListenAt): Promise<void> {
    if (first === null) this.native.listenAt(this.#handle, host, port, this.#most);
    else {
      this.native.listenOn(this.#handle, (first as unknown as ServerWithHandle)._handle.fd, this.#most);
      // The native socket is a duplicate of the same descriptor: no client is refused meanwhile.
      first.close();
    }
    this.#listens = true;
  }

  renew({ maxConnections }: Pick<ServerOptions, 'maxConnections'>): void {
    this.#most = maxConnections;
    const most = Buffer.alloc(4);
    most.writeUInt32LE(maxConnections);
    this.#connections.link.send(TO_FRONT.limit, 0, most, 0, 4, ORDERS);
  }

  async close(): Promise<void> {
    if (this.#listens)
      await new Promise<void>((resolve) => {
        this.#over = resolve;
        this.#connections.link.say(TO_FRONT.close, 0, ORDERS);
      });
    this.native.stop(this.#handle);
    this.#connections.close();
  }

  #send(): void {
    // Not at once, because the link is still working.
    if (this.native.send(this.#handle)) nextTurn(this.#connections.link.rung);
  }
}
