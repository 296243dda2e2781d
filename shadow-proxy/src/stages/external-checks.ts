/**
 * The plan's checks: Prometheus queries, HTTP requests and programs that must agree to a promotion. A check without an
 * answer is unknown, and closes the gate `checks` as well.
 */
import { monotonicMs } from '../io/clock.js';
import { request } from '../io/http.js';
import { endText, runProgram } from '../io/programs.js';
import { sleep } from '../io/timers.js';
import type { CheckPlan } from '../plan/plan.js';
import type { StagePoint } from '../route/stage.js';
import { says, unknown, type GateAnswer } from './gate-answer.js';

/** The result of one check. */
export interface CheckResult extends GateAnswer {
  readonly name: string;
}

/** The workload whose promotion is requested, and its stage. */
export interface CheckedWorkload extends StagePoint {
  readonly shard: string;
  readonly workload: string;
}

/** For this time, in ms, an answer is used again: `promote` judges the gates, and then moves the workload. */
const FRESH_MS = 2_000;
/** For this time, in ms, a check is not run again for the status page, the report and the metrics. */
const WATCH_MS = 60_000;
/** After this time, in ms, an answer is not shown. */
const STALE_MS = 300_000;

interface CheckAnswers {
  readonly at: number;
  readonly results: Promise<readonly CheckResult[]>;
  /** Null until the answers have come. */
  answered: readonly CheckResult[] | null;
}

/** Runs the checks of a plan, and remembers the last answers for each workload. */
export class ExternalChecks {
  readonly #asked = new Map<string, CheckAnswers>();

  constructor(private readonly checks: () => readonly CheckPlan[]) {}

  /** The present answers; null if the plan has no checks for the workload. */
  async ask(about: CheckedWorkload): Promise<readonly CheckResult[] | null> {
    const checks = this.#of(about.workload);
    return checks.length === 0 ? null : await this.#askAfter(about, checks, FRESH_MS).results;
  }

  /** The last answers, without waiting; null if the plan has no checks for the workload. */
  glance(about: CheckedWorkload): readonly CheckResult[] | null {
    const checks = this.#of(about.workload);
    if (checks.length === 0) return null;
    const before = this.#asked.get(about.workload);
    const now = this.#askAfter(about, checks, WATCH_MS);
    const known =
      now.answered ?? (before !== undefined && monotonicMs() - before.at < STALE_MS ? before.answered : null);
    return checks.map(({ name }) => known?.find((each) => each.name === name) ?? { name, ...unknown('not asked yet') });
  }

  #of(workload: string): readonly CheckPlan[] {
    return this.checks().filter(({ workloads }) => workloads === null || workloads.includes(workload));
  }

  #askAfter(about: CheckedWorkload, checks: readonly CheckPlan[], ms: number): CheckAnswers {
    const last = this.#asked.get(about.workload);
    if (last !== undefined && monotonicMs() - last.at < ms) return last;
    const results = Promise.all(checks.map((check) => askCheck(check, about)));
    const asked: CheckAnswers = { at: monotonicMs(), results, answered: null };
    void results.then((answered) => (asked.answered = answered));
    this.#asked.set(about.workload, asked);
    return asked;
  }
}

/** The present answer of one check. Never rejects. */
export async function askCheck(check: CheckPlan, about: CheckedWorkload): Promise<CheckResult> {
  const { name } = check;
  try {
    if (check.kind === 'command') return { name, ...(await askProgram(check, about)) };
    const { url, deadlineMs, token } = check;
    const asked = check.kind === 'http' ? url : `${url}/api/v1/query?${new URLSearchParams({ query: check.query })}`;
    const abort = new AbortController();
    const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
    const answer = (async () => {
      const response = await request(asked, { headers, signal: abort.signal });
      return check.kind === 'http'
        ? says(response.ok, `HTTP status ${response.status}`)
        : judgeQuery(check, response.status, await response.text());
    })();
    const late = sleep(deadlineMs, undefined, { ref: false }).then(() => unknown(`no answer within ${deadlineMs} ms`));
    try {
      return { name, ...(await Promise.race([answer, late])) };
    } finally {
      answer.catch(() => undefined);
      abort.abort();
    }
  } catch (problem) {
    const { message, cause } = problem as Error;
    return { name, ...unknown(`not reached: ${cause instanceof Error ? cause.message : message}`) };
  }
}

async function askProgram(
  { command, deadlineMs }: Extract<CheckPlan, { kind: 'command' }>,
  { shard, workload, stage, percent }: CheckedWorkload,
): Promise<GateAnswer> {
  const end = await runProgram({
    command,
    env: {
      SHADOW_PROXY_SHARD: shard,
      SHADOW_PROXY_WORKLOAD: workload,
      SHADOW_PROXY_STAGE: stage,
      SHADOW_PROXY_PERCENT: String(percent),
    },
    input: `${JSON.stringify({ shard, workload, stage, percent })}\n`,
    deadlineMs,
  });
  const evidence = endText(end);
  return end.code === 0 || end.code === 1 ? says(end.code === 0, evidence) : unknown(evidence);
}

/** @see https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries */
function judgeQuery(
  { max, min }: Extract<CheckPlan, { kind: 'prometheus' }>,
  status: number,
  text: string,
): GateAnswer {
  const { values, problem } = valuesOf(text);
  if (values === null) return unknown(`HTTP status ${status}${problem === null ? '' : `: ${problem}`}`);
  if (values.length === 0) return unknown('the query has no result');
  const wrong = values.find((value) => Number.isNaN(value));
  if (wrong !== undefined) return unknown('the result is not a number');
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const tooMany = max !== null && most > max;
  const tooFew = min !== null && least < min;
  const limits = [...(max === null ? [] : [`at most ${max}`]), ...(min === null ? [] : [`at least ${min}`])];
  const shown = least === most ? `${most}` : `${least} to ${most}`;
  return says(!tooMany && !tooFew, `${shown}, ${limits.join(' and ')}`);
}

interface QueryAnswer {
  readonly status?: string;
  readonly error?: string;
  readonly data?: { readonly resultType?: string; readonly result?: unknown };
}

/** The numbers in the result of an instant query; null if there are none. */
function valuesOf(text: string): { readonly values: readonly number[] | null; readonly problem: string | null } {
  let answer: QueryAnswer | null;
  try {
    answer = JSON.parse(text) as QueryAnswer | null;
  } catch {
    return { values: null, problem: 'the answer is not JSON' };
  }
  if (answer?.status !== 'success') return { values: null, problem: answer?.error?.slice(0, 200) ?? null };
  const { resultType, result } = answer.data ?? {};
  // A sample is [seconds since 1970, "number"].
  const numberOf = (sample: unknown): number => Number((sample as readonly unknown[] | undefined)?.[1] ?? NaN);
  if (resultType === 'scalar') return { values: [numberOf(result)], problem: null };
  if (resultType !== 'vector' || !Array.isArray(result))
    return {
      values: null,
      problem: `a result of type ${resultType}: write an expression with an instant vector or scalar`,
    };
  return { values: result.map((each) => numberOf((each as { readonly value?: unknown }).value)), problem: null };
}

/** The gate `checks`. */
export function judgeChecks(results: readonly CheckResult[]): GateAnswer {
  const evidence = results.map(({ name, evidence: each }) => `${name}: ${each}`).join('; ');
  if (results.some(({ answer }) => answer === 'no')) return says(false, evidence);
  return results.every(({ answer }) => answer === 'yes') ? says(true, evidence) : unknown(evidence);
}
