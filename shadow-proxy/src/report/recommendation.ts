/** Recommends which workloads may move to their next stage, from the evidence, and says what the others lack. Pure. */
import { formatPoint } from '../route/stage.js';
import type { NextStage } from '../stages/next-stage.js';
import { count } from '../text/figures.js';
import type { Advice, Recommendation, ShardFacts } from './contents.js';

export function recommend(shards: readonly ShardFacts[]): Recommendation {
  const workloads = shards.flatMap(adviceOf);
  const rest = shards.some(({ evidence }) => evidence.workloads.some(staysOnSource)) ? ` ${REST}` : '';
  const left = workloads.filter(({ answer }) => answer !== 'complete');
  const ready = left.filter(({ answer }) => answer === 'ready').length;
  if (workloads.length === 0) return { answer: 'not yet', summary: 'No workload was looked at.', workloads };
  if (left.length === 0)
    return { answer: 'complete', summary: `Every workload is complete: there is no next stage.${rest}`, workloads };
  const summary = `${ready} of ${count(left.length, 'workload')} ${ready === 1 || left.length === 1 ? 'is' : 'are'} ready for the next stage.${rest}`;
  return { answer: ready === left.length ? 'ready' : 'not yet', summary, workloads };
}

/** The note if the plan leaves keys out. */
const REST = 'Keys that no workload names (default) stay on the source.';

/** Whether these are the keys that no workload names: no step of a week promotes them. */
const staysOnSource = ({ workload, from }: NextStage): boolean => workload === 'default' && from.stage === 'off';

const adviceOf = ({ shard, from, problem, evidence }: ShardFacts): Advice[] =>
  evidence.workloads
    .filter((outlook) => !staysOnSource(outlook))
    .map((outlook) => {
      const { workload, to } = outlook;
      if (to === null) return { shard, workload, next: null, answer: 'complete', because: [] };
      const because = [
        ...(from === 'state' ? [`no running proxy was asked: ${problem ?? 'the reason is not known'}`] : []),
        ...closed(outlook),
      ];
      return { shard, workload, next: formatPoint(to), answer: because.length === 0 ? 'ready' : 'not yet', because };
    });

function closed({ gates }: NextStage): string[] {
  if (gates.length === 0) return ['no gate was judged'];
  return gates
    .filter(({ answer }) => answer !== 'yes')
    .map(({ name, answer, evidence }) => `${name}${answer === 'unknown' ? ' (UNKNOWN)' : ''}: ${evidence}`);
}
