/** The sides on loopback: a real Redis, a real KeyDB for each number of server threads, and the proxy between them. */
import { makeCertificates, type Certificates } from '../../shadow-proxy/src/local/certificates.js';
import { findRedis } from '../../shadow-proxy/src/local/program.js';
import { startKeydb, startRedis, type LocalServer } from '../../shadow-proxy/src/local/servers.js';
import type { Address } from '../driver/driver.js';
import { LoadtestError } from '../rig/errors.js';
import { DEFAULT_PROXY_COMMAND, startProxy } from '../rig/proxy.js';
import type { Rig } from '../rig/rig.js';
import { missingServers } from '../rig/servers.js';
import { cpuOf, titleOf } from './facts.js';
import { behindProxy, proxyTitle } from './proxy.js';
import type { Role, Side, Worker } from './side.js';

export interface LocalOptions {
  readonly roles: readonly Role[];
  /** The numbers of KeyDB's server threads; each has a side of its own. The proxy uses the first. */
  readonly serverThreads: readonly number[];
  readonly tls: boolean;
  /** Whether both servers save an RDB file when they are stopped gracefully, and read it when they start again. */
  readonly durable?: boolean;
}

/** The sides, and the processes behind them, which can be restarted. */
export interface Local {
  readonly sides: readonly Side[];
  readonly source: LocalServer;
  readonly target: LocalServer;
}

/** @throws {LoadtestError} that names what is not installed; KeyDB is not needed if only the source is loaded */
export async function startLocal(rig: Rig, options: LocalOptions): Promise<Local> {
  const { roles, serverThreads, tls, durable = false } = options;
  const missing = roles.some((role) => role !== 'source')
    ? await missingServers()
    : await findRedis().then(
        () => [],
        (error: Error) => [error.message],
      );
  if (missing.length > 0)
    throw new LoadtestError(
      'MISSING_PROGRAM',
      `missing:\n${missing.map((what) => `  ${what}`).join('\n')}\nor give the servers' URLs: --source, --target, --proxy`,
    );
  const files = tls ? makeCertificates() : undefined;
  const config = { ...(durable && { save: '3600 1' }) };
  const source = await startRedis({ config, tls: files });
  const targets: LocalServer[] = [];
  const threads = roles.some((role) => role !== 'source') ? serverThreads : [];
  for (const number of threads)
    targets.push(await startKeydb({ config: { ...config, 'server-threads': number }, tls: files }));
  for (const server of [source, ...targets]) if (!durable) rig.watch(server.label, () => server.pid !== undefined);
  const sides = await Promise.all([
    ...(roles.includes('source') ? [serverSide('source', 'source', source, files)] : []),
    ...(roles.includes('target')
      ? targets.map((target, i) =>
          serverSide(targets.length > 1 ? `target/${threads[i]}` : 'target', 'target', target, files),
        )
      : []),
  ]);
  const proxy = roles.includes('proxy') ? [await localProxy(rig, source, targets[0], files)] : [];
  return { sides: [...sides, ...proxy], source, target: targets[0] };
}

async function serverSide(id: string, role: Role, server: LocalServer, tls?: Certificates): Promise<Side> {
  const address = addressOf(server.port, tls);
  const workers = [workerOf(role, address)];
  return {
    id,
    role,
    title: await titleOf(address),
    where: server.url,
    address,
    workers,
    holders: [{ name: role, address }],
    settled: null,
  };
}

async function localProxy(rig: Rig, source: LocalServer, target: LocalServer, tls?: Certificates): Promise<Side> {
  const running = (name: string, server: LocalServer) => ({
    name,
    port: server.port,
    pid: server.pid!,
    label: server.label,
  });
  const proxy = await startProxy(
    rig,
    { source: running('source', source), target: running('target', target) },
    DEFAULT_PROXY_COMMAND,
    tls,
  );
  const behind = { source: addressOf(source.port, tls), target: addressOf(target.port, tls) };
  const address = addressOf(proxy.port, tls);
  const title = await proxyTitle(behind);
  return {
    id: 'proxy',
    role: 'proxy',
    title,
    where: `${tls ? 'rediss' : 'redis'}://127.0.0.1:${proxy.port}`,
    address,
    ...behindProxy(behind, { url: proxy.admin, token: null }),
  };
}

const addressOf = (port: number, tls?: Certificates): Address => ({
  host: '127.0.0.1',
  port,
  db: 0,
  username: null,
  password: null,
  tls: tls === undefined ? null : { ca: tls.ca },
});

export const workerOf = (name: string, address: Address): Worker => ({ name, cpuSeconds: () => cpuOf(address) });
