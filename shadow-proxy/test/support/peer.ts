/**
 * A server that misbehaves as a test sets it: it answers the handshake of the proxy like Redis, and everything else by
 * a script.
 */
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { bulk, array, integer, OK, simple } from '../../src/resp/encode.js';
import { RequestParser } from '../../src/resp/request.js';

/** A connection to the peer. */
export interface Call {
  readonly socket: Socket;
  /** The command, its name in capitals. */
  readonly args: readonly string[];
}

/**
 * What the peer does with a command that is none of the handshake's. Returns the reply, or null where it has seen to it
 * itself.
 */
export type Script = (call: Call) => Buffer | string | null;

export class Peer {
  readonly url: string;
  /** Every command of the script's, in the order in which they came. */
  readonly heard: string[][] = [];
  readonly sockets = new Set<Socket>();
  /** Whether connections that come now are never answered, in the handshake neither. */
  silent = false;
  #nextId = 1;
  /** Those of the connections that stand for a lease. */
  readonly #leases = new Set<number>();
  /** Those that ask whether a login is needed. */
  readonly #probes = new Set<number>();

  private constructor(
    private readonly server: ReturnType<typeof createServer>,
    public script: Script,
    public runId: string,
  ) {
    this.url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('connection', (socket) => this.#serve(socket));
  }

  static start(script: Script, runId = 'a'.repeat(40)): Promise<Peer> {
    return new Promise((resolve, reject) => {
      const server = createServer();
      server.once('error', reject);
      server.listen(0, '127.0.0.1', () => resolve(new Peer(server, script, runId)));
    });
  }

  get port(): number {
    return Number(this.url.split(':').at(-1));
  }

  /** Connections end at once. */
  disconnect(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.disconnect();
    await closed;
  }

  #serve(socket: Socket): void {
    const id = this.#nextId++;
    const { silent } = this;
    const parser = new RequestParser();
    this.sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.sockets.delete(socket);
      this.#leases.delete(id);
      this.#probes.delete(id);
    });
    socket.on('data', (chunk: Buffer) => {
      if (silent) return;
      parser.feed(chunk);
      while (parser.next()) {
        const args = Array.from({ length: parser.argc }, (_, i) =>
          parser.frame.toString('latin1', parser.argStart[i], parser.argEnd[i]),
        );
        args[0] = args[0].toUpperCase();
        const reply =
          this.#handshake(args, id) ??
          (args[0] === 'PING' && (this.#leases.has(id) || this.#probes.has(id))
            ? simple('PONG')
            : this.#scripted(socket, args));
        if (reply !== null) socket.write(reply);
      }
    });
  }

  #scripted(socket: Socket, args: string[]): Buffer | string | null {
    this.heard.push(args);
    return this.script({ socket, args });
  }

  /** What the proxy asks of a server before it trusts it. */
  #handshake([name, word = '', ...more]: readonly string[], id: number): Buffer | null {
    switch (name) {
      case 'HELLO': {
        if (more.at(-1)?.startsWith('shadow-proxy-lease:')) this.#leases.add(id);
        const fields = [
          bulk('server'),
          bulk('redis'),
          bulk('version'),
          bulk('7.0.15'),
          bulk('proto'),
          integer(Number(word)),
          bulk('id'),
          integer(id),
        ];
        return word === '3' ? Buffer.concat([Buffer.from('%4\r\n'), ...fields]) : array(fields);
      }
      case 'INFO':
        return bulk(`run_id:${this.runId}\r\nredis_version:7.0.15\r\nevicted_keys:0\r\n`);
      case 'COMMAND':
        return array(
          ['get', 'set', 'incr', 'mget', 'ping', 'del', 'xadd'].map((command) => array([bulk(command), integer(-2)])),
        );
      case 'SELECT':
        return OK;
      case 'RESET':
        this.#probes.add(id);
        return simple('RESET');
      case 'CLIENT':
        return word.toUpperCase() === 'LIST' ? bulk('') : word === 'SETNAME' ? OK : integer(0);
      default:
        return null;
    }
  }
}

/** A script that answers like a Redis which keeps strings and nothing else. */
export function keeper(): Script {
  const values = new Map<string, string>();
  return ({ args: [name, key, value] }) => {
    switch (name) {
      case 'SET':
        values.set(key, value);
        return OK;
      case 'GET':
        return bulk(values.get(key) ?? null);
      case 'INCR':
        values.set(key, String(Number(values.get(key) ?? 0) + 1));
        return integer(Number(values.get(key)));
      case 'PING':
        return simple('PONG');
      case 'ECHO':
        return bulk(key);
      default:
        return `-ERR the peer does not know ${name}\r\n`;
    }
  };
}
