/** The bench's figures as tables for people and as JSON. */
import os from 'node:os';
import Table from 'cli-table3';
import type { ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';
import { number } from '../../../shadow-proxy/src/text/figures.js';
import { boundOf, type Judgement } from '../requirements.js';
import { COMPARISON_NAMES, comparable, COMPARISONS, keptRate, type Row, type Sample, type Spread } from './figures.js';
import type { Load } from './memtier.js';
import { isShadow, titleOf, type ShadowName } from './peers.js';
import type { Point } from './point.js';
import { costsOf } from './record.js';
import { ASSUMPTION, CORES, scaled } from './scaling.js';

export interface Report {
  readonly startedAt: string;
  readonly machine: string;
  /** The first line that each program prints about its version, by its name. */
  readonly versions: Readonly<Record<string, string>>;
  readonly rounds: number;
  readonly load: Omit<Load, keyof Point>;
  readonly rows: readonly Row[];
  readonly requirements: readonly Judgement[];
  readonly proxies: readonly ProxyReport[];
  readonly samples: readonly Sample[];
}

/** The facts that a shadow proxy reports about itself. */
export interface ProxyReport {
  readonly peer: ShadowName;
  /** Reasons not to trust its figures. */
  readonly warnings: readonly string[];
  /** The proxy's own counts at the end, including the warm-up. */
  readonly snapshot: ShardSnapshot;
}

/** Call it before anything is started: the load average shows other work on the machine. */
export function machine(): string {
  const cores = os.cpus();
  return `${cores.length} × ${cores[0]?.model ?? 'unknown'}, ${os.type()} ${os.release()}, load average ${os.loadavg()[0].toFixed(1)}`;
}

interface Section {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const figure = (value: number | null, digits: number): string => (value === null ? '–' : value.toFixed(digits));
const whole = (value: number | null): string => (value === null ? '–' : number(value));
const mebibytes = (bytes: number | null): string => figure(bytes === null ? null : bytes / 2 ** 20, 1);
const spread = (ratio: Spread | null | undefined): string =>
  ratio ? `${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)} – ${ratio.max.toFixed(2)})` : '–';
const POINT_HEAD = ['pipeline', 'clients', 'peer'];
const pointCells = (row: Row): string[] => [`${row.pipeline}`, whole(row.clients), titleOf(row.peer)];

function ratios(rows: readonly Row[]): Section {
  const names = COMPARISON_NAMES.filter((name) => comparable(name, { rate: null }));
  return {
    title: 'Ratios in the same round: median (lowest – highest)',
    head: [...POINT_HEAD, ...names.map((name) => COMPARISONS[name].title)],
    rows: rows.map((row) => [...pointCells(row), ...names.map((name) => spread(row.ratios[name]))]),
  };
}

const COSTS = ['CPU s/M', 'of thread', 'RSS MiB', 'peak MiB', 'target CPU'];

function measures(rows: readonly Row[]): Section {
  return {
    title: 'As fast as replies come',
    head: [...POINT_HEAD, 'ops/s', 'p50 ms', 'p99 ms', ...COSTS, 'mirrored', 'lag ms', 'equal'],
    rows: rows.map((row) => [
      ...[...pointCells(row), whole(row.opsPerSecond), figure(row.p50, 2), figure(row.p99, 2)],
      ...[figure(row.cpu, 2), figure(row.threadCpu, 2), mebibytes(row.rss), mebibytes(row.peakRss)],
      figure(row.targetCpu, 1),
      row.equal === null ? '–' : `${figure((row.mirrored ?? 0) * 100, 1)} %`,
      row.equal === null ? '–' : figure(row.mirrorLagMs, 0),
      row.equal === null ? '–' : row.equal ? 'yes' : 'NO',
    ]),
  };
}

function latency(rows: readonly Row[]): Section {
  return {
    title: `At a fixed rate: ${number(rows[0]?.rate ?? 0)} commands a second`,
    head: [...POINT_HEAD, 'ops/s', 'p50 ms', 'p99 ms', COMPARISONS['p99/redis'].title, 'rate'],
    rows: rows.map((row) => [
      ...[...pointCells(row), whole(row.opsPerSecond), figure(row.p50, 2), figure(row.p99, 2)],
      spread(row.ratios['p99/redis']),
      keptRate(row) ? 'kept' : notKept(row),
    ]),
  };
}

const notKept = ({ peer }: Row): string =>
  peer === 'direct' ? 'NOT KEPT: the load generator is at its limit' : 'NOT KEPT: by the load generator or the peer';

function required(judgements: readonly Judgement[]): Section {
  return {
    title: 'Required of the shadow proxy',
    head: ['ratio', 'pipeline', 'clients', 'required', 'measured', 'at most here', '', 'what it means'],
    rows: judgements.map((judgement) => [
      ...[COMPARISONS[judgement.ratio].title, `${judgement.pipeline}`, whole(judgement.clients)],
      ...[boundOf(judgement), spread(judgement.measured), judgement.reach?.toFixed(2) ?? '–'],
      judgement.verdict === 'missed' ? 'MISSED' : judgement.verdict,
      judgement.says,
    ]),
  };
}

function scaling(rows: readonly Row[]): Section {
  return {
    title: 'One shard on so many cores, computed: commands a second',
    head: [...POINT_HEAD, 'cores', 'load on another host', 'load on them, too', 'limit'],
    rows: rows.flatMap((row) => {
      const costs = costsOf(row);
      if (costs === null) return [];
      return CORES.map((cores) => {
        const { withLoad, withoutLoad, limit } = scaled(costs, cores);
        return [...pointCells(row), `${cores}`, whole(withoutLoad), whole(withLoad), limit];
      });
    }),
  };
}

function sections({ rows, requirements }: Report): Section[] {
  const [closed, fixed] = [rows.filter(({ rate }) => rate === null), rows.filter(({ rate }) => rate !== null)];
  const all = [ratios(closed), measures(closed), latency(fixed), required(requirements)];
  return [...all, scaling(closed.filter(({ peer }) => isShadow(peer)))].filter((section) => section.rows.length > 0);
}

/** One or two sentences for each shadow proxy: whether it compared the measured commands. */
export function trust({ proxies }: Report): string {
  if (proxies.length === 0) return 'The shadow proxy was not measured.';
  return proxies
    .map(({ peer, warnings, snapshot: { operations, compared, matched } }) => {
      const counts = `${titleOf(peer)}: ${number(operations)} operations, ${number(compared)} compared, ${number(matched)} equal`;
      return warnings.length === 0
        ? `${counts}. Everything was compared, nothing differed.`
        : `${counts}. ITS FIGURES ARE WORTHLESS: ${warnings.join('; ')}.`;
    })
    .join('\n');
}

const conditions = ({ load, rounds }: Report): string =>
  `medians of ${rounds} rounds of ${load.seconds} s each, interleaved; 1 thread of memtier_benchmark, ` +
  `${load.valueBytes}-byte values, 30 % writes, ${load.keys} keys`;

const EXPLANATION =
  'CPU: seconds per million commands, until the mirror is quiet, of the whole process of the peer (of Redis where the ' +
  "load drives it directly), of its sequencing thread (the shadow proxy's main thread, the busiest thread of others), and " +
  'of the target. Sequencing thread / Redis below 1: Redis alone would saturate before the proxy does. Mirrored: commands ' +
  'that reached the target, of those that reached the source. Lag: how long the target was still busy after the load. ' +
  'Equal: both servers hold the same values afterwards.';

/** For a terminal. */
export function asText(report: Report): string {
  const tables = sections(report).map(({ title, head, rows }) => {
    const table = new Table({ head: [...head], style: { head: [], border: [], compact: true } });
    table.push(...rows.map((row) => [...row]));
    return `\n${title}\n${table.toString()}`;
  });
  const versions = Object.entries(report.versions).map(([name, version]) => `${name}: ${version}`);
  return [
    report.machine,
    versions.join('; '),
    conditions(report),
    ...tables,
    EXPLANATION,
    ASSUMPTION,
    trust(report),
  ].join('\n');
}

/** For a page. */
export function asMarkdown(report: Report): string {
  const versions = Object.entries(report.versions).map(([name, version]) => `- ${name}: ${version}`);
  const parts = [
    `# Bench of ${report.startedAt}`,
    `${report.machine}; ${conditions(report)}.`,
    versions.join('\n'),
    ...sections(report).map(({ title, head, rows }) => `## ${title}\n\n${markdownTable(head, rows)}`),
    EXPLANATION,
    ASSUMPTION,
    trust(report),
  ];
  return `${parts.join('\n\n')}\n`;
}

export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (values: readonly string[]): string => `| ${values.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
