/** When a workload and a migration are ready for the next stage. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recommend } from '../../../src/report/recommendation.js';
import type { ShardFacts } from '../../../src/report/contents.js';
import type { Answer } from '../../../src/stages/gate-answer.js';
import type { NextStage } from '../../../src/stages/next-stage.js';

const LIVE = { stage: 'live', percent: 1 } as const;
const next = (workload: string, answers: readonly Answer[] | null): NextStage =>
  ({
    workload,
    from: { stage: 'shadow', percent: 100 },
    to: answers === null ? null : LIVE,
    gates:
      answers?.map((answer, i) => ({ name: i === 0 ? 'compared' : 'verify', answer, evidence: `seen ${i}` })) ?? [],
  }) as unknown as NextStage;
const shard = (workloads: readonly NextStage[], from: ShardFacts['from'] = 'proxy'): ShardFacts =>
  ({ shard: 'a', from, problem: from === 'proxy' ? null : 'down', evidence: { workloads } }) as unknown as ShardFacts;

test('a workload is ready when every gate is open, and the report when every workload is', () => {
  const both = recommend([shard([next('s', ['yes', 'yes']), next('t', ['yes', 'yes'])])]);
  assert.deepEqual([both.answer, both.summary], ['ready', '2 of 2 workloads are ready for the next stage.']);
  assert.deepEqual(both.workloads[0], { shard: 'a', workload: 's', next: 'live 1 %', answer: 'ready', because: [] });
  const one = recommend([shard([next('s', ['yes', 'yes']), next('t', ['no', 'yes'])])]);
  assert.deepEqual([one.answer, one.summary], ['not yet', '1 of 2 workloads is ready for the next stage.']);
  assert.deepEqual(one.workloads[1]!.because, ['compared: seen 0']);
});

test('unknown is never ready: a gate, a proxy that was not asked, no gate, no workload', () => {
  const because = (facts: ShardFacts): readonly string[] => {
    const { answer, workloads } = recommend([facts]);
    assert.deepEqual([answer, workloads[0]!.answer], ['not yet', 'not yet']);
    return workloads[0]!.because;
  };
  assert.deepEqual(because(shard([next('s', ['yes', 'unknown'])])), ['verify (UNKNOWN): seen 1']);
  assert.deepEqual(because(shard([next('s', ['yes', 'yes'])], 'state')), ['no running proxy was asked: down']);
  assert.deepEqual(because(shard([next('s', [])])), ['no gate was judged']);
  assert.deepEqual([recommend([]).answer, recommend([shard([])]).summary], ['not yet', 'No workload was looked at.']);
});

test('a workload that is complete has no next stage, and keeps no other from being ready', () => {
  const done = next('s', null);
  assert.deepEqual(recommend([shard([done])]).answer, 'complete');
  const { answer, summary, workloads } = recommend([shard([done, next('t', ['yes'])])]);
  assert.deepEqual([answer, summary], ['ready', '1 of 1 workload is ready for the next stage.']);
  assert.deepEqual([workloads[0]!.answer, workloads[0]!.next], ['complete', null]);
});

test('keys that no workload names are not counted while they stay on the source, and are once they are moved', () => {
  const done = next('s', null);
  const rest = (stage: 'off' | 'shadow'): NextStage => ({
    ...next('default', ['no']),
    from: { stage, percent: 100 },
  });
  const { answer, summary, workloads } = recommend([shard([done, rest('off')])]);
  assert.deepEqual(
    [answer, summary, workloads.length],
    [
      'complete',
      'Every workload is complete: there is no next stage. Keys that no workload names (default) stay on the source.',
      1,
    ],
  );
  assert.match(
    recommend([shard([next('t', ['yes']), rest('off')])]).summary,
    /^1 of 1 workload is ready for the next stage\. Keys that no workload names/,
  );
  assert.deepEqual(recommend([shard([done, rest('shadow')])]).answer, 'not yet');
});
