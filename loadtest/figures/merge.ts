/** Merges the runs of several load hosts that loaded the same servers at the same times. Pure. */
import { LoadtestError } from '../rig/errors.js';
import { encode, merge } from './histogram.js';
import { median } from './median.js';
import { samePoint, type CounterCheck, type Results, type Sample } from './results.js';
import type { Second } from '../driver/driver.js';

/** The hosts must have loaded a side together for at least this share of the longest measurement. */
const OVERLAP = 0.9;

/**
 * Commands, increments, and the values of histograms are added up; seconds are matched by the clock. No percentile is
 * averaged; those of single seconds are left out, because they cannot be merged.
 * @throws {LoadtestError} if the runs do not belong together
 */
export function mergeResults(all: readonly Results[]): Results {
  const [first, ...others] = all;
  if (others.length === 0) throw new LoadtestError('USAGE', 'merge needs the results of at least two load hosts');
  for (const other of others) refuseOther(first, other);
  return {
    ...first,
    startedAt: all.map(({ startedAt }) => startedAt).sort()[0],
    hosts: all.flatMap(({ hosts }) => hosts),
    ...machineOf(all),
    samples: first.samples.map((sample) =>
      mergeSamples(
        sample,
        others.map((other) => sameTurn(other, sample)),
      ),
    ),
    counters: first.counters.map((check) => mergeChecks(check, others)),
  };
}

/** The highest value of each figure: one busy host spoils the rounds of all. */
function machineOf(all: readonly Results[]): Pick<Results, 'machine'> {
  const machines = all.flatMap(({ machine }) => machine ?? []);
  if (machines.length === 0) return {};
  const busiest = machines.reduce((a, b) => (b.loadBefore / b.cores > a.loadBefore / a.cores ? b : a));
  const steals = machines.flatMap(({ steal }) => steal ?? []);
  return { machine: { ...busiest, steal: steals.length === 0 ? null : Math.max(...steals) } };
}

function refuseOther(first: Results, other: Results): void {
  const settingsOf = (results: Results): Record<string, unknown> => ({
    profile: results.profile,
    rounds: results.rounds,
    seconds: results.seconds,
    points: results.points,
    rate: results.rate,
    sides: results.sides.map(({ id, title }) => `${id}: ${title}`),
  });
  const [a, b] = [settingsOf(first), settingsOf(other)];
  const differs = Object.keys(a).find((name) => JSON.stringify(a[name]) !== JSON.stringify(b[name]));
  if (differs !== undefined)
    throw new LoadtestError(
      'USAGE',
      `the results are not of one test: their ${differs} differ (${JSON.stringify(a[differs]).slice(0, 200)} and ${JSON.stringify(b[differs]).slice(0, 200)})`,
    );
  if (first.prefix === other.prefix)
    throw new LoadtestError(
      'USAGE',
      `two of the results have the prefix ${first.prefix}: the same run twice, or hosts that wrote the same keys`,
    );
}

function sameTurn({ samples }: Results, { side, round, point }: Sample): Sample {
  return samples.find((other) => other.side === side && other.round === round && samePoint(other.point, point))!;
}

function mergeSamples(first: Sample, others: readonly Sample[]): Sample {
  const all = [first, ...others];
  const from = Math.max(...all.map(({ startedAt }) => startedAt));
  const to = Math.min(...all.map(({ startedAt, durationMs }) => startedAt + durationMs));
  const longest = Math.max(...all.map(({ durationMs }) => durationMs));
  if (to - from < OVERLAP * longest) {
    throw new LoadtestError(
      'USAGE',
      `${first.side}, round ${first.round + 1}: the hosts loaded it together for ${Math.max(0, (to - from) / 1000).toFixed(1)} of ${(longest / 1000).toFixed(1)} s. Give all the same --start-at, and look at their clocks`,
    );
  }
  const histograms = all.map(({ histogram }) => histogram);
  return {
    ...first,
    startedAt: Math.min(...all.map(({ startedAt }) => startedAt)),
    // Each host's speed applies to its own time: the sum of the speeds over the longest time.
    durationMs: longest,
    doubtful: all.some(({ doubtful }) => doubtful),
    operations: Math.round(sum(all.map(({ operations, durationMs }) => (operations / durationMs) * longest))),
    counts: added(all.map(({ counts }) => counts)),
    histogram: histograms.every((text) => text !== null) ? encode(merge(histograms)!) : null,
    percentiles: null,
    series: seconds(all),
    cpu: all.every(({ cpu }) => cpu !== null) ? sum(all.map(({ cpu }) => cpu!)) : null,
    // All hosts have observed the same processes.
    work: Object.fromEntries(Object.keys(first.work).map((name) => [name, median(all.map(({ work }) => work[name]))!])),
    hosts: sum(all.map(({ hosts }) => hosts)),
  };
}

/** The seconds in which all hosts were loading. */
function seconds(all: readonly Sample[]): Second[] {
  const at = all.map(({ series }) => new Map(series.map((second) => [second.at, second.operations])));
  return all[0].series
    .filter((second) => at.every((one) => one.has(second.at)))
    .map((second) => ({ at: second.at, operations: sum(at.map((one) => one.get(second.at)!)), p50: null, p99: null }));
}

function mergeChecks(check: CounterCheck, others: readonly Results[]): CounterCheck {
  const same = others.map(({ counters }) =>
    counters.find(({ side, server }) => side === check.side && server === check.server)!,
  );
  // Each host has its own keys. Lost increments of one host must not be balanced by extra ones of another.
  const wrong = [check, ...same].find(({ expected, found }) => expected !== found);
  return (
    wrong ?? {
      ...check,
      expected: sum([check, ...same].map(({ expected }) => expected)),
      found: sum([check, ...same].map(({ found }) => found)),
    }
  );
}

function added(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const names = new Set(all.flatMap((counts) => Object.keys(counts)));
  return Object.fromEntries([...names].map((name) => [name, sum(all.map((counts) => counts[name] ?? 0))]));
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
