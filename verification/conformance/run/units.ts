/** Runs each unit of a suite on each way: with servers of its own, so that no unit hands anything on to the next. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../../../shadow-proxy/src/local/port.js';
import type { ServerConfig } from '../../../shadow-proxy/src/local/servers.js';
import { ConformanceError } from './error.js';
import { reportMirror } from './mirror.js';
import { startNodes, type ClusterLayout, type Nodes } from './nodes.js';
import { startProxy, type ProxyProcess } from './proxy.js';
import { lossesOf } from './compare.js';
import { DIRECT, type Outcome, type Proxied, type UnitResult, type Way, type WayResult } from './result.js';

const PORT_MS = 60_000;

export interface Suite {
  /** As in the list of exceptions. */
  readonly name: 'redis' | 'bullmq' | 'clients';
  readonly units: readonly string[];
  readonly ways: readonly Way[];
  /** How often a unit goes through the proxy once more when tests were lost. */
  readonly again: number;
  readonly redisConfig: ServerConfig;
  /** Where both sides are clusters, and the proxies the face of one. The proxies show no replicas. */
  readonly cluster?: ClusterLayout;
  /** Where the unit must find its first server, because some of its clients look nowhere else. */
  port?(unit: string): number | undefined;
  /**
   * Runs one unit against servers; its output goes to files whose names begin with `log`.
   * @param ports of the servers, one each
   * @param authority the port of the first server that answers: the first of `ports` without a proxy
   */
  run(unit: string, ports: readonly number[], log: string, authority: number): Promise<Outcome>;
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
      const result = await runOrReport(
        suite,
        unit,
        way,
        join(logs, `${unit.replaceAll(/[^\w.-]+/g, '_')}.${way}${attempt}`),
      );
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
async function runOrReport(suite: Suite, unit: string, way: Way, log: string): Promise<WayResult> {
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
  const { cluster } = suite;
  const masters = cluster?.masters ?? 1;
  const isDirect = way === 'redis' || way === 'keydb';
  const count = isDirect ? masters * (1 + (cluster?.replicas ?? 0)) : masters;
  const wanted = suite.port?.(unit);
  const port = wanted ?? (await freePorts(count));
  const ports = Array.from({ length: count }, (_, i) => port + i);
  if (wanted !== undefined) for (const each of ports) await untilFree(each);
  const nodes = (program: 'redis' | 'keydb', layout: ClusterLayout | undefined, own?: number): Promise<Nodes> => {
    const config = program === 'redis' ? { config: suite.redisConfig } : {};
    return start(program, startNodes(program, layout, { ...config, ...(own !== undefined && { port: own }) }));
  };
  try {
    if (isDirect) {
      await nodes(way, cluster, port);
      const outcome = await suite.run(unit, ports, log, port);
      return timed({ outcome, mirror: null, died: ended() });
    }
    const [source, target] = [await nodes('redis', cluster), await nodes('keydb', cluster)];
    const proxy = await start('proxy', startProxy({ source, target }, way, port, cluster !== undefined));
    const outcome = await suite.run(unit, ports, log, (way === 'live' ? target : source).masters[0].port);
    if (ended() === null) await disconnected(proxy);
    const mirror = ended() === null ? await reportMirror(proxy, source.masters, target.masters) : null;
    return timed({ outcome, mirror, died: ended() });
  } finally {
    for (const { name, one } of started.reverse()) {
      writeFileSync(`${log}.${name}.txt`, one.log());
      await one.stop();
    }
  }
}

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
    if ((await proxy.snapshots()).every(({ clients }) => clients === 0)) return;
  }
}

export function countsOf({ tests, aborts, cutShort }: Outcome): string {
  const count = (status: string): number => tests.filter((test) => test.status === status).length;
  const parts = [`${count('ok')} ok`, `${count('failed')} failed`, `${count('skipped')} skipped`];
  if (aborts.length > 0) parts.push(`${aborts.length} parts aborted`);
  if (cutShort !== null) parts.push(`cut short (${cutShort})`);
  return parts.join(', ');
}
