/** Holds: reasons not to move a workload automatically, and when they end. Pure. */
import { isoTime } from '../io/clock.js';
import type { StagePoint } from '../route/stage.js';
import { isLater } from '../route/transitions.js';
import type { Hold } from '../storage/state.js';
import type { StageRequest } from './stage-change.js';

export type Holds = Readonly<Record<string, Hold>>;

/** A part of the proxy that changes stages without an operator. */
export type Automat = 'guard' | 'rollout';

/**
 * The holds after a stage change. A workload that the guard or a failover has moved waits for an operator. Only an
 * operator's promotion or `resume` ends that.
 */
export function holdsAfter(
  holds: Holds,
  workload: string,
  from: StagePoint,
  to: StagePoint,
  note: StageRequest['note'] = {},
): Holds {
  const because = (why: Hold['why']): Holds => ({
    ...holds,
    [workload]: { why, at: isoTime(), reason: String(note.reason ?? why), by: null },
  });
  if (note.automatic === 'guard') return because('rolled-back');
  if (note.by === 'failover') return because('failover');
  const { [workload]: held, ...others } = holds;
  const isPromotion = note.automatic === undefined && note.drill !== true && isLater(from, to);
  return held !== undefined && held.why !== 'paused' && isPromotion ? others : holds;
}
