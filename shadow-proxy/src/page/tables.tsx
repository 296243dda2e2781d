/** The job, the latest mismatches and the history of a shard. */
import type { JSX } from 'preact';
import { Table } from '../html/table.js';
import { bytes, count, duration, list, number } from '../text/figures.js';
import type { LedgerTail } from '../telemetry/ledger.js';
import type { RedactedEntry } from '../telemetry/ledger-tail.js';
import { sum, type JobSnapshot, type ShardSnapshot } from '../telemetry/snapshot.js';
import { describeEvent, describeLimits, type HistoryEvent } from '../storage/history.js';
import { JobChanger, JobControls } from './job-controls.js';
import { Term } from './term.js';

/** The last job of each kind, side by side; a kind without a job is shown as missing. */
export function Jobs({ snapshot: { name, job, earlierJobs } }: { snapshot: ShardSnapshot }): JSX.Element {
  const jobs = [...(job === null ? [] : [job]), ...earlierJobs];
  const restore = jobs.find(({ kind }) => kind === 'restore');
  return (
    <div class="jobs">
      {(['backfill', 'verify'] as const).map((kind) => {
        const last = jobs.find((each) => each.kind === kind);
        return last !== undefined ? (
          <Job job={last} shard={name} />
        ) : (
          <p class="quiet job">
            No <Term of={kind} /> since the proxy started.
          </p>
        );
      })}
      {restore !== undefined && <Job job={restore} shard={name} />}
    </div>
  );
}

/** A backfill, a verify or a restore, running or ended. @param shard on the status page: where it runs */
export function Job({ job, shard }: { job: JobSnapshot | null; shard?: string }): JSX.Element {
  if (job === null) return <p class="quiet">No backfill and no verify yet.</p>;
  const {
    kind,
    state,
    reason,
    seen,
    scanned,
    total,
    copied,
    verified,
    repaired,
    failed,
    unsure,
    differences,
    examples,
    failures,
  } = job;
  const figures: [name: string, value: string][] = [
    ['scanned', `${number(scanned)} of ${count(total, 'key')}`],
    ['of its workloads', number(seen)],
    ...(kind === 'backfill'
      ? ([
          ['copied', `${count(copied, 'key')}, ${bytes(job.bytes)}`],
          ['overwritten', number(job.overwritten)],
        ] as [string, string][])
      : ([
          ['compared', number(verified)],
          ['differences', sum(differences) === 0 ? '0' : list(differences)],
        ] as [string, string][])),
    ...(job.repair || kind === 'restore' ? ([['repaired', number(repaired)]] as [string, string][]) : []),
    ...(kind === 'backfill' || job.repair
      ? ([
          ['deleted', number(job.deleted)],
          ['foreign keys kept', number(job.keptForeign)],
        ] as [string, string][])
      : []),
    ['failed', number(failed)],
    ['suspect', number(unsure)],
    ...(state === 'running'
      ? ([
          [
            'speed',
            `${number(job.keysPerSecond)} keys/s${job.etaSeconds === null ? '' : `, ${duration(job.etaSeconds)} left`}`,
          ],
        ] as [string, string][])
      : []),
  ];
  return (
    <div class="job" data-job={kind}>
      <p>
        <strong>
          {kind} of {job.workloads.join(', ') || 'no workload'}: {state}
        </strong>
        {reason !== null && `: ${reason}`}
        {job.sample < 100 && `, a sample of ${job.sample} %`}
        {job.dryRun && ', a dry run: keys are only counted'}
        {job.automatic && ', started by the proxy'}
      </p>
      <progress max={total || 1} value={state === 'done' ? total || 1 : scanned} aria-label={`${kind} ${state}`} />
      <dl class="figures">
        {figures.map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p class="note">
        started {moment(job.startedAt)}
        {job.paused !== null && `, paused since ${moment(job.paused.since)}`}
        {job.endedAt !== null && `, ended ${moment(job.endedAt)}`}
        {state === 'running' &&
          describeLimits({ ...job.limits }) !== '' &&
          `, limits: ${describeLimits({ ...job.limits })}`}
      </p>
      {state === 'running' && shard !== undefined && (
        <JobChanger.Consumer>
          {(change) => change !== null && <JobControls key={job.startedAt} shard={shard} job={job} change={change} />}
        </JobChanger.Consumer>
      )}
      {(examples.length > 0 || failures.length > 0) && (
        <ul>
          {examples.map(({ db, key, kind: how }) => (
            <li>
              db {db} <code>{key}</code>: {how}
            </li>
          ))}
          {failures.map(({ db, key, why }) => (
            <li>
              db {db} <code>{key}</code>: {why}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The newest first. Keys and replies are left out, whatever the ledger contains. */
export function Mismatches({ tail: { latest, notWritten } }: { tail: LedgerTail }): JSX.Element {
  if (latest.length === 0) return <p class="quiet">None.</p>;
  return (
    <>
      <Table
        head={['time (UTC)', 'workload', 'pattern', 'command', 'kind', 'key', 'source', 'target']}
        wide
        rows={[...latest]
          .reverse()
          .map((entry) => [
            moment(entry.time),
            entry.workload,
            entry.pattern ?? '–',
            entry.command,
            entry.kind,
            entry.key === null ? '–' : <Hashed hash={entry.key.hash} size={entry.key.bytes} />,
            <Reply {...entry.source} />,
            <Reply {...entry.target} />,
          ])}
      />
      {notWritten > 0 && (
        <p class="note">{number(notWritten)} more were counted but not recorded: they came too fast.</p>
      )}
    </>
  );
}

const Reply = ({ type, hash, bytes: size }: RedactedEntry['source']): JSX.Element => (
  <>
    {TYPES[type] ?? type} <Hashed hash={hash} size={size} />
  </>
);

const Hashed = ({ hash, size }: { hash: string; size: number }): JSX.Element => (
  <>
    <code class="hash">{hash}</code> <span class="note">{number(size)} B</span>
  </>
);

const TYPES: Readonly<Record<string, string>> = {
  '+': 'status',
  '-': 'error',
  ':': 'integer',
  $: 'string',
  '*': 'array',
  _: 'null',
  '#': 'boolean',
  ',': 'double',
  '(': 'big number',
  '%': 'map',
  '~': 'set',
};

/** The newest first. */
export function History({ events, most = Infinity }: { events: readonly HistoryEvent[]; most?: number }): JSX.Element {
  if (events.length === 0) return <p class="quiet">No changes yet.</p>;
  return (
    <>
      <ol class="history">
        {[...events]
          .reverse()
          .slice(0, most)
          .map((event) => (
            <li>
              <time>{moment(String(event.time))}</time> {describeEvent(event)}
            </li>
          ))}
      </ol>
      {events.length > most && (
        <p class="note">
          {number(events.length - most)} more: <code>shadow-compare history</code>
        </p>
      )}
    </>
  );
}

/** `2026-11-21 19:24:16`, in UTC. */
export const moment = (iso: string): string => iso.slice(0, 19).replace('T', ' ');
