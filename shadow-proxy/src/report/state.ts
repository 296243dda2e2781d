/**
 * A shard's part of the report if its proxy does not answer: only from the files that the last process left.
 */
import { join } from 'node:path';
import { NO_CONSENT, type GateFacts } from '../stages/gate-facts.js';
import type { GateName } from '../route/transitions.js';
import { judgeGates } from '../stages/gates.js';
import { nextStageOf, type NextStage } from '../stages/next-stage.js';
import { allWorkloads, type Plan, type WorkloadPlan } from '../plan/plan.js';
import { noEvidence, readEvidence, type LatencyWindow } from '../storage/evidence.js';
import { readJob, type JobRecord } from '../storage/job-file.js';
import { readLatest } from '../telemetry/ledger-tail.js';
import type { JobSnapshot } from '../telemetry/snapshot.js';
import { readHistory, readState, StateError, type ShardState } from '../storage/state.js';
import type { ShardFacts } from './contents.js';

const HISTORY_EVENTS = 500;
const MISMATCHES = 20;

/** @throws {StateError} if the state cannot be read, or there is none */
export async function factsFromState(plan: Plan, shard: string, problem: string): Promise<ShardFacts> {
  const directory = join(plan.state, shard);
  const state = await readState(directory, shard);
  if (state === null)
    throw new StateError(
      'state-missing',
      `no proxy answers for shard ${shard} (${problem}), and there is no state of one in ${directory}`,
    );
  const { value: book } = readEvidence(directory, state.journal);
  const latencies = book?.latencies ?? [];
  const workloads = allWorkloads(plan).map((workload) =>
    outlook(workload, state, book?.workloads[workload.name], book?.workloadLatencies[workload.name] ?? []),
  );
  const latest = readLatest(join(directory, 'ledger.jsonl'), MISMATCHES);
  const { value: job } = readJob(directory, state.journal);
  return {
    shard,
    from: 'state',
    problem,
    snapshot: null,
    evidence: { shard, workloads, latencies, mismatches: { total: latest.length, notWritten: 0, latest } },
    job: job && jobFrom(job),
    history: await readHistory(directory, HISTORY_EVENTS),
  };
}

type SavedEvidence = NonNullable<ReturnType<typeof readEvidence>['value']>['workloads'][string];

function outlook(
  workload: WorkloadPlan,
  state: ShardState,
  known: SavedEvidence | undefined,
  latencies: readonly LatencyWindow[],
): NextStage {
  const point = state.workloads[workload.name] ?? { stage: workload.stage, percent: workload.percent };
  // The process may have ended between a stage change and the next observation.
  const evidence =
    known?.stage === point.stage && known.percent === point.percent ? known : noEvidence(point, new Date());
  const facts: GateFacts = {
    workload: workload.name,
    evidence,
    gates: workload.gates,
    latencies: latencies.filter(({ at }) => at >= evidence.since),
    ...NOT_KNOWN,
  };
  return nextStageOf(
    workload,
    { ...point, spanning: 0, perRegion: workload.counterLayout === 'per-region' },
    facts,
    new Date(),
    (...args) =>
      judgeGates(...args).map((gate) =>
        LIVE.has(gate.name)
          ? { name: gate.name, answer: 'unknown', evidence: 'only a running proxy reports it' }
          : gate,
      ),
  );
}

const NOT_KNOWN = {
  target: null,
  comparedPerSecond: null,
  spanning: 0,
  consent: NO_CONSENT,
  suspects: 0,
  suspect: null,
  frozen: null,
  down: false,
  servers: null,
  newer: [],
  settings: null,
  users: null,
  refusedLogins: null,
  bypassing: null,
  passed: { since: null, last: null },
  evicted: null,
  sourceEvicted: 0,
  fence: null,
  checks: null,
  counters: null,
  writtenIn: null,
};
const LIVE: ReadonlySet<GateName> = new Set([
  'servers',
  'target',
  'users',
  'suspects',
  'bypass',
  'counters',
  'evictions',
]);

const jobFrom = ({ request, state, reason, startedAt, endedAt, counts }: JobRecord): JobSnapshot => ({
  ...request,
  ...counts,
  workloads: request.workloads ?? ['all workloads written to both servers'],
  state: state === 'running' ? 'stopped' : state,
  reason: state === 'running' ? 'the process ended' : reason,
  paused: null,
  startedAt,
  endedAt,
  total: counts.scanned,
  keysPerSecond: 0,
  etaSeconds: null,
  failures: [],
  examples: [],
});
