/** The demo's applications: six workloads through ioredis and node-redis, with seven reads to three writes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { inTime } from '../../io/in-time.js';
import { CliError, exitCode } from '../exit.js';

/** The workloads of the demo, as a plan has them. */
export const WORKLOADS = [
  { name: 'sessions', keys: ['session:*'], class: 'read-mostly', stage: 'shadow' },
  { name: 'api-cache', keys: ['api:*'], class: 'read-mostly', stage: 'shadow' },
  { name: 'rate-limits', keys: ['rl:*'], class: 'counter', stage: 'shadow' },
  { name: 'leaderboards', keys: ['board:*'], class: 'leaderboard', stage: 'shadow' },
  { name: 'auth-cache', keys: ['auth:*'], class: 'critical', stage: 'shadow' },
  { name: 'feature-flags', keys: ['flag:*'], class: 'critical', stage: 'shadow' },
] as const;

type Command = readonly [name: string, ...args: string[]];
interface Operations {
  readonly read: () => Command;
  readonly write: () => Command;
}

const USERS = 500;
const FLAGS = ['checkout', 'search', 'dark-mode', 'beta'];
const pick = (count: number): number => Math.floor(Math.random() * count);
const flag = (): string => `flag:${FLAGS[pick(FLAGS.length)]}`;

const OPERATIONS: Readonly<Record<(typeof WORKLOADS)[number]['name'], Operations>> = {
  sessions: {
    read: () => ['HGETALL', `session:${pick(USERS)}`],
    write: () => ['HSET', `session:${pick(USERS)}`, 'user', `u${pick(USERS)}`, 'page', `/p/${pick(50)}`],
  },
  'api-cache': {
    // All keys have one hash tag, as a cluster requires.
    read: () => {
      const product = `api:{/products/${pick(USERS)}}`;
      return ['MGET', `${product}/price`, `${product}/stock`];
    },
    write: () => ['SET', `api:{/products/${pick(USERS)}}/price`, `{"price":${pick(1000)}}`, 'EX', '300'],
  },
  'rate-limits': { read: () => ['GET', `rl:${pick(USERS)}`], write: () => ['INCR', `rl:${pick(USERS)}`] },
  leaderboards: {
    read: () => ['ZREVRANGE', `board:${pick(5)}`, '0', '9', 'WITHSCORES'],
    write: () => ['ZINCRBY', `board:${pick(5)}`, `${pick(20)}`, `u${pick(USERS)}`],
  },
  'auth-cache': {
    read: () => ['GET', `auth:${pick(USERS)}`],
    write: () => ['SET', `auth:${pick(USERS)}`, `token-${pick(1e9)}`, 'PX', '600000'],
  },
  'feature-flags': { read: () => ['SMEMBERS', flag()], write: () => ['SADD', flag(), `u${pick(USERS)}`] },
};

const ALL = Object.values(OPERATIONS);
const READ_SHARE = 0.7;

function next(): Command {
  const { read, write } = ALL[pick(ALL.length)];
  return Math.random() < READ_SHARE ? read() : write();
}

/** One client library with one connection. */
export interface App {
  readonly library: string;
  call(command: Command): Promise<unknown>;
  close(): void;
}

/**
 * Opens two connections. The libraries are loaded here, because loading takes a third of the start time of any other
 * command.
 */
export async function connectApps(port: number, cluster = false): Promise<App[]> {
  if (cluster) return connectClusterApps(port);
  const [{ Redis }, { createClient }] = await Promise.all([import('ioredis'), import('redis')]);
  const io = new Redis({ host: '127.0.0.1', port, lazyConnect: true, maxRetriesPerRequest: 0 });
  io.on('error', () => undefined);
  const node = createClient({ socket: { host: '127.0.0.1', port, reconnectStrategy: false } });
  node.on('error', () => undefined);
  const apps: App[] = [
    { library: 'ioredis', call: ([name, ...args]) => io.call(name, args), close: () => io.disconnect() },
    { library: 'node-redis', call: (command) => node.sendCommand([...command]), close: () => node.destroy() },
  ];
  return connected(port, apps, Promise.all([io.connect(), node.connect()]));
}

/** @throws {CliError} if a library does not connect in time; then none stays open */
async function connected(port: number, apps: readonly App[], connecting: Promise<unknown>): Promise<App[]> {
  const timeoutError = (): Error => new Error(`no answer within ${CONNECT_MS / 1000} s`);
  try {
    await inTime(connecting, CONNECT_MS, timeoutError);
    return [...apps];
  } catch (error) {
    for (const app of apps) app.close();
    throw new CliError('proxy', `the proxy at 127.0.0.1:${port}: ${(error as Error).message}`, exitCode.fails);
  }
}

async function connectClusterApps(port: number): Promise<App[]> {
  const [{ Cluster }, { createCluster }] = await Promise.all([import('ioredis'), import('redis')]);
  const io = new Cluster([{ host: '127.0.0.1', port }], { clusterRetryStrategy: () => null });
  io.on('error', () => undefined);
  const node = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] });
  node.on('error', () => undefined);
  const apps: App[] = [
    { library: 'ioredis Cluster', call: ([name, ...args]) => io.call(name, args), close: () => io.disconnect() },
    {
      library: 'node-redis cluster',
      call: (command) => node.sendCommand(command[1], false, [...command]),
      close: () => node.destroy(),
    },
  ];
  return connected(port, apps, node.connect());
}

/** Maximum time for both libraries to connect, in ms. */
const CONNECT_MS = 10_000;
const IN_FLIGHT = 16;

/** The commands so far, and their results. */
export interface Tally {
  answered: number;
  errors: number;
  first: string | null;
}

/**
 * Sends commands until `stopped` returns true: sixteen at a time for each app, with `rate` per second or as fast as
 * they are answered.
 * @param tally is updated meanwhile
 */
export async function drive(
  apps: readonly App[],
  stopped: () => boolean,
  rate = Infinity,
  tally: Tally = { answered: 0, errors: 0, first: null },
): Promise<Tally> {
  const pauseMs = (apps.length * IN_FLIGHT * 1000) / rate;
  const worker = async (app: App): Promise<void> => {
    while (!stopped()) {
      try {
        await app.call(next());
        tally.answered++;
      } catch (error) {
        tally.errors++;
        tally.first ??= `${app.library}: ${(error as Error).message}`;
        if (tally.errors > 1000) return;
      }
      if (pauseMs > 0) await sleep(pauseMs);
    }
  };
  await Promise.all(apps.flatMap((app) => Array.from({ length: IN_FLIGHT }, () => worker(app))));
  return tally;
}
