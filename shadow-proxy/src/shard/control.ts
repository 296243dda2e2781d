/** Changes of stage that operators, or a failover, ask for. */
import type { EvidenceCollector } from '../stages/evidence-collector.js';
import type { Flipper } from '../stages/flip.js';
import type { PromotionContext } from '../stages/promotion.js';
import type { StageChange, StageRequest } from '../stages/stage-change.js';

/** @throws {StageError} with nothing changed */
export async function changeStage(
  { witness, flipper }: { readonly witness: EvidenceCollector; readonly flipper: Flipper },
  request: StageRequest,
): Promise<StageChange> {
  // What was seen belongs to the stage in which it was.
  witness.look();
  const change = await flipper.change(request);
  witness.look();
  return change;
}

export const promotionContext = (parts: {
  readonly witness: EvidenceCollector;
  readonly flipper: Flipper;
}): PromotionContext => ({
  standing: (workload) => parts.witness.standing(workload),
  facts: (workload, consent) => parts.witness.facts(workload, consent),
  change: (request) => changeStage(parts, request),
  drilling: (workload, on) => parts.witness.drilling(workload, on),
  drilled: (workload, drill) => parts.witness.drilled(workload, drill),
});
