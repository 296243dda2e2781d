/** One shard of the status page. */
import type { JSX } from 'preact';
import type { ShardEvidence } from '../stages/next-stage.js';
import { Plot } from '../html/plot.js';
import { count, list, milliseconds, number } from '../text/figures.js';
import { SIDES, type Side } from '../route/stage.js';
import type { SeriesSnapshot } from '../telemetry/series.js';
import { sum, type LatencySnapshot, type ServerSnapshot, type ShardSnapshot } from '../telemetry/snapshot.js';
import { originsOf } from '../telemetry/error-origins.js';
import type { HistoryEvent } from '../storage/history.js';
import type { Attention } from './attention.js';
import { Command, Runbook } from './command.js';
import { lagPlot, latencyPlot, stageMarks, suspectPlot, trafficPlot } from './plots.js';
import { History, Jobs, Mismatches } from './tables.js';
import { Term } from './term.js';
import { WorkloadCard } from './workload.js';

export interface ShardView {
  readonly snapshot: ShardSnapshot;
  /** Commands per second at present; null before the second answer. */
  readonly rate: number | null;
  readonly attention: readonly Attention[];
  readonly evidence: ShardEvidence | null;
  readonly series: SeriesSnapshot | null;
  readonly history: readonly HistoryEvent[];
}

const LATEST_CHANGES = 12;

/** @param alone whether the page's headline already says what this shard needs first */
export function ShardSection({ view, now, alone }: { view: ShardView; now: number; alone: boolean }): JSX.Element {
  const { snapshot, rate, attention, evidence, series, history } = view;
  return (
    <section class="shard" data-shard={snapshot.name}>
      <h2 id={`shard-${snapshot.name}`}>{snapshot.name}</h2>
      {/* A need that the headline states in full is not repeated. */}
      {!(alone && attention.length === 1 && attention[0].level === 'act') && <AttentionList items={attention} linked />}
      <Servers snapshot={snapshot} rate={rate} />
      <div class="workloads">
        {snapshot.workloads.map((figures) => (
          <WorkloadCard
            key={figures.name}
            figures={figures}
            outlook={evidence?.workloads.find(({ workload }) => workload === figures.name) ?? null}
            now={now}
          />
        ))}
      </div>
      {series !== null && <Plots name={snapshot.name} series={series} history={history} />}
      <h3>Last backfill and last verify</h3>
      <Jobs snapshot={snapshot} />
      <h3>Latest mismatches</h3>
      {evidence !== null && <Mismatches tail={evidence.mismatches} />}
      <h3>History</h3>
      <History events={history} most={LATEST_CHANGES} />
    </section>
  );
}

/** @param linked whether a proxy serves the document, and so the runbooks, too */
export const AttentionList = ({
  items,
  linked = false,
}: {
  items: readonly Attention[];
  linked?: boolean;
}): JSX.Element | null =>
  items.length === 0 ? null : (
    <ul class="attention">
      {items.map((each) => (
        <li>
          <span class={`badge ${each.level === 'act' ? 'no' : 'unknown'}`}>
            {each.level === 'act' ? 'ACT' : 'WATCH'}
          </span>{' '}
          <div>
            {each.text} <Next of={each} linked={linked} />
          </div>
        </li>
      ))}
    </ul>
  );

/** The command to run, and the runbook to read. */
export const Next = ({ of: { command, runbook }, linked }: { of: Attention; linked: boolean }): JSX.Element | null =>
  command === undefined && runbook === undefined ? null : (
    <div class="next-step">
      {command !== undefined && <Command text={command} />}{' '}
      {runbook !== undefined && <Runbook name={runbook} linked={linked} />}
    </div>
  );

export function Servers({ snapshot, rate }: { snapshot: ShardSnapshot; rate: number | null }): JSX.Element {
  const { source, target, latency, mirror, clients, operations } = snapshot;
  return (
    <table class="servers">
      <tbody>
        <Server name="source" server={source} latency={latency.source} />
        <Server name="target" server={target} latency={latency.target} />
        <tr>
          <th>
            <Term of="mirror" />
          </th>
          <td>
            {mirror.connected ? '' : 'not connected, '}
            <Term of="mirror lag">lag</Term> {number(mirror.lagMs)} ms, {number(mirror.queuedEffects)}{' '}
            <Term of="queued writes" />
          </td>
          <td />
        </tr>
        <tr>
          <th>clients</th>
          <td data-fact="clients">
            {count(clients, 'client')}, {count(operations, 'command')}
            {rate === null ? '' : `, ${number(rate)} commands/s`}
          </td>
          <td data-fact="client-errors">
            <Term of="client errors" />: {errorsOf(snapshot)}
          </td>
        </tr>
      </tbody>
    </table>
  );
}

/** Errors by the server that gave them. */
function errorsOf({ clientErrors: errors, clientErrorOrigins: origins }: ShardSnapshot): string {
  const bySide = SIDES.flatMap((side) =>
    sum(errors[side]) > 0 ? [`from the ${side} ${list(errors[side])}${originsOf(origins, side)}`] : [],
  );
  return bySide.length === 0 ? 'none' : bySide.join('; ');
}

interface ServerProps {
  readonly name: Side;
  readonly server: ServerSnapshot;
  readonly latency: LatencySnapshot;
}

const Server = ({
  name,
  server: { url, version, role, up, problem },
  latency: { p50, p99, p999, count: replies },
}: ServerProps): JSX.Element => (
  <tr>
    <th>
      <Term of={name} />
    </th>
    <td>
      <span class={`badge ${up === null ? 'unknown' : up ? 'yes' : 'no'}`}>
        {up === null ? 'not used' : up ? 'up' : 'DOWN'}
      </span>{' '}
      <code>{url}</code> {version !== null && <span class="note">{version}</span>}
      {role !== null && role !== 'master' && <span class="note"> {role}</span>}
      {problem !== null && <span class="no"> not used: {problem}</span>}
    </td>
    <td class="note">
      {replies === 0 ? (
        'no replies yet'
      ) : (
        <>
          <Term of="p50" /> {milliseconds(p50)}, <Term of="p99" /> {milliseconds(p99)}, <Term of="p99.9" />{' '}
          {milliseconds(p999)} ({count(replies, 'reply', 'replies')})
        </>
      )}
    </td>
  </tr>
);

const Plots = ({
  name,
  series,
  history,
}: {
  name: string;
  series: SeriesSnapshot;
  history: readonly HistoryEvent[];
}): JSX.Element => {
  const marks = stageMarks(history, series);
  const marked = marks.length === 0 ? '' : ' Dotted vertical lines are stage changes.';
  return (
    <div class="plots">
      <Plot
        title="Latency of both servers"
        spec={{ ...latencyPlot(series, name), marks }}
        note={`Each point covers 5 s, measured by the proxy.${marked}`}
      />
      <Plot title="Traffic" spec={{ ...trafficPlot(series, name), marks }} />
      <Plot title="Mirror lag" spec={{ ...lagPlot(series, name), marks }} />
      <Plot title="Suspect keys and mismatches" spec={{ ...suspectPlot(series, name), marks }} />
    </div>
  );
};
