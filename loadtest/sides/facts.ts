/** A server's own facts: its name, version, threads, and the CPU time that it has used. */
import { parseInfo } from '../../shadow-proxy/src/upstream/server.js';
import type { Address } from '../driver/driver.js';
import { LoadtestError } from '../rig/errors.js';
import { withClient } from './client.js';

/** For example `KeyDB 6.3.4, server-threads 2` or `Redis 7.0.15, io-threads 1`. */
export async function titleOf(address: Address): Promise<string> {
  const { info, ioThreads } = await withClient(address, async (client) => ({
    info: parseInfo(await client.info()),
    // Users without the right cannot read it: then it is unknown.
    ioThreads: (await client.config('GET', 'io-threads').catch(() => null)) as string[] | null,
  }));
  const version = info.get('redis_version') ?? 'of unknown version';
  const threads = info.get('server_threads');
  if (threads !== undefined) return `KeyDB ${version}, server-threads ${threads}`;
  const name = info.has('valkey_version') ? `Valkey ${info.get('valkey_version')}` : `Redis ${version}`;
  return `${name}, io-threads ${ioThreads?.[1] ?? 'not told'}`;
}

/** CPU seconds of the server's process, all threads, from `INFO cpu`. */
export async function cpuOf(address: Address): Promise<number> {
  const info = parseInfo(await withClient(address, (client) => client.info('cpu')));
  const seconds = Number(info.get('used_cpu_sys')) + Number(info.get('used_cpu_user'));
  if (Number.isNaN(seconds))
    throw new LoadtestError('STATUS', `${address.host}:${address.port}: INFO cpu does not tell the CPU time`);
  return seconds;
}

/** CPU seconds of the proxy's process, from its metrics. @param admin such as `http://127.0.0.1:9400` */
export async function cpuOfProxy(admin: string, token: string | null): Promise<number> {
  const text = await (await fetchAdmin(`${admin}/metrics`, token)).text();
  const seconds = Number(/^process_cpu_seconds_total (\S+)/m.exec(text)?.[1]);
  if (Number.isNaN(seconds)) throw new LoadtestError('STATUS', `${admin}/metrics does not tell the proxy's CPU time`);
  return seconds;
}

/** @throws {LoadtestError} if it does not answer with 200 */
export async function fetchAdmin(url: string, token: string | null): Promise<Response> {
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(url, { headers }).catch((cause: Error) => cause);
  if (response instanceof Error) throw new LoadtestError('STATUS', `${url}: ${response.message}`);
  if (!response.ok) throw new LoadtestError('STATUS', `${url}: HTTP ${response.status}`);
  return response;
}
