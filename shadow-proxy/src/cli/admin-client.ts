/** The client of a running proxy's admin HTTP. */
import type { Command } from 'commander';
import type { AutomationRequest, Note, WaitNote } from '../admin/shard-control.js';
import type { NotStarted } from '../telemetry/snapshot.js';
import type { FenceNote } from '../stages/fence.js';
import type { FenceReport } from '../stages/fence-gate.js';
import type { ShardEvidence } from '../stages/next-stage.js';
import type { PromoteRequest, Promotion, Rollback, RollbackRequest } from '../stages/promotion.js';
import type { AdminAddress } from '../plan/admins.js';
import { formatAddress } from '../plan/endpoint.js';
import { readWhole } from '../plan/file.js';
import type { JobChange } from '../copy/job/jobs.js';
import type { JobRequest } from '../storage/job-file.js';
import type { JobSnapshot, ShardSnapshot } from '../telemetry/snapshot.js';
import type { HistoryEvent } from '../storage/state.js';
import type { Side, StagePoint } from '../route/stage.js';
import { typed } from '../text/invocation.js';
import { quoted } from '../text/shell.js';
import {
  accepted,
  evidence,
  fence,
  listOf,
  named,
  notStarted,
  ofShard,
  promotion,
  rollback,
  shardHistory,
  shardJob,
  shardSnapshot,
  type Check,
  type ShardNames,
} from './answers.js';
import { exchange } from './exchange.js';
import { CliError, exitCode } from './exit.js';
import { renderRefused, type RefusalBody } from './gates.js';
import { waitingFor } from './silence.js';
import { printable, printableAll } from '../text/printable.js';

export interface AdminClientOptions {
  readonly admin?: string;
  readonly plan?: string;
  readonly tokenFile?: string;
  /** The host through which to connect, in the form that `ssh` accepts. */
  readonly via?: string;
}

/** The proxy's answer to a status request. */
export interface ProxyStatus {
  /** The plan's name; null if the proxy's release does not send it. */
  readonly migration: string | null;
  readonly shards: readonly ShardSnapshot[];
  /** Shards that are not started yet, and why. */
  readonly starting: readonly NotStarted[];
}

export interface AcceptedShard {
  readonly shard: string;
  /** The sides whose servers were accepted. */
  readonly servers: readonly Side[];
}

export type ShardFence = { readonly shard: string } & FenceReport;

export interface FenceRequest extends FenceNote {
  readonly shard?: string;
  readonly action: 'apply' | 'lift';
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

export type StartJobRequest = Pick<JobRequest, 'kind'> &
  Partial<JobRequest> & { readonly shard?: string; readonly by?: string };

export type ChangeJobRequest = JobChange & { readonly shard?: string };

/** The stage to which a workload of a shard is taken back, and why. */
export interface TakeBackRequest {
  readonly shard: string;
  readonly workload: string;
  readonly from: StagePoint;
  readonly why: string;
}

/** Options of a request in addition to a shard's. */
export interface ToShards {
  readonly shard?: string;
  readonly dryRun?: boolean;
  /** For a change to `complete`: the migration's name. */
  readonly pointOfNoReturn?: string;
}

const TIMEOUT_MS = 30_000;
/** The timeout for paths for which the proxy asks no server, in ms. */
const AT_ONCE_MS = 10_000;
const AT_ONCE: ReadonlySet<string> = new Set(['/api/status', '/api/jobs']);

export const addAdminOptions = (command: Command): Command =>
  command
    .option('--admin <url>', 'admin address of one proxy (default: from --plan, else http://127.0.0.1:9400)')
    .option('--plan <file>', 'read the admin addresses and the token from this plan: all its proxies are asked')
    .option('--token-file <file>', 'file with the admin token (default: SHADOW_PROXY_TOKEN, then --plan)')
    .option(
      '--via <host>',
      'reach the proxies through this host by ssh, such as admin@bastion; keys alone, no password',
    );

/**
 * The command line that reaches the same proxy.
 * @param text arguments of `shadow-compare`, without the program
 */
export function commandLine(
  text: string,
  { admin, plan, tokenFile, via, shard }: AdminClientOptions & { readonly shard?: string },
): string {
  const options = { '--shard': shard, '--admin': admin, '--plan': plan, '--token-file': tokenFile, '--via': via };
  const given = Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [name, quoted(value)]));
  return typed(['shadow-compare', text, ...given].join(' '));
}

/** A token and its origin, for messages. */
interface Token {
  readonly value: string;
  readonly from: string;
  /** What the operator can do if the token is refused. */
  readonly hint: string;
}

const ENVIRONMENT = 'SHADOW_PROXY_TOKEN';

/** The token from `--token-file`, else from the environment, else from the plan. */
function tokenOf({ tokenFile }: AdminClientOptions, admin: AdminAddress | null): Token | null {
  const planned = admin?.token ?? null;
  if (tokenFile !== undefined)
    return checked({ value: readToken(tokenFile), from: `--token-file ${tokenFile}`, hint: '' });
  const value = process.env[ENVIRONMENT];
  if (value !== undefined) {
    const hint =
      planned === null || planned === value ? '' : `. The plan has another token: unset ${ENVIRONMENT} to use it`;
    return checked({ value, from: ENVIRONMENT, hint });
  }
  return planned === null ? null : { value: planned, from: 'the plan', hint: '' };
}

/** A header accepts only one line of ASCII. @throws {CliError} */
function checked(token: Token): Token {
  if (/^[!-~]+$/.test(token.value)) return token;
  const what = token.value === '' ? 'is empty' : 'has a character that no token has (a space, a line break, not ASCII)';
  throw new CliError(
    'option',
    `${token.from} ${what}: give the token that admin.token or admin.tokenFile of the plan has`,
    exitCode.usage,
  );
}

export class AdminClient {
  readonly #url: string;
  readonly #token: Token | null;
  /** Why the plan's token cannot be read here. */
  readonly #tokenProblem: string | null;

  /** @param admin the plan's address and token, used unless `options` name others */
  constructor(
    private readonly options: AdminClientOptions,
    admin: AdminAddress | null = null,
    private readonly timeoutMs = TIMEOUT_MS,
  ) {
    const fromPlan = admin && `http://${formatAddress(admin)}`.replace(/\/\/(0\.0\.0\.0|\[::\]):/, '//127.0.0.1:');
    this.#url = normalise(options.admin ?? fromPlan ?? 'http://127.0.0.1:9400');
    this.#token = tokenOf(options, admin);
    this.#tokenProblem = admin?.tokenProblem ?? null;
  }

  /** The admin address of the proxy. */
  get url(): string {
    return this.#url;
  }

  async status(): Promise<ProxyStatus> {
    const path = '/api/status';
    const answer = await this.#call<Partial<ProxyStatus>>('GET', path);
    const shards = this.#listIn<ShardSnapshot>(answer, 'shards', shardSnapshot, path);
    const starting =
      answer.starting === undefined ? [] : this.#listIn<NotStarted>(answer, 'starting', notStarted, path);
    return { migration: typeof answer.migration === 'string' ? answer.migration : null, shards, starting };
  }

  /** The shards that it serves, and their workloads, whatever else another release says of them. */
  async names(): Promise<readonly ShardNames[]> {
    const path = '/api/status';
    const answer = await this.#call<object>('GET', path);
    return this.#listIn<ShardNames>(answer, 'shards', named, path);
  }

  accept(request: { readonly shard?: string; readonly runIds: readonly string[] }): Promise<readonly AcceptedShard[]> {
    return this.#list('accepted', accepted, 'POST', '/api/accept', request);
  }

  promote(request: PromoteRequest & ToShards): Promise<readonly ShardPromotion[]> {
    return this.#list('promotions', promotion, 'POST', '/api/promote', request);
  }

  rollback(request: Partial<RollbackRequest> & { readonly shard?: string }): Promise<readonly ShardRollback[]> {
    return this.#list('rollbacks', rollback, 'POST', '/api/rollback', request);
  }

  /** The fences, with the users and clients that may not write to the sources, or would not be allowed to. */
  fences(): Promise<readonly ShardFence[]> {
    return this.#list('fences', fence, 'GET', '/api/fence');
  }

  /** Raises or lifts the fence. */
  fence(request: FenceRequest): Promise<readonly ShardFence[]> {
    return this.#list('fences', fence, 'POST', '/api/fence', request);
  }

  /** Moves a workload back to its stage of minutes ago, because another process refused the same change. */
  takeBack(request: TakeBackRequest): Promise<readonly { readonly shard: string }[]> {
    return this.#list('takenBack', ofShard, 'POST', '/api/take-back', request);
  }

  history(): Promise<readonly ShardHistory[]> {
    return this.#list('history', shardHistory, 'GET', '/api/history');
  }

  /** Adds an entry to the history of every shard of the proxy. */
  async note(note: Note): Promise<void> {
    await this.#call('POST', '/api/note', note);
  }

  /** Records that a promotion waits, has ended, or is cancelled. */
  async noteWait(note: WaitNote): Promise<void> {
    await this.#call('POST', '/api/wait', note);
  }

  /** Applies to every shard of the proxy. */
  async automate(request: AutomationRequest): Promise<void> {
    await this.#call('POST', '/api/automation', request);
  }

  evidence(): Promise<readonly ShardEvidence[]> {
    return this.#list('shards', evidence, 'GET', '/api/evidence');
  }

  jobs(): Promise<readonly ShardJob[]> {
    return this.#list('jobs', shardJob, 'GET', '/api/jobs');
  }

  startJob(request: StartJobRequest): Promise<readonly ShardJob[]> {
    return this.#list('jobs', shardJob, 'POST', '/api/jobs', request);
  }

  changeJobs(request: ChangeJobRequest): Promise<readonly ShardJob[]> {
    return this.#list('jobs', shardJob, 'PATCH', '/api/jobs', request);
  }

  stopJobs(): Promise<readonly ShardJob[]> {
    return this.#list('jobs', shardJob, 'DELETE', '/api/jobs');
  }

  /** A list in an answer, whose entries pass the check. */
  async #list<T>(part: string, each: Check, method: string, path: string, body?: object): Promise<readonly T[]> {
    return this.#listIn(await this.#call(method, path, body), part, each, path);
  }

  #listIn<T>(answer: object, part: string, each: Check, path: string): readonly T[] {
    const problem = listOf(part, each)(answer, '');
    if (problem === null) return (answer as Readonly<Record<string, readonly T[]>>)[part];
    throw this.#noProxy(
      path,
      `answers without ${printable(problem)}: is it a proxy of another version than this shadow-compare`,
      '? Install both from one release, or give',
    );
  }

  async #call<T>(method: string, path: string, body?: object): Promise<T> {
    const headers = {
      'content-type': 'application/json',
      ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token.value}` }),
    };
    const timeoutMs = method === 'GET' && AT_ONCE.has(path) ? Math.min(AT_ONCE_MS, this.timeoutMs) : this.timeoutMs;
    const request = { method, headers, body: body && JSON.stringify(body), timeoutMs, via: this.options.via ?? null };
    const answering = exchange(`${this.#url}${path}`, request);
    const { status, type, text } = await waitingFor(`Waiting for the proxy at ${this.#url}`, answering).catch(
      (error: Error) => {
        throw new CliError(
          'unreachable',
          `no proxy answers at ${this.#url}${path} (${error.message}). Start the proxy, or give its admin address with --admin or --plan`,
          exitCode.inconclusive,
        );
      },
    );
    const answer = parsed(text);
    if (answer === null)
      throw this.#noProxy(path, `answers HTTP ${status} ${printable(type ?? 'without a type')}, not as a proxy does`);
    if (status >= 200 && status < 300) return answer as T;
    const refusal = refusalIn(answer);
    if (refusal === null) throw this.#noProxy(path, `answers HTTP ${status} without a reason`);
    throw this.#refused(status, refusal);
  }

  #noProxy(path: string, what: string, then = '. Give'): CliError {
    const message = `${this.#url}${path} ${what}${then} the admin address of the proxy with --admin or --plan`;
    return new CliError('unreachable', message, exitCode.inconclusive);
  }

  #refused(status: number, refusal: Refusal): CliError {
    const { code, message, details } = refusal;
    const more = renderRefused(refusal, (each) => commandLine(each, this.options));
    if (status === 401) return new CliError(code, this.#unauthorized(), exitCode.usage);
    const wrongUse = status === 400 || status === 403 || status === 404;
    return new CliError(code, `${message}${more}`, wrongUse ? exitCode.usage : exitCode.fails, details);
  }

  #unauthorized(): string {
    if (this.#token === null)
      return `the proxy at ${this.#url} requires its admin token${this.#tokenProblem === null ? '' : ` (${this.#tokenProblem})`}: set ${ENVIRONMENT}, or use --token-file, or --plan with the plan that has it`;
    return `the proxy at ${this.#url} refuses the token from ${this.#token.from}: give the token of the plan that the proxy runs with${this.#token.hint}`;
  }
}

interface Refusal extends RefusalBody {
  readonly code: string;
  readonly message: string;
}

function refusalIn(answer: object): Refusal | null {
  const { error } = answer as { readonly error?: Partial<Refusal> | null };
  return typeof error?.code === 'string' && typeof error.message === 'string' ? (error as Refusal) : null;
}

/** A JSON object; null for anything else. */
function parsed(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && !Array.isArray(value) ? printableAll(value) : null;
  } catch {
    return null;
  }
}

function normalise(url: string): string {
  const text = url.includes('://') ? url : `http://${url}`;
  const address = URL.canParse(text) ? new URL(text) : null;
  // Text before an @ may be a password, so it is never printed.
  if (text.includes('@'))
    throw new CliError(
      'option',
      '--admin must not hold a user or password. Write http://host:port, and give the token with SHADOW_PROXY_TOKEN or --token-file',
      exitCode.usage,
    );
  if (address === null || !/^https?:$/.test(address.protocol))
    throw new CliError('option', `--admin ${url} is not an address: write http://host:port`, exitCode.usage);
  return address.href.replace(/\/+$/, '');
}

function readToken(file: string): string {
  try {
    return readWhole(file).toString('utf8').trim();
  } catch (error) {
    throw new CliError(
      'option',
      `--token-file ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`,
      exitCode.usage,
    );
  }
}
