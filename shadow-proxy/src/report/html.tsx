/** The report as one HTML file: the views of the status page, all of them open, and additions for a meeting. */
import type { JSX } from 'preact';
import type { NextStage } from '../stages/next-stage.js';
import { htmlDocument } from '../html/document.js';
import { Plot } from '../html/plot.js';
import { Table } from '../html/table.js';
import { attentionOf } from '../page/attention.js';
import { minutePlot, percentilePlot } from '../page/plots.js';
import { CommandLine, type TypedAs } from '../page/command.js';
import { AttentionList, Servers } from '../page/shard.js';
import { VIEW_STYLE } from '../page/style.js';
import { History, Job, Mismatches, moment } from '../page/tables.js';
import { Glossary } from '../page/term.js';
import { WorkloadCard } from '../page/workload.js';
import { latencyRows } from '../stages/latency-gate.js';
import { milliseconds, number } from '../text/figures.js';
import { sum } from '../telemetry/snapshot.js';
import { formatPoint } from '../route/stage.js';
import type { Advice, Recommendation, Report, ShardReport } from './contents.js';
import { gatesOpen } from './markdown.js';

export function toHtml(report: Report, typedAs: TypedAs): string {
  const title = `Migration report${report.plan === null ? '' : `: ${report.plan}`}`;
  const body = (
    <CommandLine.Provider value={typedAs}>
      <main>
        <h1>{title}</h1>
        <p class="note">Made at {moment(report.at)}. All times are UTC.</p>
        <Advised {...report.recommendation} />
        <Summary {...report} />
        {report.shards.map((shard) => (
          <Shard report={shard} now={Date.parse(report.at)} />
        ))}
        <Glossary />
      </main>
    </CommandLine.Provider>
  );
  return htmlDocument({ title, body, css: VIEW_STYLE });
}

const BADGES: Readonly<Record<Advice['answer'], string>> = { ready: 'yes', 'not yet': 'no', complete: 'yes' };

const Advised = ({ answer, summary, workloads }: Recommendation): JSX.Element => (
  <section data-recommendation={answer}>
    <h2>
      Recommendation: <span class={`badge ${BADGES[answer]}`}>{answer}</span>
    </h2>
    <p>{summary}</p>
    <ul>
      {workloads.map((advice) => (
        <li>
          <span class={`badge ${BADGES[advice.answer]}`}>{advice.answer}</span> {advice.shard}:{' '}
          <strong>{advice.workload}</strong>
          {advice.next !== null && ` → ${advice.next}`}
          {advice.because.length > 0 && (
            <ul>
              {advice.because.map((reason) => (
                <li>{reason}</li>
              ))}
            </ul>
          )}
        </li>
      ))}
    </ul>
  </section>
);

const Summary = ({ shards }: Report): JSX.Element => (
  <Table
    head={['shard', 'workload', 'stage', 'next', 'gates open', 'mismatches', 'last verification']}
    rows={shards.flatMap(({ shard, from, evidence }) =>
      evidence.workloads.map((outlook) => [
        <>
          <a href={`#shard-${shard}`}>{shard}</a> {from === 'state' && <span class="badge unknown">from state</span>}
        </>,
        outlook.workload,
        formatPoint(outlook.from),
        outlook.to === null ? '–' : formatPoint(outlook.to),
        <Open {...outlook} />,
        number(sum(outlook.evidence.mismatches)),
        outlook.evidence.verified === null
          ? 'never'
          : `${moment(outlook.evidence.verified.endedAt)}, ${number(outlook.evidence.verified.differences)} of ${number(outlook.evidence.verified.keys)} keys differed`,
      ]),
    )}
  />
);

const Open = (outlook: NextStage): JSX.Element => {
  const { gates } = outlook;
  const worst = gates.some(({ answer }) => answer === 'no')
    ? 'no'
    : gates.some(({ answer }) => answer === 'unknown')
      ? 'unknown'
      : 'yes';
  return gates.length === 0 ? <>–</> : <span class={`badge ${worst}`}>{gatesOpen(outlook)}</span>;
};

function Shard({ report, now }: { report: ShardReport; now: number }): JSX.Element {
  const { shard, problem, snapshot, evidence, job, history, notCovered } = report;
  return (
    <section class="shard" data-shard={shard}>
      <h2 id={`shard-${shard}`}>Shard {shard}</h2>
      {problem !== null && <p class="banner unknown">From the durable state, not from a running proxy: {problem}</p>}
      {snapshot !== null && <AttentionList items={attentionOf(snapshot)} />}
      {snapshot !== null && <Servers snapshot={snapshot} rate={null} />}
      <div class="workloads">
        {evidence.workloads.map((outlook) => (
          <WorkloadCard
            figures={snapshot?.workloads.find(({ name }) => name === outlook.workload) ?? null}
            outlook={outlook}
            now={now}
            full
          />
        ))}
      </div>
      <Parity {...report} />
      <h3>Latency</h3>
      <Latency {...report} />
      <h3>Backfill and verification</h3>
      <Job job={job} />
      <h3>Latest mismatches</h3>
      <Mismatches tail={evidence.mismatches} />
      <h3>History</h3>
      <History events={history} />
      <h3>Not covered</h3>
      <ul>
        {notCovered.map((line) => (
          <li>{line}</li>
        ))}
      </ul>
    </section>
  );
}

/** The counts of the gates, by kind and by rule, since each workload entered its stage. */
function Parity({ evidence }: ShardReport): JSX.Element {
  const rows = evidence.workloads.flatMap(({ workload, evidence: { mismatches, allowed } }) => [
    ...Object.entries(mismatches).map(([name, count]) => [workload, 'mismatch', name, number(count)]),
    ...Object.entries(allowed).map(([name, count]) => [workload, 'allowed by', name, number(count)]),
  ]);
  return (
    <>
      <h3>Differences, since each workload entered its stage</h3>
      {rows.length === 0 ? (
        <p class="quiet">None.</p>
      ) : (
        <Table head={['workload', 'verdict', 'kind or rule', 'pairs']} rows={rows} />
      )}
    </>
  );
}

function Latency({ evidence: { latencies, workloads } }: ShardReport): JSX.Element {
  const rows = [
    ...latencyRows(latencies).map((row) => ({ of: 'all', ...row })),
    ...workloads.flatMap(({ workload, latency }) => latency.map((row) => ({ of: workload, ...row }))),
  ];
  if (rows.length === 0) return <p class="quiet">Nothing was timed.</p>;
  return (
    <>
      <Table
        head={['workload', 'server', 'p50', 'p99', 'p99.9', 'replies', 'minutes']}
        rows={rows.map(({ of, server, p50, p99, p999, replies, minutes }) => [
          of,
          server,
          milliseconds(p50),
          milliseconds(p99),
          milliseconds(p999),
          number(replies),
          number(minutes),
        ])}
      />
      <p class="note">
        Medians over the minutes in which both servers answered: of all commands, over the last four hours; of each
        workload, since it entered its stage.
      </p>
      <div class="plots">
        <Plot title="By the minute" spec={minutePlot(latencies)} />
        <Plot title="A typical minute" spec={percentilePlot(latencies)} />
      </div>
    </>
  );
}
