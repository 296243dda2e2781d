/**
 * What the evidence does not cover, in words: a meeting that approves a change has to know what nobody has seen. Pure.
 */
import type { NextStage } from '../stages/next-stage.js';
import { count, list, number } from '../text/figures.js';
import { sum, type JobSnapshot, type ShardSnapshot } from '../telemetry/snapshot.js';
import { formatPoint, stageRule } from '../route/stage.js';
import type { ShardFacts } from './facts.js';

export const notCovered = ({ from, snapshot, evidence, job }: ShardFacts): readonly string[] => [
  ...(from === 'state'
    ? [
        'No proxy was asked: keys in doubt, clients beside the proxy and evictions are not known, and what was counted in the last seconds before it ended is missing.',
      ]
    : []),
  ...evidence.workloads.flatMap(ofWorkload),
  ...(snapshot === null ? [] : ofSnapshot(snapshot)),
  ...(evidence.mismatches.notWritten > 0
    ? [
        `${count(evidence.mismatches.notWritten, 'mismatch', 'mismatches')} came too fast to be written down one by one, and were only counted.`,
      ]
    : []),
  ...(job === null ? [] : ofJob(job)),
  ...(evidence.latencies.length === 0
    ? ['No minute was timed in which both servers answered: there is no latency to compare.']
    : []),
  "Writes that do not pass the proxy are seen by the source's counts of calls while it alone answers and no script runs; else when a reply differs, or by a verification. Clients beside the proxy are those that were connected at that moment.",
];

function ofWorkload({ workload, from, evidence }: NextStage): string[] {
  const { mirrorsWrites, mirrorsReads } = stageRule(from.stage);
  const found: string[] = [];
  if (!mirrorsWrites) found.push(`${workload} is in ${from.stage}: nothing of it is compared.`);
  else if (!mirrorsReads) found.push(`${workload} is in ${from.stage}: replies to reads are not compared.`);
  if (from.stage === 'live' && from.percent < 100)
    found.push(`${workload} is in ${formatPoint(from)}: clients get the source's replies for the other keys.`);
  if (mirrorsWrites && evidence.hours.length < 24)
    found.push(
      `${workload}: something was compared in ${evidence.hours.length} of 24 hours of the day (UTC${evidence.hours.length === 0 ? '' : `: ${evidence.hours.join(', ')}`}); what runs at other hours was not seen in this stage.`,
    );
  if (mirrorsWrites && evidence.verified === null)
    found.push(`${workload}: its keys were never verified; keys that no client has read since may differ.`);
  return found;
}

function ofSnapshot({
  unsupported,
  unmirroredErrors,
  elsewhere,
  inconclusive,
  undecided,
  workloads,
}: ShardSnapshot): string[] {
  const rest = workloads.find(({ name }) => name === 'default');
  const checks: readonly [applies: boolean, text: string][] = [
    [
      sum(unsupported) > 0,
      `Commands that only one server supports, and that were so compared with nothing or by their effect: ${list(unsupported)}.`,
    ],
    [
      unmirroredErrors > 0,
      `${count(unmirroredErrors, 'command')} were refused by the authority, and so not repeated on the other server.`,
    ],
    [elsewhere > 0, `${count(elsewhere, 'command')} were on keys of other shards: the source alone answered them.`],
    [sum(inconclusive) > 0, `${count(sum(inconclusive), 'pair')} of replies could not be told: ${list(inconclusive)}.`],
    [undecided > 0, `${count(undecided, 'difference')} have no verdict yet.`],
    [
      rest !== undefined && rest.operations > 0,
      `${number(rest?.operations ?? 0)} commands were on keys that no workload names (default).`,
    ],
  ];
  return checks.filter(([applies]) => applies).map(([, text]) => text);
}

function ofJob({ kind, state, sample, workloads, failed, unsure, listed }: JobSnapshot): string[] {
  const found: string[] = [];
  if (state !== 'done') found.push(`The last ${kind} is ${state}: it has not seen all keys.`);
  if (kind === 'verify' && sample < 100) found.push(`The last verification looked at ${sample} % of the keys.`);
  if (kind === 'verify') found.push(`The last verification was of ${workloads.join(', ')}.`);
  if (failed + unsure > 0) found.push(`The last ${kind} could not tell of ${count(failed + unsure, 'key')}.`);
  if (sum(listed) > 0) found.push(`The last ${kind} came by keys that are not its to judge: ${list(listed)}.`);
  return found;
}
