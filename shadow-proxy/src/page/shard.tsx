/** One shard of the status page. */
import type { JSX } from 'preact';
import type { ShardEvidence } from '../stages/next-stage.js';
import { Plot } from '../html/plot.js';
import { list, milliseconds, number } from '../text/figures.js';
import type { SeriesSnapshot } from '../telemetry/series.js';
import { sum, type LatencySnapshot, type ServerSnapshot, type ShardSnapshot } from '../telemetry/snapshot.js';
import type { HistoryEvent } from '../storage/state.js';
import type { Attention } from './attention.js';
import { doubtPlot, lagPlot, latencyPlot, trafficPlot } from './plots.js';
import { History, Job, Mismatches } from './tables.js';
import { WorkloadCard } from './workload.js';

export interface ShardView {
  readonly snapshot: ShardSnapshot;
  /** Commands a second just now; null where there is no telling yet. */
  readonly rate: number | null;
  readonly attention: readonly Attention[];
  readonly evidence: ShardEvidence | null;
  readonly series: SeriesSnapshot | null;
  readonly history: readonly HistoryEvent[];
}

const LATEST_CHANGES = 12;

export function ShardSection({ view, now }: { view: ShardView; now: number }): JSX.Element {
  const { snapshot, rate, attention, evidence, series, history } = view;
  return (
    <section class="shard" data-shard={snapshot.name}>
      <h2 id={`shard-${snapshot.name}`}>{snapshot.name}</h2>
      <AttentionList items={attention} />
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
      {series !== null && <Plots name={snapshot.name} series={series} />}
      <h3>Backfill and verification</h3>
      <Job job={snapshot.job} />
      <h3>Latest mismatches</h3>
      {evidence !== null && <Mismatches tail={evidence.mismatches} />}
      <h3>History</h3>
      <History events={history} most={LATEST_CHANGES} />
    </section>
  );
}

export const AttentionList = ({ items }: { items: readonly Attention[] }): JSX.Element | null =>
  items.length === 0 ? null : (
    <ul class="attention">
      {items.map(({ level, text }) => (
        <li>
          <span class={`badge ${level === 'act' ? 'no' : 'unknown'}`}>{level === 'act' ? 'ACT' : 'LOOK'}</span>{' '}
          <span>{text}</span>
        </li>
      ))}
    </ul>
  );

export function Servers({ snapshot, rate }: { snapshot: ShardSnapshot; rate: number | null }): JSX.Element {
  const { source, target, latency, mirror, clients, operations, clientErrors } = snapshot;
  return (
    <table class="servers">
      <tbody>
        <Server name="source" server={source} latency={latency.source} errors={clientErrors.source} />
        <Server name="target" server={target} latency={latency.target} errors={clientErrors.target} />
        <tr>
          <th>mirror</th>
          <td>
            {mirror.connected ? '' : 'not connected, '}
            {number(mirror.lagMs)} ms behind, {number(mirror.queuedEffects)} effects wait
          </td>
          <td class="note">
            {number(operations)} commands{rate === null ? '' : `, ${number(rate)} a second`}; {number(clients)} clients
          </td>
        </tr>
      </tbody>
    </table>
  );
}

interface ServerProps {
  readonly name: string;
  readonly server: ServerSnapshot;
  readonly latency: LatencySnapshot;
  /** That clients got from it, by code. */
  readonly errors: Readonly<Record<string, number>>;
}

const Server = ({
  name,
  server: { url, version, role, up, problem },
  latency: { p50, p99, p999, count },
  errors,
}: ServerProps): JSX.Element => (
  <tr>
    <th>{name}</th>
    <td>
      <span class={`badge ${up === null ? 'unknown' : up ? 'yes' : 'no'}`}>
        {up === null ? 'not used' : up ? 'up' : 'DOWN'}
      </span>{' '}
      <code>{url}</code> {version !== null && <span class="note">{version}</span>}
      {role !== null && role !== 'master' && <span class="note"> {role}</span>}
      {problem !== null && <span class="no"> not used: {problem}</span>}
    </td>
    <td class="note">
      {count === 0
        ? 'nothing timed yet'
        : `p50 ${milliseconds(p50)}, p99 ${milliseconds(p99)}, p99.9 ${milliseconds(p999)} of ${number(count)} replies`}
      {sum(errors) > 0 && `; errors to clients: ${list(errors)}`}
    </td>
  </tr>
);

const Plots = ({ name, series }: { name: string; series: SeriesSnapshot }): JSX.Element => (
  <div class="plots">
    <Plot
      title="Latency of both servers"
      spec={latencyPlot(series, name)}
      note="of the replies of each 5 s, as the proxy sees them; without the time that effects wait to share a write"
    />
    <Plot title="Traffic" spec={trafficPlot(series, name)} />
    <Plot title="Mirror" spec={lagPlot(series, name)} />
    <Plot title="Doubts and mismatches" spec={doubtPlot(series, name)} />
  </div>
);
