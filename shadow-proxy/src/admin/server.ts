/**
 * The admin HTTP.
 *
 *   GET  /             the status page, and what it is made of: public, for there is nothing of the shards in it
 *   GET  /metrics      Prometheus text
 *   GET  /healthz      200 while the process turns
 *   GET  /readyz       200 when every shard is ready, else 503; names those that are not, and says whether it is a standby
 *   GET  /api/status   { version, shards: ShardSnapshot[], starting?: [{ shard, problem }] }: those that cannot start yet, and why
 *   POST /api/stage    { shard?, workload, stage, percent?, force? } → { changes: [{ shard, …StageChange }] }
 *   POST /api/promote  { shard?, workload, to?, percent?, consent?, dryRun?, force?, forceUsers?, reason?, by? } → { promotions: [{ shard, …Promotion }] }
 *   POST /api/rollback { shard?, workload?, to?, force?, reason?, by?, drill? } → { rollbacks: [{ shard, …Rollback }] }; without a workload, all that the target answers
 *   GET  /api/evidence { shards: ShardEvidence[] }: of each workload the gates of its next stage; the latest mismatches, redacted
 *   GET  /api/series   ?shard=…&since=ms { everyMs, series: [{ shard, …SeriesSnapshot }] }: how the shards fared since then
 *   GET  /api/history  { history: [{ shard, events }] }: changes, oldest first
 *   POST /api/note     { runbook, step, kind, command, exit, held, by? } → { shards }: what an operator did by a runbook, into the history of each shard
 *   POST /api/accept   { shard?, runIds? } → { accepted: [{ shard, servers }] }: authorities that came back as other processes, as they are
 *   GET  /api/jobs     { jobs: [{ shard, job: JobSnapshot | null }] }: the backfill or verification that is under way, or was the last
 *   POST /api/jobs     { shard?, kind, workloads?, repair?, dryRun?, again?, deletes?, sample?, limits?, by? } → { jobs }
 *   DELETE /api/jobs   stops them where they are → { jobs }
 *
 * Errors are { error: { code, message, … } }. Where a token is set, every request but those for the page's files needs
 * it.
 *
 * Room: admin: the admin HTTP: who may ask, its routes.
 * Called by: shard, cli.
 * Calls: route, plan, telemetry, storage, copy, stages, health, page.
 */
import type { PageFile } from '../page/files.js';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { formatAddress, isLoopback, redactSecrets } from '../plan/endpoint.js';
import { Metrics } from '../telemetry/metrics.js';
import { STAGES, stageRule, type Side } from '../route/stage.js';
import { JobError, type JobErrorCode } from '../copy/job/jobs.js';
import { jobRequest } from '../storage/job-file.js';
import { SERIES_STEP_MS } from '../telemetry/series.js';
import { refusalOf, type Refusal } from './admission.js';
import { closedGates } from '../stages/gates.js';
import type { Promotion, Rollback } from '../stages/promotion.js';
import { TrustError, type TrustErrorCode } from '../health/trust.js';
import { StageError, type StageChange, type StageErrorCode } from '../stages/stage-change.js';
import type { JobSnapshot } from '../telemetry/snapshot.js';
import type { ShardControl } from './shard-control.js';
import type { StagePoint } from '../plan/plan.js';

export interface AdminOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Read at each request, so that a reload may change it; null asks for none. */
  readonly token: () => string | null;
  readonly shards: () => readonly ShardControl[];
  /** The status page's files by path; null for what is none of them. */
  readonly page?: (path: string) => PageFile | null;
  /** Names of the shards that it takes when another process ends. */
  readonly waiting?: () => readonly string[];
  /** Shards that are not started yet, and why: they are tried again each second. */
  readonly starting?: () => readonly NotStarted[];
}

export interface NotStarted {
  readonly shard: string;
  readonly problem: string;
}

export type AdminErrorCode =
  | 'listen'
  | Refusal['code']
  | 'not-found'
  | 'method'
  | 'bad-request'
  | 'too-large'
  | 'unknown-shard'
  | 'internal'
  | StageErrorCode
  | TrustErrorCode
  | JobErrorCode;

/** The admin HTTP cannot be opened, or a request is refused; the message says what to do. */
export class AdminError extends Error {
  override readonly name = 'AdminError';
  constructor(
    readonly code: AdminErrorCode,
    message: string,
    readonly status = 500,
    readonly details?: object,
  ) {
    super(message);
  }
}

const MAX_BODY = 64 * 1024;
const REQUEST_MS = 10_000;

const stageRequest = z.strictObject({
  shard: z.string().optional(),
  workload: z.string(),
  stage: z.enum(STAGES),
  percent: z.number().min(0).max(100).optional(),
  force: z.boolean().optional(),
});

const acceptRequest = z.strictObject({ shard: z.string().optional(), runIds: z.array(z.string()).optional() });

/** What people write down for the history. */
const words = (most: number): z.ZodType<string | undefined> => z.string().max(most).transform(redactSecrets).optional();
const by = words(200);
const consent = z.strictObject({
  overwrite: z.boolean().default(false),
  deleteForeign: z.boolean().default(false),
  confirm: z.int().min(0),
});
const promoteRequest = z.strictObject({
  shard: z.string().optional(),
  workload: z.string(),
  to: z.enum(STAGES).optional(),
  percent: z.number().gt(0).max(100).optional(),
  consent: consent.optional(),
  dryRun: z.boolean().optional(),
  force: z.boolean().optional(),
  forceUsers: z.boolean().optional(),
  reason: words(1000),
  by,
});
const rollbackRequest = z.strictObject({
  shard: z.string().optional(),
  workload: z.string().optional(),
  to: z.enum(STAGES).optional(),
  force: z.boolean().optional(),
  reason: words(1000),
  by,
  drill: z.boolean().optional(),
});

const word = z.string().min(1).max(200).transform(redactSecrets);
const noteRequest = z.strictObject({
  runbook: word,
  step: word,
  kind: z.enum(['run', 'undo']),
  command: z.string().max(1000).transform(redactSecrets),
  exit: z.int().nullable(),
  held: z.boolean(),
  by,
});

const jobOrder = jobRequest
  .omit({ automatic: true })
  .partial({ workloads: true, repair: true, dryRun: true, again: true, deletes: true, sample: true, limits: true })
  .extend({ shard: z.string().optional(), by });

export class Admin {
  readonly #metrics: Metrics;
  readonly #server: Server;

  private constructor(private readonly options: AdminOptions) {
    this.#metrics = new Metrics(() => ({
      shards: options.shards().map((shard) => shard.scrape()),
      waiting: options.waiting?.() ?? [],
    }));
    this.#server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (request, response) => {
      void this.#answer(request, response);
    });
  }

  /** @throws {AdminError} code `listen` */
  static async start(options: AdminOptions): Promise<Admin> {
    if (!isLoopback(options.host) && !options.token()) {
      throw new AdminError(
        'listen',
        `the admin address ${formatAddress(options)} is beyond loopback: set admin.token or admin.tokenFile`,
      );
    }
    const admin = new Admin(options);
    admin.#server.listen(options.port, options.host);
    try {
      await once(admin.#server, 'listening');
    } catch (error) {
      const why =
        (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
          ? 'is taken'
          : `cannot be opened: ${(error as Error).message}`;
      throw new AdminError(
        'listen',
        `the admin address ${formatAddress(options)} ${why}: set another admin.listen (each process needs its own)`,
      );
    }
    return admin;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    try {
      const { pathname, searchParams } = targetOf(request);
      const file = this.options.page?.(pathname) ?? null;
      const refusal = refusalOf(
        { method: request.method ?? '', headers: request.headers, isPublic: file !== null },
        this.options.token(),
      );
      if (refusal !== null) throw new AdminError(refusal.code, refusal.message, refusal.status);
      if (file === null) await this.#route(request, response, pathname, searchParams);
      else sendFile(request, response, pathname, file);
    } catch (error) {
      if (response.headersSent || response.destroyed) return void response.destroy();
      const { status, code, message, details } = asAdminError(error);
      if (status === 401) response.setHeader('www-authenticate', 'Bearer');
      // What is left of a refused body is not read.
      if (!request.complete) response.setHeader('connection', 'close');
      send(response, status, { error: { code, message, ...details } });
    }
  }

  async #route(
    request: IncomingMessage,
    response: ServerResponse,
    pathname: string,
    query: URLSearchParams,
  ): Promise<void> {
    const route = Object.hasOwn(ROUTES, pathname) ? ROUTES[pathname] : undefined;
    if (route === undefined) {
      throw new AdminError('not-found', `there is no ${pathname}: ${Object.keys(ROUTES).join(', ')} are there`, 404);
    }
    checkMethod(request, response, pathname, route);
    if (pathname === '/metrics') {
      response.setHeader('content-type', this.#metrics.contentType);
      response.end(await this.#metrics.text());
    } else if (pathname === '/healthz') {
      send(response, 200, { ok: true });
    } else if (pathname === '/readyz') {
      this.#ready(response);
    } else if (pathname === '/api/status') {
      const starting = this.options.starting?.() ?? [];
      send(response, 200, {
        version: 1,
        shards: this.options.shards().map((shard) => shard.snapshot()),
        ...(starting.length > 0 && { starting }),
      });
    } else if (pathname === '/api/evidence') {
      send(response, 200, {
        version: 1,
        shards: await Promise.all(this.options.shards().map((shard) => shard.evidence())),
      });
    } else if (pathname === '/api/series') {
      const since = Number(query.get('since') ?? 0);
      if (!Number.isFinite(since))
        throw new AdminError('bad-request', 'since is a moment in milliseconds since 1970', 400);
      const shards = this.#shardsNamed(query.get('shard') ?? undefined);
      send(response, 200, {
        version: 1,
        everyMs: SERIES_STEP_MS,
        series: shards.map((shard) => ({ shard: shard.name, ...shard.series(since) })),
      });
    } else if (pathname === '/api/accept') {
      send(response, 200, { accepted: await this.#accept(request) });
    } else if (pathname === '/api/history') {
      send(response, 200, {
        history: await Promise.all(
          this.options.shards().map(async (shard) => ({ shard: shard.name, events: await shard.history() })),
        ),
      });
    } else if (pathname === '/api/note') {
      send(response, 200, { shards: await this.#note(request) });
    } else if (pathname === '/api/promote') {
      send(response, 200, { promotions: await this.#promote(request) });
    } else if (pathname === '/api/rollback') {
      send(response, 200, { rollbacks: await this.#rollback(request) });
    } else if (pathname === '/api/jobs') {
      send(response, 200, { jobs: await this.#jobs(request) });
    } else {
      send(response, 200, { changes: await this.#changeStage(request) });
    }
  }

  async #jobs(request: IncomingMessage): Promise<{ shard: string; job: JobSnapshot | null }[]> {
    const shards = this.options.shards();
    if (request.method === 'POST') {
      const {
        shard: name,
        by: who,
        kind,
        workloads = null,
        repair = false,
        dryRun = false,
        again = false,
        deletes = 0,
        sample = 100,
        limits = {},
      } = await readBody(request, jobOrder);
      const wanted = { kind, workloads, repair, dryRun, again, deletes, sample, limits, automatic: false };
      return this.#shardsNamed(name).map((shard) => ({ shard: shard.name, job: shard.startJob(wanted, who) }));
    }
    if (request.method === 'DELETE')
      return shards
        .filter((shard) => shard.snapshot().job?.state === 'running')
        .map((shard) => ({ shard: shard.name, job: shard.stopJob() }));
    return shards.map((shard) => ({ shard: shard.name, job: shard.snapshot().job }));
  }

  async #note(request: IncomingMessage): Promise<readonly string[]> {
    const note = await readBody(request, noteRequest);
    const shards = this.options.shards();
    for (const shard of shards) await shard.note(note);
    return shards.map(({ name }) => name);
  }

  /** Without a shard, all that are frozen. */
  async #accept(request: IncomingMessage): Promise<{ shard: string; servers: readonly Side[] }[]> {
    const { shard: name, runIds = null } = await readBody(request, acceptRequest);
    const shards = this.#shardsNamed(name);
    const frozen = shards.filter((shard) => shard.snapshot().frozen !== null);
    const accepted: { shard: string; servers: readonly Side[] }[] = [];
    for (const shard of frozen.length > 0 ? frozen : shards)
      accepted.push({ shard: shard.name, servers: await shard.acceptAuthority(runIds) });
    return accepted;
  }

  #shardsNamed(name: string | undefined): readonly ShardControl[] {
    const all = this.options.shards();
    const shards = name === undefined ? all : all.filter((shard) => shard.name === name);
    if (shards.length > 0) return shards;
    throw new AdminError(
      'unknown-shard',
      `there is no shard ${name} here: ${all.map((shard) => shard.name).join(', ')}`,
      404,
    );
  }

  #ready(response: ServerResponse): void {
    const shards = this.options.shards();
    const starting = this.options.starting?.() ?? [];
    const notReady = [
      ...shards.filter((shard) => !shard.ready()),
      ...starting.map(({ shard }) => ({ name: shard })),
    ].map(({ name }) => name);
    const ready = shards.length > 0 && notReady.length === 0;
    send(response, ready ? 200 : 503, {
      ready,
      notReady,
      ...((this.options.waiting?.() ?? []).length > 0 && { reason: 'standby' }),
      ...(starting.length > 0 && { starting: starting.map(({ shard }) => shard) }),
    });
  }

  /** Of several shards none goes where one may not, and those that went go back where a later one does not. */
  async #promote(request: IncomingMessage): Promise<({ shard: string } & Promotion)[]> {
    const { shard: name, ...wanted } = await readBody(request, promoteRequest);
    const shards = this.#shardsNamed(name);
    const judged: ({ shard: string } & Promotion)[] = [];
    for (const shard of shards)
      judged.push({ shard: shard.name, ...(await shard.promote({ ...wanted, dryRun: true })) });
    if (wanted.dryRun) return judged;
    const closed = judged.filter(({ gates }) => closedGates(gates, wanted).length > 0);
    if (closed.length > 0) {
      const names = closed.map(
        ({ shard, gates }) =>
          `${shard} (${closedGates(gates, wanted)
            .map((gate) => gate.name)
            .join(', ')})`,
      );
      throw new AdminError(
        'gates-closed',
        `"${wanted.workload}" stays where it is; closed gates: ${names.join('; ')}`,
        409,
        { promotions: judged },
      );
    }
    const done: ({ shard: string } & Promotion)[] = [];
    for (const shard of shards) {
      try {
        done.push({ shard: shard.name, ...(await shard.promote(wanted)) });
      } catch (error) {
        const { status, code, message, details } = asAdminError(error);
        const back = await this.#undo(shards, done, `${shard.name} refused`);
        throw new AdminError(code, `${shard.name}: ${message}${back}`, status, details);
      }
    }
    return done;
  }

  /** Stage by stage. @returns what to tell of it */
  async #undo(
    shards: readonly ShardControl[],
    done: readonly { shard: string; workload: string; from: StagePoint }[],
    why: string,
  ): Promise<string> {
    const stuck: string[] = [];
    for (const { shard, workload, from } of [...done].reverse()) {
      const control = shards.find((each) => each.name === shard)!;
      const at = STAGES.indexOf(control.snapshot().workloads.find(({ name }) => name === workload)!.stage);
      const to = STAGES.indexOf(from.stage);
      // The stage itself may be the same, and its share not.
      const steps = at === to ? [from.stage] : at < to ? STAGES.slice(at + 1, to + 1) : STAGES.slice(to, at).reverse();
      try {
        for (const stage of steps)
          await control.changeStage({
            workload,
            stage,
            percent: stage === 'live' ? from.percent : undefined,
            note: { undone: why },
          });
      } catch (error) {
        stuck.push(`${shard} did not go back: ${(error as Error).message}`);
      }
    }
    if (stuck.length > 0) return `; ${stuck.join('; ')}`;
    return done.length === 0 ? '' : `; ${done.map(({ shard }) => shard).join(', ')} went back to where it was`;
  }

  /**
   * Of a workload that is named none goes back where one shard refuses. The red button goes on: what can go back does,
   * and the answer says what did not.
   */
  async #rollback(request: IncomingMessage): Promise<({ shard: string } & Rollback)[]> {
    const { shard: name, workload, ...wanted } = await readBody(request, rollbackRequest);
    const shards = this.#shardsNamed(name);
    if (workload === undefined && wanted.drill)
      throw new AdminError('bad-request', 'a drill is of one workload: name it', 400);
    const done: ({ shard: string } & Rollback)[] = [];
    const refused: AdminError[] = [];
    for (const shard of shards) {
      for (const each of workload === undefined ? answeredByTarget(shard) : [workload]) {
        try {
          done.push({ shard: shard.name, ...(await shard.rollback({ ...wanted, workload: each })) });
        } catch (error) {
          const { status, code, message, details } = asAdminError(error);
          if (workload !== undefined)
            throw new AdminError(
              code,
              `${shard.name}: ${message}${await this.#undo(shards, gone(done), `${shard.name} refused`)}`,
              status,
              details,
            );
          refused.push(new AdminError(code, `${shard.name}: ${message}`, status, details));
        }
      }
    }
    if (refused.length === 0) return done;
    const rolledBack = done.map(({ shard, workload: each }) => `${shard}: ${each} was rolled back`);
    throw new AdminError(
      refused[0].code,
      [...refused.map(({ message }) => message), ...rolledBack].join('\n'),
      refused[0].status,
      { rollbacks: done, details: refused.map(({ details }) => details) },
    );
  }

  /**
   * Without a shard, each is changed in turn; the first that refuses ends it, and the answer says which were changed.
   */
  async #changeStage(request: IncomingMessage): Promise<({ shard: string } & StageChange)[]> {
    const { shard: name, ...wanted } = await readBody(request, stageRequest);
    const shards = this.#shardsNamed(name);
    const changes: ({ shard: string } & StageChange)[] = [];
    for (const shard of shards) {
      try {
        changes.push({ shard: shard.name, ...(await shard.changeStage(wanted)) });
      } catch (error) {
        const { status, code, message, details } = asAdminError(error);
        throw new AdminError(code, message, status, { ...details, shard: shard.name, changes });
      }
    }
    return changes;
  }
}

/** Where they were before. */
const gone = (
  done: readonly ({ shard: string } & Rollback)[],
): { shard: string; workload: string; from: StagePoint }[] =>
  done.map(({ shard, workload, changes }) => ({ shard, workload, from: changes[0].from }));

/**
 * The workloads of which clients get the target's replies; those that are complete refuse to go back, and say what to
 * do.
 */
const answeredByTarget = (shard: ShardControl): string[] =>
  shard
    .snapshot()
    .workloads.filter(({ stage }) => stage === 'live' || stageRule(stage).authority === 'target')
    .map(({ name }) => name);

const READ = ['GET', 'HEAD'];
const ROUTES: Readonly<Record<string, readonly string[]>> = {
  '/metrics': READ,
  '/healthz': READ,
  '/readyz': READ,
  '/api/status': READ,
  '/api/evidence': READ,
  '/api/series': READ,
  '/api/stage': ['POST'],
  '/api/promote': ['POST'],
  '/api/rollback': ['POST'],
  '/api/history': READ,
  '/api/note': ['POST'],
  '/api/accept': ['POST'],
  '/api/jobs': ['GET', 'POST', 'DELETE'],
};

/** Of every answer: nobody guesses its type, frames it, has it in another page, or learns from where it was asked. */
const HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
};

/** Path and query; what is no path at all is not found. */
function targetOf({ url = '/' }: IncomingMessage): { pathname: string; searchParams: URLSearchParams } {
  const [pathname, query = ''] = url.split('?', 2);
  return { pathname, searchParams: new URLSearchParams(query) };
}

function checkMethod(
  request: IncomingMessage,
  response: ServerResponse,
  pathname: string,
  allowed: readonly string[],
): void {
  if (allowed.includes(request.method ?? '')) return;
  response.setHeader('allow', allowed.join(', '));
  throw new AdminError('method', `${pathname} takes ${allowed.join(' or ')}`, 405);
}

function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  pathname: string,
  { type, content, policy }: PageFile,
): void {
  checkMethod(request, response, pathname, READ);
  response.writeHead(200, { 'content-type': type, 'content-security-policy': policy, 'cache-control': 'no-cache' });
  response.end(content);
}

const STATUS_OF: Record<StageErrorCode | TrustErrorCode | JobErrorCode, number> = {
  'unknown-workload': 404,
  'not-adjacent': 409,
  'no-return': 409,
  'not-clean': 409,
  'gates-closed': 409,
  deadline: 504,
  busy: 409,
  refused: 409,
  'nothing-to-do': 409,
  frozen: 409,
  none: 409,
  'not-frozen': 409,
  changed: 409,
  away: 409,
  replica: 409,
};

function asAdminError(error: unknown): AdminError {
  if (error instanceof AdminError) return error;
  if (error instanceof JobError || error instanceof TrustError)
    return new AdminError(error.code, error.message, STATUS_OF[error.code]);
  if (!(error instanceof StageError)) return new AdminError('internal', (error as Error).message);
  return new AdminError(
    error.code,
    error.message,
    STATUS_OF[error.code],
    error.details === undefined ? {} : { details: error.details },
  );
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body) + '\n');
}

async function readBody<T>(request: IncomingMessage, schema: z.ZodType<T>): Promise<T> {
  // A form of a web page cannot send this type without asking first, and nobody answers it.
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
    throw new AdminError('bad-request', 'send the body with "Content-Type: application/json"', 415);
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY) throw new AdminError('too-large', `the body is over ${MAX_BODY} bytes`, 413);
    chunks.push(chunk);
  }
  let body: unknown;
  try {
    body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch (error) {
    throw new AdminError('bad-request', `the body is no JSON: ${(error as Error).message}`, 400);
  }
  const parsed = schema.safeParse(body);
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the body'}: ${issue.message}`);
    throw new AdminError('bad-request', problems.join('; '), 400);
  }
  return parsed.data;
}
