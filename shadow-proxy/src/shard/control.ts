/** Stage changes that operators, or a failover, request. */
import type { EvidenceCollector } from '../stages/evidence-collector.js';
import type { Fence } from '../stages/fence.js';
import type { Flipper } from '../stages/flip.js';
import type { PromotionContext } from '../stages/promotion.js';
import type { StateKeeper } from './state-keeper.js';
import { StageError, type StageChange, type StageRequest } from '../stages/stage-change.js';

interface Changing {
  readonly collector: EvidenceCollector;
  readonly flipper: Flipper;
  readonly fence: Fence;
}

/** @throws {StageError} with nothing changed */
export async function changeStage(
  { collector, flipper, fence }: Changing,
  request: StageRequest,
): Promise<StageChange> {
  // Observations up to now belong to the present stage.
  collector.collect();
  try {
    if (!fence.isFor(request)) return await flipper.change(request);
    return await fence.keptWhile(async () => {
      await raiseFence({ collector, flipper, fence }, request);
      return flipper.change(request);
    });
  } finally {
    collector.collect();
    // A failover does not wait for the fence.
    const settled = fence.settle();
    if (request.failover !== true) await settled;
  }
}

/**
 * Raises the fence. From then on clients that bypass the proxy do not write to the source; and none have since its
 * gates were judged.
 */
async function raiseFence({ collector, flipper, fence }: Changing, request: StageRequest): Promise<void> {
  await flipper.check(request);
  const before = await collector.passedWrites();
  await fence.raise(request.workload, request.note);
  const { last } = await collector.passedWrites();
  if (last === null || last.at === before.last?.at || request.note?.forced === true) return;
  throw new StageError(
    'refused',
    `"${request.workload}" keeps its stage: clients wrote to the source directly just before it was fenced; the fence is lifted again. Stop them, or keep them out with \`fence apply\`, run verify --repair, and try again`,
  );
}

export const promotionContext = (parts: {
  readonly keeper: Pick<StateKeeper, 'acceptReleases'>;
  readonly collector: EvidenceCollector;
  readonly flipper: Flipper;
  readonly fence: Fence;
}): PromotionContext => ({
  promotionState: (workload) => parts.collector.standing(workload),
  facts: (workload, consent) => parts.collector.facts(workload, consent),
  acceptReleases: (names, note) => parts.keeper.acceptReleases(names, note),
  allow: (request) => parts.flipper.allow(request),
  check: (request) => parts.flipper.check(request),
  hooks: (workload) => parts.flipper.hooksOf(workload),
  change: (request) => changeStage(parts, request),
  drilling: (workload, on) => parts.collector.drilling(workload, on),
  drilled: (workload, drill) => parts.collector.drilled(workload, drill),
});
