/** What an operator must do or watch, most urgent first: a pure decision from the snapshot of a shard. */
import { describeRefused, evictionNote } from '../telemetry/server-notes.js';
import { count, duration, list, number } from '../text/figures.js';
import { authoritiesOf, isMirrored, otherSide, SIDES, type Side } from '../route/stage.js';
import {
  ACCEPT,
  backfillOf,
  isDown,
  rollbackOf,
  verifyOf,
  type NextCommand,
  type WorkloadCondition,
} from '../telemetry/advice.js';
import {
  ACCESS_ERRORS,
  NOT_COPIED,
  OLD_RESERVATION_MS,
  sum,
  type JobSnapshot,
  type OutageSnapshot,
  type ServerSnapshot,
  type ShardSnapshot,
  type WorkloadSnapshot,
} from '../telemetry/snapshot.js';

export interface Attention {
  /** `act`: an operator must act now. `look`: the operator should watch it. */
  readonly level: 'act' | 'look';
  /** One or two whole sentences. */
  readonly text: string;
  /** The command for `shadow-compare` to run first. */
  readonly command?: string;
  /** The runbook with details: a file of `runbooks/` without its extension. */
  readonly runbook?: string;
}

/** A mirror that lags by more than this, in ms, needs attention. */
const MAX_LAG_MS = 1_000;

type Check = readonly [
  applies: boolean,
  level: Attention['level'],
  text: string,
  next?: Pick<Attention, 'command' | 'runbook'>,
];

export function attentionOf(shard: ShardSnapshot): readonly Attention[] {
  const { mirror, reservations, suspects, mismatches, unsupported, job, frozen, clockAheadMs } = shard;
  const { clientsClosed, replyFailures } = shard;
  const { failure: failed = 0, header: withoutHeader = 0, ...atLimits } = clientsClosed;
  const writtenTwice = shard.workloads.some(({ stage }) => isMirrored(stage));
  const inUse = (side: Side): boolean => shard[side].up !== null;
  const checks: readonly Check[] = [
    ...SIDES.flatMap((side) => ofServer(side, shard[side], isAuthority(shard, side))),
    ...ofOutage(shard.outage),
    [frozen !== null, 'act', `Repairs are frozen: ${frozen ?? ''}.`, { command: ACCEPT, runbook: 'RepairsFrozen' }],
    [
      shard.movedSlots !== '',
      'act',
      `Of the cluster, ${shard.movedSlots}. Their commands are refused.`,
      { command: 'status', runbook: 'SlotsMoved' },
    ],
    [
      (shard.fence?.problem ?? null) !== null,
      'act',
      `Clients may write to the source directly: ${shard.fence?.problem ?? ''}.`,
      { command: 'fence show', runbook: 'BypassingWrites' },
    ],
    ...shard.workloads.map(ofNewErrors),
    ...shard.workloads.flatMap(ofAutomatic),
    [
      sum(mismatches) > 0,
      'act',
      `${count(sum(mismatches), 'mismatch', 'mismatches')} since the proxy started: ${list(mismatches)}.`,
      { ...named(afterMismatch(shard)), runbook: 'MismatchFound' },
    ],
    [
      writtenTwice && !mirror.connected && SIDES.every((side) => shard[side].up !== false),
      'act',
      'The proxy is not connected to the mirror. Writes that the mirror misses become suspect keys.',
      { command: 'status', runbook: 'MirrorDisconnected' },
    ],
    [
      reservations.oldestMs >= OLD_RESERVATION_MS,
      'act',
      `One command has held its keys for ${duration(reservations.oldestMs / 1000)}. Other commands on these keys wait.`,
      { command: 'status', runbook: 'KeysReserved' },
    ],
    [
      mirror.dropped > 0,
      'act',
      `${count(mirror.dropped, 'write')} did not reach the mirror. The keys are suspect.`,
      { command: 'status', runbook: 'MirrorQueueAlmostFull' },
    ],
    [
      job?.state === 'failed',
      'act',
      `The last ${job?.kind ?? 'job'} failed: ${job?.reason ?? 'no reason is known'}.`,
      { ...(job !== null && named(commandOf(job, shard))), runbook: 'JobFailed' },
    ],
    ...SIDES.map((side) => ofRefused(side, shard.clientErrors[side])),
    ...shard.workloads.map((each) => ofWorkload(each, { frozen, down: isDown(shard) })),
    [
      mirror.lagMs > MAX_LAG_MS,
      'look',
      `The mirror is ${duration(mirror.lagMs / 1000)} behind.`,
      { command: 'status --watch', runbook: 'MirrorBehind' },
    ],
    [
      suspects.total > 0,
      'look',
      `${count(suspects.total, 'suspect key')}: ${list(suspects.byReason)}. ${
        frozen === null
          ? 'The proxy repairs them from the authority.'
          : 'They are not repaired while repairs are frozen.'
      }`,
      { command: 'status --watch', runbook: 'SuspectsGrowing' },
    ],
    [
      job?.state === 'running' && job.reason !== null,
      'look',
      `The ${job?.kind ?? 'job'} waits: ${job?.reason ?? ''}.`,
      { ...((job?.paused ?? null) !== null && { command: 'job --resume' }), runbook: 'BackfillStalled' },
    ],
    [
      sum(unsupported) > 0,
      'look',
      `Clients use commands that only one server supports: ${list(unsupported)}.`,
      { command: 'status' },
    ],
    [
      failed + replyFailures > 0,
      'look',
      `The proxy has failed at commands (${count(replyFailures, 'reply', 'replies')}), and closed ${count(failed, 'client')} for it.`,
      { runbook: 'ClientCommandFailed' },
    ],
    [
      sum(atLimits) > 0,
      'look',
      `The proxy has closed ${count(sum(atLimits), 'client')} at a limit: ${list(atLimits)}.`,
      { runbook: 'ClientsClosed' },
    ],
    [
      withoutHeader > 0,
      'look',
      `The proxy has closed ${count(withoutHeader, 'connection')} without the PROXY header that proxyProtocol of the plan wants: the log names their addresses.`,
    ],
    ...SIDES.map((side): Check => [
      inUse(side) && shard[side].evicting,
      'look',
      `${sentence(evictionNote(side, shard[side], Date.now()))}.`,
      { runbook: side === 'target' ? 'TargetEvicts' : 'SourceEvicts' },
    ]),
    [
      clockAheadMs !== 0,
      'look',
      `The clock of the target is ${number(Math.abs(clockAheadMs))} ms ${
        clockAheadMs > 0 ? 'ahead of' : 'behind'
      } the clock of the source. Correct the clocks of both hosts.`,
      { runbook: 'TtlDrift' },
    ],
  ];
  return applying(checks).toSorted((a, b) => Number(b.level === 'act') - Number(a.level === 'act'));
}

/** What the guard, a rollout or an operator has stopped, and what the guard sees now. */
export const attentionOfAutomatic = (workload: WorkloadSnapshot): readonly Attention[] =>
  applying(ofAutomatic(workload));

const applying = (checks: readonly Check[]): readonly Attention[] =>
  checks.filter(([applies]) => applies).map(([, level, text, next]): Attention => ({ level, text, ...next }));

/** Whether clients of a workload get this server's replies. */
const isAuthority = ({ workloads }: ShardSnapshot, side: Side): boolean => authoritiesOf(workloads).includes(side);

function ofServer(
  side: Side,
  { up, full, problem, refusedDatabases }: ServerSnapshot,
  authority: boolean,
): readonly Check[] {
  const effect = authority
    ? 'Clients get errors for the keys that it answers.'
    : 'Clients are not affected. Keys that are written now become suspect. Start the server again: the proxy reconnects by itself.';
  const runbook = authority ? 'AuthorityDown' : 'MirrorDisconnected';
  return [
    [up === false, 'act', `The ${side} is down. ${effect}`, { command: 'status', runbook }],
    [
      problem !== null && up !== false,
      'act',
      `The proxy does not use the ${side}: ${problem ?? ''}.`,
      { command: 'status', runbook },
    ],
    [
      refusedDatabases.length > 0,
      'act',
      `The ${side} refuses ${describeRefused(refusedDatabases)}. Keys that are written there are suspect, and cannot be repaired. Raise databases on the ${side}, or let the proxy's user call SELECT.`,
      { command: 'status', runbook: 'SuspectsGrowing' },
    ],
    [
      full,
      'act',
      `The ${side} refuses writes: its memory is full. Raise maxmemory on the ${side}.`,
      { runbook: 'ServerRefusesWrites' },
    ],
  ];
}

/** Workloads whose clients get errors, each with the next step that the proxy suggests. */
function ofOutage(outage: OutageSnapshot | null): readonly Check[] {
  if (outage === null || outage.endedAt !== null) return [];
  return outage.workloads.map(({ name, movedTo, why, next, instead }) => [
    movedTo === null,
    'act',
    `Clients of ${name} get errors: the ${outage.side} does not answer, and the proxy does not fail over to the ${otherSide(outage.side)} (${why ?? 'no reason is known'}). Next: ${next}${instead === undefined ? '' : `; or ${instead.text}`}.`,
    { ...named(instead?.command), runbook: 'AuthorityDown' },
  ]);
}

/** Clients that the server does not let in, or whose commands it refuses. */
function ofRefused(side: Side, errors: Readonly<Record<string, number>>): Check {
  const refused = Object.fromEntries(ACCESS_ERRORS.flatMap((kind) => (errors[kind] > 0 ? [[kind, errors[kind]]] : [])));
  return [
    sum(refused) > 0,
    side === 'target' ? 'act' : 'look',
    `The ${side} refuses clients: ${list(refused)}.`,
    { runbook: 'ClientsRefused' },
  ];
}

const ofNewErrors = ({ name, stage, newErrors }: WorkloadSnapshot): Check => [
  sum(newErrors) > 0,
  'act',
  `Clients of ${name} get errors from the target that the source would not give: ${list(newErrors)}.`,
  { ...named(rollbackOf({ name, stage })), runbook: 'ErrorsAfterCutover' },
];

const ofWorkload = (
  { name, stage, suspect }: WorkloadSnapshot,
  condition: Pick<WorkloadCondition, 'frozen' | 'down'>,
): Check => [
  suspect !== null,
  'look',
  `Every key of ${name} is suspect: ${suspect ?? ''}.`,
  suspect === NOT_COPIED
    ? { ...named(backfillOf({ name, stage, ...condition })), runbook: 'week-1-shadow' }
    : { command: 'status --watch', runbook: 'SuspectsGrowing' },
];

/** A rollback if clients get the target's replies, else a look at the keys. */
function afterMismatch(shard: ShardSnapshot): NextCommand {
  const { workloads, frozen } = shard;
  const differing = workloads.filter(({ mismatches }) => mismatches > 0);
  const [rollback] = differing.flatMap((each) => rollbackOf(each) ?? []);
  const down = isDown(shard);
  return (
    rollback ?? verifyOf((differing.length === 0 ? workloads : differing).map((each) => ({ ...each, frozen, down })))
  );
}

/** The command that continues a job, or starts it again. */
function commandOf({ kind, workloads, repair }: JobSnapshot, shard: ShardSnapshot): NextCommand {
  const { workloads: all, frozen } = shard;
  const down = isDown(shard);
  if (frozen !== null || kind === 'restore') return ACCEPT;
  const wanted = all.filter(({ name }) => workloads.length === 0 || workloads.includes(name));
  if (kind === 'verify')
    return verifyOf(
      wanted.map((each) => ({ ...each, frozen, down })),
      repair,
    );
  const left = wanted.filter((each) => backfillOf({ ...each, frozen, down }) !== undefined);
  return left.length === 0 ? undefined : `backfill --workload ${left.map(({ name }) => name).join(' ')}`;
}

/** The field is absent, not undefined, if there is no command. */
const named = (command: NextCommand): { command?: string } => (command === undefined ? {} : { command });

const sentence = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** What the guard observes, and what it or an operator has stopped. */
function ofAutomatic({ name, automatic: { exceeds, hold, rollout } }: WorkloadSnapshot): readonly Check[] {
  const since = hold === null ? '' : `Since ${hold.at}`;
  return [
    [
      hold?.why === 'rolled-back',
      'act',
      `${since}: the guard has rolled ${name} back to shadow, ${hold?.reason ?? ''}. It waits for you: promote it when the cause is removed.`,
      { command: 'status' },
    ],
    [
      hold?.why === 'stopped',
      'act',
      `${since}: the guard has stopped the rollout of ${name}, ${hold?.reason ?? ''}.`,
      { command: `resume ${name}` },
    ],
    [
      hold?.why === 'paused' && rollout,
      'look',
      `${since}: the rollout of ${name} is paused${(hold?.by ?? null) === null ? '' : ` by ${hold?.by}`}: ${hold?.reason ?? ''}.`,
      { command: `resume ${name}` },
    ],
    [exceeds.length > 0, 'act', `${name} exceeds a limit of the guard: ${exceeds.join('; ')}.`, { command: 'status' }],
  ];
}
