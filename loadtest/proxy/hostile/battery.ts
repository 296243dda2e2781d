/** The battery: runs each attack for a while, beside well-behaved clients whose latency and connections are watched. */
import { once } from 'node:events';
import { constants, setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { startKeydb, startRedis } from '../../../shadow-proxy/src/local/servers.js';
import { encodeCommand } from '../../../shadow-proxy/src/resp/encode.js';
import { memory, resetPeak, scheduled } from '../../rig/proc.js';
import { startProxy, type Proxy } from '../../rig/proxy.js';
import type { Rig, Running } from '../../rig/rig.js';
import { exchange, type Servers } from '../../rig/servers.js';
import { settledSnapshot, snapshotOf } from '../../rig/status.js';
import type { AttackersTask } from './attackers.js';
import { BIG, BIG_BYTES, SMALL, type Attack } from './attacks.js';
import { judge, type Finding, type Tolerance } from './verdict.js';
import { Victims, type Seen } from './victims.js';

export interface BatteryOptions {
  readonly attacks: readonly Attack[];
  /** Seconds of each attack. */
  readonly seconds: number;
  /** How long the well-behaved clients are watched before each attack, in ms. */
  readonly calmMs: number;
  readonly tolerance: Tolerance;
  /** The command for the shadow proxy; null if the clients connect to Redis itself. */
  readonly proxyCommand: string | null;
  /** Maximum bytes of all clients together. */
  readonly totalClientBytes: number;
  /** How many times an attack that harmed the others is repeated: on a busy machine one failure may be chance. */
  readonly retries: number;
  report?(finding: Finding): void;
}

/** The process that serves the clients. */
interface Served {
  readonly by: Running;
  readonly proxy: Proxy | null;
  readonly workMs: () => number;
}

const PASSWORD = 'hostile-battery';
const VICTIMS = 8;
const WARM_UP_MS = 1_000;
const SETTLE_MS = 10_000;

/** @returns a finding for each attack: the last one if it was repeated */
export async function runBattery(rig: Rig, options: BatteryOptions): Promise<Finding[]> {
  const served = await serve(rig, options);
  await fill(served.by);
  const victims = await Victims.start(served.by.port, PASSWORD, VICTIMS, served.workMs);
  const findings: Finding[] = [];
  try {
    // The first commands run code that is not compiled yet.
    await sleep(WARM_UP_MS);
    for (const attack of options.attacks) {
      let finding = await underAttack(rig, served, victims, attack, options);
      for (let i = 0; i < options.retries && judge(finding, options.tolerance).length > 0; i++) {
        finding = await underAttack(rig, served, victims, attack, options);
      }
      findings.push(finding);
      options.report?.(finding);
      rig.assertAlive();
    }
  } finally {
    victims.stop();
  }
  return findings;
}

async function serve(rig: Rig, { proxyCommand, totalClientBytes }: BatteryOptions): Promise<Served> {
  // Both servers require a password, so that a client without it is not logged in. Redis itself gets the proxy's
  // limits.
  const login = { requirepass: PASSWORD };
  const bounds = {
    'maxmemory-clients': totalClientBytes,
    'client-output-buffer-limit': `normal ${totalClientBytes} 0 0`,
  };
  const source = await startRedis({ config: proxyCommand === null ? { ...login, ...bounds } : login });
  rig.watch('source', () => source.pid !== undefined);
  const redis: Running = { name: 'source', port: source.port, pid: source.pid! };
  if (proxyCommand === null) return { by: redis, proxy: null, workMs: () => scheduled(redis.pid).ran };
  const target = await startKeydb({ config: { ...login, 'server-threads': 1 } });
  rig.watch('target', () => target.pid !== undefined);
  const servers: Servers = {
    source: { ...redis, label: source.label },
    target: { name: 'target', port: target.port, pid: target.pid!, label: target.label },
    password: PASSWORD,
  };
  const proxy = await startProxy(rig, servers, proxyCommand, undefined, { limits: { totalClientBytes } });
  return { by: proxy, proxy, workMs: () => scheduled(proxy.pid).ran + scheduled(redis.pid).ran };
}

/** Writes the keys that attacks read. */
async function fill(server: Running): Promise<void> {
  const commands = [
    ['AUTH', PASSWORD],
    ['SET', BIG, Buffer.alloc(BIG_BYTES, 'v')],
    ['SET', SMALL, 'v'.repeat(100)],
  ];
  await exchange(server, Buffer.concat(commands.map((command) => encodeCommand(command))));
}

async function underAttack(
  rig: Rig,
  { by, proxy }: Served,
  victims: Victims,
  { name, does, allowed }: Attack,
  options: BatteryOptions,
): Promise<Finding> {
  const { seconds, calmMs } = options;
  if (proxy !== null) await settledSnapshot(proxy, SETTLE_MS);
  const calm = await calmOf(victims, calmMs);
  const lostBefore = proxy === null ? null : await outageOf(proxy);
  resetPeak(by.pid);
  const task: AttackersTask = { port: by.port, password: PASSWORD, attack: name };
  const child = rig.fork(new URL('./attackers.js', import.meta.url), [JSON.stringify(task)]);
  // Real attackers have machines of their own: here they only get the CPU time that the servers and the proxy leave.
  setPriority(child.pid!, constants.priority.PRIORITY_BELOW_NORMAL);
  await once(child, 'message');
  victims.seen();
  await sleep(seconds * 1000);
  const seen = victims.seen();
  const { peak } = memory(by.pid);
  const ended = once(child, 'exit');
  child.send('stop');
  await Promise.race([ended, sleep(5_000)]);
  child.kill('SIGKILL');
  const lost = proxy === null ? null : await outageOf(proxy);
  return { attack: name, does, allowed, calm, seen, peak, outage: lost !== lostBefore };
}

/**
 * What the others see before an attack: the better of two observations, because the first may include the end of the
 * previous attack.
 */
async function calmOf(victims: Victims, calmMs: number): Promise<Seen> {
  const looks: Seen[] = [];
  victims.seen();
  for (let i = 0; i < 2; i++) {
    await sleep(calmMs / 2);
    looks.push(victims.seen());
  }
  return looks[1].work.p99 < looks[0].work.p99 ? looks[1] : looks[0];
}

/** Changes when a server is declared down. */
async function outageOf(proxy: Proxy): Promise<string> {
  const { outage, failovers } = await snapshotOf(proxy);
  return JSON.stringify([outage?.since ?? null, failovers]);
}
