/** docs/figures.json: the newest runs, which the pages quote. Pure. */
import { titleOf, type PeerName } from '../bench/peers.js';
import { parsePointKey, type Point } from '../bench/point.js';
import type { Columns, Figures } from '../bench/record.js';

export interface RecordedRun {
  readonly command: string;
  /** For example `2026-11-22`. */
  readonly date: string;
  readonly machine: string;
  readonly figures: Figures;
}

export type Runs = Readonly<Record<string, RecordedRun>>;

/** One peer at one point. */
export interface RecordedPeer extends Point {
  readonly key: string;
  readonly peer: PeerName;
  readonly title: string;
  readonly columns: Columns;
}

/** In the order of the file. */
export const recordedPeers = ({ figures }: RecordedRun): RecordedPeer[] =>
  Object.entries(figures).flatMap(([key, columns]) => {
    const parsed = parsePointKey(key);
    if (parsed === null) return [];
    const peer = parsed.peer as PeerName;
    return [{ ...parsed, key, peer, title: titleOf(peer), columns }];
  });

/** A number as the pages write it: `1,234.5`. */
export const written = (value: number | undefined, digits = 10): string =>
  value === undefined ? '–' : value.toLocaleString('en-US', { maximumFractionDigits: digits });

/** The text of the file, with one line for each row. */
export const textOfRuns = (runs: object): string =>
  `${JSON.stringify(runs, null, 2).replaceAll(/\{\n\s+([^{}]*?)\n\s+\}/g, (_, inner: string) => `{ ${inner.replaceAll(/\n\s+/g, ' ')} }`)}\n`;
