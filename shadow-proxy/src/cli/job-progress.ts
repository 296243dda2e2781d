/** Shows a backfill or verification until its end: a bar for each shard; without a terminal, lines of text or JSON. */
import { MultiBar, type SingleBar } from 'cli-progress';
import { setTimeout as sleep } from 'node:timers/promises';
import { bytes, count, duration, list, number } from '../text/figures.js';
import { sum, type JobSnapshot } from '../telemetry/snapshot.js';
import type { JobRequest } from '../storage/job-file.js';
import { onStop } from '../io/signals.js';
import { commandLine, type AdminClientOptions, type ShardJob } from './admin-client.js';
import type { Fleet } from './fleet.js';
import { exitCode, type CliError } from './exit.js';
import { occasionally, Silence } from './silence.js';
import { stderr } from './output.js';

const POLL_MS = 250;
const LINE_MS = 2_000;
/** A restarted proxy continues the job. After this time without an answer, following ends with an error. */
const DISCONNECTED_MS = 60_000;

/** The result of a shard's last job. */
export type EndedJob = { readonly shard: string; readonly job: JobSnapshot };

/** The options that reach the proxy, and the output format. */
export type FollowOptions = Pick<AdminClientOptions, 'admin' | 'plan' | 'tokenFile' | 'via'> & {
  readonly json?: boolean;
};

/**
 * Resolves when none of the jobs runs any more. Ctrl-C ends the program, but not the jobs, and says so.
 * @throws {CliError} if the proxy stays unreachable
 */
export async function follow(
  client: Pick<Fleet, 'jobs' | 'awaited'>,
  shards: readonly string[],
  kind: JobRequest['kind'],
  { json = false, admin, plan, tokenFile, via }: FollowOptions,
): Promise<readonly EndedJob[]> {
  const show = process.stderr.isTTY && !json ? drawProgress(shards) : lines(json);
  const silence = new Silence(client.awaited, { show: (text) => show.note(text), end: () => undefined });
  let disconnectedSince: number | null = null;
  const leave = (): never => {
    show.end();
    stderr.write(`${renderLeft(kind, { admin, plan, tokenFile, via, json })}\n`);
    process.exit(exitCode.interrupted);
  };
  const forget = onStop(leave, leave);
  try {
    for (;;) {
      const jobs = await client.jobs().catch((error: CliError) => {
        disconnectedSince ??= performance.now();
        if (error.code !== 'unreachable' || performance.now() - disconnectedSince > DISCONNECTED_MS) throw error;
        return null;
      });
      // A proxy that starts again answers before its shards are there.
      const there = jobs !== null && shards.every((name) => jobs.some(({ shard }) => shard === name));
      if (jobs !== null && !there) disconnectedSince ??= performance.now();
      const isLost = disconnectedSince !== null && performance.now() - disconnectedSince > DISCONNECTED_MS;
      if (jobs !== null && (there || isLost)) {
        disconnectedSince = null;
        silence.heard();
        const followed = jobs.filter((each): each is EndedJob => shards.includes(each.shard) && each.job !== null);
        show.update(followed);
        if (followed.every(({ job }) => job.state !== 'running')) return followed;
      }
      await sleep(POLL_MS);
    }
  } finally {
    forget();
    silence.end();
    show.end();
  }
}

/** Explains that the job continues without this program, and how to show and to stop it. */
function renderLeft(kind: JobRequest['kind'], { json, ...options }: FollowOptions): string {
  const note = `The ${kind} job goes on in the proxy.`;
  const watch = commandLine('status --watch', options);
  // This stops the running job, whatever its kind.
  const stop = commandLine(`${kind === 'backfill' ? kind : 'verify'} --stop`, options);
  return json ? JSON.stringify({ note, watch, stop }) : `${note}\n  Watch it: ${watch}\n  Stop it:  ${stop}`;
}

interface Display {
  update(jobs: readonly EndedJob[]): void;
  /** Called once a second while the proxy does not answer. */
  note(text: string): void;
  end(): void;
}

/** One line for each shard, as wide as the terminal. Counts, rate and time left have precedence over the rest. */
function drawProgress(shards: readonly string[]): Display {
  const all = new MultiBar({
    format: (_options, _params, { columns, shard, job }: BarPayload) => renderBar(columns(), shard, job),
    hideCursor: true,
    clearOnComplete: false,
    emptyOnZero: true,
  });
  const columns = (): number => process.stderr.columns || 80;
  const width = Math.max(...shards.map((name) => name.length));
  const named = new Map<string, SingleBar>(
    shards.map((shard) => [shard, all.create(0, 0, { columns, shard: shard.padEnd(width), job: null })]),
  );
  return {
    update(jobs) {
      for (const { shard, job } of jobs) named.get(shard)!.update(job.scanned, { job });
    },
    note: occasionally((text) => all.log(`${text}\n`)),
    end: () => all.stop(),
  };
}

interface BarPayload {
  readonly columns: () => number;
  readonly shard: string;
  readonly job: JobSnapshot | null;
}

/** Minimum number of columns of a bar, with its brackets. */
const MIN_BAR = 8;
const MAX_BAR = 42;

/** The bar of a shard and its figures, in at most `columns`. */
export function renderBar(columns: number, shard: string, job: JobSnapshot | null): string {
  if (job === null) return fit(`${shard} waiting`, columns);
  const { progress, rate, left, why, failed, size } = partsOf(job);
  const parts = [progress, rate, left].filter((each) => each !== '');
  const used = (more: string): number => [shard, '', [...parts, more].join(', ')].join(' ').length;
  for (const more of [failed, why, size]) {
    const room = columns - MIN_BAR - used('') - 1;
    if (more !== '' && (more.length <= room || (more === why && room >= MIN_BAR))) parts.push(fit(more, room));
  }
  const figures = parts.join(', ');
  const bar = Math.min(MAX_BAR, columns - shard.length - figures.length - 3);
  if (bar < MIN_BAR) return fit(`${shard} ${figures}`, columns);
  const share = job.total === 0 ? Number(job.state === 'done') : job.scanned / job.total;
  const full = Math.floor((bar - 2) * share);
  return `${shard} [${'='.repeat(full)}${'-'.repeat(bar - 2 - full)}] ${figures}`;
}

const fit = (text: string, columns: number): string =>
  text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`;

/** Unknown figures are left out. */
function partsOf({ state, scanned, total, keysPerSecond, etaSeconds, kind, failed, bytes: size, reason }: JobSnapshot) {
  const counted =
    total === 0 && state === 'running' ? 'counting the keys' : `${number(scanned)} of ${count(total, 'key')}`;
  const left =
    state !== 'running'
      ? state
      : etaSeconds !== null
        ? `${duration(etaSeconds)} left`
        : total > 0 && scanned === total
          ? `reading ${kind === 'restore' ? 'the rest' : 'what only the mirror has'}`
          : '';
  return {
    progress: counted,
    rate: keysPerSecond >= 0.5 ? `${number(keysPerSecond)} keys/s` : '',
    left,
    failed: failed > 0 ? `${number(failed)} failed` : '',
    why: reason ?? '',
    size: size > 0 ? bytes(size) : '',
  };
}

function lines(json: boolean): Display {
  let at = -Infinity;
  return {
    update(jobs) {
      const ended = jobs.every(({ job }) => job.state !== 'running');
      if (!ended && performance.now() - at < LINE_MS) return;
      at = performance.now();
      if (json) for (const { shard, job } of jobs) stderr.write(`${JSON.stringify({ shard, ...job })}\n`);
      // The result follows on standard output.
      else if (!ended) for (const each of jobs) stderr.write(`${renderProgress(each)}\n`);
    },
    note: occasionally((text) => stderr.write(`${json ? JSON.stringify({ waiting: text }) : text}\n`)),
    end: () => undefined,
  };
}

/** One line of a running job. */
export function renderProgress({ shard, job }: EndedJob): string {
  const { progress, size, rate, left, failed, why } = partsOf(job);
  const figures = [progress, size, rate, left, failed, why].filter((each) => each !== '').join(', ');
  return `${shard}: ${job.kind} ${job.state}: ${figures}`;
}

/** The result for people. */
export function renderJob({ shard, job }: EndedJob): string {
  const { kind, state, reason } = job;
  const toOthers = `${number(job.overwritten)} overwritten, ${number(job.deleted)} deleted, ${count(job.keptForeign, 'foreign key')} kept`;
  const did = job.dryRun
    ? `${count(job.seen, 'key')} would be copied, ${toOthers}`
    : kind === 'backfill'
      ? `${count(job.copied, 'key')} copied (${bytes(job.bytes)}), ${toOthers}`
      : `${count(job.verified, 'key')} ${kind === 'restore' ? 'checked' : 'compared'}`;
  const found = sum(job.differences) > 0 ? ` (${list(job.differences)})` : '';
  const differences =
    kind === 'verify'
      ? `, ${number(sum(job.differences))} differ${found}`
      : found && `, ${number(sum(job.differences))} not copied${found}`;
  const { miscounted = 0, ...others } = job.listed;
  const served =
    miscounted > 0
      ? `\n  ${count(miscounted, 'stream')} whose XLEN is not the number of entries: copied as XRANGE serves them, so XLEN differs (differences.jsonl has the keys)`
      : '';
  const listed = sum(others) > 0 ? `, listed: ${list(others)}` : '';
  const restored = kind === 'restore' ? `, ${number(job.repaired)} restored` : '';
  const deleted =
    job.deleted + job.keptForeign > 0
      ? ` (${number(job.deleted)} deleted, ${count(job.keptForeign, 'foreign key')} kept)`
      : '';
  const repaired = job.repair ? `, ${number(job.repaired)} repaired${deleted}` : '';
  const unsure =
    job.unsure > 0
      ? `, ${number(job.unsure)} ${kind === 'restore' ? 'written since or suspect, left unchanged' : 'suspect, repair pending'}`
      : '';
  const failed = job.failed > 0 ? `, ${number(job.failed)} failed` : '';
  const nothing =
    state === 'done' && (kind === 'verify' ? job.verified : job.seen) === 0
      ? `\n  Inconclusive: no key of ${job.workloads.join(', ')} was found. Check the key patterns, --workload and --sample`
      : '';
  const examples = job.examples.map(({ db, key, kind: how }) => `\n  db ${db} ${key}: ${DIFFERENCES[how] ?? how}`);
  const failures = job.failures.map(({ db, key, why }) => `\n  db ${db} ${key}: ${why}`);
  return `${shard}: ${kind} ${state}${reason === null ? '' : ` (${reason})`}: ${did}${differences}${restored}${repaired}${unsure}${failed}${listed}${served}${nothing}${examples.join('')}${failures.join('')}`;
}

/** The kinds of differences, for people. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  extra: 'only the mirror has it',
  foreign: 'foreign key: only the mirror has it, and the kit did not write it',
  missing: 'missing on the mirror',
  type: 'different type on the mirror',
  value: 'different value on the mirror',
  ttl: 'different TTL on the mirror',
};

/** The shards whose jobs were started, or were already running. */
export const shardsOf = (jobs: readonly ShardJob[]): string[] => jobs.map(({ shard }) => shard);
