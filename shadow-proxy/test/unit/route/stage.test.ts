/** What each stage means, and which servers answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  authoritiesOf,
  canReturn,
  formatPoint,
  isMirrored,
  otherSide,
  stageRule,
  STAGES,
} from '../../../src/route/stage.js';

test('each stage has its authority, and the commands that are replicated to the mirror', () => {
  const row = (stage: (typeof STAGES)[number]): readonly [string, string, boolean, boolean] => {
    const { authority, mirrorsWrites, mirrorsReads } = stageRule(stage);
    return [stage, authority, mirrorsWrites, mirrorsReads];
  };
  assert.deepEqual(STAGES.map(row), [
    ['off', 'source', false, false],
    ['dualwrite', 'source', true, false],
    ['shadow', 'source', true, true],
    ['live', 'target', true, true],
    ['rampdown', 'target', true, false],
    ['complete', 'target', false, false],
  ]);
});

test('writes go to both servers between off and complete, and from two of these stages clients can go back', () => {
  assert.deepEqual(STAGES.filter(isMirrored), ['dualwrite', 'shadow', 'live', 'rampdown']);
  assert.deepEqual(STAGES.filter(canReturn), ['live', 'rampdown']);
});

test('the percentage is said of a stage that is live in part', () => {
  assert.equal(formatPoint({ stage: 'live', percent: 10 }), 'live 10 %');
  assert.equal(formatPoint({ stage: 'live', percent: 99 }), 'live 99 %');
  assert.equal(formatPoint({ stage: 'live', percent: 100 }), 'live');
  assert.equal(formatPoint({ stage: 'shadow', percent: 10 }), 'shadow');
});

test('the servers that answer are those of all stages, the source too where live is not whole', () => {
  assert.deepEqual(authoritiesOf([]), []);
  assert.deepEqual(authoritiesOf([{ stage: 'shadow', percent: 100 }]), ['source']);
  assert.deepEqual(authoritiesOf([{ stage: 'live', percent: 100 }]), ['target']);
  assert.deepEqual(authoritiesOf([{ stage: 'live', percent: 99 }]), ['target', 'source']);
  assert.deepEqual(authoritiesOf([{ stage: 'complete', percent: 50 }]), ['target']);
  assert.deepEqual(
    authoritiesOf([
      { stage: 'off', percent: 100 },
      { stage: 'rampdown', percent: 100 },
      { stage: 'shadow', percent: 100 },
    ]),
    ['source', 'target'],
  );
  assert.deepEqual([otherSide('source'), otherSide('target')], ['target', 'source']);
});
