/** The sides for existing servers: by URL, or from the plan. */
import { writeFileSync } from 'node:fs';
import { Dialer } from '../../shadow-proxy/src/upstream/dialer.js';
import {
  formatUrl,
  interpolate,
  isLoopback,
  parseUrl,
  UrlError,
  type Endpoint,
} from '../../shadow-proxy/src/plan/endpoint.js';
import { loadPlan } from '../../shadow-proxy/src/plan/load.js';
import type { Plan, ShardPlan } from '../../shadow-proxy/src/plan/plan.js';
import type { Address, TlsFiles } from '../driver/driver.js';
import { LoadtestError } from '../rig/errors.js';
import type { Rig } from '../rig/rig.js';
import { titleOf } from './facts.js';
import { workerOf } from './local.js';
import { behindProxy, proxyTitle, type Admin } from './proxy.js';
import type { Role, Side } from './side.js';

export interface GivenOptions {
  readonly roles: readonly Role[];
  readonly source?: string;
  readonly target?: string;
  readonly proxy?: string;
  /** The proxy's admin HTTP; its token is in `LOADTEST_ADMIN_TOKEN`. */
  readonly admin?: string;
  readonly plan?: string;
  readonly shard?: string;
  /** PEM files for connections with TLS. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Hosts that may be loaded although they are not loopback. */
  readonly confirm: readonly string[];
}

export const isGiven = ({ source, target, proxy, plan }: GivenOptions): boolean =>
  [source, target, proxy, plan].some((text) => text !== undefined);

type Places = Readonly<Record<Role, Address | null>> & { readonly admin: Admin | null };

/** @throws {LoadtestError} if an address is missing, cannot be read, or was not confirmed */
export async function givenSides(rig: Rig, options: GivenOptions): Promise<Side[]> {
  const places = options.plan === undefined ? fromUrls(options) : await fromPlan(rig, options);
  for (const role of options.roles) {
    if (places[role] === null)
      throw new LoadtestError(
        'USAGE',
        `--against ${role} needs --${role} URL, or --plan; without any of them all servers are started on loopback`,
      );
  }
  refuseUnconfirmed(
    options.roles.map((role) => places[role]!),
    options.confirm,
  );
  return Promise.all(options.roles.map((role) => sideOf(role, places)));
}

/**
 * A load test takes a server's whole capacity, so the operator must write the name of the host once more. @throws
 * {LoadtestError}
 */
export function refuseUnconfirmed(addresses: readonly Address[], confirmed: readonly string[]): void {
  const hosts = new Set(
    addresses.map(({ host }) => host).filter((host) => !isLoopback(host) && !confirmed.includes(host)),
  );
  if (hosts.size === 0) return;
  const options = [...hosts].map((host) => `--confirm ${host}`).join(' ');
  throw new LoadtestError(
    'USAGE',
    `${[...hosts].join(', ')} is not on loopback, and a load test takes all that a server has: clients of it would wait.\nIf it is meant, add ${options}`,
  );
}

async function sideOf(role: Role, places: Places): Promise<Side> {
  const address = places[role]!;
  const where = `${address.tls ? 'rediss' : 'redis'}://${address.host}:${address.port}`;
  if (role !== 'proxy') {
    return {
      id: role,
      role,
      title: await titleOf(address),
      where,
      address,
      workers: [workerOf(role, address)],
      holders: [{ name: role, address }],
      settled: null,
    };
  }
  const behind = { source: places.source, target: places.target };
  return { id: role, role, title: await proxyTitle(behind), where, address, ...behindProxy(behind, places.admin) };
}

function fromUrls({ source, target, proxy, admin, ca, cert, key }: GivenOptions): Places {
  const read = (option: string, url: string | undefined): Address | null =>
    url === undefined ? null : addressOf(option, url, { ca, cert, key });
  const at =
    admin === undefined ? null : { url: admin.replace(/\/$/, ''), token: process.env.LOADTEST_ADMIN_TOKEN ?? null };
  return {
    source: read('--source', source),
    target: read('--target', target),
    proxy: read('--proxy', proxy),
    admin: at,
  };
}

function addressOf(option: string, url: string, tls: TlsFiles): Address {
  try {
    const parsed = parseUrl(interpolate(url, process.env));
    if (parsed.master !== null)
      throw new UrlError(`names a Sentinel (${formatUrl(parsed)}): give the master itself, or a plan with --plan`);
    const {
      scheme,
      addresses: [address],
      username,
      password,
      db,
    } = parsed;
    return { ...address, username, password, db, tls: scheme === 'rediss' ? tls : null };
  } catch (error) {
    if (error instanceof UrlError) throw new LoadtestError('USAGE', `${option} ${error.message}`);
    throw error;
  }
}

async function fromPlan(rig: Rig, options: GivenOptions): Promise<Places> {
  const plan = loadPlan(options.plan!);
  const shard = shardOf(plan, options.shard);
  const [source, target] = await Promise.all([place(rig, 'source', shard.source), place(rig, 'target', shard.target)]);
  const { host, port, tls } = shard.listen;
  // Clients log in at the proxy as they do at the source.
  const { username, password } = source;
  const { ca, cert, key } = options;
  const { host: adminHost, port: adminPort, token } = shard.admin ?? plan.admin;
  const proxy: Address = { host, port, db: 0, username, password, tls: tls === null ? null : { ca, cert, key } };
  return { source, target, proxy, admin: { url: `http://${adminHost}:${adminPort}`, token } };
}

function shardOf(plan: Plan, name: string | undefined): ShardPlan {
  const shard =
    name === undefined && plan.shards.length === 1 ? plan.shards[0] : plan.shards.find((one) => one.name === name);
  if (shard !== undefined) return shard;
  throw new LoadtestError(
    'USAGE',
    `--shard ${name ?? 'is missing'}: the plan has ${plan.shards.map((one) => one.name).join(', ')}`,
  );
}

/** Writes the server's certificates to the rig's folder, because load generators read files. */
async function place(rig: Rig, name: string, endpoint: Endpoint): Promise<Address> {
  const { host, port } = await new Dialer(endpoint, 5_000).resolve();
  const { db, username, password, tls } = endpoint;
  if (tls === null) return { host, port, db, username, password, tls: null };
  const written = (part: 'ca' | 'cert' | 'key'): string | undefined => {
    const pem = tls[part];
    if (pem === undefined) return undefined;
    writeFileSync(rig.file(`${name}.${part}`), pem, { mode: 0o600 });
    return rig.file(`${name}.${part}`);
  };
  return { host, port, db, username, password, tls: { ca: written('ca'), cert: written('cert'), key: written('key') } };
}
