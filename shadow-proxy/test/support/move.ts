/** Moves a workload to its next or previous stage over the admin HTTP, whatever its gates say. */
import { STAGES, type Stage } from '../../src/route/stage.js';

/**
 * The path and the body to send.
 * @param options percent: share of the keys, with live; lose: although the mirror has suspects
 */
export function moveRequest(
  workload: string,
  from: Stage,
  to: Stage,
  { percent = 100, lose = false }: { readonly percent?: number; readonly lose?: boolean } = {},
): [path: string, body: Readonly<Record<string, unknown>>] {
  const reason = 'the test moves it';
  if (STAGES.indexOf(to) < STAGES.indexOf(from)) return ['/api/rollback', { workload, to, force: lose, reason }];
  const forced = { force: true, forceSuspects: lose, forceUsers: true, reason };
  return ['/api/promote', { workload, to, ...(to === 'live' && { percent }), ...forced }];
}
