/** Plots: what one shows, and its place in a document. `draw.ts` draws it in the browser. */
import type { JSX } from 'preact';

export interface PlotSeries {
  readonly label: string;
  /** One for each `x`; null if nothing was measured, and the line has a gap there. */
  readonly values: readonly (number | null)[];
  /** Which of the colours `--s1` to `--s6`; default: its place. The source's is 1, the target's 2. */
  readonly color?: number;
  readonly dashed?: boolean;
}

/** A vertical line with a label. */
export interface PlotMark {
  /** As x. */
  readonly at: number;
  readonly label: string;
}

export interface PlotSpec {
  /**
   * `time`: x are seconds since 1970. `percentiles`: x are shares from 0 up to, but not, 1 (0.99 is p99), on a scale on
   * which each further nine has the same width. `number`: any other.
   */
  readonly kind: 'time' | 'percentiles' | 'number';
  readonly x: readonly number[];
  readonly series: readonly PlotSeries[];
  /** Behind each value, such as `ms`. */
  readonly unit: string;
  /** Logarithmic y: values have to be above 0. */
  readonly log?: boolean;
  /** Oldest first. */
  readonly marks?: readonly PlotMark[];
  /** Plots of one document with the same key show their cursors together. */
  readonly sync?: string;
}

/** The custom element of `draw.ts`; preact does not know it. */
declare module 'preact' {
  // eslint-disable-next-line @typescript-eslint/no-namespace
  namespace JSX {
    interface IntrinsicElements {
      'plot-view': { spec: string; role: 'img'; 'aria-label': string };
    }
  }
}

/** The marks are drawn: a screen reader reads them. */
const labelOf = (title: string, { marks = [] }: PlotSpec): string =>
  marks.length === 0 ? title : `${title}; marked: ${marks.map(({ label }) => label).join(', ')}`;

/** A plot with its title; `note` says below it what was measured, and how often. */
export const Plot = ({ title, spec, note }: { title: string; spec: PlotSpec; note?: string }): JSX.Element => (
  <figure class="plot">
    <figcaption>
      {title} <span class="note">{spec.unit}</span>
    </figcaption>
    <plot-view spec={JSON.stringify(spec)} role="img" aria-label={labelOf(title, spec)} />
    {note !== undefined && <p class="note">{note}</p>}
  </figure>
);
