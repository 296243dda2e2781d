/** One workload: where it is, what its next stage still needs, and what was compared. */
import type { JSX } from 'preact';
import type { Answer } from '../stages/gate-answer.js';
import type { Gate } from '../stages/gates.js';
import type { NextStage } from '../stages/next-stage.js';
import type { StagePoint } from '../plan/plan.js';
import { duration, number } from '../text/figures.js';
import type { WorkloadSnapshot } from '../telemetry/snapshot.js';
import { formatPoint, STAGES } from '../route/stage.js';

/** @param now ms since 1970, to say how long it has been in its stage @param full every gate, for paper */
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
          {figures !== null && 'below, since the process started:'}
        </p>
      )}
      {figures !== null && <Parity {...figures} />}
      {outlook !== null && <Next outlook={outlook} full={full} />}
      {(point.stage === 'live' || point.stage === 'rampdown') && (
        <p>
          Back: <code>shadow-compare rollback {name}</code>
        </p>
      )}
    </article>
  );
}

function StageTrack(point: StagePoint): JSX.Element {
  return (
    <ol class="track" aria-label="stages">
      {STAGES.map((stage) => (
        <li aria-current={stage === point.stage ? 'step' : undefined}>
          {stage === point.stage ? formatPoint(point) : stage}
        </li>
      ))}
    </ol>
  );
}

/** Counts since the process started. */
function Parity({
  operations,
  compared,
  matched,
  allowed,
  mismatches,
  inconclusive,
  suspects,
  suspect,
}: WorkloadSnapshot): JSX.Element {
  const figures: [name: string, value: string, bad?: boolean][] = [
    ['commands', number(operations)],
    ['compared', number(compared)],
    ['equal', number(matched)],
    ['allowed', number(allowed)],
    ['differ', number(mismatches), mismatches > 0],
    ['untold', number(inconclusive)],
    ['in doubt', suspect === null ? number(suspects) : 'all', suspects > 0 || suspect !== null],
  ];
  return (
    <dl class="figures">
      {figures.map(([name, value, bad]) => (
        <div class={bad ? 'bad' : undefined}>
          <dt>{name}</dt>
          <dd data-figure={name}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Closed gates in full, open ones on demand. */
function Next({ outlook: { workload, to, gates }, full }: { outlook: NextStage; full: boolean }): JSX.Element {
  if (to === null) return <p>It is complete: the target alone has it.</p>;
  const open = gates.filter(({ answer }) => answer === 'yes');
  const closed = gates.filter(({ answer }) => answer !== 'yes');
  return (
    <section class="next">
      <p>
        <strong>Next: {formatPoint(to)}</strong> – {open.length} of {gates.length} gates open
      </p>
      <progress max={gates.length} value={open.length} aria-label={`${open.length} of ${gates.length} gates open`} />
      {closed.length === 0 ? (
        <p>
          <code>shadow-compare promote {workload}</code>
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

const WORDS: Readonly<Record<Answer, string>> = { yes: 'yes', no: 'NO', unknown: 'UNKNOWN' };

export const GateList = ({ gates }: { gates: readonly Gate[] }): JSX.Element => (
  <ul class="gates">
    {gates.map(({ name, answer, evidence }) => (
      <li data-gate={name}>
        <span class={`badge ${answer}`}>{WORDS[answer]}</span> <strong>{name}</strong> <span>{evidence}</span>
      </li>
    ))}
  </ul>
);
