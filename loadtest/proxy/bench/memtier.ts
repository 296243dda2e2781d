/** memtier_benchmark: one measurement of one peer. */
import { readFileSync } from 'node:fs';
import { LoadtestError } from '../../rig/errors.js';
import type { Rig } from '../../rig/rig.js';

export const MEMTIER = 'memtier_benchmark';

export interface Load {
  readonly connections: number;
  /** Commands that a connection has in flight. */
  readonly pipeline: number;
  readonly seconds: number;
  readonly valueBytes: number;
  /** Keys `memtier-1` to `memtier-<keys>`, uniformly random. */
  readonly keys: number;
}

export interface Result {
  /** Commands that were answered. */
  readonly operations: number;
  readonly opsPerSecond: number;
  /** Milliseconds from a command's sending to its reply, over all commands. */
  readonly p50: number;
  readonly p99: number;
}

/**
 * Drives `port` with GET and SET, 30 % writes, from one thread. Values are random, so that two servers which saw
 * the writes in different orders hold different values.
 * @throws {LoadtestError} when a connection failed, or a read found nothing (every key exists)
 */
export async function drive(rig: Rig, port: number, load: Load): Promise<Result> {
  const json = rig.file('memtier.json');
  await rig.run(MEMTIER, MEMTIER, [...argumentsOf(port, load), '--json-out-file', json], (load.seconds + 30) * 1000);
  return resultOf(JSON.parse(readFileSync(json, 'utf8')));
}

function argumentsOf(port: number, load: Load): string[] {
  const options = {
    server: '127.0.0.1',
    port,
    threads: 1,
    clients: load.connections,
    pipeline: load.pipeline,
    ratio: '3:7',
    'data-size': load.valueBytes,
    'key-minimum': 1,
    'key-maximum': load.keys,
    'test-time': load.seconds,
  };
  const flags = ['--random-data', '--distinct-client-seed', '--hide-histogram'];
  return [...Object.entries(options).map(([name, value]) => `--${name}=${value}`), ...flags];
}

/** The part of memtier's JSON that is used. Latencies are in milliseconds. */
interface Output {
  'ALL STATS': {
    Totals: {
      Count: number;
      'Ops/sec': number;
      'Misses/sec': number;
      'Connection Errors': number;
      'Percentile Latencies': { 'p50.00': number; 'p99.00': number };
    };
  };
}

function resultOf(output: Output): Result {
  const totals = output['ALL STATS'].Totals;
  const [failed, misses] = [totals['Connection Errors'], totals['Misses/sec']];
  if (failed > 0) throw new LoadtestError('MEASUREMENT', `${failed} connections failed`);
  if (misses > 0)
    throw new LoadtestError('MEASUREMENT', `${misses} reads a second found nothing, but every key exists`);
  const latencies = totals['Percentile Latencies'];
  return {
    operations: totals.Count,
    opsPerSecond: totals['Ops/sec'],
    p50: latencies['p50.00'],
    p99: latencies['p99.00'],
  };
}
