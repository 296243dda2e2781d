/** The admin HTTP of a running proxy, from the operator's side. */
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Note } from '../admin/shard-control.js';
import type { StageChange, StageRequest } from '../stages/stage-change.js';
import type { NotStarted } from '../telemetry/snapshot.js';
import type { ShardEvidence } from '../stages/next-stage.js';
import type { PromoteRequest, Promotion, Rollback, RollbackRequest } from '../stages/promotion.js';
import { formatAddress } from '../plan/endpoint.js';
import { loadPlan } from '../plan/load.js';
import type { AdminPlan, Plan } from '../plan/plan.js';
import type { JobRequest } from '../storage/job-file.js';
import type { JobSnapshot, ShardSnapshot } from '../telemetry/snapshot.js';
import type { HistoryEvent } from '../storage/state.js';
import type { Side } from '../route/stage.js';
import { typed } from '../text/invocation.js';
import { quoted } from '../text/shell.js';
import { CliError, exitCode } from './exit.js';

export interface AdminClientOptions {
  readonly admin?: string;
  readonly plan?: string;
  readonly tokenFile?: string;
}

export type ShardChange = { readonly shard: string } & StageChange;

export interface AcceptedShard {
  readonly shard: string;
  /** The servers that were accepted. */
  readonly servers: readonly Side[];
}

export type ShardPromotion = { readonly shard: string } & Promotion;
export type ShardRollback = { readonly shard: string } & Rollback;

export interface ShardHistory {
  readonly shard: string;
  readonly events: readonly HistoryEvent[];
}

export interface ShardJob {
  readonly shard: string;
  readonly job: JobSnapshot | null;
}

export type JobOrder = Pick<JobRequest, 'kind'> &
  Partial<JobRequest> & { readonly shard?: string; readonly by?: string };

const TIMEOUT_MS = 30_000;

export const addAdminOptions = (command: Command): Command =>
  command
    .option('--admin <url>', 'admin address of the proxy (default: from --plan, else http://127.0.0.1:9400)')
    .option('--plan <file>', 'read the admin address and token from this plan')
    .option('--token-file <file>', 'file with the admin token (default: SHADOW_PROXY_TOKEN, then --plan)');

/**
 * A command to type, with the options that reach the same proxy.
 * @param text of `shadow-compare`, without the program
 */
export function commandLine(
  text: string,
  { admin, plan, tokenFile, shard }: AdminClientOptions & { readonly shard?: string },
): string {
  const options = { '--shard': shard, '--admin': admin, '--plan': plan, '--token-file': tokenFile };
  const given = Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [name, quoted(value)]));
  return typed(['shadow-compare', text, ...given].join(' '));
}

/** The admin addresses of a plan's processes, each once. */
export const adminsOf = ({ shards, admin }: Plan): readonly AdminPlan[] => [
  ...new Map(shards.map((shard) => shard.admin ?? admin).map((each) => [`${each.host} ${each.port}`, each])).values(),
];

export class AdminClient {
  readonly #url: string;
  readonly #token: string | null;

  /** @param admin address and token of the plan, where `options` name no other */
  constructor(
    options: AdminClientOptions,
    admin: AdminPlan | null = options.plan === undefined ? null : loadPlan(options.plan).admin,
  ) {
    const fromPlan = admin && `http://${formatAddress(admin)}`.replace(/\/\/(0\.0\.0\.0|\[::\]):/, '//127.0.0.1:');
    this.#url = normalise(options.admin ?? fromPlan ?? 'http://127.0.0.1:9400');
    this.#token =
      options.tokenFile === undefined
        ? (process.env.SHADOW_PROXY_TOKEN ?? admin?.token ?? null)
        : readToken(options.tokenFile);
  }

  async status(): Promise<readonly ShardSnapshot[]> {
    return (await this.#call<{ shards: ShardSnapshot[] }>('GET', '/api/status')).shards;
  }

  /** Shards that are not started yet, and why. */
  async starting(): Promise<readonly NotStarted[]> {
    return (await this.#call<{ starting?: NotStarted[] }>('GET', '/api/status')).starting ?? [];
  }

  async changeStage(request: StageRequest & { readonly shard?: string }): Promise<readonly ShardChange[]> {
    return (await this.#call<{ changes: ShardChange[] }>('POST', '/api/stage', request)).changes;
  }

  async accept(request: {
    readonly shard?: string;
    readonly runIds: readonly string[];
  }): Promise<readonly AcceptedShard[]> {
    return (await this.#call<{ accepted: AcceptedShard[] }>('POST', '/api/accept', request)).accepted;
  }

  async promote(request: PromoteRequest & { readonly shard?: string }): Promise<readonly ShardPromotion[]> {
    return (await this.#call<{ promotions: ShardPromotion[] }>('POST', '/api/promote', request)).promotions;
  }

  async rollback(request: Partial<RollbackRequest> & { readonly shard?: string }): Promise<readonly ShardRollback[]> {
    return (await this.#call<{ rollbacks: ShardRollback[] }>('POST', '/api/rollback', request)).rollbacks;
  }

  async history(): Promise<readonly ShardHistory[]> {
    return (await this.#call<{ history: ShardHistory[] }>('GET', '/api/history')).history;
  }

  /** Into the history of every shard of the proxy. */
  async note(note: Note): Promise<void> {
    await this.#call('POST', '/api/note', note);
  }

  async evidence(): Promise<readonly ShardEvidence[]> {
    return (await this.#call<{ shards: ShardEvidence[] }>('GET', '/api/evidence')).shards;
  }

  async jobs(): Promise<readonly ShardJob[]> {
    return (await this.#call<{ jobs: ShardJob[] }>('GET', '/api/jobs')).jobs;
  }

  async startJob(order: JobOrder): Promise<readonly ShardJob[]> {
    return (await this.#call<{ jobs: ShardJob[] }>('POST', '/api/jobs', order)).jobs;
  }

  async stopJobs(): Promise<readonly ShardJob[]> {
    return (await this.#call<{ jobs: ShardJob[] }>('DELETE', '/api/jobs')).jobs;
  }

  async #call<T>(method: string, path: string, body?: object): Promise<T> {
    const url = `${this.#url}${path}`;
    const headers = {
      'content-type': 'application/json',
      ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }),
    };
    let response: Response;
    let answer: { error?: { code: string; message: string; details?: unknown } };
    try {
      response = await fetch(url, {
        method,
        headers,
        body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      answer = (await response.json()) as typeof answer;
    } catch (error) {
      const { cause, message } = error as Error;
      const why = (cause as Error | undefined)?.message ?? message;
      throw new CliError(
        'unreachable',
        `no proxy answers at ${url} (${why}). Start the proxy, or give its admin address with --admin or --plan`,
        exitCode.inconclusive,
      );
    }
    if (response.ok) return answer as T;
    throw refusal(response.status, answer.error);
  }
}

function refusal(status: number, error: { code: string; message: string; details?: unknown } | undefined): CliError {
  if (error === undefined)
    return new CliError(
      'http',
      `the admin address answered HTTP ${status} without a reason. Check that --admin is the address of a proxy`,
      exitCode.inconclusive,
    );
  const details = error.details === undefined ? '' : `\n${JSON.stringify(error.details, null, 2)}`;
  const hint = status === 401 ? ' (set SHADOW_PROXY_TOKEN, or use --token-file)' : '';
  const wrongUse = status === 400 || status === 401 || status === 403 || status === 404;
  return new CliError(error.code, `${error.message}${hint}${details}`, wrongUse ? exitCode.usage : exitCode.fails);
}

function normalise(url: string): string {
  const text = url.includes('://') ? url : `http://${url}`;
  const parsed = URL.canParse(text) ? new URL(text) : null;
  // Text before an @ is a secret: never print it.
  if (text.includes('@'))
    throw new CliError(
      'option',
      '--admin must not hold a user or password. Write http://host:port, and give the token with SHADOW_PROXY_TOKEN or --token-file',
      exitCode.usage,
    );
  if (parsed === null)
    throw new CliError('option', `--admin ${url} is not an address: write http://host:port`, exitCode.usage);
  return parsed.href.replace(/\/+$/, '');
}

function readToken(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new CliError(
      'option',
      `--token-file ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`,
      exitCode.usage,
    );
  }
}
