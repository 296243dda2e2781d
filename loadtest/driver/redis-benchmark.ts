/**
 * redis-benchmark, for users without memtier_benchmark: one command, uniform keys, percentiles. It has neither
 * histograms nor figures for each second, and cannot mix commands. Its results are rough, and the report says so.
 */
import { execFileSync } from 'node:child_process';
import { LoadtestError } from '../rig/errors.js';
import { fill, verbOf, wordsOf } from '../workload/command.js';
import type { Address, Driven, Driver, Load } from './driver.js';
import { runGenerator } from './process.js';

export const REDIS_BENCHMARK = 'redis-benchmark';
const FATAL = /error|could not connect|NOAUTH|WRONGPASS|NOPERM/i;
const LIMIT_MS = 600_000;
/** Number of commands in a trial, which shows how many a measurement of some seconds needs. */
const TRIAL = 20_000;

export class RedisBenchmark implements Driver {
  readonly label: string;

  constructor(private readonly file: string) {
    this.label = execFileSync(file, ['--version'], { encoding: 'utf8' }).trim().split(' (')[0];
  }

  /** `__rand_int__` counts from 0, with twelve digits. */
  readonly naming = (prefix: string, i: number): string => `${prefix}${String(i - 1).padStart(12, '0')}`;

  async drive(address: Address, load: Load, stop: AbortSignal): Promise<Driven> {
    const { fallback, name } = load.profile;
    if (fallback === undefined) {
      throw new LoadtestError(
        'USAGE',
        `profile ${name} mixes commands, which redis-benchmark cannot: take memtier_benchmark, or a profile with a fallback`,
      );
    }
    if (load.rate !== null)
      throw new LoadtestError('USAGE', '--rate needs memtier_benchmark: redis-benchmark sends as fast as it can');
    const trial = await this.#run(address, load, fallback, TRIAL, stop);
    const wanted = Math.max(TRIAL, Math.round(trial.perSecond * load.seconds));
    const startedAt = Date.now();
    const { perSecond, p50, p99, cpu } = await this.#run(address, load, fallback, wanted, stop);
    return {
      startedAt,
      durationMs: (wanted / perSecond) * 1000,
      doubtful: false,
      operations: wanted,
      // The trial counts, too, because the sum of the counters must be correct.
      counts: { [verbOf(fallback)]: wanted + TRIAL },
      histogram: null,
      percentiles: { p50, p99 },
      series: [],
      cpu,
    };
  }

  async #run(
    address: Address,
    { profile, prefix, connections, pipeline }: Load,
    command: string,
    requests: number,
    stop: AbortSignal,
  ) {
    const words = wordsOf(fill(command, prefix, profile.expiry)).map((word) =>
      word.replace('__key__', `${prefix}__rand_int__`).replace('__data__', 'x'.repeat(bytesOf(profile.value))),
    );
    const options = [
      '-n',
      requests,
      '-c',
      connections,
      '-P',
      pipeline,
      '-r',
      profile.keys.count,
      '--threads',
      profile.threads,
      '--precision',
      3,
      '--csv',
    ].map(String);
    const { stdout, cpu } = await runGenerator(this.file, [...addressArguments(address), ...options, ...words], {
      fatal: FATAL,
      limitMs: LIMIT_MS,
      stop,
    });
    return { ...parseCsv(stdout), cpu };
  }
}

/** redis-benchmark has only one size: the weighted mean of the profile's sizes. */
function bytesOf(value: Load['profile']['value']): number {
  if ('bytes' in value) return value.bytes;
  const sizes = Object.entries(value.weights).map(([size, weight]) => [Number(size), weight] as const);
  const total = sizes.reduce((sum, [, weight]) => sum + weight, 0);
  return Math.round(sizes.reduce((sum, [size, weight]) => sum + size * weight, 0) / total);
}

function addressArguments({ host, port, db, username, password, tls }: Address): string[] {
  const login = password === null ? [] : [...(username === null ? [] : ['--user', username]), '-a', password];
  const files =
    tls === null
      ? []
      : Object.entries({ cacert: tls.ca, cert: tls.cert, key: tls.key }).flatMap(([name, file]) =>
          file === undefined ? [] : [`--${name}`, file],
        );
  return [
    '-h',
    host,
    '-p',
    `${port}`,
    ...(db === 0 ? [] : ['--dbnum', `${db}`]),
    ...login,
    ...(tls === null ? [] : ['--tls', ...files]),
  ];
}

/**
 * A header and one line:
 * "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms",…
 */
export function parseCsv(text: string): { readonly perSecond: number; readonly p50: number; readonly p99: number } {
  const cells = text
    .trim()
    .split('\n')
    .at(-1)!
    .split('","')
    .map((cell) => Number(cell.replaceAll('"', '')));
  const [, perSecond, , , p50, , p99] = cells;
  if (!(perSecond > 0))
    throw new LoadtestError('MEASUREMENT', `redis-benchmark said nothing that can be read: ${text.trim().slice(-200)}`);
  return { perSecond, p50, p99 };
}
