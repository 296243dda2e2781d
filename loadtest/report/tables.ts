/** The tables of a report, as texts. Pure. */
import { number } from '../../shadow-proxy/src/text/figures.js';
import { countersHold, answerOf, MEASURES, type Row, type Summary } from '../figures/summary.js';
import type { Point, Results } from '../figures/results.js';
import { MEASURE_TITLES, milliseconds, probability } from './story.js';

export interface Grid {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const NONE = '–';

/** @param points whether connections and pipeline differ between the rows */
export function figures({ rows }: Summary, points: boolean): Grid {
  return {
    head: ['side', ...pointHead(points), 'commands/s', 'low – high', 'p50 ms', 'p99 ms', 'p99.9 ms', 'cores', 'load'],
    rows: rows.map((row) => cells(row, points)),
  };
}

function cells({ side, point, throughput, latency, kept, work, generator }: Row, points: boolean): string[] {
  const percentiles = kept.flatMap((sample) => sample.percentiles ?? []);
  const range = (of: 'p50' | 'p99'): string =>
    percentiles.length === 0
      ? NONE
      : spread(
          percentiles.map((one) => one[of]),
          milliseconds,
        );
  return [
    side.id,
    ...pointCells(point, points),
    number(throughput.median),
    spread([throughput.low, throughput.high], number),
    latency === null ? range('p50') : milliseconds(latency.p50),
    latency === null ? range('p99') : milliseconds(latency.p99),
    latency === null ? NONE : milliseconds(latency.p999),
    work.length === 0
      ? NONE
      : work
          .map(({ name, cores }) => (work.length === 1 ? cores.toFixed(2) : `${name} ${cores.toFixed(2)}`))
          .join(', '),
    generator === null ? NONE : `${Math.round(generator * 100)} %`,
  ];
}

const pointHead = (points: boolean): string[] => (points ? ['conn', 'pipe'] : []);
const pointCells = ({ connections, pipeline }: Point, points: boolean): string[] =>
  points ? [`${connections}`, `${pipeline}`] : [];

const spread = (values: readonly number[], text: (value: number) => string): string =>
  `${text(Math.min(...values))} – ${text(Math.max(...values))}`;

/** @param points as for `figures` */
export function comparisons({ comparisons: all, contention }: Summary, points: boolean): Grid {
  const rows = all.flatMap(({ side, point, of }) =>
    MEASURES.flatMap((measure) => {
      const pair = of[measure];
      if (pair === null) return [];
      const interval =
        pair.interval === null ? NONE : `${pair.interval[0].toFixed(2)} – ${pair.interval[1].toFixed(2)}`;
      const rounds = `${pair.more}, ${pair.less}`;
      return [
        [
          side.id,
          ...pointCells(point, points),
          MEASURE_TITLES[measure],
          pair.median.toFixed(2),
          interval,
          rounds,
          contention.length > 0 ? NONE : probability(pair.p),
          answerOf(pair, measure, contention),
        ],
      ];
    }),
  );
  return { head: ['to source', ...pointHead(points), 'of', 'median', '95 % interval', '> 1, < 1', 'p', ''], rows };
}

export function counters({ counters: checks }: Results): Grid {
  const rows = checks.map((check) => [
    check.side,
    check.server,
    check.expected.toLocaleString('en-US'),
    check.found.toLocaleString('en-US'),
    countersHold(check) ? 'exact' : 'WRONG',
  ]);
  return { head: ['side', 'on the', 'acknowledged', 'in the counters', ''], rows };
}

/** Name and value of each condition. */
export function conditions(results: Results): readonly (readonly [string, string])[] {
  const { profile, sides, hosts, rounds, seconds, warmUp, driver, points } = results;
  const { keys, value, expiry, tls, threads } = profile;
  const law = keys.distribution === 'zipf' ? `zipf, exponent ${keys.exponent}` : keys.distribution;
  const size =
    'bytes' in value
      ? `${value.bytes} bytes`
      : Object.entries(value.weights)
          .map(([bytes, weight]) => `${bytes} bytes × ${weight}`)
          .join(', ');
  const load = points.length === 1 ? `${points[0].connections} connections, pipeline ${points[0].pipeline}, ` : '';
  return [
    ['workload', `${profile.name}: ${profile.description}`],
    ['commands', profile.commands.map(({ command, ratio }) => `${ratio} × ${command}`).join('; ')],
    [
      'keys',
      `${keys.count.toLocaleString('en-US')}, ${law}; values ${size}${expiry === undefined ? '' : `; expiry ${expiry} s`}`,
    ],
    [
      'load',
      `${load}${threads} ${threads === 1 ? 'thread' : 'threads'} of the load generator, ${tls ? 'TLS' : 'in the clear'}, ${results.rate === null ? 'as fast as it is answered' : `${results.rate} commands/s`}`,
    ],
    results.soak !== undefined
      ? ['slices', `${rounds}, up to ${seconds} s each`]
      : ['rounds', `${rounds} for each side, ${seconds} s each, in turns, after a warm-up of ${warmUp} s`],
    ...sides.map(({ id, title, where }) => [id, `${title}, ${where}`] as const),
    ...hosts.map((host, i) => [hosts.length === 1 ? 'load host' : `load host ${i + 1}`, host] as const),
    ['load generator', driver],
    ['date', results.startedAt.slice(0, 16).replace('T', ' ') + ' UTC'],
  ];
}
