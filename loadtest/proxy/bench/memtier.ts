/** Runs memtier_benchmark for one measurement of one peer. */
import { readFileSync } from 'node:fs';
import { LoadtestError } from '../../rig/errors.js';
import { cpuSecondsOfEnded, threadCount } from '../../rig/proc.js';
import type { Rig } from '../../rig/rig.js';
import type { Point } from './point.js';

export const MEMTIER = 'memtier_benchmark';

export interface Load extends Point {
  readonly seconds: number;
  readonly valueBytes: number;
  /** Keys `memtier-1` to `memtier-<keys>`, uniformly random. */
  readonly keys: number;
}

export interface Result {
  /** Number of answered commands. */
  readonly operations: number;
  /** Average while the load ran, including the time to connect. */
  readonly opsPerSecond: number;
  /** Milliseconds from a command's sending to its reply, over all commands. */
  readonly p50: number;
  readonly p99: number;
  /** CPU seconds of the load generator. */
  readonly cpu: number;
}

/**
 * Loads `port` with GET and SET, 30 % writes, from one thread. Values are random, so that two servers with different
 * orders of writes have different values.
 * @throws {LoadtestError} if a connection failed, or a read found nothing (every key exists)
 */
export async function drive(rig: Rig, port: number, load: Load): Promise<Result> {
  const json = rig.file('memtier.json');
  const before = cpuSecondsOfEnded();
  const args = [...argumentsOf(port, load), '--json-out-file', json];
  let clock: Clock | undefined;
  await rig
    .run(MEMTIER, MEMTIER, args, (load.seconds + 30) * 1000, (pid) => (clock = new Clock(pid)))
    .finally(() => clock?.stop());
  const result = resultOf(JSON.parse(readFileSync(json, 'utf8')) as Output);
  return { ...result, opsPerSecond: result.operations / clock!.seconds, cpu: cpuSecondsOfEnded() - before };
}

const LOOK_MS = 10;

/**
 * Measures how long memtier's load thread runs. memtier's own duration leaves out the second that a client waits for
 * its connection if the peer's accept queue is full; and its process ends up to a second after the load.
 */
class Clock {
  readonly #timer: NodeJS.Timeout;
  #from = Infinity;
  #until = -Infinity;

  constructor(pid: number) {
    this.#timer = setInterval(() => {
      if (threadCount(pid) < 2) return;
      this.#until = performance.now();
      this.#from = Math.min(this.#from, this.#until);
    }, LOOK_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  get seconds(): number {
    return (this.#until - this.#from) / 1000;
  }
}

function argumentsOf(port: number, load: Load): string[] {
  const options = {
    server: '127.0.0.1',
    port,
    threads: 1,
    clients: load.clients,
    pipeline: load.pipeline,
    ratio: '3:7',
    'data-size': load.valueBytes,
    'key-minimum': 1,
    'key-maximum': load.keys,
    'test-time': load.seconds,
    ...(load.rate !== null && { 'rate-limiting': load.rate / load.clients }),
  };
  const flags = ['--random-data', '--distinct-client-seed', '--hide-histogram'];
  return [...Object.entries(options).map(([name, value]) => `--${name}=${value}`), ...flags];
}

/** The part of memtier's JSON that is used. Latencies are in milliseconds. */
interface Output {
  'ALL STATS': {
    Totals: {
      Count: number;
      'Misses/sec': number;
      'Connection Errors': number;
      'Percentile Latencies': { 'p50.00': number; 'p99.00': number };
    };
  };
}

function resultOf(output: Output): Omit<Result, 'opsPerSecond' | 'cpu'> {
  const totals = output['ALL STATS'].Totals;
  const [failed, misses] = [totals['Connection Errors'], totals['Misses/sec']];
  if (failed > 0) throw new LoadtestError('MEASUREMENT', `${failed} connections failed`);
  if (misses > 0)
    throw new LoadtestError('MEASUREMENT', `${misses} reads a second found nothing, but every key exists`);
  const latencies = totals['Percentile Latencies'];
  return {
    operations: totals.Count,
    p50: latencies['p50.00'],
    p99: latencies['p99.00'],
  };
}
