/**
 * Hostile clients: each is a function that runs until it is stopped. None of them may slow down, disconnect or starve
 * the well-behaved clients.
 */
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeCommand, type Argument } from '../../../shadow-proxy/src/resp/encode.js';

export interface AttackContext {
  readonly stopped: boolean;
  /** Opens a connection that discards everything it receives; a refused connection is closed. */
  connect(): Promise<Socket>;
  /** Opens a connection that is logged in. */
  login(): Promise<Socket>;
}

export interface Attack {
  readonly name: string;
  readonly does: string;
  /**
   * The p99 (ms) that is allowed for the well-behaved clients during this attack, and why; set if a few ms are
   * impossible.
   */
  readonly allowed?: { readonly ms: number; readonly because: string };
  run(context: AttackContext): Promise<void>;
}

const KIB = 1024;
const MIB = 1024 * KIB;
/** The keys that attacks read: 1 MiB and 100 bytes. */
export const [BIG, SMALL] = ['hostile:big', 'hostile:small'];
export const BIG_BYTES = MIB;

const command = (...args: Argument[]): Buffer => encodeCommand(args);
const repeat = (bytes: Buffer | string, count: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => Buffer.from(bytes)));

/** Runs `body` repeatedly in `count` tasks; a task starts again after a lost connection. */
async function many(context: AttackContext, count: number, body: () => Promise<void>): Promise<void> {
  const one = async (): Promise<void> => {
    while (!context.stopped) {
      await body().catch(() => undefined);
      await sleep(1);
    }
  };
  await Promise.all(Array.from({ length: count }, one));
}

const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => (socket.destroyed ? resolve() : socket.once('close', () => resolve())));

/** Resolves when the kernel has taken the bytes, the socket is closed, or the time is over. */
function sent(context: AttackContext, socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearInterval(timer);
      socket.off('close', done);
      resolve();
    };
    const timer = setInterval(() => context.stopped && done(), 20);
    socket.once('close', done);
    socket.write(bytes, done);
  });
}

/** Waits for a number of bytes, the end of the connection, or the end of the time. */
function received(context: AttackContext, socket: Socket, bytes: number): Promise<void> {
  return new Promise((resolve) => {
    let left = bytes;
    const done = (): void => {
      clearInterval(timer);
      socket.off('data', onData).off('close', done);
      resolve();
    };
    const onData = (chunk: Buffer): void => {
      left -= chunk.length;
      if (left <= 0) done();
    };
    const timer = setInterval(() => context.stopped && done(), 20);
    socket.on('data', onData).once('close', done);
  });
}

/** Keeps its sockets open until the attack ends. */
async function hold(context: AttackContext, sockets: readonly Socket[]): Promise<void> {
  while (!context.stopped && sockets.some((socket) => !socket.destroyed)) await sleep(20);
  for (const socket of sockets) socket.destroy();
}

/** Opens one connection after the other; `use` runs until the connection is of no more use. */
const over =
  (count: number, use: (context: AttackContext, socket: Socket) => Promise<void>, loggedIn = true) =>
  (context: AttackContext): Promise<void> =>
    many(context, count, async () => {
      const socket = await (loggedIn ? context.login() : context.connect());
      await use(context, socket).finally(() => socket.destroy());
    });

const REFUSED_BURST = Buffer.concat([repeat('ping\r\n', 10_922), repeat('monitor\r\n', 7_990)]);
const READS = repeat(command('GET', BIG), 400);
const WRITES = repeat(command('SET', 'hostile:written', Buffer.alloc(MIB, 'x')), 8);
const SMALL_PIPELINE = repeat(command('GET', SMALL), 20_000);

export const ATTACKS: readonly Attack[] = [
  {
    name: 'refused-commands',
    does: '64 KB of ping and 7,990 × monitor, without a login',
    run: over(
      2,
      async (context, socket) => {
        socket.write(REFUSED_BURST);
        await received(context, socket, 10_922 * 30);
        await sleep(50);
      },
      false,
    ),
  },
  {
    name: 'silent-commands',
    does: 'CLIENT REPLY OFF, then commands that the proxy refuses by itself, as fast as it goes',
    run: over(2, async (context, socket) => {
      await sent(context, socket, command('CLIENT', 'REPLY', 'OFF'));
      const burst = repeat('monitor\r\n', 20_000);
      while (!context.stopped && !socket.destroyed) await sent(context, socket, burst);
    }),
  },
  {
    name: 'large-reads',
    does: 'two clients, each 400 × GET of 1 MiB in one write, reading all',
    allowed: { ms: 50, because: 'a reply of 1 MiB is sent whole' },
    run: over(2, async (context, socket) => {
      socket.write(READS);
      await received(context, socket, 400 * BIG_BYTES);
    }),
  },
  {
    name: 'large-writes',
    does: 'two clients, each SET of 1 MiB without a pause',
    run: over(2, async (context, socket) => {
      for (let i = 0; i < 50 && !context.stopped && !socket.destroyed; i++) await sent(context, socket, WRITES);
    }),
  },
  {
    name: 'giant-pipelines',
    does: 'two clients, each 20,000 × GET of 100 bytes in one write, again and again',
    run: over(2, async (context, socket) => {
      for (let i = 0; i < 50 && !context.stopped && !socket.destroyed; i++) {
        socket.write(SMALL_PIPELINE);
        await received(context, socket, 20_000 * 108);
      }
    }),
  },
  {
    name: 'slow-readers',
    does: 'twenty clients that ask for 400 MiB each and read nothing',
    allowed: {
      ms: 100,
      because: 'a reply of 1 MiB is sent whole, and each of the twenty gets one before that is known',
    },
    run: over(20, async (context, socket) => {
      socket.pause();
      socket.write(READS);
      await Promise.race([closed(socket), hold(context, [socket])]);
    }),
  },
  {
    name: 'huge-multi',
    does: 'ten clients that queue SET of 64 KiB in MULTI and never send EXEC',
    run: over(10, async (context, socket) => {
      socket.write(command('MULTI'));
      const queued = repeat(command('SET', 'hostile:queued', Buffer.alloc(64 * KIB, 'x')), 16);
      while (!context.stopped && !socket.destroyed) await sent(context, socket, queued);
    }),
  },
  {
    name: 'large-arguments',
    does: 'fifty clients that announce 512 MiB and send as much of it as is taken',
    allowed: { ms: 100, because: 'hundreds of MiB a second are copied as they come, and collected as garbage' },
    run: over(50, async (context, socket) => {
      socket.write('*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n');
      const block = Buffer.alloc(MIB, 'x');
      while (!context.stopped && !socket.destroyed) await sent(context, socket, block);
    }),
  },
  {
    name: 'announced-only',
    does: 'two hundred clients that announce 512 MiB, or a million arguments, and send nothing more',
    async run(context) {
      const sockets = await Promise.all(Array.from({ length: 200 }, () => context.login()));
      sockets.forEach((socket, i) =>
        socket.write(i % 2 === 0 ? '*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n' : '*1000000\r\n$3\r\nDEL\r\n'),
      );
      await hold(context, sockets);
    },
  },
  {
    name: 'byte-by-byte',
    does: 'forty clients that send an inline command of 64 KiB byte by byte',
    async run(context) {
      const sockets = await Promise.all(Array.from({ length: 40 }, () => context.login()));
      const begun = Buffer.alloc(60 * KIB, 'x');
      for (const socket of sockets) socket.write(begun);
      while (!context.stopped) {
        for (const socket of sockets) if (!socket.destroyed && socket.writableLength === 0) socket.write('x');
        await new Promise(setImmediate);
      }
      for (const socket of sockets) socket.destroy();
    },
  },
  {
    name: 'never-log-in',
    does: 'three hundred connections that never log in',
    async run(context) {
      const sockets = await Promise.all(Array.from({ length: 300 }, () => context.connect()));
      await hold(context, sockets);
    },
  },
  {
    name: 'connection-flood',
    does: 'connections that are opened and reset as fast as it goes',
    run: over(
      20,
      async (_context, socket) => {
        socket.write('PING\r\n');
        socket.resetAndDestroy();
        await closed(socket);
      },
      false,
    ),
  },
  {
    name: 'failed-logins',
    does: 'ten clients that try one password after the other',
    run: over(
      10,
      async (context, socket) => {
        for (let i = 0; i < 100 && !context.stopped && !socket.destroyed; i++) {
          socket.write(command('AUTH', `guess-${i}`));
          await received(context, socket, 1);
        }
      },
      false,
    ),
  },
  {
    name: 'garbage',
    does: 'ten clients that send random bytes, or commands with a random byte in them',
    run: over(10, async (context, socket) => {
      const bytes = randomBytes(4 * KIB);
      const damaged = repeat(command('SET', SMALL, 'v'), 50);
      damaged[bytes.readUInt32LE(0) % damaged.length] = bytes[4];
      await sent(context, socket, bytes[5] < 128 ? bytes : damaged);
      await Promise.race([closed(socket), sleep(50)]);
    }),
  },
  {
    name: 'half-closes',
    does: 'ten clients that send a pipeline and close their side at once',
    run: over(10, async (_context, socket) => {
      socket.end(repeat(command('GET', SMALL), 500));
      await Promise.race([closed(socket), sleep(500)]);
    }),
  },
  {
    name: 'deaf-subscribers',
    does: 'twenty subscribers that do not read, and a publisher of messages of 64 KiB',
    async run(context) {
      const subscribers = await Promise.all(Array.from({ length: 20 }, () => context.login()));
      for (const socket of subscribers) {
        socket.write(command('SUBSCRIBE', 'hostile:channel'));
        await received(context, socket, 10);
        socket.pause();
      }
      const publisher = await context.login();
      const message = command('PUBLISH', 'hostile:channel', Buffer.alloc(64 * KIB, 'x'));
      while (!context.stopped && !publisher.destroyed) {
        publisher.write(message);
        await received(context, publisher, 3);
      }
      for (const socket of [...subscribers, publisher]) socket.destroy();
    },
  },
  {
    name: 'blocked-backlog',
    does: 'fifty clients that block and send megabytes behind that',
    allowed: { ms: 50, because: 'a hundred MiB arrive at once' },
    run: over(50, async (context, socket) => {
      socket.write(command('BLPOP', 'hostile:nothing', 0));
      const block = repeat(command('SET', 'hostile:behind', Buffer.alloc(4 * KIB, 'x')), 256);
      await sent(context, socket, block);
      await sent(context, socket, block);
      await hold(context, [socket]);
    }),
  },
  {
    name: 'many-names',
    does: 'unknown commands, client names, script texts, subscriptions and WATCH lists without end',
    allowed: { ms: 150, because: 'Redis itself looks through all watched keys of a client at each WATCH' },
    run: over(5, async (context, socket) => {
      for (let i = 0; !context.stopped && !socket.destroyed; i++) {
        const n = `${process.hrtime.bigint()}:${i}`;
        const commands = [
          command(`X${n.replace(/:/g, '')}`),
          command('CLIENT', 'SETNAME', n),
          command('SCRIPT', 'LOAD', `return '${n}'${' '.repeat(2000)}`),
          command('WATCH', ...Array.from({ length: 100 }, (_, at) => `${n}:${at}`)),
        ];
        socket.write(Buffer.concat(commands));
        await received(context, socket, 50);
      }
    }),
  },
];
