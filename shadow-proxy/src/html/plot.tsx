/** Plots: their contents, and their place in a document. `draw.ts` draws them in the browser. */
import type { JSX } from 'preact';

export interface PlotSeries {
  readonly label: string;
  /** One value for each `x`; null leaves a gap in the line: nothing was measured. */
  readonly values: readonly (number | null)[];
  /** One of the colours `--s1` to `--s6`; default: by position. The source has 1, the target 2. */
  readonly color?: number;
  readonly dashed?: boolean;
}

/** A vertical line with a label. */
export interface PlotMark {
  /** The position, in the unit of x. */
  readonly at: number;
  readonly label: string;
}

export interface PlotSpec {
  /**
   * `time`: x are seconds since 1970. `percentiles`: x are shares from 0 up to, but not including, 1 (0.99 is p99), on
   * a scale on which each further nine has the same width. `number`: any other.
   */
  readonly kind: 'time' | 'percentiles' | 'number';
  readonly x: readonly number[];
  readonly series: readonly PlotSeries[];
  /** The unit after each value, such as `ms`. */
  readonly unit: string;
  /** Whether y is logarithmic: then values must be above 0. */
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

/** The marks are drawn; this text is for screen readers. */
const labelOf = (title: string, { marks = [] }: PlotSpec): string =>
  marks.length === 0 ? title : `${title}; marked: ${marks.map(({ label }) => label).join(', ')}`;

/** A plot with its title. `note` below it says what was measured, and how often. */
export const Plot = ({ title, spec, note }: { title: string; spec: PlotSpec; note?: string }): JSX.Element => (
  <figure class="plot">
    <figcaption>
      {title} <span class="note">{spec.unit}</span>
    </figcaption>
    <plot-view spec={JSON.stringify(spec)} role="img" aria-label={labelOf(title, spec)} />
    {note !== undefined && <p class="note">{note}</p>}
  </figure>
);
