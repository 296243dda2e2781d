/**
 * One round: every layout is written on all nodes while their links are in one situation; then they are restored, and
 * each node is asked.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Resyncs } from '../../../shadow-proxy/src/local/active-nodes.js';
import type { Kind, Layout } from './layouts.js';
import type { Mesh, Name } from './mesh.js';
import { NOTHING, sumOf, type Driven, type Place } from './place.js';

export const SITUATIONS = ['connected', 'partial', 'full', 'asymmetric', 'isolated', 'link'] as const;
/** The links are up and 40 ms long; or they were cut, and the nodes resynced so. */
export type Situation = (typeof SITUATIONS)[number];

interface Cut {
  readonly between?: (one: Name, other: Name) => boolean;
  readonly resyncs: Resyncs<Name>;
}

const FULL: Resyncs<Name> = { a: 'full', b: 'full', c: 'full' };
const CUTS: Readonly<Record<Exclude<Situation, 'connected'>, Cut>> = {
  partial: { resyncs: { a: 'partial', b: 'partial', c: 'partial' } },
  full: { resyncs: FULL },
  asymmetric: { resyncs: { ...FULL, a: 'partial' } },
  // Of three: C is cut off from both others; the link between A and C is cut, and B passes on what they write.
  isolated: { between: (_one, other) => other === 'c', resyncs: FULL },
  link: { between: (one, other) => one === 'a' && other === 'c', resyncs: { ...FULL, b: 'partial' } },
};

/** Those that there are with so many nodes. */
export const situationsOf = (nodes: number): Situation[] =>
  SITUATIONS.filter((each) => {
    if (each === 'asymmetric') return nodes === 2;
    return nodes === 3 || (each !== 'isolated' && each !== 'link');
  });

export interface Outcome extends Driven {
  readonly layout: string;
  readonly situation: Situation;
  readonly round: number;
  /** What each node says. */
  readonly counted: Readonly<Partial<Record<Name, number>>>;
}

const DELAY_MS = 40;
/** A relay has let go of what it held, and what came is read. */
const REST_MS = 300;

/** The resync was not the one that was asked for: what follows would have the wrong name. */
export class WrongResync extends Error {}

/** @param drives how each layout is driven */
export async function playRound(
  { mesh, proxies }: Pick<Place, 'mesh' | 'proxies'>,
  kinds: readonly Kind[],
  drives: (kind: Kind) => Place['drive'],
  situation: Situation,
  round: number,
): Promise<Outcome[]> {
  const prefix = `drill:${situation}:${round}`;
  const layouts: Layout[] = [];
  try {
    for (const kind of kinds) layouts.push(await kind.open({ mesh, proxies, prefix, drive: drives(kind) }));
    const before = await each(layouts, (layout) => layout.before?.());
    await mesh.settle();
    const driven = await inSituation(mesh, situation, () => each(layouts, (layout) => layout.drive()));
    const again = await each(layouts, (layout) => layout.again?.());
    await mesh.settle();
    await sleep(REST_MS);
    const outcomes: Outcome[] = [];
    for (const [i, { name }] of kinds.entries()) {
      const counted: Partial<Record<Name, number>> = {};
      for (const node of mesh.names) counted[node] = await layouts[i].count(node);
      const { attempted, acknowledged } = [before[i], driven[i], again[i]].reduce(sumOf);
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

async function inSituation(mesh: Mesh, situation: Situation, work: () => Promise<Driven[]>): Promise<Driven[]> {
  if (situation === 'connected') {
    mesh.delay(DELAY_MS);
    try {
      return await work();
    } finally {
      mesh.delay(0);
    }
  }
  const { between, resyncs } = CUTS[situation];
  await mesh.cut(between);
  const driven = await work();
  const was = await mesh.rejoin(resyncs);
  if (mesh.names.some((name) => was[name] !== resyncs[name])) {
    const each = mesh.names.map((name) => `${was[name]} for ${name.toUpperCase()}`).join(', ');
    throw new WrongResync(`the resync of "${situation}" was ${each}`);
  }
  return driven;
}
