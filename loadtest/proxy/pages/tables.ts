/** The tables of pages from docs/figures.json, by the name after `<!-- figures: `. Pure. */
import { comparable, COMPARISON_NAMES, COMPARISONS, keptRate, mostOpsBeside } from '../bench/figures.js';
import { isShadow } from '../bench/peers.js';
import { pointKey } from '../bench/point.js';
import type { Columns } from '../bench/record.js';
import { markdownTable } from '../bench/report.js';
import { CORES, scaled, type Costs } from '../bench/scaling.js';
import {
  boundOf,
  MEMORY_REQUIREMENT,
  REQUIREMENTS,
  verdictOf,
  type Requirement,
  type Verdict,
} from '../requirements.js';
import { recordedPeers, written, type RecordedPeer, type RecordedRun, type Runs } from './runs.js';

const fixed = (value: number | undefined, digits = 2): string => value?.toFixed(digits) ?? '–';
const spread = (ratio: Columns | undefined): string =>
  ratio === undefined ? '–' : `${fixed(ratio.median)} (${fixed(ratio.lowest)} – ${fixed(ratio.highest)})`;
const load = ({ pipeline, clients }: Pick<RecordedPeer, 'pipeline' | 'clients'>): string =>
  `pipeline ${pipeline}, ${written(clients)} clients`;
const kept = ({ columns, rate }: Pick<RecordedPeer, 'columns' | 'rate'>): boolean =>
  keptRate({ opsPerSecond: columns['ops/s'] ?? null, rate });
const inClosedLoop = (run: RecordedRun): RecordedPeer[] => recordedPeers(run).filter(({ rate }) => rate === null);
const ofShadow = (run: RecordedRun): RecordedPeer[] => inClosedLoop(run).filter(({ peer }) => isShadow(peer));

/** The main figure: one row for each peer, one column for each load. */
function leading(run: RecordedRun): string {
  const all = inClosedLoop(run);
  const loads = [...new Set(all.map(load))];
  const peers = [...new Set(all.map(({ title }) => title))];
  return markdownTable(
    ['sequencing thread / Redis', ...loads],
    peers
      .filter((title) => title !== 'direct to Redis')
      .map((title) => [
        title,
        ...loads.map((at) => {
          const own = all.find((row) => row.title === title && load(row) === at);
          return spread(own && run.figures[`${own.key} thread/redis`]);
        }),
      ]),
  );
}

function measures(run: RecordedRun): string {
  const names = ['ops/s', 'p50 ms', 'p99 ms', 'CPU s per million', 'of the sequencing thread', 'RSS MiB'];
  const digits: Readonly<Record<string, number>> = { 'ops/s': 0, 'RSS MiB': 0 };
  const cell = (columns: Columns, name: string): string =>
    name in digits ? written(columns[name]) : fixed(columns[name]);
  return markdownTable(
    ['peer', 'pipeline', 'clients', ...names],
    inClosedLoop(run).map(({ title, pipeline, clients, columns }) => [
      ...[title, `${pipeline}`, written(clients)],
      ...names.map((name) => cell(columns, name)),
    ]),
  );
}

function comparisons(run: RecordedRun): string {
  const names = COMPARISON_NAMES.filter((name) => name !== 'thread/redis' && comparable(name, { rate: null }));
  return markdownTable(
    ['peer', 'pipeline', 'clients', ...names.map((name) => COMPARISONS[name].title)],
    ofShadow(run).map(({ title, key, pipeline, clients }) => [
      ...[title, `${pipeline}`, written(clients)],
      ...names.map((name) => spread(run.figures[`${key} ${name}`])),
    ]),
  );
}

function required(run: RecordedRun, { soak }: Runs): string {
  return markdownTable(
    ['required', 'ratio', 'load', 'wanted', 'measured', 'at most here', ''],
    [
      ...REQUIREMENTS.map((requirement) => {
        const { ratio, pipeline, clients, says } = requirement;
        const rows = recordedPeers(run).filter(
          (row) => row.pipeline === pipeline && row.clients === clients && comparable(ratio, row),
        );
        const own = rows.find(({ peer }) => peer === requirement.peer);
        const measured = own && run.figures[`${own.key} ${ratio}`];
        const reach = own ? reachIn(run, own, rows, requirement) : null;
        const verdict = verdictOf(requirement, measured?.median, rows.every(kept), reach);
        const at = own?.rate
          ? `${written(own.rate)} commands a second, ${written(clients)} clients`
          : load(requirement);
        const most = reach === null ? '–' : fixed(reach);
        return [says, COMPARISONS[ratio].title, at, boundOf(requirement), spread(measured), most, verdict];
      }),
      memory(soak),
    ],
  );
}

/** `reachOf` for the recorded run, with the number of cores of its machine. */
function reachIn(
  { figures, machine }: RecordedRun,
  { key }: RecordedPeer,
  rows: readonly RecordedPeer[],
  { ratio }: Requirement,
): number | null {
  const { measure, to } = COMPARISONS[ratio];
  const [costs, other] = [figures[`${key} costs`], rows.find(({ peer }) => peer === to)?.columns['ops/s']];
  if (measure !== 'opsPerSecond' || costs === undefined || other === undefined) return null;
  return mostOpsBeside(costs.load + costs.redis + costs.keydb, parseInt(machine, 10)) / other;
}

function memory(soak: RecordedRun | undefined): string[] {
  const rss = soak?.figures.memory?.['highest RSS MiB'];
  const { says, maxRssMib } = MEMORY_REQUIREMENT;
  const verdict: Verdict = rss === undefined ? 'not measured' : rss < maxRssMib ? 'holds' : 'missed';
  return [says, 'highest RSS', '`npm run soak`', `< ${maxRssMib} MiB`, `${written(rss)} MiB`, '–', verdict];
}

function latency(run: RecordedRun): string {
  return markdownTable(
    ['peer', 'wanted ops/s', 'ops/s', 'p50 ms', 'p99 ms', 'p99 / Redis', 'rate'],
    recordedPeers(run)
      .filter(({ rate }) => rate !== null)
      .map(({ title, key, rate, columns }) => [
        ...[title, written(rate!), written(columns['ops/s']), fixed(columns['p50 ms']), fixed(columns['p99 ms'])],
        spread(run.figures[`${key} p99/redis`]),
        kept({ columns, rate }) ? 'kept' : 'not kept',
      ]),
  );
}

function scaling(run: RecordedRun): string {
  return markdownTable(
    ['peer', 'pipeline', 'clients', 'cores', 'load on another host, ops/s', 'load on the same cores, ops/s', 'limit'],
    ofShadow(run).flatMap(({ peer, title, pipeline, clients }) => {
      const costs = run.figures[`${peer}${pointKey({ pipeline, clients, rate: null })} costs`];
      if (costs === undefined) return [];
      return CORES.map((cores) => {
        const { withLoad, withoutLoad, limit } = scaled(costs as unknown as Costs, cores);
        const thousands = [withoutLoad, withLoad].map((ops) => written(Math.round(ops / 1000) * 1000));
        return [title, `${pipeline}`, written(clients), `${cores}`, ...thousands, limit];
      });
    }),
  );
}

const runOf = ({ command, date, machine }: RecordedRun): string =>
  markdownTable(
    ['run', ''],
    [
      ['command', `\`${command}\``],
      ['date', date],
      ['machine', machine],
    ],
  );

const TABLES: Readonly<Record<string, (run: RecordedRun, runs: Runs) => string>> = {
  run: runOf,
  leading,
  measures,
  ratios: comparisons,
  required,
  latency,
  scaling,
};

/** @param name run and table, such as `bench measures` */
export function tableOf(runs: Runs, name: string): string {
  const [run, table] = name.split(' ');
  if (!(run! in runs) || !(table! in TABLES)) throw new Error(`no table "${name}" for a page`);
  return TABLES[table!]!(runs[run!]!, runs);
}
