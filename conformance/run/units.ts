/** Runs each unit of a suite on each way: with servers of its own, so that no unit hands anything on to the next. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import getPort from 'get-port';
import { startCluster } from '../../shadow-proxy/src/local/cluster.js';
import { startKeydb, startRedis, type LocalServer, type ServerConfig } from '../../shadow-proxy/src/local/servers.js';
import { ConformanceError } from './error.js';
import { reportMirror } from './mirror.js';
import { startProxy, type ProxyProcess } from './proxy.js';
import { lossesOf } from './compare.js';
import { DIRECT, type Outcome, type Proxied, type UnitResult, type Way, type WayResult } from './result.js';

const PORT_MS = 60_000;

export interface Suite {
  /** As in the list of exceptions. */
  readonly name: 'redis' | 'bullmq';
  readonly units: readonly string[];
  readonly ways: readonly Way[];
  /** How often a unit goes through the proxy once more when tests were lost. */
  readonly again: number;
  readonly redisConfig: ServerConfig;
  /** Whether both servers are a cluster of one node, and the proxy its face. */
  readonly cluster?: boolean;
  /** Where the suite must find its server, because some of its clients look nowhere else. */
  readonly port?: number;
  /**
   * Runs one unit against a server; its output goes to files whose names begin with `log`.
   * @param authority the port of the server that answers: `port` itself without a proxy
   */
  run(unit: string, port: number, log: string, authority: number): Promise<Outcome>;
}

/** A server, or the proxy. */
interface Program {
  /** Undefined once it has ended. */
  readonly pid: number | undefined;
  log(): string;
  stop(): Promise<void>;
}

export interface Progress {
  (text: string): void;
}

export async function runUnits(suite: Suite, logs: string, progress: Progress): Promise<UnitResult[]> {
  mkdirSync(logs, { recursive: true });
  const results: UnitResult[] = [];
  for (const [i, unit] of suite.units.entries()) {
    const ways: WayResult[] = [];
    const run = async (way: Way, attempt = ''): Promise<WayResult> => {
      const result = await told(suite, unit, way, join(logs, `${unit.replaceAll(/[^\w.-]+/g, '_')}.${way}${attempt}`));
      ways.push(result);
      progress(
        `${i + 1}/${suite.units.length} ${unit} ${way}${attempt}: ${countsOf(result.outcome)}, ${result.seconds.toFixed(0)} s`,
      );
      return result;
    };
    for (const way of suite.ways) {
      let last = await run(way);
      const direct = way in DIRECT ? ways.find((result) => result.way === DIRECT[way as Proxied]) : undefined;
      for (let n = 1; direct && n <= suite.again && lossesOf(direct.outcome, last.outcome).length > 0; n++)
        last = await run(way, `.again${n}`);
    }
    results.push({ unit, ways });
  }
  return results;
}

/**
 * Runs a unit one way. What cannot be started, a taken port say, is tried twice, and then reported as a unit that did
 * not run.
 */
async function told(suite: Suite, unit: string, way: Way, log: string): Promise<WayResult> {
  const began = performance.now();
  const attempt = (): Promise<WayResult> => runWay(suite, unit, way, log);
  const again = (error: Error): Promise<WayResult> =>
    error instanceof ConformanceError && error.code === 'USAGE' ? Promise.reject(error) : attempt();
  return attempt()
    .catch(again)
    .catch((error: Error) => {
      if (error instanceof ConformanceError && error.code === 'USAGE') throw error;
      const outcome = { tests: [], aborts: [], cutShort: `it could not be run: ${error.message}` };
      return { way, outcome, seconds: (performance.now() - began) / 1000, mirror: null, died: null };
    });
}

async function runWay(suite: Suite, unit: string, way: Way, log: string): Promise<WayResult> {
  const began = performance.now();
  const timed = (rest: Pick<WayResult, 'outcome' | 'mirror' | 'died'>): WayResult => ({
    way,
    seconds: (performance.now() - began) / 1000,
    ...rest,
  });
  const started: { readonly name: string; readonly one: Program }[] = [];
  const start = async <T extends Program>(name: string, what: Promise<T>): Promise<T> => {
    const one = await what;
    started.push({ name, one });
    return one;
  };
  const ended = (): string | null => {
    const dead = started.filter(({ one }) => one.pid === undefined);
    return dead.length === 0
      ? null
      : dead
          .map(({ name, one }) => `${name}, with the last words:\n${one.log().trim().split('\n').slice(-5).join('\n')}`)
          .join('\n');
  };
  // What of the servers is not the suite's own to talk to gets another port.
  const port = suite.port ?? (await getPort({ host: '127.0.0.1' }));
  if (suite.port !== undefined) await untilFree(suite.port);
  const redis = (own?: number): Promise<LocalServer> => {
    const options = { config: suite.redisConfig, ...(own && { port: own }) };
    return start('redis', suite.cluster ? oneNode('redis', options) : startRedis(options));
  };
  const keydb = (own?: number): Promise<LocalServer> => {
    const options = own ? { port: own } : {};
    return start('keydb', suite.cluster ? oneNode('keydb', options) : startKeydb(options));
  };
  try {
    if (way === 'redis' || way === 'keydb') {
      await (way === 'redis' ? redis(port) : keydb(port));
      const outcome = await suite.run(unit, port, log, port);
      return timed({ outcome, mirror: null, died: ended() });
    }
    const [source, target] = [await redis(), await keydb()];
    const proxy = await start('proxy', startProxy({ source, target }, way, port, suite.cluster === true));
    const outcome = await suite.run(unit, port, log, (way === 'live' ? target : source).port);
    if (ended() === null) await disconnected(proxy);
    const mirror = ended() === null ? await reportMirror(proxy, source, target) : null;
    return timed({ outcome, mirror, died: ended() });
  } finally {
    for (const { name, one } of started.reverse()) {
      writeFileSync(`${log}.${name}.txt`, one.log());
      await one.stop();
    }
  }
}

/** A cluster of one node, which has every slot. */
const oneNode = async (
  program: 'redis' | 'keydb',
  options: { readonly config?: ServerConfig; readonly port?: number },
): Promise<LocalServer> => (await startCluster({ program, masters: 1, ...options })).nodes[0];

/** @throws {ConformanceError} where another process has the port: the suite's clients would talk to the wrong server */
async function untilFree(port: number): Promise<void> {
  const isFree = (): Promise<boolean> =>
    new Promise((resolve) => {
      const server = createServer();
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
  for (const deadline = Date.now() + PORT_MS; !(await isFree()); await sleep(200)) {
    if (Date.now() > deadline)
      throw new ConformanceError(
        'USAGE',
        `port ${port}, where the suite looks for its server, is taken: end what listens there`,
      );
  }
}

/** Waits until the suite's clients have disconnected: what they sent last is then answered. */
async function disconnected(proxy: ProxyProcess): Promise<void> {
  for (const deadline = Date.now() + 5_000; Date.now() < deadline && proxy.pid !== undefined; await sleep(50)) {
    if ((await proxy.snapshot()).clients === 0) return;
  }
}

export function countsOf({ tests, aborts, cutShort }: Outcome): string {
  const count = (status: string): number => tests.filter((test) => test.status === status).length;
  const parts = [`${count('ok')} ok`, `${count('failed')} failed`, `${count('skipped')} skipped`];
  if (aborts.length > 0) parts.push(`${aborts.length} parts aborted`);
  if (cutShort !== null) parts.push(`cut short (${cutShort})`);
  return parts.join(', ');
}
