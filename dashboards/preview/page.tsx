/** The preview's page: the panels of a dashboard where its JSON puts them. */
import type { CSSProperties, JSX } from 'preact';
import { renderToStaticMarkup } from 'preact-render-to-string';
import type { Dashboard, GridPos, Panel, RowPanel } from '@grafana/grafana-foundation-sdk/dashboard';
import { isRow, type Variables } from '../rig/ask.js';
import {
  isEmpty,
  type LinesView,
  type Span,
  type StatesView,
  type TableView,
  type TileView,
  type View,
} from './view.js';

export const WIDTH = 1500;
const MARGIN = 12;
const COLUMN = (WIDTH - 2 * MARGIN) / 24;
/** Grafana’s: 30 pixels and a gap of 8. */
const ROW = 38;
const GAP = 8;
const TITLE = 30;

/** Something that happened, at seconds since 1970. */
export interface Mark {
  readonly at: number;
  readonly color: string;
  readonly text: string;
}

export interface Drawn {
  readonly dashboard: Dashboard;
  readonly variables: Variables;
  readonly span: Span;
  readonly views: ReadonlyMap<number, View>;
  readonly marks: readonly Mark[];
}

/** What `draw.ts` finds in the page. */
export interface PlotData extends Omit<LinesView, 'kind'> {
  readonly marks: readonly Mark[];
}

/** Grafana’s named colours in its dark theme. */
export const COLORS: Readonly<Record<string, string>> = {
  green: '#73bf69',
  orange: '#ff9830',
  red: '#f2495c',
  yellow: '#fade2a',
  blue: '#5794f2',
  purple: '#b877d9',
  text: '#8e8e99',
};

export function pageOf({ dashboard, variables, span, views, marks }: Drawn): string {
  const panels = dashboard.panels ?? [];
  const bottom = Math.max(...panels.map(({ gridPos }) => gridPos!.y + gridPos!.h));
  const body = (
    <body>
      <header>
        <h1>{dashboard.title}</h1>
        <span class="variables">
          {Object.entries(variables).map(([name, value]) => (
            <span key={name}>
              {name} <b>{value.replaceAll('\\\\', '').replaceAll('|', ' + ')}</b>
            </span>
          ))}
        </span>
        <span class="notice">
          A preview drawn from the dashboard’s JSON and a real Prometheus. This is not Grafana.
        </span>
      </header>
      {marks.length > 0 && (
        <p class="marks">
          {marks.map(({ at, color, text }) => (
            <span key={`${at}${text}`}>
              <i style={{ background: COLORS[color] }} />
              {clock(at)} {text}
            </span>
          ))}
        </p>
      )}
      <main style={{ height: `${bottom * ROW}px` }}>
        {panels.map((panel) =>
          isRow(panel) ? (
            <RowTitle key={panel.id} row={panel} />
          ) : (
            <PanelBox key={panel.id} panel={panel} view={views.get(panel.id!)!} span={span} marks={marks} />
          ),
        )}
      </main>
    </body>
  );
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${dashboard.title}</title><link rel="stylesheet" href="/uPlot.min.css"><style>${STYLE}</style><script src="/uPlot.iife.min.js"></script><script type="module" src="/draw.js"></script></head>${renderToStaticMarkup(body)}</html>`;
}

const place = ({ x, y, w, h }: GridPos): CSSProperties => ({
  left: `${x * COLUMN}px`,
  top: `${y * ROW}px`,
  width: `${w * COLUMN - GAP}px`,
  height: `${h * ROW - GAP}px`,
});

const RowTitle = ({ row }: { row: RowPanel }): JSX.Element => <h2 style={place(row.gridPos!)}>{row.title}</h2>;

function PanelBox({
  panel,
  view,
  span,
  marks,
}: {
  panel: Panel;
  view: View;
  span: Span;
  marks: readonly Mark[];
}): JSX.Element {
  return (
    <section class={view.kind} style={place(panel.gridPos!)}>
      <h3 title={panel.description}>{panel.title}</h3>
      {isEmpty(view) ? (
        <p class="nothing">{panel.fieldConfig?.defaults.noValue ?? 'No data'}</p>
      ) : (
        <Content view={view} span={span} marks={marks} height={panel.gridPos!.h * ROW - GAP - TITLE} />
      )}
    </section>
  );
}

function Content({
  view,
  span,
  marks,
  height,
}: {
  view: View;
  span: Span;
  marks: readonly Mark[];
  height: number;
}): JSX.Element {
  switch (view.kind) {
    case 'stat':
      return <Tile view={view} />;
    case 'table':
      return <Rows view={view} />;
    case 'state-timeline':
      return <States view={view} span={span} />;
    case 'timeseries':
      return <Plot view={view} marks={marks} height={height} />;
  }
}

const Tile = ({ view: { values, solid } }: { view: TileView }): JSX.Element => (
  <div class="tiles">
    {values.map(({ name, text, color }) => (
      <div key={name} style={solid ? { background: COLORS[color], color: '#111217' } : { color: COLORS[color] }}>
        {values.length > 1 && <small>{name}</small>}
        <b>{text}</b>
      </div>
    ))}
  </div>
);

const Rows = ({ view: { head, rows } }: { view: TableView }): JSX.Element => (
  <table>
    <thead>
      <tr>
        {head.map((name) => (
          <th key={name}>{name}</th>
        ))}
      </tr>
    </thead>
    <tbody>
      {rows.map((row, at) => (
        <tr key={at}>
          {row.map(({ text, color }, column) => (
            <td key={column} style={color === 'text' ? {} : { color: COLORS[color] }}>
              {text}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);

function States({ view: { bands }, span: { from, to } }: { view: StatesView; span: Span }): JSX.Element {
  const percent = (at: number): number => (100 * (at - from)) / (to - from);
  return (
    <div class="bands">
      {bands.map(({ name, spans }) => (
        <div key={name} class="band">
          <small>{name}</small>
          <div>
            {spans.map((each) => (
              <span
                key={each.from}
                style={{
                  left: `${percent(each.from)}%`,
                  width: `${percent(each.to) - percent(each.from)}%`,
                  background: COLORS[each.color],
                }}
              >
                {percent(each.to) - percent(each.from) > 8 ? each.text : ''}
              </span>
            ))}
          </div>
        </div>
      ))}
      <div class="band times">
        <small />
        <div>
          {[0, 0.25, 0.5, 0.75, 1].map((part) => (
            <time key={part}>{clock(from + part * (to - from))}</time>
          ))}
        </div>
      </div>
    </div>
  );
}

const LEGEND_MAX = 8;

const Plot = ({
  view: { kind: _, ...view },
  marks,
  height,
}: {
  view: LinesView;
  marks: readonly Mark[];
  height: number;
}): JSX.Element => (
  <div class="plot">
    <div data-plot={JSON.stringify({ ...view, marks } satisfies PlotData)} style={{ height: `${height - 26}px` }} />
    <p class="legend">
      {view.lines.slice(0, LEGEND_MAX).map(({ name, color }) => (
        <span key={name}>
          <i style={{ background: color }} />
          {name}
        </span>
      ))}
      {view.lines.length > LEGEND_MAX && <span>and {view.lines.length - LEGEND_MAX} more</span>}
    </p>
  </div>
);

const clock = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(11, 19);

const STYLE = `
* { box-sizing: border-box; }
body { margin: 0; padding: ${MARGIN}px; width: ${WIDTH}px; background: #111217; color: #ccccdc; font: 13px/1.35 Inter, system-ui, "DejaVu Sans", sans-serif; }
header { display: flex; gap: 1.5rem; align-items: baseline; margin-bottom: 6px; }
h1 { font-size: 19px; margin: 0; font-weight: 500; }
.variables { display: flex; gap: 1rem; color: #8e8e99; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; flex: 1; }
.variables b { color: #ccccdc; font-weight: 500; }
.notice { color: #ff9830; white-space: nowrap; }
.marks { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 0 0 6px; color: #8e8e99; font-size: 12px; }
i { display: inline-block; width: 12px; height: 4px; border-radius: 2px; margin-right: 5px; vertical-align: middle; }
main { position: relative; }
h2 { position: absolute; margin: 0; font-size: 15px; font-weight: 500; padding-top: 7px; }
section { position: absolute; background: #181b1f; border: 1px solid #2a2d33; border-radius: 2px; overflow: hidden; }
h3 { margin: 0; height: ${TITLE}px; padding: 7px 9px 0; font-size: 13px; font-weight: 500; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.tiles { display: flex; flex-direction: column; height: calc(100% - ${TITLE}px); gap: 3px; }
.tiles > div { flex: 1; display: flex; gap: 10px; align-items: center; justify-content: center; min-height: 0; }
.tiles b { font-size: 27px; font-weight: 600; }
.tiles small { font-size: 12px; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-weight: 500; color: #6e9fff; padding: 4px 9px; }
td { padding: 5px 9px; border-top: 1px solid #2a2d33; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; max-width: 330px; }
.bands { display: flex; flex-direction: column; height: calc(100% - ${TITLE}px); padding: 2px 9px 4px; gap: 3px; }
.band { flex: 1; display: flex; gap: 8px; min-height: 0; }
.band small { width: 170px; align-self: center; text-align: right; font-size: 11px; color: #8e8e99; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; flex: none; }
.band > div { position: relative; flex: 1; }
.band span { position: absolute; top: 0; bottom: 0; color: #111217; font-size: 11px; overflow: hidden; white-space: nowrap; display: flex; align-items: center; padding-left: 4px; }
.times { flex: none; height: 16px; }
.times > div { display: flex; justify-content: space-between; color: #8e8e99; font-size: 11px; }
.legend { margin: 0; padding: 2px 9px; height: 24px; display: flex; gap: 12px; white-space: nowrap; overflow: hidden; font-size: 11px; color: #ccccdc; }
.nothing { text-align: center; color: #f2495c; padding-top: 40px; font-weight: 600; }
`;
