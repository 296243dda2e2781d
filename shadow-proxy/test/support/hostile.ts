/** Peers that answer as no server should, in RESP and in HTTP: for what an operator's command makes of them. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { HOSTILE } from './raw-text.js';
import { FrameReader } from '../../src/resp/frame-reader.js';

/** What a peer does with a connection. */
export type Behaviour = (socket: Socket) => void;

export class HostilePeer {
  readonly #sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async start(behaviour: Behaviour): Promise<HostilePeer> {
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const peer = new HostilePeer(server, (server.address() as AddressInfo).port);
    server.on('connection', (socket) => {
      peer.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => peer.#sockets.delete(socket));
      behaviour(socket);
    });
    return peer;
  }

  stop(): void {
    this.server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

const isHttp = (chunk: Buffer): boolean => /^(GET|POST|PATCH|DELETE|PUT) \//.test(chunk.toString('latin1', 0, 8));
const commandsIn = (chunk: Buffer): number => chunk.toString('latin1').match(/^\*\d+\r$/gm)?.length ?? 0;

/** An HTTP answer, whole. */
export const http = (status: string, type: string, body: string): string =>
  `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const json = (body: string, status = '200 OK'): string => http(status, 'application/json', body);

/** Answers each command, or each request, with the same text. */
const answering =
  (resp: string | Buffer, body: string | Buffer, then: (socket: Socket) => void = () => undefined): Behaviour =>
  (socket) =>
    socket.on('data', (chunk) => {
      if (isHttp(chunk)) socket.write(body);
      else for (let left = commandsIn(chunk); left > 0; left--) socket.write(resp, 'latin1');
      then(socket);
    });

/** Begins an answer, and never ends it. */
const endless =
  (resp: string, head: string, more: Buffer): Behaviour =>
  (socket) =>
    socket.once('data', (chunk) => {
      socket.write(isHttp(chunk) ? head : resp);
      const write = (): void => {
        while (!socket.destroyed && socket.write(more));
      };
      socket.on('drain', write);
      write();
    });

const HTML = '<!doctype html><title>Bad Request</title>';
const HEADERS = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';

/** Peers that are slow: a request to them times out. */
export const SLOW: Readonly<Record<string, Behaviour>> = {
  'hangs after it has accepted': (socket) => void socket.resume(),
  'never reads': (socket) => void socket.pause(),
  'begins an answer, and hangs': answering('$10\r\nhel', `${HEADERS}content-length: 99\r\n\r\n{"shards": [`),
  'sends a byte now and then': (socket) => {
    socket.once('data', (chunk) => {
      socket.write(isHttp(chunk) ? `${HEADERS}\r\n` : '+');
      const timer = setInterval(() => socket.write('a'), 200);
      socket.on('close', () => clearInterval(timer));
    });
  },
};

/** An error has no line break. */
const inLine = Buffer.from(HOSTILE.replaceAll(/[\r\n]/g, ' ')).toString('latin1');
const bulk = `$${Buffer.byteLength(HOSTILE)}\r\n${Buffer.from(HOSTILE).toString('latin1')}\r\n`;
const LISTS = ['shards', 'jobs', 'history', 'changes', 'accepted', 'promotions', 'rollbacks', 'fences', 'takenBack'];

/** Peers that answer at once. */
export const QUICK: Readonly<Record<string, Behaviour>> = {
  'refuses every command': answering(
    '-WRONGPASS invalid username-password pair or user is disabled.\r\n',
    json('{"error":{"code":"unauthorized","message":"no"}}', '401 Unauthorized'),
  ),
  'closes the connection at once': (socket) => void socket.destroy(),
  'resets the connection at once': (socket) => void socket.resetAndDestroy(),
  'closes at the first question': (socket) => void socket.once('data', () => socket.destroy()),
  'closes in the middle of an answer': answering('$10\r\nhel', `${HEADERS}content-length: 99\r\n\r\n{"sh`, (socket) =>
    socket.end(),
  ),
  'answers HTML': answering(http('400 Bad Request', 'text/html', HTML), http('200 OK', 'text/html', HTML)),
  'answers HTML, and closes': answering(
    http('400 Bad Request', 'text/html', HTML),
    http('502 Bad Gateway', 'text/html', HTML),
    (socket) => socket.end(),
  ),
  'answers random bytes': answering(randomBytes(1_000), randomBytes(1_000)),
  'says OK to everything': answering('+OK\r\n', json('{}')),
  'answers with nothing': answering('$-1\r\n', json('null')),
  'answers with a list': answering('*1\r\n$1\r\na\r\n', json('[]')),
  'answers with an empty list': answering('*0\r\n', json('{"shards":[],"jobs":[],"changes":[],"promotions":[]}')),
  'answers with a number': answering(':1\r\n', json('7')),
  'answers with lists in lists': answering('*1\r\n'.repeat(1_000) + ':1\r\n', json('['.repeat(100_000))),
  'answers with other entries': answering('*2\r\n*0\r\n*0\r\n', json('{"shards":[null],"jobs":[7],"history":[{}]}')),
  'answers with entries that have only their names': answering(
    '*1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n',
    json(`{${LISTS.map((part) => `"${part}":[{"name":"a","shard":"a"}]`).join()}}`),
  ),
  'answers with control characters': answering(
    `*2\r\n*4\r\n${bulk}${bulk}${bulk}${bulk}-ERR ${inLine}\r\n`,
    json(
      JSON.stringify({
        ...Object.fromEntries(LISTS.map((part) => [part, [{ name: HOSTILE, shard: HOSTILE }]])),
        error: { code: HOSTILE, message: HOSTILE, next: [HOSTILE] },
      }),
      '400 Bad Request',
    ),
  ),
  'refuses with control characters': answering(
    `-ERR ${inLine}\r\n`,
    http('503 Service Unavailable', 'text/\u001b[2J', HOSTILE),
  ),
  'refuses without a reason': answering('-\r\n', json('{"error":7}', '500 Internal Server Error')),
  'sends the caller elsewhere': answering(
    '-MOVED 1 127.0.0.1:1\r\n',
    'HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n',
  ),
  'sends an answer without an end': endless(`$${2 ** 31 - 1}\r\n`, `${HEADERS}\r\n`, Buffer.alloc(1 << 20, 'x')),
  'sends a line without an end': endless('+', 'HTTP/1.1 200 OK\r\nx: ', Buffer.alloc(1 << 16, 'x')),
};

/** What happens to a connection to a real server after so many replies. */
export type Fault = 'close' | 'hang' | 'garbage' | 'refuse';

/** A relay in front of a server, each connection of which breaks after `replies` of them; 0: before the first. */
export const breaking =
  (port: number, replies: number, fault: Fault): Behaviour =>
  (socket) => {
    const server = connect(port, '127.0.0.1');
    const reader = new FrameReader();
    let left = replies;
    const breaks = (): void => {
      server.destroy();
      if (fault === 'close') socket.destroy();
      else if (fault === 'garbage') socket.write('HTTP/1.1 400 Bad Request\r\n\r\n');
      else if (fault === 'refuse') socket.write('-NOPERM this user has no permissions to run this command\r\n');
    };
    socket.on('data', (chunk) => (left === 0 ? breaks() : server.write(chunk)));
    server.on('error', () => undefined).on('close', () => left > 0 && socket.destroy());
    server.on('data', (chunk) => {
      reader.feed(chunk);
      while (left > 0 && reader.next()) {
        socket.write(reader.buffer.subarray(reader.start, reader.end));
        // What was sent together is answered in part.
        if (--left === 0 && fault !== 'hang' && reader.next()) breaks();
      }
    });
    socket.on('close', () => server.destroy());
  };
