/** The parts behind a proxy: its process, the two servers, and when the mirror has everything. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ShardSnapshot } from '../../shadow-proxy/src/telemetry/snapshot.js';
import type { Address } from '../driver/driver.js';
import { LoadtestError } from '../rig/errors.js';
import { cpuOf, cpuOfProxy, fetchAdmin, titleOf } from './facts.js';
import type { Side } from './side.js';

export interface Admin {
  /** For example `http://127.0.0.1:9400`. */
  readonly url: string;
  readonly token: string | null;
}

/** The parts, as far as they are known. */
export interface Behind {
  readonly source: Address | null;
  readonly target: Address | null;
}

const SETTLE_MS = 60_000;

export function behindProxy(behind: Behind, admin: Admin | null): Pick<Side, 'workers' | 'holders' | 'settled'> {
  const servers = (['source', 'target'] as const).flatMap((name) =>
    behind[name] === null ? [] : [{ name, address: behind[name] }],
  );
  const workers = servers.map(({ name, address }) => ({ name, cpuSeconds: () => cpuOf(address) }));
  const own = admin === null ? [] : [{ name: 'proxy', cpuSeconds: () => cpuOfProxy(admin.url, admin.token) }];
  return { workers: [...own, ...workers], holders: servers, settled: admin === null ? null : () => settled(admin) };
}

/** Waits until no effect waits for the mirror. @throws {LoadtestError} if it has not caught up after a minute */
async function settled({ url, token }: Admin): Promise<void> {
  for (const deadline = Date.now() + SETTLE_MS; Date.now() < deadline; await sleep(50)) {
    const { shards } = (await (await fetchAdmin(`${url}/api/status`, token)).json()) as { shards: ShardSnapshot[] };
    if (
      shards.every(({ mirror, suspects }) => mirror.queuedEffects === 0 && mirror.lagMs === 0 && suspects.total === 0)
    )
      return;
  }
  throw new LoadtestError(
    'MEASUREMENT',
    `the mirror has not caught up a minute after the load ended: ${url}/api/status says why`,
  );
}

export async function proxyTitle({ source, target }: Behind): Promise<string> {
  const named = async (address: Address | null): Promise<string> =>
    address === null ? 'a server that was not named' : titleOf(address);
  const [from, to] = await Promise.all([named(source), named(target)]);
  return `shadow proxy, 1 thread, before ${from} and ${to}`;
}
