/**
 * Plain counters on two active-active nodes: every kind of resync and restart, expiries and deletes that fall into a
 * cut, and random histories of these.
 *
 * Needs real servers: partial and full resyncs of two active KeyDB nodes, with plain counters.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import {
  ActivePair,
  RESYNCS,
  SIDES,
  type Resyncs,
  type RestartFrom,
  type Side,
} from '../../shadow-proxy/src/local/active-pair.js';
import type { PlainCounters } from '../src/index.js';
import { startProcess, until, type Process } from './support.js';
import { needs } from '../../shadow-proxy/test/support/needs.js';

const GRACE_MS = 1000;
const MIRRORED: Readonly<Record<string, Resyncs>> = {
  ...RESYNCS,
  'asymmetric the other way': { a: 'full', b: 'partial' },
};

class Regions {
  readonly plain: Record<Side, PlainCounters>;

  private constructor(
    readonly pair: ActivePair,
    readonly processes: Record<Side, Process>,
  ) {
    this.plain = { a: this.#plain('a'), b: this.#plain('b') };
  }

  static async run(body: (regions: Regions) => Promise<void>): Promise<void> {
    const pair = await ActivePair.start({ backlogBytes: 4 << 20, appendonly: true });
    const start = (side: Side): Promise<Process> =>
      startProcess(pair.nodes[side].port, { region: side, writer: 'proxy', refreshMs: 50, repairMs: 100 });
    const regions = new Regions(pair, { a: await start('a'), b: await start('b') });
    try {
      await body(regions);
    } finally {
      for (const side of SIDES) regions.processes[side].crash();
      await pair.stop();
    }
  }

  #plain(side: Side): PlainCounters {
    return this.processes[side].counters.plain({ graceMs: GRACE_MS, tendMs: 20 });
  }

  /** What both regions see of a name once nothing is on its way; null: there is no such counter. */
  async value(name: string): Promise<readonly (number | null)[]> {
    return Promise.all(
      SIDES.map(async (side) => this.plain[side].look([name]).then(([found]) => (found.exists ? found.value : null))),
    );
  }

  async bothSee(name: string, expected: number | null): Promise<void> {
    let seen: readonly unknown[] = [];
    await until(`both see ${expected} in ${name}, not ${String(seen)}`, async () =>
      (seen = await this.value(name)).every((each) => each === expected),
    ).catch(async (problem: Error) => {
      const parts = await Promise.all(
        SIDES.map(async (side) =>
          Promise.all(
            (await this.pair.clients[side].keys(`counters:{${name}}:*`)).map(
              async (key) => `${side} ${key} ${await this.pair.clients[side].get(key)}`,
            ),
          ),
        ),
      );
      throw new Error(`${problem.message}; they see ${seen.join()}: ${parts.flat().join('; ')}`);
    });
  }

  /** A process of the region ends suddenly, and the next one begins. */
  async restart(side: Side): Promise<void> {
    this.processes[side].crash();
    this.processes[side] = await startProcess(this.pair.nodes[side].port, {
      region: side,
      writer: 'proxy',
      refreshMs: 50,
      repairMs: 100,
    });
    this.plain[side] = this.#plain(side);
  }
}

const many = (plain: PlainCounters, name: string, times: number): Promise<unknown> =>
  Promise.all(Array.from({ length: times }, () => plain.add(name)));

for (const [name, resyncs] of Object.entries(MIRRORED)) {
  test(`${name}: counts, ends and deletes of both sides hold`, async (t) => {
    if (!(await needs(t, 'keydb'))) return;
    await Regions.run(async (regions) => {
      const { pair, plain } = regions;
      await Promise.all(
        SIDES.flatMap((side) => ['kept', 'ends', 'deleted', 'reborn'].map((counter) => many(plain[side], counter, 50))),
      );
      await pair.settle();
      await pair.cut();
      await Promise.all(SIDES.map((side) => many(plain[side], 'kept', 200)));
      assert.equal(await plain.a.expireAt('ends', Date.now() + 200), true);
      assert.equal(await plain.b.delete('deleted'), true);
      assert.equal(await plain.a.delete('reborn'), true);
      await many(plain.b, 'reborn', 7);
      await many(plain.a, 'reborn', 5);
      // Longer than parts are kept after their end, were it not for the cut.
      await sleep(4 * GRACE_MS);
      assert.deepEqual(await pair.rejoin(resyncs), resyncs);
      await regions.bothSee('kept', 500);
      await regions.bothSee('ends', null);
      await regions.bothSee('deleted', null);
      await regions.bothSee('reborn', 12);
    });
  });
}

test('the next process of a region goes on with what the last one counted, in a cut as well', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  for (const resyncs of [RESYNCS.partial, RESYNCS.full]) {
    await Regions.run(async (regions) => {
      await Promise.all(SIDES.map((side) => many(regions.plain[side], 'n', 100)));
      await regions.pair.settle();
      await regions.pair.cut();
      await many(regions.plain.a, 'n', 10);
      await regions.restart('a');
      await many(regions.plain.a, 'n', 10);
      await regions.pair.rejoin(resyncs);
      await regions.bothSee('n', 220);
      assert.equal(await regions.plain.b.delete('n'), true);
      await regions.pair.settle();
      await regions.bothSee('n', null);
      assert.equal(await regions.plain.a.add('n'), 1);
    });
  }
});

type Step =
  | { readonly do: 'add'; readonly side: Side; readonly name: string; readonly times: number }
  | { readonly do: 'end' | 'delete'; readonly side: Side; readonly name: string }
  | { readonly do: 'cut' | 'wait' }
  | { readonly do: 'rejoin'; readonly resyncs: Resyncs }
  | { readonly do: 'restart node'; readonly side: Side; readonly from: RestartFrom };

const side = fc.constantFrom(...SIDES);
const name = fc.constantFrom('x', 'y', 'z');
const kind = fc.constantFrom('partial' as const, 'full' as const);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('add' as const), side, name, times: fc.integer({ min: 1, max: 40 }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('end' as const, 'delete' as const), side, name }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('cut' as const, 'wait' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('rejoin' as const), resyncs: fc.record({ a: kind, b: kind }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('restart node' as const),
      side,
      from: fc.constantFrom<RestartFrom>('rdb', 'aof', 'empty'),
    }),
  },
);

/**
 * Expiries are set and keys are deleted while both sides see everything: then what is left is known. They may be far in
 * the past when the link is restored: a key that has expired must not reappear.
 */
async function runHistory(steps: readonly Step[]): Promise<void> {
  await Regions.run(async (regions) => {
    const { pair, plain } = regions;
    const counted = new Map<string, number>();
    let cut = false;
    const check = async (): Promise<void> => {
      for (const each of ['x', 'y', 'z']) await regions.bothSee(each, counted.get(each) ?? null);
    };
    for (const each of [...steps, { do: 'rejoin', resyncs: RESYNCS.full } as const]) {
      switch (each.do) {
        case 'add':
          await many(plain[each.side], each.name, each.times);
          counted.set(each.name, (counted.get(each.name) ?? 0) + each.times);
          break;
        case 'end':
        case 'delete':
          if (cut) break;
          await check();
          if (each.do === 'delete') assert.equal(await plain[each.side].delete(each.name), counted.has(each.name));
          else if (await plain[each.side].expireAt(each.name, Date.now() + 50)) await sleep(100);
          counted.delete(each.name);
          await pair.settle();
          await check();
          break;
        case 'cut':
          if (!cut) await pair.settle().then(() => pair.cut());
          cut = true;
          break;
        case 'wait':
          await sleep(2 * GRACE_MS);
          break;
        case 'rejoin':
          if (cut) await pair.rejoin(each.resyncs);
          cut = false;
          await check();
          break;
        case 'restart node':
          if (!cut) await pair.settle();
          await pair.restart(each.side, each.from);
          if (!cut) await check();
      }
    }
  });
}

const MINUTES = Number(process.env.RANDOM_MINUTES ?? 3);

test(`random histories with ends and deletes for ${MINUTES} minutes`, async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  let runs = 0;
  const property = fc.asyncProperty(fc.array(step, { minLength: 25, maxLength: 25 }), async (steps) => {
    await runHistory(steps);
    runs++;
  });
  const seed = process.env.RANDOM_SEED === undefined ? {} : { seed: Number(process.env.RANDOM_SEED) };
  await fc.assert(property, {
    ...seed,
    numRuns: 10_000,
    interruptAfterTimeLimit: MINUTES * 60_000,
    markInterruptAsFailure: false,
    endOnFailure: true,
  });
  t.diagnostic(`${runs} histories of 25 steps`);
});
