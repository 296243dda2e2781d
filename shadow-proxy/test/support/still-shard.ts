/** A shard for the admin API that does not run: it moves at once, and remembers what it was asked. */
import type { ShardControl } from '../../src/admin/shard-control.js';
import { JobError } from '../../src/copy/job/jobs.js';
import { isoTime } from '../../src/io/clock.js';
import type { PromoteRequest } from '../../src/stages/promotion.js';
import { StageError } from '../../src/stages/stage-change.js';
import type { HistoryEvent } from '../../src/storage/state.js';
import { Series } from '../../src/telemetry/series.js';
import { scrapedShard, shardSnapshot } from './snapshots.js';

export interface StillShard extends ShardControl {
  isReady: boolean;
  /** Promotions, without dry runs. */
  readonly asked: PromoteRequest[];
  /** Stages that it was put back to. */
  readonly back: string[];
}

/** A shard that moves at once, and refuses what `refuse` throws. */
export function stillShard(name: string, refuse: (request: PromoteRequest) => void = () => undefined): StillShard {
  const [asked, back]: [PromoteRequest[], string[]] = [[], []];
  const events: HistoryEvent[] = [];
  const shard: StillShard = {
    name,
    isReady: true,
    asked,
    back,
    snapshot: () => shardSnapshot({ name }),
    scrape: () => scrapedShard({ name }),
    ready: () => shard.isReady,
    async promote({ dryRun, ...wanted }) {
      await Promise.resolve();
      if (!dryRun) {
        asked.push(wanted);
        refuse(wanted);
      }
      const { workload, to = 'shadow', percent = 100 } = wanted;
      const points = { from: { stage: 'off', percent: 100 }, to: { stage: to, percent } } as const;
      if (!dryRun) events.push({ revision: events.length, time: isoTime(), event: 'stage', workload, ...points });
      const change = dryRun ? null : { workload, ...points, heldMs: 1 };
      return { workload, ...points, gates: [], targetKeys: null, change };
    },
    rollback: () => Promise.reject(new StageError('refused', 'not here')),
    history: () => Promise.resolve(events),
    note: () => Promise.resolve(),
    fence: () => Promise.reject(new StageError('refused', 'not here')),
    automate: () => Promise.resolve(),
    evidence: () =>
      Promise.resolve({
        shard: name,
        workloads: [],
        latencies: [],
        mismatches: { total: 0, notWritten: 0, latest: [] },
      }),
    series: (since) => new Series().since(since),
    acceptAuthority: () => Promise.resolve(['source' as const]),
    startJob: () => {
      throw new JobError('busy', 'a backfill is under way');
    },
    changeJob: () => {
      throw new JobError('none', 'no backfill or verification is running: nothing was changed');
    },
    stopJob: () => {
      throw new JobError('none', 'nothing is under way');
    },
    changeStage({ workload, stage }) {
      back.push(stage);
      const point = { stage, percent: 100 };
      return Promise.resolve({ workload, from: point, to: point, heldMs: 1 });
    },
  };
  return shard;
}
