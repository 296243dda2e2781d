/**
 * The transitions between stages: one pure table. A stage change that is not in the table is refused.
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
  /**
   * Whether the transition leads to a later stage, or to a larger share of the keys. `rollback` makes all other
   * transitions.
   */
  readonly forward: boolean;
  /**
   * True: only for workloads with `counterLayout: per-region`, which have other keys on the target. False: not for
   * them.
   */
  readonly perRegion: boolean;
  /**
   * In the order in which they are shown. `fence` and `checks` are used only if the plan has them. A transition back
   * has no gates.
   */
  readonly gates: readonly GateName[];
  /** What happens to clients and keys, for people. */
  readonly sentence: string;
}

/** The gates that need comparisons: enough of them, and without mismatches. */
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

/** In the order of the stages. If two transitions lead back from a stage, `rollback` takes the first one by default. */
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
    // In rampdown only writes were compared, and clients are about to leave the source.
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

/** Null if the change is not allowed. */
export const transitionOf = (from: Stage, to: Stage, perRegion = false): Transition | null =>
  TRANSITIONS.find((each) => each.from === from && each.to === to && each.perRegion === perRegion) ?? null;

/** The other stages that a workload may enter from this one: the next ones first, then the earlier ones. */
export const stagesFrom = (from: Stage, perRegion = false): readonly Stage[] =>
  TRANSITIONS.filter((each) => each.from === from && each.to !== from && each.perRegion === perRegion).map(
    ({ to }) => to,
  );

/** Null if there is no next stage. */
export const nextStage = (from: Stage, perRegion = false): Stage | null =>
  TRANSITIONS.find((each) => each.from === from && each.to !== from && each.forward && each.perRegion === perRegion)
    ?.to ?? null;

/** The shares of the keys that enter `live` one after the other, in percent. */
export const SHARES = [1, 10, 50, 100];

/** The next share of the keys, in percent. */
export const nextShare = ({ stage, percent }: StagePoint): number =>
  stage === 'live' ? (SHARES.find((share) => share > percent) ?? 100) : SHARES[0];

/** The stage to which `rollback` leads by default; null if there is no earlier stage. */
export const rollbackStage = (from: Stage): Stage | null =>
  TRANSITIONS.find((each) => each.from === from && !each.forward)?.to ?? null;

/**
 * The stages that a workload enters one after the other on the shortest way from `from` to `to`. Null if there is no
 * way; empty if both are the same.
 *
 * @param onlyBack whether only transitions that `rollback` takes are used
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

/** Whether the second point is a later stage, or a larger share of keys in the same stage. */
export const isLater = (from: StagePoint, to: StagePoint): boolean =>
  to.stage === from.stage ? to.percent > from.percent : STAGES.indexOf(to.stage) > STAGES.indexOf(from.stage);

/** Whether some keys get another authority. Then the mirror must be clean. */
export const authorityMoves = (from: StagePoint, to: StagePoint): boolean =>
  stageRule(from.stage).authority !== stageRule(to.stage).authority || from.percent !== to.percent;

/** The server that is the authority of fewer keys after the change: none, or one. */
export function authorityLeft(from: StagePoint, to: StagePoint): readonly Side[] {
  const shareOfTarget = ({ stage, percent }: StagePoint): number =>
    stageRule(stage).authority === 'target' ? percent : 0;
  const more = shareOfTarget(to) - shareOfTarget(from);
  return more === 0 ? [] : [more > 0 ? 'source' : 'target'];
}

/** The server that has the workload's channels after the change; null if it stays the same. */
export function channelsMove(from: StagePoint, to: StagePoint): Side | null {
  const sideOf = (point: StagePoint): Side => (isPartial(point) ? 'source' : stageRule(point.stage).authority);
  return sideOf(from) === sideOf(to) ? null : sideOf(to);
}

/** Why a workload in `complete` cannot be rolled back, and what to do instead. */
export const noReturn = (workload: string): string =>
  `"${workload}" is complete and cannot be rolled back: since then, only the target gets writes. Leave it there, or move it with a backfill in the other direction (runbooks/leave-keydb.md)`;
