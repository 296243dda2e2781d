/** The ways from stage to stage. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatPoint, STAGES, stageRule, type Stage, type StagePoint } from '../../../src/route/stage.js';
import {
  authorityLeft,
  authorityMoves,
  channelsMove,
  isLater,
  nextShare,
  nextStage,
  rollbackStage,
  stagesFrom,
  stagesTo,
  TRANSITIONS,
  transitionOf,
} from '../../../src/route/transitions.js';

const at = (stage: Stage, percent = 100): StagePoint => ({ stage, percent });
const pairs = STAGES.flatMap((from) => STAGES.map((to) => [from, to] as const));

test('a stage has its neighbours, and rampdown a short way back to shadow', () => {
  assert.deepEqual(
    pairs.filter(([from, to]) => transitionOf(from, to) !== null).map((pair) => pair.join(' → ')),
    [
      ...['off → dualwrite', 'dualwrite → off', 'dualwrite → shadow', 'shadow → dualwrite', 'shadow → live'],
      ...['live → shadow', 'live → live', 'live → rampdown'],
      ...['rampdown → shadow', 'rampdown → live', 'rampdown → complete'],
    ],
  );
  assert.deepEqual(stagesFrom('live'), ['rampdown', 'shadow']);
  assert.deepEqual(stagesFrom('complete'), []);
});

test('counters per region are moved from off to complete, and nowhere else', () => {
  assert.deepEqual(
    pairs.filter(([from, to]) => transitionOf(from, to, true) !== null),
    [['off', 'complete']],
  );
  assert.equal(nextStage('off', true), 'complete');
});

test('no transition is there twice, and gates are on the way forward only', () => {
  const names = TRANSITIONS.map(({ from, to, perRegion }) => `${from} ${to} ${perRegion}`);
  assert.equal(new Set(names).size, names.length);
  for (const { from, to, forward, gates } of TRANSITIONS) {
    assert.equal(forward, from === to || STAGES.indexOf(to) > STAGES.indexOf(from), `${from} ${to}`);
    assert.equal(gates.length > 0, forward, `${from} ${to}`);
    assert.equal(new Set(gates).size, gates.length, `${from} ${to}`);
  }
});

test('a workload goes forward stage by stage, and back to where clients get the replies of the source', () => {
  assert.deepEqual(
    STAGES.map((stage) => nextStage(stage)),
    ['dualwrite', 'shadow', 'live', 'rampdown', 'complete', null],
  );
  assert.deepEqual(STAGES.map(rollbackStage), [null, 'off', 'dualwrite', 'shadow', 'shadow', null]);
  for (const stage of STAGES.map(rollbackStage))
    if (stage !== null) assert.equal(stageRule(stage).authority, 'source', stage);
});

test('the shortest way leads through stages that may follow each other', () => {
  assert.deepEqual(stagesTo('rampdown', 'off', true), ['shadow', 'dualwrite', 'off']);
  assert.deepEqual(stagesTo('rampdown', 'live', true), ['live']);
  assert.deepEqual(stagesTo('off', 'rampdown'), ['dualwrite', 'shadow', 'live', 'rampdown']);
  assert.deepEqual(stagesTo('live', 'live'), []);
  assert.equal(stagesTo('shadow', 'live', true), null);
  assert.equal(stagesTo('complete', 'shadow'), null);
  for (const [from, to] of pairs) {
    const way = stagesTo(from, to);
    assert.equal(way === null, from === 'complete' && to !== 'complete', `${from} ${to}`);
    for (const [i, stage] of (way ?? []).entries())
      assert.notEqual(transitionOf(i === 0 ? from : way![i - 1], stage), null, `${from} ${to}`);
  }
});

test('live takes 1, 10, 50, then all of the keys', () => {
  const points = [at('shadow'), at('live', 1), at('live', 5), at('live', 10), at('live', 50), at('live', 100)];
  assert.deepEqual(points.map(nextShare), [1, 10, 10, 50, 100, 100]);
});

test('a larger share of live is later, and keys change their authority with it', () => {
  const points = [at('off'), at('dualwrite'), at('shadow'), at('live', 1), at('live', 50), at('live'), at('rampdown')];
  const all = [...points, at('complete')];
  for (const [i, from] of all.entries())
    for (const [j, to] of all.entries()) {
      const name = `${formatPoint(from)} → ${formatPoint(to)}`;
      const [share, next] = [from, to].map((point) => Math.max(0, [0, 0, 0, 1, 50, 100, 100, 100][all.indexOf(point)]));
      assert.equal(isLater(from, to), j > i, name);
      assert.equal(authorityMoves(from, to), share !== next, name);
      assert.deepEqual(authorityLeft(from, to), share === next ? [] : [next > share ? 'source' : 'target'], name);
    }
});

test('channels move when all keys have', () => {
  assert.equal(channelsMove(at('shadow'), at('live', 50)), null);
  assert.equal(channelsMove(at('live', 50), at('live')), 'target');
  assert.equal(channelsMove(at('live'), at('rampdown')), null);
  assert.equal(channelsMove(at('rampdown'), at('shadow')), 'source');
});
