/** Where a mirror has the memory for all keys, no copy ends for lack of it. */
import type { JobSnapshot } from '../../shadow-proxy/src/telemetry/snapshot.js';

export const roomProblem = ({ kind, state, reason }: JobSnapshot): string | null =>
  kind === 'backfill' && (state === 'failed' || state === 'stopped')
    ? `a copy for which there is room has ended: ${reason}`
    : null;
