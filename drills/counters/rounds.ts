/**
 * One round: every layout is written on both nodes while their link is in one situation; then it is restored, and both
 * are counted.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { HEALS, SIDES, type ActivePair, type Side } from '../../shadow-proxy/src/local/active-pair.js';
import type { Kind, Layout } from './layouts.js';
import { both, NOTHING, type Driven, type Place } from './place.js';

export const SITUATIONS = ['connected', 'partial', 'full', 'asymmetric'] as const;
/** The link is up and 40 ms long; or it was cut, and the nodes resynced so. */
export type Situation = (typeof SITUATIONS)[number];

export interface Outcome extends Driven {
  readonly layout: string;
  readonly situation: Situation;
  readonly round: number;
  readonly counted: Readonly<Record<Side, number>>;
}

const DELAY_MS = 40;
/** A relay has let go of what it held, and what came is read. */
const REST_MS = 300;

/** The resync was not the one that was asked for: what follows would have the wrong name. */
export class WrongHeal extends Error {}

/** @param drives how each layout is driven */
export async function playRound(
  { pair, proxies }: Pick<Place, 'pair' | 'proxies'>,
  kinds: readonly Kind[],
  drives: (kind: Kind) => Place['drive'],
  situation: Situation,
  round: number,
): Promise<Outcome[]> {
  const prefix = `drill:${situation}:${round}`;
  const layouts: Layout[] = [];
  try {
    for (const kind of kinds) layouts.push(await kind.open({ pair, proxies, prefix, drive: drives(kind) }));
    const before = await each(layouts, (layout) => layout.before?.());
    await pair.settle();
    const driven = await inSituation(pair, situation, () => each(layouts, (layout) => layout.drive()));
    const again = await each(layouts, (layout) => layout.again?.());
    await pair.settle();
    await sleep(REST_MS);
    const outcomes: Outcome[] = [];
    for (const [i, { name }] of kinds.entries()) {
      const counted = { a: await layouts[i].count('a'), b: await layouts[i].count('b') };
      const { attempted, acknowledged } = [before[i], driven[i], again[i]].reduce(both);
      outcomes.push({ layout: name, situation, round, attempted, acknowledged, admitted: driven[i].admitted, counted });
    }
    return outcomes;
  } finally {
    for (const layout of layouts) await layout.close?.().catch(() => undefined);
  }
}

/** One after the other, so that none waits for the other's load. */
async function each(
  layouts: readonly Layout[],
  work: (layout: Layout) => Promise<Driven> | undefined,
): Promise<Driven[]> {
  const all: Driven[] = [];
  for (const layout of layouts) all.push((await work(layout)) ?? NOTHING);
  return all;
}

async function inSituation(pair: ActivePair, situation: Situation, work: () => Promise<Driven[]>): Promise<Driven[]> {
  if (situation === 'connected') {
    pair.delay(DELAY_MS);
    try {
      return await work();
    } finally {
      pair.delay(0);
    }
  }
  await pair.cut();
  const driven = await work();
  const was = await pair.heal(HEALS[situation]);
  if (SIDES.some((side) => was[side] !== HEALS[situation][side]))
    throw new WrongHeal(`a heal that was to be ${situation} was ${was.a} for one node and ${was.b} for the other`);
  return driven;
}
