/**
 * The share of each workload's reads that is sent to the mirror, too, while the source answers (`shadowReads` of the
 * plan).
 */
import { randomShare } from '../io/random.js';
import { NOTHING, READ, type Follow } from '../pipeline/operation.js';
import type { Workload } from '../route/router.js';
import type { StageRule } from '../route/stage.js';

export class ReadShares {
  /** In percent, by the workload's index. */
  #shares: readonly number[];

  /** @param shares in percent, by the workload's index; a workload without one has all its reads compared */
  constructor(shares: readonly number[] = []) {
    this.#shares = shares;
  }

  /** Replaces the shares: the plan was reloaded. */
  reload(shares: readonly number[]): void {
    this.#shares = shares;
  }

  /** What the mirror is sent for a command outside a transaction. @param follow what it would be sent of all reads */
  followOf(follow: Follow, { authority }: StageRule, { index }: Workload): Follow {
    if (follow !== READ || authority !== 'source') return follow;
    const share = this.#shares[index] ?? 100;
    return share >= 100 || randomShare() * 100 < share ? READ : NOTHING;
  }
}
