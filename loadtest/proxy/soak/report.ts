/** The soak's verdict, as a table and as JSON. */
import Table from 'cli-table3';
import { sum, type ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import type { Totals } from './clients.js';
import { RULE, type MemoryParts, type MemorySample, type Trend } from './verdict.js';

export type Sample = MemorySample & MemoryParts;

export interface Measured {
  readonly minutes: number;
  readonly clients: number;
  readonly limitMib: number;
  /** Resident bytes before the first client, and the maximum under load. */
  readonly idleRss: number;
  readonly peakRss: number;
  readonly samples: readonly Sample[];
  readonly trend: Trend;
  readonly totals: Totals;
  readonly snapshot: ShardSnapshot;
}

export interface Report extends Measured {
  /** The requirements that are not met; empty if all are. */
  readonly failures: readonly string[];
}

const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

/** The requirements that are not met. A short run is no failure: its trend is unknown. */
export function judge({ limitMib, peakRss, trend, totals, snapshot }: Measured): string[] {
  const { mirror, suspects } = snapshot;
  const judged = snapshot.compared + sum(snapshot.inconclusive);
  const checks: [fails: boolean, what: string][] = [
    [peakRss >= limitMib * 2 ** 20, `the peak of ${mib(peakRss)} is not under ${limitMib} MiB`],
    [trend.flat === false, `the memory is not flat: ${growthOf(trend)}`],
    [totals.replies === 0, 'nothing was answered'],
    [judged < totals.replies, `${totals.replies - judged} of ${totals.replies} commands were not compared`],
    [totals.wrong > 0, `${totals.wrong} replies cannot belong to their commands`],
    [totals.errors > 0, `${totals.errors} error replies, such as ${totals.errorTexts.join(' | ')}`],
    [totals.lost > 0, `${totals.lost} connections were lost`],
    [sum(snapshot.mismatches) > 0, `mismatches: ${JSON.stringify(snapshot.mismatches)}`],
    [mirror.dropped > 0, `${mirror.dropped} effects were given up`],
    [mirror.queuedEffects > 0, `${mirror.queuedEffects} effects still wait for the mirror`],
    [suspects.total > 0, `${suspects.total} suspect keys: ${JSON.stringify(suspects.byReason)}`],
  ];
  return checks.filter(([fails]) => fails).map(([, what]) => what);
}

/** For a terminal. */
export function asText(report: Report): string {
  const { trend, totals, snapshot, samples } = report;
  const last = samples[samples.length - 1];
  const seconds = last.at || 1;
  const allowed = sum(snapshot.allowed);
  const table = new Table({ style: { head: [], border: [], compact: true } });
  table.push(
    ['clients', `${report.clients}, ${totals.hungUp} hung up and came back`],
    ['time', `${report.minutes} min`],
    ['commands', `${totals.commands} (${Math.round(totals.commands / seconds)}/s), ${totals.heldBack} held back`],
    ['replies', `${totals.replies}, ${totals.wrong} wrong, ${totals.errors} errors, ${totals.lost} connections lost`],
    [
      'compared',
      `${snapshot.compared}: ${snapshot.matched} equal, ${allowed} allowed, ${sum(snapshot.mismatches)} mismatches`,
    ],
    ['not to be told', `${sum(snapshot.inconclusive)} ${JSON.stringify(snapshot.inconclusive)}`],
    [
      'RSS idle, last, peak',
      `${mib(report.idleRss)}, ${mib(last.rss)}, ${mib(report.peakRss)} (limit ${report.limitMib} MiB)`,
    ],
    ['made of', madeOf(samples)],
    ['RSS trend', `${growthOf(trend)}: ${flatness(trend)}`],
  );
  const verdict = report.failures.length > 0 ? `It does NOT hold: ${report.failures.join('; ')}.` : conclusion(trend);
  return [table.toString(), RULE, verdict].join('\n');
}

/** The parts of the memory in the first and in the last third of the time. */
function madeOf(samples: readonly Sample[]): string {
  const third = Math.ceil(samples.length / 3);
  const mean = (part: readonly Sample[], of: (sample: Sample) => number): string =>
    (part.reduce((total, sample) => total + of(sample), 0) / part.length / 2 ** 20).toFixed(1);
  const change = (of: (sample: Sample) => number): string =>
    `${mean(samples.slice(0, third), of)} → ${mean(samples.slice(-third), of)}`;
  return `V8's heap ${change(({ heap }) => heap)}, buffers ${change(({ buffers }) => buffers)}, the rest ${change(({ rss, heap, buffers }) => rss - heap - buffers)} MiB`;
}

const growthOf = ({ growth, seconds, noise }: Trend): string =>
  `${mib(growth)} more in ${seconds.toFixed(0)} s, noise ${mib(noise)}`;

const flatness = ({ flat }: Trend): string => (flat === null ? 'too short to tell' : flat ? 'flat' : 'NOT flat');

const conclusion = ({ flat }: Trend): string =>
  flat === null
    ? 'Could not tell: the run was too short to judge the trend.'
    : 'It holds: small, flat, nothing differed.';
