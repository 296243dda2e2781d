/** The stages of a workload, and what each means: one pure table. `transitions.ts` has the transitions between them. */

export const STAGES = ['off', 'dualwrite', 'shadow', 'live', 'rampdown', 'complete'] as const;
export type Stage = (typeof STAGES)[number];

/**
 * The position of a workload: in `live`, `percent` of its hash slots are live and the others are as in `shadow`. It is
 * 100 in every other stage.
 */
export interface StagePoint {
  readonly stage: Stage;
  readonly percent: number;
}

/** The two servers. */
export const SIDES = ['source', 'target'] as const;
export type Side = (typeof SIDES)[number];

export interface StageRule {
  /** The server whose reply the client gets. */
  readonly authority: Side;
  /** Whether writes are replicated to the other server. */
  readonly mirrorsWrites: boolean;
  /** Whether reads are sent to the other server, and their replies compared. */
  readonly mirrorsReads: boolean;
  /** A description for people. */
  readonly sentence: string;
}

const RULES: Record<Stage, StageRule> = {
  off: {
    authority: 'source',
    mirrorsWrites: false,
    mirrorsReads: false,
    sentence: 'Only the source has the keys. Nothing is sent to the target.',
  },
  dualwrite: {
    authority: 'source',
    mirrorsWrites: true,
    mirrorsReads: false,
    sentence: 'The source answers. Each write is sent to the target too.',
  },
  shadow: {
    authority: 'source',
    mirrorsWrites: true,
    mirrorsReads: true,
    sentence: 'The source answers. Writes and reads are sent to the target too, and the replies are compared.',
  },
  live: {
    authority: 'target',
    mirrorsWrites: true,
    mirrorsReads: true,
    sentence: 'The target answers, for the percentage of the keys that is shown. The source is the mirror.',
  },
  rampdown: {
    authority: 'target',
    mirrorsWrites: true,
    mirrorsReads: false,
    sentence: 'The target answers. Only writes are still sent to the source.',
  },
  complete: {
    authority: 'target',
    mirrorsWrites: false,
    mirrorsReads: false,
    sentence: 'Only the target has the keys. A rollback is not possible.',
  },
};

/** Whether only the source gets the commands. */
export const isOff = (rule: StageRule): boolean => rule === RULES.off;

export const stageRule = (stage: Stage): StageRule => RULES[stage];

/** Whether writes go to both servers. */
export const isMirrored = (stage: Stage): boolean => RULES[stage].mirrorsWrites;

/** Whether clients get the target's replies, and the source still has every write. */
export const canReturn = (stage: Stage): boolean => RULES[stage].authority === 'target' && isMirrored(stage);

/** Whether clients get the target's replies for some keys and the source's for others. */
export const isPartial = ({ stage, percent }: StagePoint): boolean => stage === 'live' && percent < 100;

/** Whether the source answers reads that the target gets, too: all of the workload's, or those of keys not live yet. */
export const shadowsReads = (point: StagePoint): boolean => point.stage === 'shadow' || isPartial(point);

/** The stage for people, such as `live 10 %`. */
export const formatPoint = (point: StagePoint): string =>
  isPartial(point) ? `${point.stage} ${point.percent} %` : point.stage;

export const samePoint = (a: StagePoint | undefined, b: StagePoint | undefined): boolean =>
  a?.stage === b?.stage && a?.percent === b?.percent;

export const otherSide = (side: Side): Side => (side === 'source' ? 'target' : 'source');

/** The servers that answer clients in these stages. */
export function authoritiesOf(points: readonly StagePoint[]): readonly Side[] {
  const sides = points.flatMap((point) => [
    RULES[point.stage].authority,
    ...(isPartial(point) ? ['source' as const] : []),
  ]);
  return [...new Set(sides)];
}
