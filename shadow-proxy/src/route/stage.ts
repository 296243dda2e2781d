/**
 * Stages of a workload and what each means: one pure table.
 *
 *   off ⇄ dualwrite ⇄ shadow ⇄ live ⇄ rampdown → complete
 */

export const STAGES = ['off', 'dualwrite', 'shadow', 'live', 'rampdown', 'complete'] as const;
export type Stage = (typeof STAGES)[number];

/** Which of the two servers. */
export const SIDES = ['source', 'target'] as const;
export type Side = (typeof SIDES)[number];

export interface StageRule {
  /** The server whose reply the client gets. */
  readonly authority: Side;
  /** Whether writes are replicated on the other server. */
  readonly mirrorsWrites: boolean;
  /** Whether reads are sent to the other server, and their replies compared. */
  readonly mirrorsReads: boolean;
}

const RULES: Record<Stage, StageRule> = {
  off: { authority: 'source', mirrorsWrites: false, mirrorsReads: false },
  dualwrite: { authority: 'source', mirrorsWrites: true, mirrorsReads: false },
  shadow: { authority: 'source', mirrorsWrites: true, mirrorsReads: true },
  live: { authority: 'target', mirrorsWrites: true, mirrorsReads: true },
  rampdown: { authority: 'target', mirrorsWrites: true, mirrorsReads: false },
  complete: { authority: 'target', mirrorsWrites: false, mirrorsReads: false },
};

/** Whether the source alone has the commands. */
export const isOff = (rule: StageRule): boolean => rule === RULES.off;

export const stageRule = (stage: Stage): StageRule => RULES[stage];

/** `live 10 %`, or the stage alone. */
export const formatPoint = ({ stage, percent }: { readonly stage: Stage; readonly percent: number }): string =>
  stage === 'live' && percent < 100 ? `${stage} ${percent} %` : stage;

export const otherSide = (side: Side): Side => (side === 'source' ? 'target' : 'source');

/** The servers that answer clients in these stages. */
export function authoritiesOf(points: readonly { readonly stage: Stage; readonly percent: number }[]): readonly Side[] {
  const sides = points.flatMap(({ stage, percent }) => [
    RULES[stage].authority,
    ...(stage === 'live' && percent < 100 ? ['source' as const] : []),
  ]);
  return [...new Set(sides)];
}
