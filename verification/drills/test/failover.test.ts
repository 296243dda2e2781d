/** What a failover drill concludes from the increments that were acknowledged. Pure. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judge, longestSilence, type Ack } from '../failover/ledger.js';
import { render } from '../failover/report.js';
import type { Outcome } from '../failover/rounds.js';

const ack = (at: number, value: number, node: string, client = 'c'): Ack => ({
  client,
  sentAt: at - 1,
  at,
  value,
  node,
});
const values = (acks: readonly Ack[]): number[] => acks.map(({ value }) => value);

test('a counter that returns to an older value has lost every acknowledgement from there on', () => {
  const acks = [ack(10, 1, 'a'), ack(20, 2, 'a'), ack(30, 3, 'a'), ack(60, 2, 'b'), ack(70, 3, 'b')];
  const { lost, acknowledged, lostAfterPromotion } = judge(acks, [{ at: 50, node: 'b' }]);
  assert.deepEqual([values(lost), acknowledged, lostAfterPromotion], [[2, 3], 5, []]);
  assert.deepEqual(judge([ack(10, 1, 'a'), ack(20, 3, 'a')], []).lost, [], 'an increment without an answer is no loss');
  assert.deepEqual(
    judge([ack(10, 5, 'a', 'c'), ack(20, 1, 'a', 'd')], []).lost,
    [],
    'each client has a key of its own',
  );
});

test('what the old primary acknowledged after a promotion, and is lost, counts by itself', () => {
  const acks = [ack(10, 1, 'a'), ack(55, 2, 'a'), ack(60, 2, 'b')];
  assert.deepEqual(values(judge(acks, [{ at: 50, node: 'b' }]).lostAfterPromotion), [2]);
  const later = [...acks, ack(120, 3, 'a'), ack(160, 3, 'b')];
  const both = judge(later, [{ at: 50, node: 'b' }, { at: 100, node: 'a' }, { at: 150, node: 'b' }]); // prettier-ignore
  assert.deepEqual(values(both.lostAfterPromotion), [2], 'a node that is promoted again is no old primary');
});

test('a second writer is a node that acknowledges after the promoted one has begun to', () => {
  const promotions = [{ at: 50, node: 'b' }];
  assert.deepEqual(judge([ack(60, 1, 'b'), ack(59, 1, 'a', 'd')], promotions).secondWriter, []);
  assert.deepEqual(values(judge([ack(60, 1, 'b'), ack(70, 9, 'a', 'd')], promotions).secondWriter), [9]);
  const next = [...promotions, { at: 65, node: 'a' }];
  assert.deepEqual(judge([ack(60, 1, 'b'), ack(70, 9, 'a', 'd')], next).secondWriter, [], 'it was promoted meanwhile');
});

test('the longest silence counts from the fault to the end', () => {
  assert.equal(longestSilence([ack(5, 1, 'a'), ack(20, 2, 'a'), ack(70, 3, 'a')], 10, 80), 50);
  assert.equal(longestSilence([], 10, 80), 70);
});

const outcome: Outcome = {
  fault: 'stop',
  round: 0,
  acknowledged: 100,
  promotions: 1,
  silenceMs: 6_000,
  lost: 3,
  behindMs: 12,
  resumedMs: 0,
  lostAfterPromotion: 0,
  secondWriter: 0,
};

test('the drill holds only where nothing speaks against it', () => {
  assert.equal(render([outcome], false, null).holds, true);
  for (const [outcomes, strict, broken] of [
    [[outcome], true, null],
    [[outcome], false, 'it ended early'],
    [[], false, null],
    [[{ ...outcome, lostAfterPromotion: 1 }], false, null],
    [[{ ...outcome, secondWriter: 1 }], false, null],
    [[{ ...outcome, acknowledged: 0 }], false, null],
    [[{ ...outcome, promotions: 0 }], false, null],
  ] as const) {
    const { holds, text } = render(outcomes, strict, broken);
    assert.equal(holds, false, text);
    assert.match(text, /does NOT hold/);
  }
  const killed = { ...outcome, fault: 'kill', lost: 0, promotions: 0 };
  assert.equal(render([killed], true, null).holds, true, 'with an AOF a killed primary may be it again');
  assert.equal(render([killed], false, null).holds, false);
});
