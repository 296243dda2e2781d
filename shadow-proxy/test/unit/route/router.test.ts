/** Which workload a key belongs to, and what its stage means for it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Router, type WorkloadDefinition } from '../../../src/route/router.js';
import type { Stage } from '../../../src/route/stage.js';

const workload = (name: string, more: Partial<WorkloadDefinition> = {}): WorkloadDefinition => ({
  name,
  keys: [`${name}:*`],
  stage: 'shadow',
  percent: 100,
  ...more,
});
const REST = { stage: 'shadow', percent: 100 } as const;
const router = (...definitions: readonly WorkloadDefinition[]): Router => new Router(definitions, REST);
const b = (text: string): Buffer => Buffer.from(text);
const match = (of: Router, key: string): string => of.match(b(key), 0, key.length).name;
const inStage = (stage: Stage, percent = 100): Router => new Router([workload('a', { stage, percent })], REST);

test('the first workload with a pattern that has the key has it; default has the rest', () => {
  const of = router(workload('a', { keys: ['a:*', 'both:*'] }), workload('b', { keys: ['b:*', 'both:*'] }));
  assert.deepEqual(
    ['a:1', 'b:1', 'both:1', 'c'].map((key) => match(of, key)),
    ['a', 'b', 'a', 'default'],
  );
  assert.equal(of.match(b('xa:1x'), 1, 4).name, 'a', 'a key inside of a buffer');
  assert.equal(of.default.name, 'default');
  assert.deepEqual(
    of.workloads.map(({ index, name }) => [index, name]),
    [
      [0, 'a'],
      [1, 'b'],
      [2, 'default'],
    ],
  );
  assert.equal(of.named('b'), of.workloads[1]);
  assert.equal(of.named('nobody'), undefined);
  assert.deepEqual(
    ['both:1', 'a:1', 'c'].map((key) => of.workloads[0].patternOf(b(key))),
    ['both:*', 'a:*', null],
  );
});

test('keys of other shards have a workload of their own, which only the source serves', () => {
  const of = new Router([workload('a')], REST, (key, start) => key[start] === 'x'.charCodeAt(0));
  assert.deepEqual(
    ['a:1', 'x:1', 'c'].map((key) => match(of, key)),
    ['a', 'other shards', 'default'],
  );
  assert.equal(of.otherShards.position.stage, 'off');
  assert.equal(of.otherShards.index, 2);
  assert.equal(of.byPattern(b('a:1')).name, 'a');
  assert.equal(of.byPattern(b('x:1')).name, 'default');
});

test('channels have the workload whose patterns have them, patterns of channels the one that has that very pattern', () => {
  const of = router(workload('a', { channels: ['news.*'] }), workload('b'));
  assert.equal(of.channel(b('news.1'), 0, 6).name, 'a');
  assert.equal(of.channel(b('xnews.1'), 1, 7).name, 'a');
  assert.equal(of.channel(b('a:1'), 0, 3).name, 'default', 'patterns of keys are not those of channels');
  assert.equal(of.channelPattern('news.*').name, 'a');
  assert.equal(of.channelPattern('news.1').name, 'default');
});

test('a percentage is of the hash slots, and only of live', () => {
  const rule = (percent: number, key: string, stage: Stage = 'live'): string => {
    const { workloads } = inStage(stage, percent);
    return workloads[0].position.rule(b(key), 0, key.length).authority;
  };
  // 'foo' has slot 12182: it is live from ceil(12183 / 16384) on.
  assert.deepEqual(
    [0, 74, 75, 100].map((percent) => rule(percent, 'foo')),
    ['source', 'source', 'target', 'target'],
  );
  // '' has slot 0.
  assert.deepEqual([rule(0, ''), rule(1, '')], ['source', 'target']);
  // 'hello' has slot 866, 'foo{bar}' that of 'bar', 5061.
  assert.deepEqual([rule(5, 'hello'), rule(6, 'hello')], ['source', 'target']);
  assert.equal(rule(31, 'foo{bar}'), 'target');
  assert.equal(rule(30, 'foo{bar}'), 'source');
  assert.equal(rule(1, 'foo', 'rampdown'), 'target', 'of another stage, all keys');
  assert.equal(
    inStage('live', 10).workloads[0].position.rule(b('foo'), 0, 3).mirrorsReads,
    true,
    'the others as in shadow',
  );
});

test('a stage change takes effect at once, and is counted', () => {
  const router = inStage('shadow');
  const [a] = router.workloads;
  const { position } = a;
  const before = position.moves;
  router.move(a, { stage: 'live', percent: 10 });
  assert.deepEqual([position.stage, position.percent, position.whole, position.moves - before], ['live', 10, false, 1]);
  assert.equal(position.keylessRule.authority, 'source', 'without a key, the source answers until all is live');
  router.move(a, { stage: 'live', percent: 100 });
  assert.deepEqual(
    [position.stage, position.percent, position.whole, position.keylessRule.authority],
    ['live', 100, true, 'target'],
  );
  router.move(a, { stage: 'rampdown', percent: 10 });
  assert.deepEqual([position.stage, position.percent, position.whole], ['rampdown', 100, true]);
});

test('a flip holds one workload, and lets it go on', () => {
  const router = inStage('shadow');
  const [a, rest] = router.workloads;
  const endHold = router.hold(a);
  router.setMoving(a, true);
  assert.deepEqual(
    [a, rest].map(({ position }) => [position.held, position.moving]),
    [
      [true, true],
      [false, false],
    ],
  );
  endHold();
  router.setMoving(a, false);
  assert.deepEqual([a.position.held, a.position.moving], [false, false]);
});

test('commands that two hold go on when both have let them go', () => {
  const router = inStage('shadow');
  const [a] = router.workloads;
  const [first, second] = [router.hold(a), router.hold(a)];
  first();
  first();
  assert.equal(a.position.held, true);
  second();
  assert.equal(a.position.held, false);
});

test('all keys have one rule, or one authority, only where every workload is whole', () => {
  const of = (a: Stage, rest: Stage, percent = 100): readonly boolean[] => {
    const { uniform, oneAuthority } = new Router([workload('a', { stage: a, percent })], { stage: rest, percent: 100 });
    return [uniform, oneAuthority];
  };
  assert.deepEqual(of('shadow', 'shadow'), [true, true]);
  assert.deepEqual(of('dualwrite', 'shadow'), [false, true]);
  assert.deepEqual(of('live', 'shadow'), [false, false]);
  assert.deepEqual(of('live', 'shadow', 10), [false, false], 'one in part, though its keyless rule is the same');
  assert.deepEqual(of('live', 'rampdown'), [false, true]);
});

test('writes are mirrored where any workload has them mirrored', () => {
  const mirrors = (a: Stage, rest: Stage): boolean =>
    new Router([workload('a', { stage: a })], { stage: rest, percent: 100 }).mirrors;
  assert.deepEqual(
    [mirrors('off', 'off'), mirrors('off', 'complete'), mirrors('dualwrite', 'off')],
    [false, false, true],
  );
});

test('a workload is written in another region if that region is its one writer', () => {
  const of = (writer: string | null | undefined, region: string | null, rest?: string | null): readonly unknown[] => {
    const built = new Router([workload('a', { writer })], { ...REST, writer: rest }, null, region);
    return [built.workloads[0].writtenIn, built.default.writtenIn, built.pinsOtherRegion];
  };
  assert.deepEqual(of('eu', 'eu'), [null, null, false]);
  assert.deepEqual(of('us', 'eu'), ['us', null, true]);
  assert.deepEqual(of(undefined, 'eu'), [null, null, false]);
  assert.deepEqual(of(null, 'eu'), [null, null, false]);
  assert.deepEqual(of(null, 'eu', 'us'), [null, 'us', true]);
  assert.deepEqual(of(null, 'eu', 'eu'), [null, null, false]);
  assert.equal(router(workload('a')).secondWriter, 'refuse');
});

test('commands are rewritten where the layout is per-region and the target answers', () => {
  const rewritten = (stage: Stage, counterLayout?: string): readonly boolean[] => {
    const of = router(workload('a', { stage, counterLayout }), workload('b'));
    return [of.rewrites, of.workloads[0].perRegion, of.workloads[0].isRewritten];
  };
  assert.deepEqual(rewritten('live', 'per-region'), [true, true, true]);
  assert.deepEqual(rewritten('shadow', 'per-region'), [true, true, false]);
  assert.deepEqual(rewritten('live', 'plain'), [false, false, false]);
  assert.deepEqual(rewritten('live'), [false, false, false]);
});
