/** One workload: its stage, what its next stage needs, and what was compared. */
import type { JSX } from 'preact';
import type { Answer } from '../stages/gate-answer.js';
import type { Gate } from '../stages/gates.js';
import type { LatencyRow } from '../stages/latency-gate.js';
import type { NextStage } from '../stages/next-stage.js';
import { duration, list, milliseconds, number } from '../text/figures.js';
import { sum, type WorkloadSnapshot } from '../telemetry/snapshot.js';
import { canReturn, formatPoint, STAGES, stageRule, type StagePoint, shadowsReads } from '../route/stage.js';
import { Command } from './command.js';
import { Term } from './term.js';
import { GATE_TERMS, type TermName } from './terms.js';

/** @param now ms since 1970, for the time in the stage @param full show every gate, for paper */
export function WorkloadCard({
  figures,
  outlook,
  now,
  full = false,
}: {
  figures: WorkloadSnapshot | null;
  outlook: NextStage | null;
  now: number;
  full?: boolean;
}): JSX.Element {
  const point = figures ?? outlook!.from;
  const name = figures?.name ?? outlook!.workload;
  return (
    <article class="panel workload" data-workload={name}>
      <h3>
        {name} <span class="note">{figures?.class ?? outlook?.class}</span>
      </h3>
      <StageTrack {...point} />
      {outlook !== null && (
        <p class="note">
          in this stage for {duration(Math.max(0, (now - Date.parse(outlook.evidence.since)) / 1000))}
          {figures === null ? '' : '; '}
          {figures !== null && 'the counts are since the proxy started:'}
        </p>
      )}
      {figures !== null && <Parity {...figures} />}
      {outlook !== null && outlook.latency.length > 0 && <Latency rows={outlook.latency} />}
      {outlook !== null && <Next outlook={outlook} full={full} />}
      {canReturn(point.stage) && (
        <p>
          To go back: <Command text={`rollback ${name}`} />
        </p>
      )}
    </article>
  );
}

function StageTrack(point: StagePoint): JSX.Element {
  return (
    <ol class="track" aria-label="stages">
      {STAGES.map((stage) => (
        <li aria-current={stage === point.stage ? 'step' : undefined} title={stageRule(stage).sentence}>
          {stage === point.stage ? formatPoint(point) : stage}
        </li>
      ))}
    </ol>
  );
}

/** Counts since the proxy started. In stage `off` nothing is compared, so only the commands are counted. */
function Parity({
  stage,
  percent,
  operations,
  shadowReads,
  compared,
  matched,
  allowed,
  mismatches,
  inconclusive,
  suspects,
  suspect,
  newErrors,
}: WorkloadSnapshot): JSX.Element {
  const compares: Figure[] = [
    ['compared', 'compared', number(compared)],
    ...(shadowReads === undefined || !shadowsReads({ stage, percent })
      ? []
      : [['share of reads', 'compared', `${shadowReads} % of reads compared`] satisfies Figure]),
    ['match', 'match', number(matched)],
    ['allowed', 'allowed', number(allowed)],
    ['mismatch', 'mismatch', number(mismatches), mismatches > 0],
    ['inconclusive', 'inconclusive', number(inconclusive)],
    ['suspect keys', 'suspect', suspect === null ? number(suspects) : 'all', suspects > 0 || suspect !== null],
  ];
  const figures: Figure[] = [
    ['commands', 'commands', number(operations)],
    ...(stage === 'off' ? [] : compares),
    ...(sum(newErrors) === 0 ? [] : [['new errors', 'client errors', list(newErrors), true] satisfies Figure]),
  ];
  return (
    <dl class="figures">
      {figures.map(([name, term, value, bad]) => (
        <div class={bad ? 'bad' : undefined}>
          <dt>
            <Term of={term}>{name}</Term>
          </dt>
          <dd data-figure={name}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A typical minute of the workload's commands, for both servers. */
const Latency = ({ rows }: { rows: readonly LatencyRow[] }): JSX.Element => (
  <p class="note" data-latency>
    p50 / p99 in this stage:{' '}
    {rows.map(({ server, p50, p99 }) => `${server} ${milliseconds(p50)} / ${milliseconds(p99)}`).join(', ')}
  </p>
);

type Figure = [name: string, term: TermName, value: string, bad?: boolean];

/** Closed gates in full, open gates on demand. */
function Next({ outlook: { workload, to, gates }, full }: { outlook: NextStage; full: boolean }): JSX.Element {
  if (to === null) return <p>Complete: only the target has the keys.</p>;
  const open = gates.filter(({ answer }) => answer === 'yes');
  const closed = gates.filter(({ answer }) => answer !== 'yes');
  return (
    <section class="next">
      <p>
        <strong>Next: {formatPoint(to)}</strong> – {open.length} of {gates.length} <Term of="gate">gates</Term> open
      </p>
      <progress max={gates.length} value={open.length} aria-label={`${open.length} of ${gates.length} gates open`} />
      {closed.length === 0 ? (
        <p>
          <Command text={`promote ${workload}`} />
        </p>
      ) : (
        <GateList gates={full ? gates : closed} />
      )}
      {open.length > 0 && !(full && closed.length > 0) && (
        <details open={full}>
          <summary>{open.length === 1 ? 'The open gate' : `The ${open.length} open gates`}</summary>
          <GateList gates={open} />
        </details>
      )}
    </section>
  );
}

const WORDS: Readonly<Record<Answer, string>> = { yes: 'open', no: 'CLOSED', unknown: 'UNKNOWN' };

export const GateList = ({ gates }: { gates: readonly Gate[] }): JSX.Element => (
  <ul class="gates">
    {gates.map(({ name, answer, evidence, command }) => (
      <li data-gate={name}>
        <span class={`badge ${answer}`}>{WORDS[answer]}</span> <strong title={GATE_TERMS[name]}>{name}</strong>{' '}
        <span class="gate-evidence">{evidence}</span>
        {command !== undefined && (
          <div class="gate-next">
            <Command text={command} />
          </div>
        )}
      </li>
    ))}
  </ul>
);
