/** What stands before a workload: its next stage, and the gates of that stage. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WorkloadEvidence } from '../../../src/storage/evidence.js';
import type { GateFacts } from '../../../src/stages/gate-facts.js';
import type { Gate } from '../../../src/stages/gates.js';
import { nextStageOf } from '../../../src/stages/next-stage.js';
import { nextPoint, type PromotionState } from '../../../src/stages/promotion.js';

const NOW = new Date('2026-03-04T12:00:00Z');
const evidence = { stage: 'shadow' } as WorkloadEvidence;
const facts = { evidence, latencies: [] as GateFacts['latencies'] } as GateFacts;
const GATE = { name: 'time' } as Gate;
const standing = (
  stage: PromotionState['stage'],
  percent = 100,
  more: Partial<PromotionState> = {},
): PromotionState => ({
  stage,
  percent,
  spanning: 0,
  perRegion: false,
  ...more,
});

test('the gates are those from the present point to the next one', () => {
  const asked: unknown[] = [];
  const next = nextStageOf({ name: 'sessions', class: 'general' }, standing('live', 10), facts, NOW, (...args) => {
    asked.push(...args);
    return [GATE];
  });
  assert.deepEqual(asked, [facts, { stage: 'live', percent: 10 }, { stage: 'live', percent: 50 }, NOW]);
  assert.deepEqual(next, {
    workload: 'sessions',
    class: 'general',
    from: { stage: 'live', percent: 10 },
    to: { stage: 'live', percent: 50 },
    gates: [GATE],
    evidence,
    latency: [],
  });
});

test('after complete nothing comes, and no gate is judged', () => {
  const next = nextStageOf({ name: 'a', class: 'general' }, standing('complete'), facts, NOW, () =>
    assert.fail('a gate was judged'),
  );
  assert.deepEqual([next.from, next.to, next.gates], [{ stage: 'complete', percent: 100 }, null, []]);
  assert.throws(() => nextPoint(standing('complete')), { code: 'no-return' });
});

test('each stage has one next stage; live goes by 1, 10, 50 and 100 % of the keys', () => {
  const path: string[] = [];
  for (let at: PromotionState = standing('off'); at.stage !== 'complete';) {
    const { stage, percent } = nextPoint(at);
    path.push(stage === 'live' ? `${stage} ${percent}` : stage);
    at = standing(stage, percent);
  }
  assert.deepEqual(path, ['dualwrite', 'shadow', 'live 1', 'live 10', 'live 50', 'live 100', 'rampdown', 'complete']);
  // Commands that span hash slots cannot be moved by shares of the keys.
  assert.deepEqual(nextPoint(standing('shadow', 100, { spanning: 1 })), { stage: 'live', percent: 100 });
  // A counter with one part per region moves in one step.
  assert.deepEqual(nextPoint(standing('off', 100, { perRegion: true })), { stage: 'complete', percent: 100 });
});
