/** What somebody on call should look at, most urgent first: a pure decision over what a shard tells. */
import { evictionNote } from '../telemetry/evictions.js';
import { count, duration, list, number } from '../text/figures.js';
import { SIDES, type Side } from '../route/stage.js';
import {
  ACCESS_ERRORS,
  OLD_RESERVATION_MS,
  sum,
  type ServerSnapshot,
  type ShardSnapshot,
  type WorkloadSnapshot,
} from '../telemetry/snapshot.js';

export interface Attention {
  /** `act`: something is wrong. `look`: something is not as it should stay. */
  readonly level: 'act' | 'look';
  readonly text: string;
}

/** Behind the authority by more than this, a mirror is worth a look. */
const MAX_LAG_MS = 1_000;

type Check = readonly [applies: boolean, level: Attention['level'], text: string];

export function attentionOf(shard: ShardSnapshot): readonly Attention[] {
  const { source, target, mirror, reservations, suspects, mismatches, unsupported, job, frozen, clockAheadMs } = shard;
  const writtenTwice = shard.workloads.some(({ stage }) => stage !== 'off' && stage !== 'complete');
  const checks: readonly Check[] = [
    ...ofServer('source', source),
    ...ofServer('target', target),
    [frozen !== null, 'act', `repair is frozen: ${frozen ?? ''}; next: shadow-compare accept --dry-run`],
    [writtenTwice && !mirror.connected, 'act', 'the mirror is not connected: what it misses is kept in doubt'],
    [
      sum(mismatches) > 0,
      'act',
      `${count(sum(mismatches), 'mismatch', 'mismatches')} since the process started: ${list(mismatches)}`,
    ],
    [
      reservations.oldestMs >= OLD_RESERVATION_MS,
      'act',
      `keys have been reserved for ${duration(reservations.oldestMs / 1000)}: commands on them wait; next: runbooks/KeysReserved.md`,
    ],
    [mirror.dropped > 0, 'act', `${count(mirror.dropped, 'effect')} did not reach the mirror: the keys are in doubt`],
    [job?.state === 'failed', 'act', `the last ${job?.kind ?? 'job'} failed: ${job?.reason ?? ''}`],
    ...shard.workloads.map(ofWorkload),
    ...shard.workloads.map(ofNewErrors),
    [mirror.lagMs > MAX_LAG_MS, 'look', `the mirror is ${number(mirror.lagMs)} ms behind`],
    [suspects.total > 0, 'look', `${count(suspects.total, 'key')} in doubt: ${list(suspects.byReason)}`],
    [job?.state === 'running' && job.reason !== null, 'look', `the ${job?.kind ?? 'job'} waits: ${job?.reason ?? ''}`],
    ...SIDES.map((side) => ofRefused(side, shard.clientErrors[side])),
    [sum(unsupported) > 0, 'look', `commands that only one server supports: ${list(unsupported)}`],
    ...SIDES.map((side): Check => [shard[side].evicting, 'look', evictionNote(side, shard[side], Date.now())]),
    [clockAheadMs !== 0, 'look', `the target's clock is ahead of the source's by ${number(clockAheadMs)} ms`],
  ];
  const found = checks.filter(([applies]) => applies).map(([, level, text]): Attention => ({ level, text }));
  return found.sort((a, b) => Number(b.level === 'act') - Number(a.level === 'act'));
}

const ofServer = (side: string, { up, full }: ServerSnapshot): readonly Check[] => [
  [up === false, 'act', `the ${side} is down`],
  [full, 'act', `the ${side} refuses writes for want of memory: raise maxmemory`],
];

/** Clients that the server does not let in, or not do what they ask. */
function ofRefused(side: Side, errors: Readonly<Record<string, number>>): Check {
  const refused = Object.fromEntries(ACCESS_ERRORS.flatMap((kind) => (errors[kind] > 0 ? [[kind, errors[kind]]] : [])));
  return [sum(refused) > 0, side === 'target' ? 'act' : 'look', `clients are refused by the ${side}: ${list(refused)}`];
}

const ofNewErrors = ({ name, newErrors }: WorkloadSnapshot): Check => [
  sum(newErrors) > 0,
  'act',
  `the target gave clients of ${name} errors that the source would not have given: ${list(newErrors)}; next: shadow-compare rollback ${name}`,
];

const ofWorkload = ({ name, suspect }: WorkloadSnapshot): Check => [
  suspect !== null,
  'look',
  `every key of ${name} is in doubt: ${suspect ?? ''}`,
];
