/** docs/images/cpu-by-thread.svg: CPU seconds per million commands, by thread, of each peer. Pure. */
import type { JSX } from 'preact';
import { renderToStaticMarkup } from 'preact-render-to-string';
import { THREAD_COLUMNS } from '../bench/record.js';
import { recordedPeers, written, type RecordedPeer, type RecordedRun } from './runs.js';

const [PANEL, LABEL, BAR, ROW, HEAD, VALUE] = [480, 205, 200, 24, 40, 60];
const LEGEND = ['sequencing or busiest thread', 'second thread', 'third thread', 'all further threads'];

const STYLE = `
text { font: 13px system-ui, sans-serif; fill: #1b1f24; }
.title { font-weight: 600; } .line { stroke: #b3261e; stroke-dasharray: 4 3; } .redis { fill: #b3261e; }
.t0 { fill: #0b6bcb; } .t1 { fill: #d9730d; } .t2 { fill: #6f42c1; } .t3 { fill: #9aa5b3; }
@media (prefers-color-scheme: dark) { text { fill: #e4e8ee; } .line { stroke: #ff8d83; } .redis { fill: #ff8d83; } }
`;

interface Bar {
  readonly peer: RecordedPeer;
  readonly threads: readonly number[];
}

/** All loads but the one at a fixed rate, each with a scale of its own. */
export function plotOf(run: RecordedRun): string {
  const rows = recordedPeers(run).filter(({ rate }) => rate === null);
  const loads = [...new Set(rows.map(({ pipeline, clients }) => `pipeline ${pipeline}, ${written(clients)} clients`))];
  const panels = loads.map((title) => ({
    title,
    columns: rows
      .filter(({ pipeline, clients }) => `pipeline ${pipeline}, ${written(clients)} clients` === title)
      .map((peer): Bar => {
        const columns = run.figures[`${peer.key} threads`] ?? {};
        return { peer, threads: THREAD_COLUMNS.map((column) => columns[column] ?? 0) };
      }),
  }));
  const tall = HEAD + ROW * Math.max(0, ...panels.map(({ columns }) => columns.length)) + 16;
  const [width, height] = [2 * PANEL, 60 + tall * Math.ceil(panels.length / 2)];
  const drawing = (
    <svg xmlns="http://www.w3.org/2000/svg" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img">
      <title>CPU seconds per million commands, by thread</title>
      <style dangerouslySetInnerHTML={{ __html: STYLE }} />
      <text class="title" x="8" y="20">
        CPU seconds per million commands, by thread
      </text>
      {LEGEND.map((name, i) => (
        <g transform={`translate(${8 + i * 220} 32)`}>
          <rect class={`t${i}`} width="12" height="12" />
          <text x="18" y="11">
            {name}
          </text>
        </g>
      ))}
      {panels.map(({ title, columns }, i) => (
        <g transform={`translate(${(i % 2) * PANEL} ${60 + Math.floor(i / 2) * tall})`}>
          <Panel title={title} columns={columns} />
        </g>
      ))}
    </svg>
  );
  return `${renderToStaticMarkup(drawing)}\n`;
}

function Panel({ title, columns }: { title: string; columns: readonly Bar[] }): JSX.Element {
  const sums = columns.map(({ threads }) => threads.reduce((a, b) => a + b, 0));
  const scale = BAR / Math.max(1e-9, ...sums);
  const redis = columns.find(({ peer }) => peer.peer === 'direct')?.threads[0];
  return (
    <>
      <text class="title" x="8" y="20">
        {title}
      </text>
      {columns.map(({ peer, threads }, i) => (
        <g transform={`translate(${LABEL} ${HEAD + i * ROW})`}>
          <text x="-8" y="13" text-anchor="end">
            {peer.title}
          </text>
          {threads.map((cpu, at) => {
            const from = threads.slice(0, at).reduce((a, b) => a + b, 0);
            return <rect class={`t${at}`} x={px(from * scale)} width={px(cpu * scale)} height={ROW - 8} />;
          })}
          <text x={BAR + 8} y="13">
            {sums[i]!.toFixed(2)}
          </text>
        </g>
      ))}
      {redis !== undefined && <RedisLine x={LABEL + redis * scale} bottom={HEAD + columns.length * ROW} />}
    </>
  );
}

const RedisLine = ({ x, bottom }: { x: number; bottom: number }): JSX.Element => (
  <>
    <line class="line" x1={px(x)} x2={px(x)} y1={HEAD - 6} y2={bottom} />
    <text class="redis" x={px(Math.min(x, PANEL - VALUE))} y={HEAD - 10} text-anchor="middle">
      Redis
    </text>
  </>
);

const px = (value: number): string => value.toFixed(1);
