/** One round: a fault, then everything is as before, then what it cost. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Host } from '../../rehearsal/hosts/hosts.js';
import type { Crew } from './crew.js';
import type { Fault, Field } from './faults.js';
import { judge, longestSilence, type Verdict } from './ledger.js';

export interface Outcome {
  readonly fault: string;
  readonly round: number;
  readonly acknowledged: number;
  readonly promotions: number;
  /** The longest time in which no client beside the cut was answered, milliseconds. */
  readonly silenceMs: number;
  readonly lost: number;
  /** From the oldest lost acknowledgement to the fault, milliseconds: how far the promoted replica was behind. */
  readonly behindMs: number;
  /** From the fault to the last lost acknowledgement: how long a primary that was cut off still took writes. */
  readonly resumedMs: number;
  readonly lostAfterPromotion: number;
  readonly secondWriter: number;
}

/** How long a target may take until a round counts as failed. */
const SETTLE_MS = 120_000;
/** Before and after each fault, with everything in order. */
const CALM_MS = 2_000;

/** What the nodes say of themselves now. */
export interface Survey {
  readonly primaries: readonly Host[];
  readonly inStep: readonly Host[];
  /** Address of the primary as most Sentinels say; null where they do not agree. */
  readonly named: string | null;
}

export type Look = () => Promise<Survey>;

/** Until one node is the primary, most Sentinels agree, and all others are in step with it. @returns the primary */
export async function settled(look: Look, { nodes }: Field): Promise<Host> {
  let last: Survey | null = null;
  for (const deadline = Date.now() + SETTLE_MS; Date.now() < deadline; await sleep(250)) {
    last = await look();
    const [primary, ...more] = last.primaries;
    if (primary && more.length === 0 && last.named === primary.address && last.inStep.length === nodes.length - 1) {
      return primary;
    }
  }
  const names = (hosts: readonly Host[]): string => hosts.map(({ name }) => name).join(', ') || 'none';
  throw new Error(
    `after ${SETTLE_MS / 1000} s: primaries ${names(last!.primaries)}, in step ${names(last!.inStep)}, the Sentinels name ${last!.named ?? 'nobody'}`,
  );
}

/** @param beside names of clients that a fault of the primary's network does not cut off */
export async function playRound(
  field: Field,
  crew: Crew,
  look: Look,
  fault: Fault,
  round: number,
  beside: (client: string) => boolean,
): Promise<Outcome> {
  crew.forget();
  const primary = await settled(look, field);
  await sleep(CALM_MS);
  const began = Date.now();
  await fault.play(field, primary, round);
  await settled(look, field);
  await sleep(CALM_MS);
  const { acks, promotions } = crew;
  const verdict: Verdict = judge(acks, promotions);
  const since = promotions.filter(({ at }) => at > began);
  return {
    fault: fault.name,
    round,
    acknowledged: verdict.acknowledged,
    promotions: since.length,
    silenceMs: longestSilence(
      acks.filter(({ client }) => beside(client)),
      began,
      Date.now(),
    ),
    lost: verdict.lost.length,
    behindMs: Math.max(0, ...verdict.lost.map(({ at }) => began - at)),
    resumedMs: Math.max(0, ...verdict.lost.map(({ at }) => at - began)),
    lostAfterPromotion: verdict.lostAfterPromotion.length,
    secondWriter: verdict.secondWriter.length,
  };
}
