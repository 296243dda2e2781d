/**
 * What is guaranteed on two active-active nodes after each kind of resync, and after each kind of restart of either
 * node.
 *
 * Needs real servers: partial and full resyncs of two active KeyDB nodes, and their restarts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ActivePair,
  RESYNCS,
  otherSide,
  SIDES,
  type Resyncs,
  type RestartFrom,
  type Side,
} from '../../shadow-proxy/src/local/active-pair.js';
import { startProcess, until, type Process } from './support.js';
import { needs } from '../../shadow-proxy/test/support/needs.js';

const LIMIT = 100;
const WINDOW = { limit: LIMIT, windowMs: 1e12 };
/** Two a region, so that one can look at what the other wrote. */
type Regions = Readonly<Record<Side, readonly [Process, Process]>>;

const MIRRORED: Readonly<Record<string, Resyncs>> = {
  ...RESYNCS,
  'asymmetric the other way': { a: 'full', b: 'partial' },
};

for (const [name, resyncs] of Object.entries(MIRRORED)) {
  test(`${name}: nothing that was acknowledged is lost once every writer has written again`, async (t) => {
    if (!(await needs(t, 'keydb'))) return;
    await onPair({}, async (pair, regions) => {
      await count(regions, 50);
      await pair.settle();
      await pair.cut();
      await count(regions, 400);
      assert.deepEqual(await pair.rejoin(resyncs), resyncs, 'the heal is of the kind that was wanted');
      await everybodyHas(pair, regions, 450);
    });
  });
}

for (const from of ['rdb', 'aof', 'empty'] as const satisfies readonly RestartFrom[]) {
  for (const linked of [true, false]) {
    test(`a node restarted from ${from} while ${linked ? 'linked' : 'cut off'} loses nothing of what living writers counted`, async (t) => {
      if (!(await needs(t, 'keydb'))) return;
      await onPair({ appendonly: from === 'aof' }, async (pair, regions) => {
        await count(regions, 50);
        await pair.settle();
        if (!linked) await pair.cut();
        await count(regions, 50);
        await pair.restart('a', from);
        await count(regions, 50);
        await pair.rejoin();
        await everybodyHas(pair, regions, 150);
      });
    });
  }
}

for (const [name, resyncs] of Object.entries(MIRRORED)) {
  test(`${name}: processes that count nothing more set it right by themselves, at both nodes`, async (t) => {
    if (!(await needs(t, 'keydb'))) return;
    await onPair({ repairMs: 300 }, async (pair, regions) => {
      await pair.cut();
      await count(regions, 400);
      await pair.rejoin(resyncs);
      for (const side of SIDES) {
        const fresh = await startProcess(pair.nodes[side].port, { region: side, writer: 'fresh' });
        await until(`all is seen at ${side}`, async () => (await fresh.counters.growOnly('hits').value()) === 4 * 400);
        await fresh.close();
      }
    });
  });
}

test('what a node that restarted from its dump during a cut does not hand on is set right by itself', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await onPair({ repairMs: 300 }, async (pair, regions) => {
    await count(regions, 50);
    await pair.settle();
    await pair.cut();
    await count(regions, 50);
    await pair.restart('b', 'rdb');
    await pair.rejoin();
    const fresh = await startProcess(pair.nodes.a.port, { region: 'a', writer: 'fresh' });
    await until('all is seen at a', async () => (await fresh.counters.growOnly('hits').value()) === 4 * 100);
    await fresh.close();
  });
});

test('two regions that are cut off from each other admit at most the limit each; with whenBlind: deny, a region admits nothing once it notices the cut', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await onPair({}, async (pair, regions) => {
    const take = async (side: Side, times: number, whenBlind: 'admit' | 'deny'): Promise<number> => {
      const limiter = regions[side][0].counters.fixedWindow('cut', { ...WINDOW, whenBlind });
      let admitted = 0;
      for (let i = 0; i < times; i++) if ((await limiter.take('user')).admitted) admitted++;
      return admitted;
    };
    assert.equal(await take('a', 40, 'admit'), 40);
    await pair.settle();
    await pair.cut();
    assert.deepEqual([await take('a', 150, 'admit'), await take('b', 150, 'admit')], [60, 60]);
    await waitBlind(regions);
    assert.deepEqual([await take('a', 10, 'deny'), await take('b', 10, 'deny')], [0, 0]);
    await pair.rejoin(RESYNCS.asymmetric);
    await repairAll(regions);
    await pair.settle();
    for (const side of SIDES) {
      const stand = await regions[side][1].counters.fixedWindow('cut', WINDOW).peek('user');
      assert.deepEqual([stand.remaining, stand.blind], [0, []]);
      assert.equal(await take(side, 10, 'admit'), 0);
    }
  });
});

test('a reset takes off what it sees; what was counted behind the cut goes on counting', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  for (const resyncs of [RESYNCS.partial, RESYNCS.full, RESYNCS.asymmetric]) {
    await onPair({}, async (pair, regions) => {
      await count(regions, 10);
      await pair.settle();
      await pair.cut();
      await regions.b[0].counters.growOnly('hits').add(7);
      assert.equal(await regions.a[0].counters.growOnly('hits').reset(), 40);
      assert.equal(await regions.b[1].counters.growOnly('hits').reset(), 47);
      await regions.a[1].counters.growOnly('hits').add(500);
      await regions.b[0].counters.growOnly('hits').add(1000);
      await pair.rejoin(resyncs);
      await repairAll(regions);
      await pair.settle();
      for (const side of SIDES) assert.equal(await regions[side][1].counters.growOnly('hits').value(), 1500, side);
    });
  }
});

test('a limiter whose server restarted empty counts again what living processes admitted', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  await onPair({ repairMs: 300 }, async (pair, regions) => {
    for (const side of SIDES)
      for (const { counters } of regions[side]) await counters.slidingWindow('api', WINDOW).take('user', 25);
    await pair.settle();
    await pair.cut();
    await pair.restart('a', 'empty');
    const [first, second] = regions.a.map(({ counters }) => counters.slidingWindow('api', WINDOW));
    await until(
      'both processes of the region are counted again',
      async () => (await first.peek('user')).remaining === 50 && (await second.peek('user')).remaining === 50,
    );
    await pair.rejoin();
    for (const side of SIDES) {
      for (const { counters } of regions[side]) {
        const limiter = counters.slidingWindow('api', WINDOW);
        await until(`all is counted at ${side}`, async () => (await limiter.peek('user')).remaining === 0);
        assert.equal((await limiter.take('user')).admitted, false);
      }
    }
  });
});

test('what a process that ended during a cut has counted survives partial and full resyncs', async (t) => {
  if (!(await needs(t, 'keydb'))) return;
  for (const resyncs of [RESYNCS.partial, RESYNCS.full]) {
    await onPair({}, async (pair, regions) => {
      await pair.cut();
      const brief = await startProcess(pair.nodes.b.port, { region: 'b', writer: 'brief' });
      await brief.counters.growOnly('hits').add(1000);
      brief.crash();
      await count(regions, 50);
      await pair.rejoin(resyncs);
      const expected = 1000 + 2 * 2 * 50;
      for (const side of SIDES) {
        const reader = await startProcess(pair.nodes[side].port, { region: side, writer: 'reader' });
        assert.equal(await reader.counters.growOnly('hits').value(), expected);
        await reader.close();
      }
    });
  }
});

async function onPair(
  { appendonly = false, repairMs = 0 }: { appendonly?: boolean; repairMs?: number },
  body: (pair: ActivePair, regions: Regions) => Promise<void>,
): Promise<void> {
  const pair = await ActivePair.start({ backlogBytes: 4 << 20, appendonly });
  const open: Process[] = [];
  try {
    const join = async (side: Side): Promise<readonly [Process, Process]> => {
      const two = await Promise.all(
        [1, 2].map((i) => startProcess(pair.nodes[side].port, { region: side, writer: `app-${i}`, repairMs })),
      );
      open.push(...two);
      return [two[0], two[1]];
    };
    const regions = { a: await join('a'), b: await join('b') };
    await pair.settle();
    await body(pair, regions);
  } finally {
    for (const process of open) process.crash();
    await pair.stop();
  }
}

/** Each of the four processes counts so many, up and down, one by one. */
async function count(regions: Regions, times: number): Promise<void> {
  const all = SIDES.flatMap((side) => regions[side]);
  await Promise.all(
    all.map(async ({ counters }) => {
      for (let i = 0; i < times; i++) {
        await counters.growOnly('hits').add();
        await counters.upDown('seats').add(i % 2 === 0 ? 5 : -3);
      }
    }),
  );
}

const repairAll = (regions: Regions): Promise<unknown> =>
  Promise.all(SIDES.flatMap((side) => regions[side].map(({ counters }) => counters.repair())));

/** Every process, and one that has just come to each node, sees all that was counted: `times` by each of the four. */
async function everybodyHas(pair: ActivePair, regions: Regions, times: number): Promise<void> {
  await repairAll(regions);
  await pair.settle();
  for (const side of SIDES) {
    const fresh = await startProcess(pair.nodes[side].port, { region: side, writer: 'fresh' });
    for (const { counters } of [...regions[side], fresh]) {
      assert.equal(await counters.growOnly('hits').value(), 4 * times, `hits in ${side}`);
      assert.equal(await counters.upDown('seats').value(), 4 * times, `seats in ${side}`);
      assert.deepEqual(counters.blind(), [], `all regions are in sight of ${side}, ${otherSide(side)} too`);
    }
    await fresh.close();
  }
}

async function waitBlind(regions: Regions): Promise<void> {
  for (const side of SIDES) await until(`${side} is blind`, () => regions[side][0].counters.blind().length > 0);
}
