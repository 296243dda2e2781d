/** The report as one HTML document that fetches nothing: answers first, then plots, then the figures behind them. */
import type { JSX } from 'preact';
import { htmlDocument } from '../../shadow-proxy/src/html/document.js';
import { Plot } from '../../shadow-proxy/src/html/plot.js';
import { pointName, type Point, type Results, type Soak } from '../figures/results.js';
import { tellCounter, countersHold, type Summary } from '../figures/summary.js';
import { latencyPlot, pointsPlot, ratioPlot, soakPlot, throughputPlot } from './plots.js';
import { explanations, verdicts } from './story.js';
import { comparisons, conditions, counters, figures, type Grid } from './tables.js';

export function asPage(results: Results, summary: Summary): string {
  const title = `Load test: ${results.profile.name}`;
  const several = results.points.length > 1;
  const body = (
    <main>
      <h1>{title}</h1>
      <p class="note">
        {results.profile.description}. {results.startedAt.slice(0, 10)}, {results.hosts[0].split(',')[0]}
      </p>
      <Answers results={results} summary={summary} />
      {several && (
        <div class="plots">
          <Plot
            title="Throughput over the sweep"
            spec={pointsPlot(results, summary)}
            note={`medians; at: ${results.points.map((point, i) => `${i + 1} = ${pointName(point)}`).join(', ')}`}
          />
        </div>
      )}
      {results.points.map((point) => (
        <PointPlots results={results} summary={summary} point={point} />
      ))}
      <h2>Figures</h2>
      <GridTable grid={figures(summary, several)} />
      <p class="note">
        cores: of the processor, by each process. load: how much of its threads the load generator used.
      </p>
      {summary.comparisons.length > 0 && <h2>Beside the source, round by round</h2>}
      {summary.comparisons.length > 0 && <GridTable grid={comparisons(summary, several)} />}
      {results.counters.length > 0 && <h2>Counters</h2>}
      {results.counters.length > 0 && <GridTable grid={counters(results)} />}
      <h2>What was measured</h2>
      <dl>
        {conditions(results).map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <h2>How</h2>
      {explanations(results).map((text) => (
        <p>{text}</p>
      ))}
    </main>
  );
  return htmlDocument({ title, body, css: CSS });
}

function Answers({ results, summary }: { results: Results; summary: Summary }): JSX.Element {
  return (
    <section class="panel">
      {verdicts(results, summary).map(({ question, word, kind, sentence }) => (
        <div class="answer">
          <p class="question">{question}</p>
          <p>
            <span class={`badge ${kind}`}>{word}</span> {sentence}
          </p>
        </div>
      ))}
      {results.counters.map((check) => (
        <p>
          <span class={`badge ${countersHold(check) ? 'yes' : 'no'}`}>{countersHold(check) ? 'exact' : 'WRONG'}</span>{' '}
          {tellCounter(check)}
        </p>
      ))}
      {summary.warnings.length > 0 && (
        <ul class="note">
          {summary.warnings.map((warning) => (
            <li>{warning}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function PointPlots({ results, summary, point }: { results: Results; summary: Summary; point: Point }): JSX.Element {
  const latency = latencyPlot(results, summary, point);
  const ratio = ratioPlot(results, summary, point);
  const throughput = results.soak === undefined ? throughputPlot(results, point) : null;
  const several = results.points.length > 1;
  return (
    <section>
      {several && <h2>{pointName(point)}</h2>}
      <div class="plots">
        {results.soak !== undefined && (
          <Plot title="Throughput against time" spec={soakPlot(results)} note={soakNote(results.soak)} />
        )}
        {throughput !== null && (
          <Plot
            title="Throughput against time"
            spec={throughput}
            note="seconds of load, round after round: each side’s first round over the others’ first, and so on; nothing is dropped"
          />
        )}
        {latency !== null && (
          <Plot
            title="Latency by percentile"
            spec={latency}
            note="all commands of the rounds kept, as one histogram; logarithmic"
          />
        )}
        {ratio !== null && (
          <Plot title="Throughput divided by the source’s, round by round" spec={ratio} note="by round" />
        )}
      </div>
    </section>
  );
}

const clock = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(11, 19);

const soakNote = ({ restarted, downtime }: Soak): string =>
  downtime === null
    ? 'each second of the load; gaps are between two slices'
    : `the ${restarted} was down from ${clock(downtime.from)} to ${clock(downtime.to)}; gaps are between two slices, or after a lost connection`;

const GridTable = ({ grid: { head, rows } }: { grid: Grid }): JSX.Element => (
  <div class="scroll">
    <table>
      <thead>
        <tr>
          {head.map((text) => (
            <th>{text}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr>
            {row.map((text) => (
              <td>{text}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const CSS = `
.scroll { overflow-x: auto; }
.scroll td { white-space: nowrap; font-variant-numeric: tabular-nums; }
.question { font-weight: 600; }
.answer + .answer { margin-top: .75rem; }
dl { display: grid; gap: .3rem; }
dl > div { display: grid; grid-template-columns: 9rem 1fr; gap: .75rem; }
dt { color: var(--quiet); }
dd { margin: 0; }
@media (max-width: 40rem) { dl > div { grid-template-columns: 1fr; gap: 0; } }
`;
