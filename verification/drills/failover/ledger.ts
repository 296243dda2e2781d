/**
 * What clients were answered, and what of it is lost. Each counts its own key up: a value that it sees again names the
 * lost ones.
 */

/** An INCR that was acknowledged. Times are milliseconds since the epoch, of one clock. */
export interface Ack {
  readonly client: string;
  readonly sentAt: number;
  readonly at: number;
  readonly value: number;
  /** Address of the node that answered. */
  readonly node: string;
}

/** A node has become the primary. */
export interface Promotion {
  readonly at: number;
  readonly node: string;
}

export interface Verdict {
  readonly acknowledged: number;
  /** Acknowledged, and not there any more. */
  readonly lost: readonly Ack[];
  /** Of the lost ones, those that were acknowledged after a promotion: never excusable. */
  readonly lostAfterPromotion: readonly Ack[];
  /** Sent to another node after the promoted one had answered, and acknowledged: a second writer. */
  readonly secondWriter: readonly Ack[];
}

/**
 * @param acks of all clients, in any order
 * @param promotions in the order of their times
 */
export function judge(acks: readonly Ack[], promotions: readonly Promotion[]): Verdict {
  const lost = lostOf(acks);
  return {
    acknowledged: acks.length,
    lost,
    lostAfterPromotion: lost.filter((ack) =>
      promotions.some(({ at, node }) => node !== ack.node && ack.sentAt > at && noneSince(promotions, at, ack)),
    ),
    secondWriter: secondWriters(acks, promotions),
  };
}

/** No later promotion made the node of this ack the primary again before it was sent. */
const noneSince = (promotions: readonly Promotion[], at: number, ack: Ack): boolean =>
  !promotions.some((later) => later.at > at && later.at < ack.sentAt && later.node === ack.node);

/** A counter that goes on with a value that it had before has lost everything from that value on. */
function lostOf(acks: readonly Ack[]): Ack[] {
  const lost: Ack[] = [];
  for (const client of new Set(acks.map((ack) => ack.client))) {
    const own = acks.filter((ack) => ack.client === client);
    let held: Ack[] = [];
    for (const ack of own.toSorted((a, b) => a.at - b.at)) {
      lost.push(...held.filter(({ value }) => value >= ack.value));
      held = held.filter(({ value }) => value < ack.value);
      held.push(ack);
    }
  }
  return lost;
}

function secondWriters(acks: readonly Ack[], promotions: readonly Promotion[]): Ack[] {
  const begins = promotions.map(({ node, at }) =>
    acks.reduce((first, ack) => (ack.node === node && ack.at >= at ? Math.min(first, ack.at) : first), Infinity),
  );
  return acks.filter(({ node, sentAt }) =>
    promotions.some(
      (promotion, i) => promotion.node !== node && sentAt > begins[i] && sentAt < (promotions[i + 1]?.at ?? Infinity),
    ),
  );
}

/** The longest time without an acknowledgement to these clients between two times, milliseconds. */
export function longestSilence(acks: readonly Ack[], from: number, to: number): number {
  const times = [from, ...acks.map(({ at }) => at).filter((at) => at > from && at < to), to].toSorted((a, b) => a - b);
  return Math.max(...times.slice(1).map((at, i) => at - times[i]));
}
