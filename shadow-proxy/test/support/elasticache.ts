/**
 * A stand-in for ElastiCache with its own nodes and cluster mode disabled: a real Redis without the commands that AWS
 * documents as unavailable, behind a relay that speaks TLS and shows what ElastiCache shows.
 *
 *   client ─ TLS ─▶ relay (the endpoint's name) ─▶ Redis, a primary or a replica
 *
 * - `rename-command` gives the commands names that no client knows. `COMMAND` of Redis 7 goes on to list them by their
 *   old names.
 * - No user may change users: of ACL, AWS names LIST, WHOAMI, USERS and CAT. `ACL GETUSER` is therefore refused, too.
 * - `ACL LIST` shows no digests of passwords, as AWS documents, nor the rules that make this a stand-in; `INFO` says
 *   `os:Amazon ElastiCache`. The relay writes blanks over the bytes, so that no length changes.
 * - A failover lets new connections go to the promoted node. Those that are open stay with the old primary, as when a
 *   DNS name begins to name another address.
 *
 * It is not ElastiCache: docs/elasticache.md says what was not tried.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { Redis } from 'ioredis';
import { startRedis, type LocalServer } from '../../src/local/servers.js';
import type { Certificates } from './servers.js';
import { until } from './shard.js';

/** What AWS documents as unavailable on ElastiCache for Redis OSS. */
export const UNAVAILABLE: readonly string[] = [
  'bgrewriteaof',
  'bgsave',
  'config',
  'debug',
  'migrate',
  'replicaof',
  'save',
  'slaveof',
  'shutdown',
  'sync',
];

/** The rules that AWS adds, in effect, to every user's access string. */
const NO_CHANGES_OF_USERS = '-acl +acl|cat +acl|list +acl|users +acl|whoami';
/** Its replicas log in with a user of their own, which no client knows; so does what promotes one of them. */
const INTERNAL = { user: 'internal', password: 'internal-pw' };
const internal = (name: string): string => `internal.${name}`;

export interface ElastiCacheOptions {
  /** TLS, as AUTH and RBAC need it. */
  readonly tls?: Certificates;
  /** AUTH: the token of `default`. */
  readonly token?: string;
  /** RBAC: lines such as `app on >password ~* &* +@all`; `default` is off unless it is one of them. */
  readonly users?: readonly string[];
  /** Of the parameter group. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** By the parameter `rename-commands`. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** A second node, behind the reader endpoint. */
  readonly replica?: boolean;
}

/** An endpoint: new connections go to the node that it names at the time. */
export class Endpoint {
  readonly #open = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly tls: boolean,
    public node: LocalServer,
  ) {
    server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => this.#relay(socket));
  }

  static async open(node: LocalServer, tls: Certificates | undefined): Promise<Endpoint> {
    const server =
      tls === undefined
        ? createServer()
        : createTlsServer({ cert: readFileSync(tls.cert), key: readFileSync(tls.key) });
    const endpoint = new Endpoint(server, tls !== undefined, node);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return endpoint;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return this.urlFor('');
  }

  /** @param login such as `user:password@` */
  urlFor(login: string): string {
    return `${this.tls ? 'rediss' : 'redis'}://${login}127.0.0.1:${this.port}`;
  }

  #relay(client: Socket): void {
    const upstream = connect(this.node.port, this.node.host);
    upstream.on('data', (chunk) => client.write(asShown(chunk)));
    client.on('data', (chunk) => upstream.write(chunk));
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ]) {
      this.#open.add(one);
      one.setNoDelay(true).on('error', () => undefined);
      one.on('close', () => {
        this.#open.delete(one);
        other.destroy();
      });
    }
  }

  close(): void {
    this.server.close();
    for (const socket of this.#open) socket.destroy();
  }
}

/** Blanks over what ElastiCache does not show; the length stays, and with it the frames. */
function asShown(chunk: Buffer): Buffer {
  if (!chunk.includes('run_id:') && !chunk.includes('user ')) return chunk;
  const shown = chunk
    .toString('latin1')
    .replace(/(?<=user .*) #[0-9a-f]{64}/g, (digest) => ' '.repeat(digest.length))
    .replace(/(?<=user .*) [+-](acl(\|\w+)?|psync)\b/g, (rule) => ' '.repeat(rule.length))
    .replace(/\bos:(.*)/, (all: string) => 'os:Amazon ElastiCache'.padEnd(all.length))
    .replace(/\b(executable|config_file):(.*)/g, (all: string, field: string) => `${field}:-`.padEnd(all.length));
  return Buffer.from(shown, 'latin1');
}

export interface ElastiCache {
  /** The primary endpoint. */
  readonly primary: Endpoint;
  /** The reader endpoint; that of the primary where there is no replica. */
  readonly reader: Endpoint;
  /** The Redis of the primary, as no client of ElastiCache can reach it. */
  readonly node: LocalServer;
  /** Promotes the replica: new connections to the primary endpoint go to it. The old primary becomes its replica. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
}

export async function startElastiCache(options: ElastiCacheOptions = {}): Promise<ElastiCache> {
  const first = await startRedis({ config: configOf(options) });
  const second = options.replica
    ? await startRedis({
        config: {
          ...configOf(options),
          replicaof: `${first.host} ${first.port}`,
          masteruser: INTERNAL.user,
          masterauth: INTERNAL.password,
        },
      })
    : null;
  const primary = await Endpoint.open(first, options.tls);
  const reader = await Endpoint.open(second ?? first, options.tls);
  if (second !== null) await until(async () => /master_link_status:up/.test(await internally(second, 'INFO')));
  return {
    primary,
    reader,
    node: first,
    async failOver() {
      if (second === null) throw new Error('there is no replica');
      const [from, to] = [primary.node, reader.node];
      await internally(to, internal('slaveof'), 'NO', 'ONE');
      primary.node = to;
      reader.node = from;
      await internally(from, internal('slaveof'), to.host, String(to.port));
    },
    async stop() {
      primary.close();
      reader.close();
      await Promise.all([first.stop(), second?.stop()]);
    },
  };
}

function configOf({
  token,
  users,
  parameters,
  renamed = {},
  replica = false,
}: ElastiCacheOptions): Record<string, string | string[]> {
  const unavailable = [...UNAVAILABLE, ...(replica ? [] : ['psync'])].map((name) => `${name} ${internal(name)}`);
  // A replica needs PSYNC at its primary: where there is one, clients are refused by their rules.
  const rules = `${NO_CHANGES_OF_USERS}${replica ? ' -psync' : ''}`;
  const login = token === undefined ? 'nopass' : `>${token}`;
  const own = users ?? [`default on ${login} ~* &* +@all`];
  const all = own.some((line) => line.startsWith('default ')) ? own : ['default off', ...own];
  return {
    'rename-command': [...unavailable, ...Object.entries(renamed).map(([name, to]) => `${name} ${to}`)],
    user: [
      ...all.map((line) => `${line} ${rules}`),
      ...(replica ? [`${INTERNAL.user} on >${INTERNAL.password} ~* &* +@all`] : []),
    ],
    ...(replica && {
      masteruser: INTERNAL.user,
      masterauth: INTERNAL.password,
      'repl-diskless-sync-delay': '0',
    }),
    ...parameters,
  };
}

async function internally(node: LocalServer, command: string, ...args: string[]): Promise<string> {
  const client = new Redis({ port: node.port, username: INTERNAL.user, password: INTERNAL.password });
  try {
    return String(await client.call(command, ...args));
  } finally {
    client.disconnect();
  }
}
