/**
 * Lists in words what the evidence does not cover: a person who approves a step needs to know what was not checked.
 * Pure.
 */
import type { NextStage } from '../stages/next-stage.js';
import { count, list, number } from '../text/figures.js';
import { sum, type JobSnapshot, type ShardSnapshot } from '../telemetry/snapshot.js';
import { formatPoint, isPartial, stageRule, shadowsReads } from '../route/stage.js';
import type { ShardFacts } from './contents.js';

export const notCovered = ({ from, snapshot, evidence, job }: ShardFacts): readonly string[] => [
  ...(from === 'state'
    ? [
        'No running proxy was asked: suspect keys, clients that bypass the proxy and evictions are not known. Counts of the last seconds before the proxy ended are missing.',
      ]
    : []),
  ...evidence.workloads.flatMap(ofWorkload),
  ...(snapshot === null ? [] : ofSnapshot(snapshot)),
  ...(evidence.mismatches.notWritten > 0
    ? [
        `${count(evidence.mismatches.notWritten, 'mismatch', 'mismatches')} were only counted: they came faster than the ledger is written.`,
      ]
    : []),
  ...(job === null ? [] : ofJob(job)),
  ...(evidence.latencies.length === 0
    ? ['There was no minute in which both servers answered: no latency can be compared.']
    : []),
  'Writes that bypass the proxy are detected from the call counts of the source, but only while the source alone answers clients and no script runs. At other times only a mismatch or a verification shows them. The list of clients that bypass the proxy has those that were connected at that moment.',
];

function ofWorkload({ workload, from, evidence }: NextStage): string[] {
  const { mirrorsWrites, mirrorsReads } = stageRule(from.stage);
  const found: string[] = [];
  if (!mirrorsWrites) found.push(`${workload} is in ${from.stage}: nothing is compared.`);
  else if (!mirrorsReads) found.push(`${workload} is in ${from.stage}: replies to reads are not compared.`);
  if (isPartial(from))
    found.push(`${workload} is in ${formatPoint(from)}: clients get the source's replies for the other keys.`);
  if (mirrorsWrites && evidence.hours.length < 24)
    found.push(
      `${workload}: something was compared in ${evidence.hours.length} of 24 hours of the day (UTC${evidence.hours.length === 0 ? '' : `: ${evidence.hours.join(', ')}`}); commands that clients send at other hours only were not compared in this stage.`,
    );
  if (mirrorsWrites && evidence.verified === null)
    found.push(`${workload}: its keys were never verified; keys that no client has read may differ.`);
  return found;
}

function ofSnapshot({
  unsupported,
  unmirroredErrors,
  otherShardCommands,
  inconclusive,
  undecided,
  workloads,
}: ShardSnapshot): string[] {
  const sampled = workloads.flatMap(({ name, shadowReads, ...point }) =>
    shadowReads === undefined || !shadowsReads(point)
      ? []
      : [`${name}: ${shadowReads} % of reads compared (shadowReads of the plan): replies to the other reads were not.`],
  );
  const rest = workloads.find(({ name }) => name === 'default');
  const checks: readonly [applies: boolean, text: string][] = [
    [
      sum(unsupported) > 0,
      `Commands that only one server supports. Their replies were not compared: ${list(unsupported)}.`,
    ],
    [
      unmirroredErrors > 0,
      `${count(unmirroredErrors, 'command')} were refused by the authority, and so not replicated.`,
    ],
    [
      otherShardCommands > 0,
      `${count(otherShardCommands, 'command')} used keys of other shards: the source alone answered them.`,
    ],
    [sum(inconclusive) > 0, `${count(sum(inconclusive), 'pair')} of replies inconclusive: ${list(inconclusive)}.`],
    [undecided > 0, `${count(undecided, 'difference')} have no verdict yet.`],
    [
      rest !== undefined && rest.operations > 0,
      `${number(rest?.operations ?? 0)} commands used keys that no workload names (default).`,
    ],
  ];
  return [...sampled, ...checks.filter(([applies]) => applies).map(([, text]) => text)];
}

function ofJob({ kind, state, sample, workloads, failed, unsure, listed }: JobSnapshot): string[] {
  const found: string[] = [];
  if (state !== 'done') found.push(`The last ${kind} is ${state}: it has not read all keys.`);
  if (kind === 'verify' && sample < 100) found.push(`The last verification compared ${sample} % of the keys.`);
  if (kind === 'verify') found.push(`The last verification covered ${workloads.join(', ')}.`);
  if (failed + unsure > 0) found.push(`The last ${kind} was inconclusive for ${count(failed + unsure, 'key')}.`);
  if (sum(listed) > 0)
    found.push(
      `The last ${kind} listed keys of other shards or of no workload, and did not compare them: ${list(listed)}.`,
    );
  return found;
}
