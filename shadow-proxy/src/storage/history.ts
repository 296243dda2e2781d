/**
 * Describes an event of the history in words: the same on a terminal, on the page and in the report. Pure, because
 * browsers run it, too.
 */
import type { Stages } from '../plan/plan.js';
import { formatPoint, type StagePoint } from '../route/stage.js';

export interface HistoryEvent {
  readonly event: string;
  readonly [detail: string]: unknown;
}

/**
 * The description of an event, without its time. An event that lacks what its kind has, as of another release, is shown
 * as it is.
 */
export function describeEvent(event: HistoryEvent): string {
  try {
    return describeKnown(event);
  } catch {
    return describeOther(event);
  }
}

function describeKnown(event: HistoryEvent): string {
  if (event.event === 'stage') return describeStage(event);
  if (event.event === 'owner')
    return `process ${String(event.process)} serves the shard${event.from === undefined ? '' : `: it took over from ${String(event.from)}`}`;
  if (event.event === 'holder') return `another process serves the shard: ${String(event.process) || 'unknown'}`;
  if (event.event === 'unfollowed') return 'no other process serves the shard';
  if (event.event === 'copied') return `the state was copied from the proxy at ${String(event.from)}`;
  if (event.event === 'outdated') return `the state was set aside: ${String(event.reason)}`;
  if (event.event === 'plan')
    return `the plan ${String(event.plan)} applies: ${Object.entries(event.stages as Stages)
      .map(([name, point]) => `${name} ${formatPoint(point)}`)
      .join(', ')}`;
  if (event.event === 'accept') return `data accepted as it is: ${(event.servers as readonly string[]).join(' and ')}`;
  if (event.event === 'version')
    return `servers accepted that this release does not know: ${(event.versions as readonly string[]).join(', ')}${event.by === undefined ? '' : `, by ${String(event.by)}`}: ${String(event.reason)}`;
  if (event.event === 'deletes')
    return `${String(event.kind)} of ${(event.workloads as readonly string[]).join(', ')} may delete ${String(event.keys)} keys that only the mirror has${event.by === undefined ? '' : `, by ${String(event.by)}`}`;
  if (event.event === 'job') return describeJobChange(event);
  if (event.event === 'runbook')
    return `runbook ${String(event.runbook)}: ${String(event.step)} ${event.kind === 'undo' ? 'undone' : 'run'}${event.held === true ? '' : ', and its result was NOT as expected'}${event.by === undefined ? '' : `, by ${String(event.by)}`}`;
  if (event.event === 'wait') {
    const said = { waits: 'waits to be promoted', ended: 'waits no longer', cancelled: 'is not to wait any longer' };
    return `${String(event.workload)} ${said[event.state as keyof typeof said]}: ${String(event.what)}${event.by === undefined ? '' : `, by ${String(event.by)}`}`;
  }
  if (event.event === 'fence')
    return `fence ${String(event.state)}: ${(event.users as readonly string[]).join(', ')}${event.by === undefined ? '' : `, by ${String(event.by)}`}${event.reason === undefined ? '' : `: ${String(event.reason)}`}`;
  if (event.event === 'automatic')
    return `${String(event.workload)}: ${{ paused: 'its rollout is paused', stopped: 'the guard has stopped its rollout', resumed: 'it may be moved by itself again' }[event.state as 'paused']}${event.by === undefined ? '' : `, by ${String(event.by)}`}${event.reason === undefined ? '' : `: ${String(event.reason)}`}`;
  if (event.event === 'suspect')
    return `every key of ${(event.workloads as readonly string[]).join(', ')} is suspect: ${String(event.reason)}`;
  if (event.event === 'unreadable') return `line ${String(event.line)} of the history cannot be read`;
  return describeOther(event);
}

function describeOther({ time: _, revision: __, event: name, ...details }: HistoryEvent): string {
  return `${name} ${JSON.stringify(details)}`;
}

/** By the name in the admin API. */
export const LIMIT_NAMES: Readonly<Record<string, string>> = {
  keysPerSecond: 'keys a second',
  bytesPerSecond: 'bytes a second',
  maxP99Ms: "ms of the authority's p99",
  maxMirrorP99Ms: "ms of the mirror's p99",
  maxReplicaLagBytes: 'bytes that a replica of the mirror lacks',
};

/** Such as `at most 500 keys a second`; a limit that was ended is `no limit of keys a second`. */
export const describeLimits = (limits: Readonly<Record<string, unknown>>): string =>
  Object.entries(limits)
    .filter(([, limit]) => limit !== undefined)
    .map(
      ([name, limit]) => `${limit === null ? 'no limit of' : `at most ${String(limit)}`} ${LIMIT_NAMES[name] ?? name}`,
    )
    .join(', ');

function describeJobChange({ kind, workloads, limits, state, by, reason }: HistoryEvent): string {
  const changes = [
    ...(state === 'pause' ? ['paused'] : state === 'resume' ? ['goes on'] : []),
    describeLimits((limits ?? {}) as Readonly<Record<string, unknown>>),
  ].filter((each) => each !== '');
  return `${String(kind)} of ${(workloads as readonly string[]).join(', ')}: ${changes.join(', ')}${by === undefined ? '' : `, by ${String(by)}`}${reason === undefined ? '' : `: ${String(reason)}`}`;
}

function describeStage(event: HistoryEvent): string {
  const { workload, from, to, by, reason, forced, drill, rollback, unanswered, consent } = event as HistoryEvent &
    Record<string, unknown>;
  const kind = drill ? ', a drill' : rollback ? ', rolled back' : forced ? ', FORCED with closed gates' : '';
  const { overwrite, deleteForeign, confirm } = (consent ?? {}) as {
    overwrite?: boolean;
    deleteForeign?: boolean;
    confirm?: number;
  };
  const may = [
    ...(overwrite === true ? ['overwrite'] : []),
    ...(deleteForeign === true ? ['delete foreign keys'] : []),
  ].join(' and ');
  const allowed = may === '' ? '' : `, may ${may}: ${String(confirm)} keys of the target confirmed`;
  const lost =
    unanswered === undefined ? '' : ` (${String(unanswered)} writes were in flight, and their clients got no reply)`;
  return `${String(workload)} ${formatPoint(from as StagePoint)} → ${formatPoint(to as StagePoint)}${kind}${allowed}${by === undefined ? '' : `, by ${String(by)}`}${reason === undefined ? '' : `: ${String(reason)}`}${lost}`;
}
