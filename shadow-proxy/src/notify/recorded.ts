/** Turns events of a shard's history into notices: stage changes, failovers, takeovers. */
import { describeEvent, type HistoryEvent } from '../storage/history.js';
import { formatPoint, type StagePoint } from '../route/stage.js';
import type { Happening } from './notice.js';

/** Null for an event about which nobody is notified. @param now in ms since 1970 */
export function happeningOf(shard: string, event: HistoryEvent, now: number): Happening | null {
  const common = { state: 'once', shard, since: now } as const;
  if (event.event === 'owner') {
    if (event.from === undefined) return null;
    return {
      ...common,
      event: 'takeover',
      severity: 'warning',
      key: `${shard}/takeover`,
      workload: null,
      summary: `Shard ${shard}: ${describeEvent(event)}`,
      details: { process: String(event.process), from: String(event.from) },
    };
  }
  if (event.event === 'automatic' && event.state === 'stopped')
    return {
      ...common,
      event: 'guard',
      severity: 'critical',
      key: `${shard}/${String(event.workload)}/guard`,
      workload: String(event.workload),
      summary: `Shard ${shard}: ${describeEvent(event)}`,
      details: { reason: String(event.reason) },
    };
  if (event.event !== 'stage') return null;
  const isGuard = event.automatic === 'guard';
  const isFailover = event.by === 'failover';
  const workload = String(event.workload);
  return {
    ...common,
    event: isFailover ? 'failover' : isGuard ? 'guard' : 'stage',
    severity: isFailover || isGuard ? 'critical' : event.forced === true ? 'warning' : 'info',
    key: `${shard}/${workload}/${isFailover ? 'failover' : isGuard ? 'guard' : 'stage'}`,
    workload,
    summary: `Shard ${shard}: ${describeEvent(event)}`,
    details: {
      from: formatPoint(event.from as StagePoint),
      to: formatPoint(event.to as StagePoint),
      ...(event.by === undefined ? {} : { by: String(event.by) }),
    },
  };
}
