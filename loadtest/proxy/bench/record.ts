/** The bench's figures in the form of docs/figures.json, which the pages quote. Pure. */
import { COMPARISON_NAMES, type Row } from './figures.js';
import { pointKey } from './point.js';
import type { Costs } from './scaling.js';

export type Columns = Readonly<Record<string, number>>;
export type Figures = Readonly<Record<string, Columns>>;

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));

/** Threads with their own column; the others are added up. */
export const THREAD_COLUMNS = ['first', 'second', 'third', 'further'] as const;

/** The input of a computed throughput; null if it was not measured. */
export function costsOf(row: Row): Costs | null {
  const costs = {
    load: row.loadCpu,
    redis: row.sourceCpu,
    redisThread: row.sourceThreadCpu,
    keydb: row.targetCpu,
    keydbThread: row.targetThreadCpu,
    proxy: row.cpu,
    sequencingThread: row.threadCpu,
    otherThread: Math.max(0, ...row.threads.slice(1)),
  };
  return Object.values(costs).includes(null) ? null : (costs as Costs);
}

/**
 * @returns the columns of docs/capacity.md under `PEER@POINT`; under the same key, a blank, and `threads`, `costs` or
 * the name of a ratio, the other figures of that point. Figures that were not measured are absent
 */
export const figuresOf = (rows: readonly Row[]): Figures => Object.fromEntries(rows.flatMap(rowsOf));

function rowsOf(row: Row): [string, Columns][] {
  const key = `${row.peer}${pointKey(row)}`;
  const ratios = COMPARISON_NAMES.flatMap((name): [string, Columns][] => {
    const ratio = row.ratios[name];
    if (ratio === undefined) return [];
    const { median, min, max } = ratio;
    return [[`${key} ${name}`, { median: rounded(median, 2), lowest: rounded(min, 2), highest: rounded(max, 2) }]];
  });
  const costs = costsOf(row);
  return [
    [key, columnsOf(row)],
    [`${key} threads`, threadColumns(row.threads)],
    ...(row.peer.startsWith('shadow') && costs !== null && row.rate === null
      ? [[`${key} costs`, mapped(costs, (value) => rounded(value, 3))] as [string, Columns]]
      : []),
    ...ratios,
  ];
}

function columnsOf({ opsPerSecond, p50, p99, cpu, threadCpu, rss }: Row): Columns {
  return {
    ...(opsPerSecond === null ? {} : { 'ops/s': rounded(opsPerSecond, 0) }),
    ...(p50 === null ? {} : { 'p50 ms': rounded(p50, 2) }),
    ...(p99 === null ? {} : { 'p99 ms': rounded(p99, 2) }),
    ...(cpu === null ? {} : { 'CPU s per million': rounded(cpu, 2) }),
    ...(threadCpu === null ? {} : { 'of the sequencing thread': rounded(threadCpu, 2) }),
    ...(rss === null ? {} : { 'RSS MiB': rounded(rss / 2 ** 20, 0) }),
  };
}

function threadColumns([first = 0, second = 0, third = 0, ...others]: readonly number[]): Columns {
  const further = others.reduce((a, b) => a + b, 0);
  return mapped({ first, second, third, further }, (value) => rounded(value, 3));
}

const mapped = (columns: object, by: (value: number) => number): Columns =>
  Object.fromEntries(Object.entries(columns).map(([name, value]) => [name, by(value as number)]));
