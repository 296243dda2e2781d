/** A connection that gives replies as the bytes they are. */
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { encodeCommand, type Argument } from '../../../src/resp/encode.js';
import { FrameReader } from '../../../src/resp/frame-reader.js';
import type { CommandView } from '../../../src/compare/compare.js';
import type { LocalServer } from '../../../src/local/servers.js';

export class RawConnection {
  readonly #reader = new FrameReader();
  readonly #waiting: ((frame: Buffer) => void)[] = [];

  private constructor(private readonly socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.#reader.feed(chunk);
      while (this.#reader.next())
        this.#waiting.shift()!(Buffer.from(this.#reader.buffer.subarray(this.#reader.start, this.#reader.end)));
    });
  }

  static async open(server: LocalServer, protocol: 2 | 3 = 2): Promise<RawConnection> {
    const socket = connect(server.port, server.host);
    await once(socket, 'connect');
    const connection = new RawConnection(socket);
    if (protocol === 3) await connection.ask('HELLO', 3);
    return connection;
  }

  ask(...args: Argument[]): Promise<Buffer> {
    this.socket.write(encodeCommand(args));
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  close(): void {
    this.socket.destroy();
  }
}

/** The words of a line; those in double quotes are one. */
export const wordsOf = (line: string): string[] =>
  [...line.matchAll(/"([^"]*)"|(\S+)/g)].map((match) => match[1] ?? match[2]);

const CONTAINERS =
  /^(acl|client|cluster|command|config|debug|function|latency|memory|module|object|pubsub|script|slowlog|xgroup|xinfo)$/;

/** The command as a comparison sees it. */
export function view(words: readonly string[]): CommandView {
  const [name, sub] = words.map((word) => word.toLowerCase());
  return {
    name: CONTAINERS.test(name) && sub !== undefined ? `${name}|${sub}` : name,
    args: words.map((word) => Buffer.from(word)),
  };
}
