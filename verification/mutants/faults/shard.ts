/** The snapshot of a shard hides what is wrong. */
import type { Fault } from '../fault.js';

export const SHARD: readonly Fault[] = [
  {
    id: 'a-workload-with-unconfirmed-effects-is-clean',
    file: 'shadow-proxy/src/shard/snapshot.ts',
    from: 'clean: suspects.acknowledged === 0 && suspect === null && !asked && mirrorIsEmpty,',
    to: 'clean: suspects.acknowledged === 0 && suspect === null && !asked,',
    tests: ['unit/shard/snapshot'],
  },
  {
    id: 'a-workload-in-doubt-is-clean',
    file: 'shadow-proxy/src/shard/snapshot.ts',
    from: 'clean: suspects.acknowledged === 0 && suspect === null && !asked && mirrorIsEmpty,',
    to: 'clean: suspects.acknowledged === 0 && !asked && mirrorIsEmpty,',
    tests: ['unit/shard/snapshot'],
  },
  {
    id: 'the-lag-is-that-of-the-better-mirror',
    file: 'shadow-proxy/src/shard/snapshot.ts',
    from: 'lagMs: Math.max(...both',
    to: 'lagMs: Math.min(...both',
    tests: ['unit/shard/snapshot'],
  },
  {
    id: 'a-lost-mirror-is-connected',
    file: 'shadow-proxy/src/shard/snapshot.ts',
    from: 'connected || !isNeeded)',
    to: 'true)',
    tests: ['unit/shard/snapshot'],
  },
  {
    id: 'pending-questions-are-not-undecided',
    file: 'shadow-proxy/src/shard/snapshot.ts',
    from: 'undecided: facts.asked + mirrors.source.gates + mirrors.target.gates,',
    to: 'undecided: facts.asked,',
    tests: ['unit/shard/snapshot'],
  },
  {
    id: 'a-process-that-waits-does-not-record-who-serves',
    file: 'shadow-proxy/src/storage/state.ts',
    from: "  await appendLine(directory, { time: isoTime(), event: 'holder', process, note });",
    to: '  await Promise.resolve({ process, note });',
    tests: ['integration/cli/standby'],
    kept: 'served-unseen',
  },
  {
    id: 'a-crash-is-trusted-though-another-process-may-have-served',
    file: 'shadow-proxy/src/shard/launch.ts',
    from: 'previous.owner !== null && !previous.cleanShutdown',
    to: 'previous.owner !== null && previous.cleanShutdown && !previous.cleanShutdown',
    tests: ['integration/cli/standby'],
    kept: 'served-unseen',
  },
  {
    id: 'an-end-is-trusted-though-another-process-waited-for-it',
    file: 'shadow-proxy/src/shard/launch.ts',
    from: 'if (isNoted && !isFollowed)',
    to: 'if (isNoted)',
    tests: ['integration/cli/standby'],
    kept: 'served-unseen',
  },
  {
    id: 'an-offline-rollback-fences-a-proxy-of-another-folder',
    file: 'shadow-proxy/src/stages/offline-rollback.ts',
    from: 'if (process !== before.owner?.process && !request.force)',
    to: 'if (false)',
    tests: ['integration/cli/standby'],
    kept: 'served-unseen',
  },
];
