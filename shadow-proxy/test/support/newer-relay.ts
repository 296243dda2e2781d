/**
 * A wire to a real server that says, in `INFO`, that it is of a later release; all else passes as it is. The text keeps
 * its length, so that no frame changes.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

const FIELD = /redis_version:(\d+)\.(\d+)\.(\d+)/g;

export class NewerRelay {
  readonly #open = new Set<Socket>();

  private constructor(private readonly server: Server) {}

  /** @param port of the server */
  static async to(port: number): Promise<NewerRelay> {
    const server = createServer();
    const relay = new NewerRelay(server);
    server.on('connection', (client) => relay.#pass(client, connect(port, '127.0.0.1')));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return relay;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  #pass(client: Socket, server: Socket): void {
    for (const socket of [client, server]) {
      this.#open.add(socket);
      socket.setNoDelay(true).on('error', () => undefined);
      socket.on('close', () => (client.destroy(), server.destroy()));
    }
    client.pipe(server);
    server.on('data', (chunk: Buffer) => client.write(later(chunk)));
  }

  async stop(): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }
}

/** `7.0.15` becomes `9.9.99`: the same number of digits in each part. */
const later = (chunk: Buffer): Buffer =>
  Buffer.from(
    chunk.toString('latin1').replace(FIELD, (_, ...parts: string[]) =>
      parts
        .slice(0, 3)
        .map((digits) => '9'.repeat(digits.length))
        .reduce((text, part) => `${text}${text.endsWith(':') ? '' : '.'}${part}`, 'redis_version:'),
    ),
    'latin1',
  );
