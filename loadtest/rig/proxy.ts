/** The shadow proxy as its users run it: a process of its own, with a plan file and the admin HTTP. */
import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../shadow-proxy/src/local/port.js';
import { stringify } from 'yaml';
import type { Certificates } from '../../shadow-proxy/src/local/certificates.js';
import { LoadtestError } from './errors.js';
import { onPath } from '../../shadow-proxy/src/local/program.js';
import type { Rig, Running } from './rig.js';
import type { Servers } from './servers.js';

/**
 * The command for the compiled daemon beside this file, with this Node; both servers may hold the same keys already.
 */
export const proxyCommandOf = (node: string): string =>
  `${node} ${fileURLToPath(new URL('../../shadow-proxy/programs/main.js', import.meta.url))} --first-start`;

export const DEFAULT_PROXY_COMMAND = proxyCommandOf(process.execPath);

export interface Proxy extends Running {
  /** The address of its admin HTTP. */
  readonly admin: string;
}

/**
 * Starts the proxy in front of the two servers, with everything in stage `shadow`, and waits until it is ready.
 * @param command the program and its arguments, split at blanks; `--plan FILE` is added
 * @param tls paths of PEM files: then clients and both servers use only TLS
 * @param more further fields of the plan, such as `limits`
 * @param name name of the shard, which differs between proxies of one run with the same servers
 */
export async function startProxy(
  rig: Rig,
  servers: Servers,
  command: string,
  tls?: Certificates,
  more: object = {},
  name = 'loadtest',
): Promise<Proxy> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const plan = rig.file(`${name}.yaml`);
  writeFileSync(plan, stringify({ ...planOf(rig, servers, { port, adminPort, name, tls }), ...more }));
  const [program, ...args] = command.split(/\s+/).filter(Boolean);
  const running = await rig.start(`shadow-proxy-${name}`, port, program, [...args, '--plan', plan]);
  const proxy = { ...running, admin: `http://127.0.0.1:${adminPort}` };
  await untilReady(rig, proxy.admin);
  return proxy;
}

/** The part of the command that is missing; null if none is. */
export function missingProxy(command: string): string | null {
  const [program] = command.split(/\s+/).filter(Boolean);
  return program && (program.includes('/') ? existsSync(program) : onPath(program))
    ? null
    : `the shadow proxy: no program "${program ?? ''}"${program?.includes('/') ? '' : ' on PATH'}`;
}

function planOf(
  rig: Rig,
  { source, target, password }: Servers,
  { port, adminPort, name, tls }: { port: number; adminPort: number; name: string; tls?: Certificates },
): object {
  const scheme = tls ? 'rediss' : 'redis';
  const login = password === undefined ? '' : `:${password}@`;
  return {
    version: 1,
    name: 'loadtest',
    shards: [
      {
        name,
        listen: `${scheme}://127.0.0.1:${port}`,
        source: `${scheme}://${login}127.0.0.1:${source.port}`,
        target: `${scheme}://${login}127.0.0.1:${target.port}`,
        ...(tls && {
          tls: { listen: { cert: tls.cert, key: tls.key }, source: { ca: tls.ca }, target: { ca: tls.ca } },
        }),
      },
    ],
    default: { stage: 'shadow' },
    // A soak restarts the source, which has saved all its data before.
    onAuthorityChange: 'accept',
    admin: { listen: `127.0.0.1:${adminPort}` },
    state: rig.file(`${name}-state`),
  };
}

/** @param admin address of its admin HTTP @throws {LoadtestError} */
export async function untilReady(rig: Rig, admin: string): Promise<void> {
  for (const deadline = Date.now() + 20_000; Date.now() < deadline; await sleep(50)) {
    rig.assertAlive();
    const ready = await fetch(`${admin}/readyz`).catch(() => null);
    if (ready?.ok) return;
  }
  throw new LoadtestError('NOT_READY', `the shadow proxy's ${admin}/readyz does not say that it is ready`);
}
