/** The text of a report: the same in the page, in Markdown and in the terminal. Pure. */
import { number } from '../../shadow-proxy/src/text/figures.js';
import { CONFIDENCE, LEAST_ROUNDS, METHOD, type Paired } from '../figures/paired.js';
import { pointName, tallyHolds, type Results, type Soak, type TallyCheck } from '../figures/results.js';
import { answerOf, countersHold, DROP_FROM, type Comparison, type Measure, type Summary } from '../figures/summary.js';

export interface Verdict {
  readonly question: string;
  /** The first words of the answer, and their colour. */
  readonly word: string;
  readonly kind: 'yes' | 'no' | 'unknown';
  readonly sentence: string;
}

export const MEASURE_TITLES: Readonly<Record<Measure, string>> = {
  throughput: 'throughput',
  p50: 'p50',
  p99: 'p99',
  p999: 'p99.9',
};

const percent = Math.round(CONFIDENCE * 100);

/** The main measure: with a fixed rate all sides have the same throughput, and only their latency differs. */
export const leading = ({ rate }: Results): Measure => (rate === null ? 'throughput' : 'p99');

/** The verdict for each side other than the source, at each point. */
export function verdicts(results: Results, { comparisons, contention }: Summary): Verdict[] {
  if (results.soak !== undefined) return [soakVerdict(results, results.soak)];
  return comparisons
    .map((comparison) => verdictOf(results, comparison, contention))
    .filter((verdict) => verdict !== null);
}

function verdictOf(results: Results, { side, point, of }: Comparison, contention: readonly string[]): Verdict | null {
  const measure = leading(results);
  const pair = of[measure];
  if (pair === null) return null;
  const answer = answerOf(pair, measure, contention);
  const base = results.sides.find(({ role }) => role === 'source')!;
  const who = side.role === 'proxy' ? 'Redis through the proxy' : nameOf(side.title);
  const at = results.points.length > 1 ? ` at ${pointName(point)}` : '';
  const setting =
    results.sides.filter(({ role }) => role === side.role).length > 1 ? ` with ${threadsOf(side.title)}` : '';
  const question = `Is ${who}${setting} faster than ${nameOf(base.title)} for ${results.profile.name}${at}, on this hardware?`;
  const words = {
    faster: 'Yes',
    slower: 'No, slower',
    'no difference shown': 'No difference was shown',
    'too few rounds': 'Inconclusive',
    inconclusive: 'Inconclusive',
  } as const;
  const kind = answer === 'faster' ? 'yes' : answer === 'slower' ? 'no' : 'unknown';
  const sentence =
    answer === 'inconclusive'
      ? `the machine was contended: ${contention.join('; ')}. Repeat the test on a quiet machine.`
      : amount(pair, measure);
  return { question, word: words[answer], kind, sentence };
}

function soakVerdict(
  { sides: [side], profile, counters, samples }: Results,
  { restarted, downtime, interrupted, tallies, longestWaitMs }: Soak,
): Verdict {
  const holds = tallies.every(tallyHolds) && counters.every(countersHold);
  const over = restarted === null ? 'a long load' : `a restart of the ${restarted}`;
  const who = side.role === 'proxy' ? 'the proxy' : nameOf(side.title);
  const parts = [
    ...tallies.map(tellTally),
    `no client was without an answer for longer than ${(longestWaitMs / 1000).toFixed(1)} s`,
    ...(downtime === null ? [] : [`the ${restarted} was down for ${(downtime.to - downtime.from).toFixed(1)} s`]),
    interrupted.length === 0
      ? 'no connection was lost'
      : `connections were lost in ${interrupted.length} of ${interrupted.length + samples.length} slices`,
  ];
  return {
    question: `Does ${who} keep every increment over ${over}, under ${profile.name}?`,
    word: holds ? 'Yes' : 'No',
    kind: holds ? 'yes' : 'no',
    sentence: `${parts.join('; ')}.`,
  };
}

function tellTally({ server, acknowledged, attempted, found }: TallyCheck): string {
  const open = attempted - acknowledged;
  return `on the ${server} the watching clients’ counters hold ${number(found)}: ${number(acknowledged)} were acknowledged, ${number(open)} more had no reply`;
}

/** The size of the difference, and how certain it is. */
export function amount(pair: Paired, measure: Measure): string {
  const { median, ratios, more, less, p, interval } = pair;
  const what = `${times(median)} ${measure === 'throughput' ? 'the throughput' : `the ${MEASURE_TITLES[measure]}`}`;
  const rounds = `higher in ${more} and lower in ${less} of ${ratios.length} rounds, p = ${probability(p)}`;
  if (interval === null)
    return `${what} by the median of ${ratios.length} ${ratios.length === 1 ? 'round' : 'rounds'}; no interval can have ${percent} % confidence with fewer than ${LEAST_ROUNDS}.`;
  return `${what} (${percent} % interval ${interval[0].toFixed(2)} to ${interval[1].toFixed(2)}; ${rounds}).`;
}

/** Explanations of the figures, below the tables. */
export function explanations({ rounds, driver, rate, soak }: Results): string[] {
  const dropped =
    soak !== undefined
      ? 'Nothing is dropped: the worst of a soak is what it looks for.'
      : rounds >= DROP_FROM
        ? `Of each side’s ${rounds} rounds the one with the highest and the one with the lowest throughput are dropped from the figures; the comparison keeps them.`
        : `With fewer than ${DROP_FROM} rounds none is dropped.`;
  const histogram =
    'Latencies are the load generator’s own HdrHistograms of all rounds kept, added up value by value: no percentile is an average of percentiles.';
  const closed =
    rate === null
      ? 'Each connection sends its next commands when the last are answered, so that a server which stalls is asked less while it does: latencies of such a load are too kind to both sides (coordinated omission). Take --rate for latencies at a load of your own.'
      : `The load was held at ${rate.toLocaleString('en-US')} commands a second.`;
  const cpu =
    'CPU is that of the server’s process with all its threads (INFO cpu), of the proxy by its metrics, until the mirror had everything.';
  if (soak !== undefined) return [dropped, histogram, closed];
  return [dropped, ...(driver.startsWith('redis-benchmark') ? [] : [histogram]), closed, cpu, METHOD];
}

/** The short name: `KeyDB 6.3.4` of `KeyDB 6.3.4, server-threads 2`. */
export const nameOf = (title: string): string => title.split(',')[0];
const threadsOf = (title: string): string => title.split(', ')[1] ?? title;

export const times = (ratio: number): string => `${ratio.toFixed(2)} times`;
export const probability = (p: number): string => (p < 0.001 ? '< 0.001' : p.toFixed(3));
export const milliseconds = (value: number): string => (value < 10 ? value.toFixed(2) : value.toFixed(1));
