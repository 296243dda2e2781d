/** The report as Markdown, for a ticket or a wiki. */
import type { NextStage } from '../stages/next-stage.js';
import { latencyRows } from '../stages/latency-gate.js';
import { describeEvent } from '../storage/history.js';
import { count, list, milliseconds, number, unlessUp } from '../text/figures.js';
import { sum, type JobSnapshot } from '../telemetry/snapshot.js';
import type { TypedAs } from '../page/command.js';
import { formatPoint } from '../route/stage.js';
import type { Advice, Recommendation, Report, ShardReport } from './contents.js';

export const toMarkdown = (report: Report, typedAs: TypedAs): string =>
  `${[
    `# Migration report${report.plan === null ? '' : `: ${plain(report.plan)}`}`,
    `Made at ${report.at}. All times are UTC.`,
    ...ofRecommendation(report.recommendation),
    table(
      ['shard', 'workload', 'stage', 'next', 'gates open', 'mismatches in this stage'],
      report.shards.flatMap(({ shard, evidence }) =>
        evidence.workloads.map((each) => [
          shard,
          each.workload,
          formatPoint(each.from),
          each.to === null ? '–' : formatPoint(each.to),
          gatesOpen(each),
          number(sum(each.evidence.mismatches)),
        ]),
      ),
    ),
    ...report.shards.map((shard) => ofShard(shard, typedAs)),
  ].join('\n\n')}\n`;

const ofRecommendation = ({ answer, summary, workloads }: Recommendation): string[] => [
  `## Recommendation: ${answer}`,
  summary,
  ...(workloads.length === 0 ? [] : [bullets(workloads.map(adviceLine))]),
];

/** The recommendation for one workload, and its reason. */
const adviceLine = ({ shard, workload, next, answer, because }: Advice): string =>
  `${shard}: ${workload}${next === null ? '' : ` → ${next}`}: ${answer}${because.length === 0 ? '' : `, because ${because.join('; ')}`}`;

export const gatesOpen = ({ gates }: NextStage): string =>
  gates.length === 0 ? '–' : `${gates.filter(({ answer }) => answer === 'yes').length} of ${gates.length}`;

function ofShard(report: ShardReport, typedAs: TypedAs): string {
  const { shard, problem, snapshot, evidence, job, history, notCovered } = report;
  const { latest, total } = evidence.mismatches;
  return [
    `## Shard ${plain(shard)}`,
    ...(problem === null ? [] : [`**From the durable state, not from a running proxy**: ${plain(problem)}`]),
    ...(snapshot === null
      ? []
      : [
          bullets([
            `source ${snapshot.source.url} (${snapshot.source.version ?? 'not seen'})${unlessUp(snapshot.source.up)}`,
            `target ${snapshot.target.url} (${snapshot.target.version ?? 'not seen'})${unlessUp(snapshot.target.up)}`,
            `${count(snapshot.suspects.total, 'suspect key')}${snapshot.suspects.total > 0 ? ` (${list(snapshot.suspects.byReason)})` : ''}`,
          ]),
        ]),
    ...evidence.workloads.map((outlook) => ofWorkload(outlook, typedAs)),
    '### Latency',
    latencyTable(evidence),
    '### Backfill and verification',
    job === null ? 'None.' : bullets(ofJob(job)),
    `### Latest mismatches`,
    latest.length === 0
      ? 'None.'
      : `${table(
          ['time', 'workload', 'pattern', 'command', 'kind', 'key (hash)'],
          [...latest]
            .reverse()
            .map((entry) => [
              entry.time,
              entry.workload,
              entry.pattern ?? '–',
              entry.command,
              entry.kind,
              entry.key?.hash ?? '–',
            ]),
        )}\n\n${number(latest.length)} shown${snapshot === null ? '' : `, ${number(total)} since the process started`}.`,
    '### History',
    history.length === 0
      ? 'Nothing was changed.'
      : bullets([...history].reverse().map((event) => `${String(event.time)}: ${describeEvent(event)}`)),
    '### Not covered',
    bullets(notCovered),
  ].join('\n\n');
}

function ofWorkload(outlook: NextStage, typedAs: TypedAs): string {
  const { workload, from, to, gates, evidence } = outlook;
  const { verified, allowed, mismatches } = evidence;
  return [
    `### ${plain(workload)}: ${formatPoint(from)}${to === null ? '' : ` → ${formatPoint(to)}, ${gatesOpen(outlook)} gates open`}`,
    bullets([
      `${outlook.class}, in this stage since ${evidence.since}: ${number(evidence.compared)} pairs compared, ${number(sum(mismatches))} mismatches${sum(mismatches) > 0 ? ` (${list(mismatches)})` : ''}, ${number(sum(allowed))} allowed${sum(allowed) > 0 ? ` (${list(allowed)})` : ''}, ${number(evidence.inconclusive)} inconclusive`,
      verified === null
        ? 'never verified'
        : `verified at ${verified.endedAt}: ${number(verified.keys)} keys, ${number(verified.differences)} differed, ${number(verified.failed + verified.unsure)} inconclusive`,
    ]),
    ...(gates.length === 0
      ? []
      : [
          table(
            ['gate', 'open', 'evidence'],
            gates.map(({ name, answer, evidence: seen, command }) => [
              name,
              answer === 'yes' ? 'yes' : answer.toUpperCase(),
              command === undefined ? seen : `${seen}; next: ${typedAs(command)}`,
            ]),
          ),
        ]),
  ].join('\n\n');
}

function ofJob(job: JobSnapshot): string[] {
  const { kind, state, reason, startedAt, endedAt } = job;
  return [
    `${kind} of ${job.workloads.join(', ')}: ${state}${reason === null ? '' : ` (${reason})`}, started ${startedAt}${endedAt === null ? '' : `, ended ${endedAt}`}`,
    `${number(job.seen)} keys read, ${number(job.copied)} copied, ${number(job.verified)} compared, ${number(sum(job.differences))} differed${sum(job.differences) > 0 ? ` (${list(job.differences)})` : ''}, ${number(job.repaired)} repaired, ${number(job.overwritten)} overwritten, ${number(job.deleted)} deleted, ${number(job.keptForeign)} foreign keys kept, ${number(job.failed)} failed, ${number(job.unsure)} suspect`,
  ];
}

const bullets = (lines: readonly string[]): string => lines.map((line) => `- ${plain(line)}`).join('\n');
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows.map((row) => row.map(plain))].map((row) => `| ${row.join(' | ')} |`).join('\n');
/** Names come from the plan, and reasons from any person: neither may be read as markup. */
const plain = (text: string): string =>
  text.replace(/[\\`*_[\]<>|#]/g, (character) => `\\${character}`).replace(/\s+/g, ' ');

/** A typical minute: of all commands, and of each workload's. */
function latencyTable({ latencies, workloads }: ShardReport['evidence']): string {
  const rows = [
    ...latencyRows(latencies).map((row) => ({ of: 'all', ...row })),
    ...workloads.flatMap(({ workload, latency }) => latency.map((row) => ({ of: workload, ...row }))),
  ];
  if (rows.length === 0) return 'Nothing was timed.';
  return table(
    ['workload', 'server', 'p50', 'p99', 'p99.9', 'replies', 'minutes'],
    rows.map(({ of, server, p50, p99, p999, replies, minutes }) => [
      of,
      server,
      ...[p50, p99, p999].map(milliseconds),
      number(replies),
      number(minutes),
    ]),
  );
}
