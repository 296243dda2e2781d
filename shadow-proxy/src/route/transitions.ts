/**
 * The ways from stage to stage: one pure table. A stage change that is not in it is refused.
 *
 *   off ⇄ dualwrite ⇄ shadow ⇄ live ⇄ rampdown → complete
 *
 * docs/stages.md and `shadow-compare promote --help` are printed from it.
 */
import { isPartial, STAGES, stageRule, type Side, type Stage, type StagePoint } from './stage.js';

/** What must be true before a transition. `stages/gates.ts` judges them. */
export type GateName =
  | 'servers'
  | 'target'
  | 'users'
  | 'compared'
  | 'time'
  | 'mismatches'
  | 'allowed'
  | 'inconclusive'
  | 'suspects'
  | 'verify'
  | 'latency'
  | 'unsupported'
  | 'bypass'
  | 'counters'
  | 'evictions'
  | 'fence'
  | 'drill'
  | 'steps'
  | 'checks';

export interface Transition {
  readonly from: Stage;
  readonly to: Stage;
  /** Whether the transition leads to a later stage, or to a larger share of the keys; `rollback` makes the others. */
  readonly forward: boolean;
  /** Only for workloads with `counterLayout: per-region`, whose keys are others on the target; false: not for them. */
  readonly perRegion: boolean;
  /** In the order in which they are shown; `fence` and `checks` only where the plan has them. None on the way back. */
  readonly gates: readonly GateName[];
  /** What becomes of clients and keys, for people. */
  readonly sentence: string;
}

/** What was compared must be enough, and equal. */
const WATCHED: readonly GateName[] = [
  ...(['servers', 'users', 'compared', 'time', 'mismatches', 'allowed', 'inconclusive', 'suspects', 'verify'] as const),
  ...(['unsupported', 'bypass', 'counters', 'evictions'] as const),
];

const forward = (from: Stage, to: Stage, gates: readonly GateName[], sentence: string): Transition => ({
  ...{ from, to, forward: true, perRegion: false, gates: [...gates, 'checks'], sentence },
});
const back = (from: Stage, to: Stage, sentence: string): Transition => ({
  ...{ from, to, forward: false, perRegion: false, gates: [], sentence },
});

/** In the order of the stages. Of two ways back from a stage, the first is the one that `rollback` takes by itself. */
export const TRANSITIONS: readonly Transition[] = [
  forward(
    'off',
    'dualwrite',
    ['servers', 'target', 'bypass', 'counters'],
    'The target gets each write from now on. A backfill copies the keys that were there before.',
  ),
  forward(
    'dualwrite',
    'shadow',
    ['servers', 'suspects', 'mismatches', 'bypass', 'counters'],
    'The target gets the reads, too, and all replies are compared.',
  ),
  forward(
    'shadow',
    'live',
    [...WATCHED, 'latency', 'drill', 'steps', 'fence'],
    "Clients get the target's replies for a share of the keys. The source still gets each write.",
  ),
  forward(
    'live',
    'live',
    [...WATCHED, 'latency', 'drill', 'steps', 'fence'],
    "Clients get the target's replies for a larger share of the keys.",
  ),
  forward('live', 'rampdown', [...WATCHED, 'fence'], 'The source gets no reads any more. It still gets each write.'),
  forward(
    'rampdown',
    'complete',
    // Only writes were compared in rampdown; the source is about to be left.
    ['users', 'time', 'mismatches', 'suspects', 'verify', 'counters', 'evictions', 'fence'],
    'The source gets nothing any more. A rollback is not possible afterwards: the change asks for the name of the migration.',
  ),
  {
    ...forward(
      'off',
      'complete',
      ['servers', 'users', 'bypass', 'counters', 'fence'],
      'Counters per region: their sums are carried over, and clients get the replies of the target.',
    ),
    perRegion: true,
  },
  back('dualwrite', 'off', 'The target gets nothing any more. Its keys stay as they are.'),
  back('shadow', 'dualwrite', 'Replies to reads are not compared any more.'),
  back('live', 'shadow', "Clients get the source's replies again. The target is the mirror."),
  back('rampdown', 'shadow', "Clients get the source's replies again. The target is the mirror."),
  back('rampdown', 'live', 'The source gets the reads again, too.'),
];

/** Null where the change is not allowed. */
export const transitionOf = (from: Stage, to: Stage, perRegion = false): Transition | null =>
  TRANSITIONS.find((each) => each.from === from && each.to === to && each.perRegion === perRegion) ?? null;

/** The other stages that a workload may enter from this one: first the next ones, then those before. */
export const stagesFrom = (from: Stage, perRegion = false): readonly Stage[] =>
  TRANSITIONS.filter((each) => each.from === from && each.to !== from && each.perRegion === perRegion).map(
    ({ to }) => to,
  );

/** Null where there is none. */
export const nextStage = (from: Stage, perRegion = false): Stage | null =>
  TRANSITIONS.find((each) => each.from === from && each.to !== from && each.forward && each.perRegion === perRegion)
    ?.to ?? null;

/** The shares of the keys that enter `live` one after the other, in percent. */
export const SHARES = [1, 10, 50, 100];

/** The share that comes next, in percent. */
export const nextShare = ({ stage, percent }: StagePoint): number =>
  stage === 'live' ? (SHARES.find((share) => share > percent) ?? 100) : SHARES[0];

/** Where `rollback` leads to by itself; null where there is no earlier stage. */
export const rollbackStage = (from: Stage): Stage | null =>
  TRANSITIONS.find((each) => each.from === from && !each.forward)?.to ?? null;

/**
 * The stages that a workload enters one after the other on the shortest way to the last of them. Null where there is no
 * way; empty where it is there already.
 *
 * @param onlyBack by transitions that `rollback` takes
 */
export function stagesTo(from: Stage, to: Stage, onlyBack = false): readonly Stage[] | null {
  const ways: Stage[][] = [[]];
  const seen = new Set<Stage>([from]);
  for (const way of ways) {
    const at = way.at(-1) ?? from;
    if (at === to) return way;
    for (const each of TRANSITIONS) {
      if (each.from !== at || each.perRegion || seen.has(each.to) || (onlyBack && each.forward)) continue;
      seen.add(each.to);
      ways.push([...way, each.to]);
    }
  }
  return null;
}

/** Whether the second point is a later stage, or a larger share of the same. */
export const isLater = (from: StagePoint, to: StagePoint): boolean =>
  to.stage === from.stage ? to.percent > from.percent : STAGES.indexOf(to.stage) > STAGES.indexOf(from.stage);

/** Whether clients get another server's replies for some keys: then the mirror must be clean. */
export const authorityMoves = (from: StagePoint, to: StagePoint): boolean =>
  stageRule(from.stage).authority !== stageRule(to.stage).authority || from.percent !== to.percent;

/** The server that is authority of fewer keys after the change: of none, or one. */
export function authorityLeft(from: StagePoint, to: StagePoint): readonly Side[] {
  const shareOfTarget = ({ stage, percent }: StagePoint): number =>
    stageRule(stage).authority === 'target' ? percent : 0;
  const more = shareOfTarget(to) - shareOfTarget(from);
  return more === 0 ? [] : [more > 0 ? 'source' : 'target'];
}

/** Which server has the workload's channels after the change; null where that stays. */
export function channelsMove(from: StagePoint, to: StagePoint): Side | null {
  const sideOf = (point: StagePoint): Side => (isPartial(point) ? 'source' : stageRule(point.stage).authority);
  return sideOf(from) === sideOf(to) ? null : sideOf(to);
}

/** Why a workload that is complete cannot be rolled back, and what to do instead. */
export const noReturn = (workload: string): string =>
  `"${workload}" is complete and cannot be rolled back: since then, only the target gets writes. Leave it there, or move it with a backfill in the other direction (runbooks/leave-keydb.md)`;
