/** memtier_benchmark (RedisLabs): mixed commands, HdrHistograms, and figures for each second. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fill } from '../workload/command.js';
import type { Address, Driven, Driver, Load, Second } from './driver.js';
import { runGenerator } from './process.js';

export const MEMTIER = 'memtier_benchmark';

export const HOW_TO_GET_IT =
  'memtier_benchmark is not on the PATH. Debian, Ubuntu: apt install memtier-benchmark (or the packages of packages.redis.io); ' +
  'macOS: brew install memtier_benchmark; sources: https://github.com/RedisLabs/memtier_benchmark';

/**
 * Texts on its standard error that make the figures useless: after a connection error it starts again without its
 * counts, and it counts an error reply as an answer.
 */
const FATAL = /connection error|connection dropped|handle error response|authentication failed|error:/i;

/** Time beyond the measurement, to connect and to write its files, in ms. */
const GRACE_MS = 30_000;

export class Memtier implements Driver {
  readonly label: string;

  constructor(private readonly file: string) {
    const said = execFileSync(file, ['--version'], { encoding: 'utf8' });
    const [, version = 'of unknown version', commit] = /v=(\S+)(?: sha=(\w+))?/.exec(said) ?? [];
    this.label = `${MEMTIER} ${version}${commit === undefined ? '' : ` (${commit})`}`;
  }

  readonly naming = (prefix: string, i: number): string => `${prefix}${i}`;

  async drive(address: Address, load: Load, stop: AbortSignal): Promise<Driven> {
    const folder = mkdtempSync(path.join(tmpdir(), 'redis-to-keydb-memtier-'));
    try {
      const json = path.join(folder, 'run.json');
      const files = ['--json-out-file', json, '--hdr-file-prefix', path.join(folder, 'hdr')];
      const args = [...addressArguments(address), ...loadArguments(load), ...files];
      const { cpu } = await runGenerator(this.file, args, {
        fatal: FATAL,
        limitMs: load.seconds * 1000 + GRACE_MS,
        stop,
      });
      const histogram = histogramOf(readFileSync(path.join(folder, 'hdr_FULL_RUN_1.hgrm'), 'utf8'));
      return { ...drivenOf(JSON.parse(readFileSync(json, 'utf8')) as Output, load.seconds), histogram, cpu };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

/**
 * Users who may list the processes of this machine can see the password: memtier_benchmark accepts it only as an
 * argument.
 */
export function addressArguments({ host, port, db, username, password, tls }: Address): string[] {
  const args = [`--server=${host}`, `--port=${port}`];
  if (db !== 0) args.push(`--select-db=${db}`);
  if (password !== null) args.push(`--authenticate=${username === null ? '' : `${username}:`}${password}`);
  if (tls === null) return args;
  const files = Object.entries({ cacert: tls.ca, cert: tls.cert, key: tls.key }).filter(
    ([, file]) => file !== undefined,
  );
  return [...args, '--tls', ...files.map(([name, file]) => `--${name}=${file}`)];
}

export function loadArguments({ profile, prefix, connections, pipeline, seconds, rate }: Load): string[] {
  const { threads, keys, value, commands, expiry } = profile;
  const options: Record<string, string | number> = {
    threads,
    clients: Math.max(1, Math.round(connections / threads)),
    pipeline,
    'test-time': seconds,
    'key-prefix': prefix,
    'key-minimum': 1,
    'key-maximum': keys.count,
    ...(keys.distribution === 'zipf' && { 'key-zipf-exp': keys.exponent }),
    ...('bytes' in value
      ? { 'data-size': value.bytes }
      : {
          'data-size-list': Object.entries(value.weights)
            .map(([size, weight]) => `${size}:${weight}`)
            .join(','),
        }),
    ...(rate !== null && { 'rate-limiting': Math.max(1, Math.round(rate / connections)) }),
  };
  const lines = commands.flatMap(({ command, ratio }) => [
    `--command=${fill(command, prefix, expiry)}`,
    `--command-ratio=${ratio}`,
    `--command-key-pattern=${PATTERN[keys.distribution]}`,
  ]);
  const flags = ['--random-data', '--distinct-client-seed', '--hide-histogram'];
  return [...Object.entries(options).map(([name, text]) => `--${name}=${text}`), ...lines, ...flags];
}

const PATTERN = { uniform: 'R', zipf: 'Z', gaussian: 'G' } as const;

/** The fourth column of the only data line in HistogramLogProcessor's format. */
function histogramOf(log: string): string {
  const line = log.split('\n').find((text) => /^\d/.test(text));
  return line!.split(',')[3].trim();
}

/** The part of memtier's JSON that is used. Latencies are in milliseconds. */
export interface Output {
  readonly 'ALL STATS': Readonly<Record<string, Statistics>> & {
    readonly Runtime: { readonly 'Start time': number; readonly 'Total duration': number };
  };
}

interface Statistics {
  readonly Count: number;
  readonly 'Time-Serie': Readonly<
    Record<string, { readonly Count: number; readonly 'p50.00'?: number; readonly 'p99.00'?: number }>
  >;
}

/**
 * Without enough CPU time, memtier_benchmark has reported 18 ms for a load of a second. Then its speeds are computed
 * with the requested length, and marked as doubtful.
 */
const OFF = 0.1;

/** @param seconds requested length. Names such as `Incrs` and `Hincrbys` are those of the commands with an s. */
export function drivenOf({ 'ALL STATS': all }: Output, seconds: number): Omit<Driven, 'histogram' | 'cpu'> {
  const {
    Runtime: runtime,
    Totals: totals,
    ...commands
  } = all as unknown as Record<string, Statistics> & { Runtime: Output['ALL STATS']['Runtime'] };
  const counts = Object.entries(commands)
    .filter(([, { Count }]) => Count > 0)
    .map(([name, { Count }]) => [name.replace(/s$/, '').toUpperCase(), Count] as const);
  const { 'Start time': startedAt, 'Total duration': reportedMs } = runtime;
  const doubtful = Math.abs(reportedMs - seconds * 1000) > OFF * seconds * 1000;
  const durationMs = doubtful ? seconds * 1000 : reportedMs;
  return {
    startedAt,
    durationMs,
    doubtful,
    operations: totals.Count,
    counts: Object.fromEntries(counts),
    percentiles: null,
    series: secondsOf(totals, startedAt, durationMs),
  };
}

/** Whole seconds only: the last one may have only a few milliseconds. */
function secondsOf({ 'Time-Serie': series }: Statistics, startedAt: number, durationMs: number): Second[] {
  const whole = Math.max(1, Math.round(durationMs / 1000));
  return Array.from({ length: whole }, (_, i) => {
    const second = series[i];
    const some = (second?.Count ?? 0) > 0;
    return {
      at: Math.round(startedAt / 1000) + i,
      operations: second?.Count ?? 0,
      p50: some ? (second['p50.00'] ?? null) : null,
      p99: some ? (second['p99.00'] ?? null) : null,
    };
  });
}
