/** The bench's figures as tables for people and as JSON. */
import os from 'node:os';
import Table from 'cli-table3';
import type { ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import type { Judgement, Ratio, Row, Sample } from './figures.js';
import type { Load } from './memtier.js';
import { PEER_TITLES } from './peers.js';

export interface Report {
  readonly startedAt: string;
  readonly machine: string;
  /** By name: the first line that each program says about its version. */
  readonly versions: Readonly<Record<string, string>>;
  readonly rounds: number;
  readonly load: Omit<Load, 'pipeline'>;
  readonly rows: readonly Row[];
  readonly ratios: readonly Ratio[];
  readonly requirements: readonly Judgement[];
  /** What speaks against the shadow proxy's figures; null where it was not measured. */
  readonly doubts: readonly string[] | null;
  /** The shadow proxy's own counts at the end, the warm-up included; null where it was not measured. */
  readonly proxy: ShardSnapshot | null;
  readonly samples: readonly Sample[];
}

export function machine(): string {
  const cores = os.cpus();
  return `${cores.length} × ${cores[0]?.model ?? 'unknown'}, ${os.type()} ${os.release()}, Node ${process.version}`;
}

const COSTS = ['CPU s/M ops', 'RSS MiB', 'peak MiB', 'target CPU'];
const HEAD = ['pipeline', 'peer', 'ops/s', 'p50 ms', 'p99 ms', ...COSTS, 'mirrored', 'lag ms', 'equal'];
const RATIO_HEAD = ['shadow proxy against', 'pipeline', 'median', 'min – max', 'wanted', ''];

const figure = (value: number | null, digits: number): string => (value === null ? '–' : value.toFixed(digits));
const thousands = (value: number | null): string => (value === null ? '–' : Math.round(value).toLocaleString('en-US'));
const mebibytes = (bytes: number | null): string => figure(bytes === null ? null : bytes / 2 ** 20, 1);

function cells(row: Row): string[] {
  return [
    `${row.pipeline}`,
    PEER_TITLES[row.peer],
    thousands(row.opsPerSecond),
    figure(row.p50, 2),
    figure(row.p99, 2),
    figure(row.cpu, 1),
    mebibytes(row.rss),
    mebibytes(row.peakRss),
    figure(row.targetCpu, 1),
    row.equal === null ? '–' : `${figure((row.mirrored ?? 0) * 100, 1)} %`,
    row.equal === null ? '–' : figure(row.mirrorLagMs, 0),
    row.equal === null ? '–' : row.equal ? 'yes' : 'NO',
  ];
}

function ratioCells(ratio: Ratio, requirements: readonly Judgement[]): string[] {
  const wanted = requirements.find((r) => r.peer === ratio.peer && r.pipeline === ratio.pipeline);
  const verdict = wanted ? (wanted.holds ? 'holds' : 'FAILS') : '';
  const spread = `${ratio.min.toFixed(2)} – ${ratio.max.toFixed(2)}`;
  const atLeast = wanted ? `≥ ${wanted.atLeast}` : '';
  return [PEER_TITLES[ratio.peer], `${ratio.pipeline}`, ratio.median.toFixed(2), spread, atLeast, verdict];
}

/** One or two sentences: whether the shadow proxy compared what it was measured on. */
export function trust(report: Report): string {
  if (!report.proxy || !report.doubts) return 'The shadow proxy was not measured.';
  const { operations, compared, matched } = report.proxy;
  const counts = `shadow proxy: ${thousands(operations)} operations, ${thousands(compared)} compared, ${thousands(matched)} equal`;
  if (report.doubts.length === 0) return `${counts}. Everything was compared, nothing differed.`;
  return `${counts}. ITS FIGURES ARE WORTHLESS: ${report.doubts.join('; ')}.`;
}

const conditions = ({ load, rounds }: Report): string =>
  `medians of ${rounds} rounds of ${load.seconds} s each, interleaved; 1 thread of memtier_benchmark, ${load.connections} connections, ` +
  `${load.valueBytes}-byte values, 30 % writes, ${load.keys} keys`;

const EXPLANATION =
  'CPU: seconds per million operations, until the mirror is quiet, of the peer (CPU) and of the target. Mirrored: commands ' +
  'that reached the target, of those that reached the source. Lag: how long the target was still busy after the load. ' +
  'Equal: both servers hold the same values afterwards. Ratios are of throughput, round by round.';

/** For a terminal. */
export function asText(report: Report): string {
  const table = new Table({ head: HEAD, style: { head: [], border: [], compact: true } });
  table.push(...report.rows.map(cells));
  const ratios = new Table({ head: RATIO_HEAD, style: { head: [], border: [], compact: true } });
  ratios.push(...report.ratios.map((ratio) => ratioCells(ratio, report.requirements)));
  const parts = [report.machine, conditions(report), table.toString()];
  if (report.ratios.length > 0) parts.push(ratios.toString());
  return [...parts, EXPLANATION, trust(report)].join('\n');
}

/** For a page. */
export function asMarkdown(report: Report): string {
  const versions = Object.entries(report.versions).map(([name, version]) => `- ${name}: ${version}`);
  const parts = [
    `# Bench of ${report.startedAt}`,
    `${report.machine}; ${conditions(report)}.`,
    versions.join('\n'),
    markdownTable(HEAD, report.rows.map(cells)),
    markdownTable(
      RATIO_HEAD,
      report.ratios.map((ratio) => ratioCells(ratio, report.requirements)),
    ),
    EXPLANATION,
    trust(report),
  ];
  return `${parts.join('\n\n')}\n`;
}

function markdownTable(head: readonly string[], rows: readonly string[][]): string {
  const line = (values: readonly string[]): string => `| ${values.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
