/**
 * Endpoints: the URLs of a plan, taken apart.
 *
 *   redis://[user[:password]@]host[:port][/db]
 *   rediss://…                                                   the same over TLS, always verified
 *   redis+sentinel://[user[:password]@]h1[:p1],h2[:p2]/master[/db]   (rediss+sentinel://: Sentinels and server over TLS)
 *
 * User and password belong to the Redis or KeyDB server; a Sentinel's own are named apart in the plan.
 * They may hold `${NAME}`, which stands for the environment variable's raw value (no percent-encoding needed).
 */

import type { SlotRange } from '../route/owner.js';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** What `tls.connect` needs beyond the address; the peer's certificate is always verified. */
export interface ClientTls {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly servername?: string;
}

interface Common {
  /** For people and logs: the password is `***`. */
  readonly label: string;
  /** Null if the connection has no TLS. */
  readonly tls: ClientTls | null;
  readonly username: string | null;
  readonly password: string | null;
  readonly db: number;
}

export interface ServerEndpoint extends Common, Address {
  readonly kind: 'server';
}

export interface SentinelEndpoint extends Common {
  readonly kind: 'sentinel';
  readonly sentinels: readonly Address[];
  /** The name under which the Sentinels know the master. */
  readonly master: string;
  readonly sentinelUsername: string | null;
  readonly sentinelPassword: string | null;
}

/** The master that has the most of a shard's slots in a cluster. */
export interface ClusterEndpoint extends Common {
  readonly kind: 'cluster';
  /** Nodes that are asked which node is that master. */
  readonly seeds: readonly Address[];
  readonly slots: readonly SlotRange[];
  /** That master's node ID and address when the shards were derived; a failover gives the slots to another node. */
  readonly master: string;
  readonly at: Address;
}

/**
 * The place of a source or a target: a server, the Sentinels that know it, or the cluster in which it serves the
 * shard's slots.
 */
export type Endpoint = ServerEndpoint | SentinelEndpoint | ClusterEndpoint;

/** What `tls.createServer` needs. */
export interface ListenTls {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** CA certificates that clients' certificates must be signed by. */
  readonly ca?: Buffer;
  readonly requireClientCert: boolean;
}

export const PROXY_PROTOCOL_MODES = ['off', 'optional', 'required'] as const;

/** How load balancers pass on the addresses of clients: HAProxy's PROXY protocol, version 1 or 2. */
export interface ProxyProtocol {
  /** `optional`: a connection without a header is the client's own. */
  readonly mode: Exclude<(typeof PROXY_PROTOCOL_MODES)[number], 'off'>;
  /** The networks of the load balancers, such as `10.0.0.0/8`; no other address may send a header. */
  readonly from: readonly string[];
}

/** Where clients connect to. */
export interface Listen extends Address {
  readonly label: string;
  readonly tls: ListenTls | null;
  /** Null if no connection begins with a PROXY header. */
  readonly proxyProtocol: ProxyProtocol | null;
}

export interface ParsedUrl {
  readonly scheme: 'redis' | 'rediss' | 'redis+sentinel' | 'rediss+sentinel';
  readonly username: string | null;
  readonly password: string | null;
  readonly addresses: readonly Address[];
  readonly master: string | null;
  readonly db: number;
}

/**
 * A URL of the plan is wrong. The message says what is wrong and what is allowed. It never contains the URL, which may
 * hold a password.
 */
export class UrlError extends Error {
  readonly code = 'url';
}

const SCHEMES = ['redis', 'rediss', 'redis+sentinel', 'rediss+sentinel'] as const;
const SHAPE = /^([a-z+]+):\/\/(?:(.*)@)?([^@/]*)(?:\/(.*))?$/;

/**
 * Splits a URL into its parts.
 * @param severalHosts whether `redis://` may name several nodes, as for a cluster
 * @throws {UrlError}
 */
export function parseUrl(url: string, severalHosts = false): ParsedUrl {
  const [, scheme, userinfo, hosts, path = ''] = SHAPE.exec(url) ?? [];
  if (!SCHEMES.includes(scheme as ParsedUrl['scheme'])) {
    throw new UrlError(
      'is not the URL of a server: write redis://host:port, rediss://host:port or redis+sentinel://host:port,host:port/master',
    );
  }
  const sentinel = scheme.endsWith('+sentinel');
  const segments = path === '' ? [] : path.replace(/\/$/, '').split('/');
  if (sentinel && !segments[0])
    throw new UrlError('has no master name: write redis+sentinel://host:port,host:port/master');
  const master = sentinel ? decode(segments.shift()!) : null;
  if (segments.length > 1)
    throw new UrlError('has too many parts after the host: only a database number is allowed there');
  const db = segments.length ? integer(segments[0], 'database', 0, 2 ** 31 - 1) : 0;
  const addresses = hosts.split(',').map((host) => parseAddress(host, sentinel ? 26379 : 6379));
  if (!sentinel && !severalHosts && addresses.length > 1)
    throw new UrlError('has several hosts: allowed with redis+sentinel:// only');
  return { scheme: scheme as ParsedUrl['scheme'], ...credentials(userinfo), addresses, master, db };
}

function credentials(userinfo: string | undefined): { username: string | null; password: string | null } {
  if (userinfo === undefined) return { username: null, password: null };
  const colon = userinfo.indexOf(':');
  const username = colon < 0 ? userinfo : userinfo.slice(0, colon);
  return {
    username: username === '' ? null : decode(username),
    password: colon < 0 ? null : decode(userinfo.slice(colon + 1)),
  };
}

/**
 * `host`, `host:port` or `[v6]:port`.
 * @throws {UrlError}
 */
export function parseAddress(text: string, defaultPort?: number): Address {
  const [, v6, name, port] = /^(?:\[([0-9a-fA-F:.%]+)\]|([^\s:[\]]+))(?::(\d+))?$/.exec(text) ?? [];
  const host = v6 ?? name;
  if (host === undefined) throw new UrlError('has an invalid host: write host:port, and an IPv6 address in brackets');
  if (port === undefined && defaultPort === undefined) throw new UrlError('has no port: write host:port');
  return { host, port: port === undefined ? defaultPort! : integer(port, 'port', 0, 65535) };
}

function integer(text: string, what: string, min: number, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!(value >= min && value <= max)) throw new UrlError(`has a ${what} that is not a number from ${min} to ${max}`);
  return value;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UrlError(
      'has a % in its user or password that is not part of %XX: write it as %25, or use ${NAME} or passwordFile',
    );
  }
}

/** Replaces `${NAME}`. In the user and the password the value is not decoded, so it may hold any character. */
export function interpolate(text: string, env: NodeJS.ProcessEnv): string {
  const userinfoEnd = text.includes('://') ? text.lastIndexOf('@') : -1;
  return text.replace(/\$\{([^}]*)\}/g, (_, name: string, offset: number) => {
    const value = env[name];
    if (value === undefined) throw new UrlError(`needs the environment variable ${name}, which is not set`);
    return offset < userinfoEnd ? encodeURIComponent(value) : value;
  });
}

/** Placeholder for the name of a shard in an announced address. */
export const SHARD = '{shard}';

/**
 * The admin address of the shard as operators reach it.
 * @throws {UrlError}
 */
export const announcedAdmin = (announce: string, shard: string, env: NodeJS.ProcessEnv): Address =>
  parseAddress(interpolate(announce, env).replaceAll(SHARD, shard));

/** The URL for people, with `***` as its password. */
export function formatUrl({ scheme, username, password, addresses, master, db }: ParsedUrl): string {
  const login = `${encodeURIComponent(username ?? '')}${password === null ? '' : ':***'}`;
  const path = `${master === null ? '' : `/${master}`}${db === 0 ? '' : `/${db}`}`;
  return `${scheme}://${login === '' ? '' : `${login}@`}${addresses.map(formatAddress).join(',')}${path}`;
}

/**
 * Replaces the password of each URL in a text with `***`. The text may be JSON, in which a quote has a backslash before
 * it.
 */
export const redactUrl = (text: string): string =>
  text.replace(/(rediss?(?:\+sentinel)?:\/\/[^\s:@/"]*):(?:[^\s"\\]|\\.)*@/g, '$1:***@');

const VALUE = String.raw`("[^"]*"|'[^']*'|[^\s"';|&]+)`;
/** What precedes a password on a command line, and in commands of a server. */
const BEFORE_SECRETS: readonly RegExp[] = [
  // redis-cli -a, --pass, --token=…
  new RegExp(String.raw`((?:^|\s)(?:-a|--?(?:pass(?:word)?|token|auth|requirepass|masterauth)))(=|\s+)${VALUE}`, 'g'),
  // REDISCLI_AUTH=… in front of a command
  new RegExp(String.raw`(\b[A-Z0-9_]*(?:PASSWORD|PASSWD|TOKEN|SECRET|AUTH)[A-Z0-9_]*)(=)${VALUE}`, 'g'),
  new RegExp(String.raw`(\b(?:requirepass|masterauth))(\s+)${VALUE}`, 'gi'),
  // AUTH password, AUTH user password; HELLO 3 AUTH user password
  new RegExp(String.raw`(\bAUTH)(\s+)${VALUE}(?:\s+${VALUE})?`, 'g'),
  new RegExp(String.raw`(\b(?:redis|keydb)-cli\b[^;|&]*?\sauth)(\s+)${VALUE}(?:\s+${VALUE})?`, 'gi'),
];
/** The password in `ACL SETUSER name on >password`: the user and its rules are kept. */
const ACL_PASSWORD = /(?<=\bSETUSER\b[^;|]*\s["']?[<>#])[^\s"';|]+/gi;

/** Replaces passwords in a text that people write, such as a command or a reason, with `***`. */
export const redactSecrets = (text: string): string =>
  BEFORE_SECRETS.reduce((redacted, pattern) => redacted.replace(pattern, '$1$2***'), redactUrl(text)).replace(
    ACL_PASSWORD,
    '***',
  );

/** Every address that the endpoint names. */
export const addressesOf = (endpoint: Endpoint): readonly Address[] =>
  endpoint.kind === 'server' ? [endpoint] : endpoint.kind === 'sentinel' ? endpoint.sentinels : endpoint.seeds;

/** `host:port`, with an IPv6 host in brackets. */
export const formatAddress = ({ host, port }: Address): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
