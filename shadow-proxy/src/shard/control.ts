/** Changes of stage that operators, or a failover, ask for. */
import type { EvidenceCollector } from '../stages/evidence-collector.js';
import type { Flipper } from '../stages/flip.js';
import type { PromotionContext } from '../stages/promotion.js';
import type { StateKeeper } from './state-keeper.js';
import type { StageChange, StageRequest } from '../stages/stage-change.js';

/** @throws {StageError} with nothing changed */
export async function changeStage(
  { collector, flipper }: { readonly collector: EvidenceCollector; readonly flipper: Flipper },
  request: StageRequest,
): Promise<StageChange> {
  // What was seen belongs to the stage in which it was.
  collector.collect();
  const change = await flipper.change(request);
  collector.collect();
  return change;
}

export const promotionContext = (parts: {
  readonly keeper: Pick<StateKeeper, 'acceptReleases'>;
  readonly collector: EvidenceCollector;
  readonly flipper: Flipper;
}): PromotionContext => ({
  standing: (workload) => parts.collector.standing(workload),
  facts: (workload, consent) => parts.collector.facts(workload, consent),
  acceptReleases: (names, note) => parts.keeper.acceptReleases(names, note),
  allow: (request) => parts.flipper.allow(request),
  check: (request) => parts.flipper.check(request),
  hooks: (workload) => parts.flipper.hooksOf(workload),
  change: (request) => changeStage(parts, request),
  drilling: (workload, on) => parts.collector.drilling(workload, on),
  drilled: (workload, drill) => parts.collector.drilled(workload, drill),
});
