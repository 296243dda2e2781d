/** The bench's figures as docs/figures.json has them, from where the pages quote. Pure. */
import type { Ratio, Row } from './figures.js';

type Columns = Readonly<Record<string, number>>;

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));

/**
 * @returns by `PEER@PIPELINE` the columns of docs/capacity.md, and by `shadow/PEER@PIPELINE` the ratios; what was not
 * measured is absent
 */
export function figuresOf(rows: readonly Row[], ratios: readonly Ratio[]): Readonly<Record<string, Columns>> {
  const measured = rows.map(({ peer, pipeline, opsPerSecond, p50, p99, cpu, rss }): [string, Columns] => [
    `${peer}@${pipeline}`,
    {
      ...(opsPerSecond === null ? {} : { 'ops/s': rounded(opsPerSecond, 0) }),
      ...(p50 === null ? {} : { 'p50 ms': rounded(p50, 2) }),
      ...(p99 === null ? {} : { 'p99 ms': rounded(p99, 2) }),
      ...(cpu === null ? {} : { 'CPU s per million': rounded(cpu, 1) }),
      ...(rss === null ? {} : { 'RSS MiB': rounded(rss / 2 ** 20, 0) }),
    },
  ]);
  const compared = ratios.map(({ peer, pipeline, median, min, max }): [string, Columns] => [
    `shadow/${peer}@${pipeline}`,
    { median: rounded(median, 2), lowest: rounded(min, 2), highest: rounded(max, 2) },
  ]);
  return Object.fromEntries([...measured, ...compared]);
}
