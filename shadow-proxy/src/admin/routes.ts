/**
 * The routes of the admin HTTP: one table. Any other path is a 404.
 *
 * Errors are { error: { code, message, … } }. Every answer of a shard names the shard.
 */
import type { z } from 'zod';
import {
  changeJobRequest,
  startJobRequest,
  acceptRequest,
  fenceRequest,
  automationRequest,
  noteRequest,
  promoteRequest,
  rollbackRequest,
  takeBackRequest,
  waitRequest,
} from './requests.js';
import type { Metrics } from '../telemetry/metrics.js';
import { SERIES_STEP_MS } from '../telemetry/series.js';
import type { JobSnapshot, NotStarted } from '../telemetry/snapshot.js';
import type { Side } from '../route/stage.js';
import type { ShardState } from '../storage/state.js';
import type { FenceNote } from '../stages/fence.js';
import type { FenceReport } from '../stages/fence-gate.js';
import { AdminError, asAdminError } from './errors.js';
import type { FenceAction, ShardControl } from './shard-control.js';
import { promoteAll, rollbackAll, takeBack } from './stages.js';

/** What the handlers may use. */
export interface AdminContext {
  /** The plan's name. */
  readonly migration: () => string;
  readonly shards: () => readonly ShardControl[];
  /** Names of the shards that the process takes over when another process ends. */
  readonly waiting: () => readonly string[];
  /** Shards that are not started yet, and why. Each second they are tried again. */
  readonly starting: () => readonly NotStarted[];
  /** The durable state of each shard, for a standby; shards without a state are left out. */
  readonly states: () => Promise<readonly SharedState[]>;
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>;
}

export interface SharedState {
  /** Whether this process serves the shard; if not, the state is one that this process left, or copied. */
  readonly serves: boolean;
  readonly state: ShardState;
}

/**
 * Load balancers use these paths without a token. The answer has only the status code, and nothing about the shards.
 */
export const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

export interface Answer {
  /** 200 by default. */
  readonly status?: number;
  /** An object is sent as JSON, a text as it is. */
  readonly body: object | string;
  /** The content type of a text. */
  readonly contentType?: string;
}

export interface Endpoint {
  /** The schema of the request's body, which is JSON; null if no body is read. */
  readonly schema: z.ZodType | null;
  handle(context: AdminContext, asked: { readonly query: URLSearchParams; readonly body: unknown }): Promise<Answer>;
}

/** The endpoints by method; other methods are refused. */
export type Route = Readonly<Record<string, Endpoint>>;

/** Answers with JSON; reads only the query. */
const reads = (tell: (context: AdminContext, query: URLSearchParams) => object | Promise<object>): Endpoint => ({
  schema: null,
  handle: async (context, { query }) => ({ body: await tell(context, query) }),
});

/** Answers with JSON; reads a body of that schema. */
const takes = <T>(
  schema: z.ZodType<T>,
  change: (context: AdminContext, body: T) => object | Promise<object>,
): Endpoint => ({
  schema,
  // The server has parsed the body by the schema.
  handle: async (context, { body }) => ({ body: await change(context, body as T) }),
});

const page = (endpoint: Endpoint): Route => ({ GET: endpoint, HEAD: endpoint });
const changes = (endpoint: Endpoint): Route => ({ POST: endpoint });

export const ROUTES: Readonly<Record<string, Route>> = {
  /** Prometheus text. */
  '/metrics': page({
    schema: null,
    handle: async ({ metrics }) => ({ body: await metrics.text(), contentType: metrics.contentType }),
  }),
  /** 200 while the event loop runs. */
  '/healthz': page(reads(() => ({ ok: true }))),
  /** 200 if every shard is ready, else 503: `notReady` names the other shards, `reason` is `standby` on a standby. */
  '/readyz': page({ schema: null, handle: (context) => Promise.resolve(readiness(context)) }),
  /**
   * { version, migration, shards: ShardSnapshot[], starting?: [{ shard, problem }] }: the plan's name; the shards that
   * cannot start yet, and why.
   */
  '/api/status': page(
    reads(({ migration, shards, starting }) => ({
      version: 1,
      migration: migration(),
      shards: shards().map((shard) => shard.snapshot()),
      ...(starting().length > 0 && { starting: starting() }),
    })),
  ),
  /** { shards: ShardEvidence[] }: the gates of each workload's next stage, and the latest mismatches, redacted. */
  '/api/evidence': page(
    reads(async ({ shards }) => ({
      version: 1,
      shards: await Promise.all(shards().map((shard) => shard.evidence())),
    })),
  ),
  /** ?shard=…&since=ms → { everyMs, series: [{ shard, …SeriesSnapshot }] }: the figures of the shards since then. */
  '/api/series': page(reads(series)),
  /**
   * { shard?, workload, to?, percent?, consent?, dryRun?, pointOfNoReturn?, force?, forceSuspects?, forceUsers?, reason?, by? } → { promotions: [{ shard,
   * …Promotion }] }
   */
  '/api/promote': changes(
    takes(promoteRequest, async (context, { shard, ...wanted }) => ({
      promotions: await promoteAll(context.migration(), shardsNamed(context, shard), wanted),
    })),
  ),
  /**
   * { shard?, workload?, to?, force?, reason?, by?, drill?, dryRun? } → { rollbacks: [{ shard, …Rollback }] }; without
   * a workload, all workloads that the target answers.
   */
  '/api/rollback': changes(
    takes(rollbackRequest, async (context, { shard, ...wanted }) => ({
      rollbacks: await rollbackAll(shardsNamed(context, shard), wanted),
    })),
  ),
  /**
   * { shard, workload, from: { stage, percent }, why } → { takenBack: [{ shard }] }: moves the workload back to its
   * stage of minutes ago, because another process of the plan has refused the same change.
   */
  '/api/take-back': changes(
    takes(takeBackRequest, async (context, { shard, ...wanted }) => ({
      takenBack: await takeBack(shardsNamed(context, shard), wanted),
    })),
  ),
  /** { history: [{ shard, events }] }: changes, oldest first. */
  '/api/history': page(
    reads(async ({ shards }) => ({
      history: await Promise.all(shards().map(async (shard) => ({ shard: shard.name, events: await shard.history() }))),
    })),
  ),
  /**
   * { runbook, step, kind, command, exit, held, by? } → { shards }: records in each shard's history what an operator
   * did with a runbook.
   */
  '/api/note': changes(
    takes(noteRequest, async ({ shards }, note) => {
      const all = shards();
      for (const shard of all) await shard.note(note);
      return { shards: all.map(({ name }) => name) };
    }),
  ),
  /**
   * { workload, state, what, by? } → { shards }: records in each history that a promotion waits, has ended, or is
   * cancelled.
   */
  '/api/wait': changes(
    takes(waitRequest, async ({ shards }, wait) => {
      const all = shards();
      for (const shard of all) await shard.note(wait);
      return { shards: all.map(({ name }) => name) };
    }),
  ),
  /**
   * GET → { fences: [{ shard, …FenceReport }] }: users and clients that may not write to the sources, or would not be
   * allowed to.
   */
  '/api/fence': {
    GET: reads(async ({ shards }) => ({
      fences: await Promise.all(shards().map(async (shard) => ({ shard: shard.name, ...(await shard.fence('show')) }))),
    })),
    /** { shard?, action: apply | lift, reason?, by? } → { fences } */
    POST: takes(fenceRequest, async (context, { shard: name, action, ...note }) => ({
      fences: await fenceAll(shardsNamed(context, name), action, note),
    })),
  },
  /**
   * { shard?, workload, state: pause | resume, reason, by? } → { shards }: forbids or allows automatic promotions of
   * the workload.
   */
  '/api/automation': changes(
    takes(automationRequest, async (context, { shard: name, ...request }) => {
      const named = shardsNamed(context, name);
      for (const shard of named) await shard.automate(request);
      return { shards: named.map((shard) => shard.name) };
    }),
  ),
  /** { shard?, runIds? } → { accepted: [{ shard, servers }] }: accepts restarted or replaced authorities. */
  '/api/accept': changes(
    takes(acceptRequest, async (context, { shard, runIds = null }) => ({
      accepted: await accept(shardsNamed(context, shard), runIds),
    })),
  ),
  /** { states: [{ serves, state }] }: the states that a standby of these shards copies. */
  '/api/state': page(reads(async ({ states }) => ({ version: 1, states: await states() }))),
  /** GET → { jobs: [{ shard, job: JobSnapshot | null }] }: the present or the last job. */
  '/api/jobs': {
    GET: reads(({ shards }) => ({ jobs: shards().map((shard) => ({ shard: shard.name, job: shard.snapshot().job })) })),
    /** { shard?, kind, workloads?, repair?, dryRun?, again?, deletes?, sample?, limits?, by? } → { jobs } */
    POST: takes(startJobRequest, (context, request) => ({ jobs: startJobs(context, request) })),
    /**
     * { shard?, limits?, state?: pause | resume, reason?, by? } → { jobs }: changes the jobs that run. A limit that is
     * null ends it, one that is absent stays.
     */
    PATCH: takes(changeJobRequest, (context, request) => ({ jobs: changeJobs(context, request) })),
    /** Stops the jobs where they are → { jobs }. */
    DELETE: reads(({ shards }) => ({
      jobs: shards()
        .filter((shard) => shard.snapshot().job?.state === 'running')
        .map((shard) => ({ shard: shard.name, job: shard.stopJob() })),
    })),
  },
};

/** Undefined if there is no such route. */
export const routeAt = (path: string): Route | undefined => (Object.hasOwn(ROUTES, path) ? ROUTES[path] : undefined);

/** Without a name, all shards. @throws {AdminError} if there is no such shard */
function shardsNamed({ shards }: AdminContext, name: string | undefined): readonly ShardControl[] {
  const all = shards();
  const named = name === undefined ? all : all.filter((shard) => shard.name === name);
  if (named.length > 0) return named;
  throw new AdminError(
    'unknown-shard',
    `there is no shard ${name} here. The shards: ${all.map((shard) => shard.name).join(', ')}`,
    404,
  );
}

function readiness(context: AdminContext): Answer {
  const shards = context.shards();
  const starting = context.starting();
  const notReady = [
    ...shards.filter((shard) => !shard.ready()).map(({ name }) => name),
    ...starting.map(({ shard }) => shard),
  ];
  const ready = shards.length > 0 && notReady.length === 0;
  return {
    status: ready ? 200 : 503,
    body: {
      ready,
      notReady,
      ...(context.waiting().length > 0 && { reason: 'standby' }),
      ...(starting.length > 0 && { starting: starting.map(({ shard }) => shard) }),
    },
  };
}

function series(context: AdminContext, query: URLSearchParams): object {
  const since = Number(query.get('since') ?? 0);
  if (!Number.isFinite(since))
    throw new AdminError('bad-request', 'since must be a time in milliseconds since 1970', 400);
  const shards = shardsNamed(context, query.get('shard') ?? undefined);
  return {
    version: 1,
    everyMs: SERIES_STEP_MS,
    series: shards.map((shard) => ({ shard: shard.name, ...shard.series(since) })),
  };
}

/** Changes one shard after the other, up to the first that refuses. */
async function fenceAll(
  shards: readonly ShardControl[],
  action: FenceAction,
  note: FenceNote,
): Promise<({ readonly shard: string } & FenceReport)[]> {
  const fences: ({ readonly shard: string } & FenceReport)[] = [];
  for (const shard of shards) {
    try {
      fences.push({ shard: shard.name, ...(await shard.fence(action, note)) });
    } catch (error) {
      const { status, code, message, details } = asAdminError(error);
      const done = fences.length === 0 ? '' : `; done on ${fences.map((each) => each.shard).join(', ')}`;
      throw new AdminError(code, `${shard.name}: ${message}${done}`, status, details);
    }
  }
  return fences;
}

/** Accepts at the frozen shards, or at all shards if none is frozen. */
async function accept(
  shards: readonly ShardControl[],
  runIds: readonly string[] | null,
): Promise<{ shard: string; servers: readonly Side[] }[]> {
  const frozen = shards.filter((shard) => shard.snapshot().frozen !== null);
  const accepted: { shard: string; servers: readonly Side[] }[] = [];
  for (const shard of frozen.length > 0 ? frozen : shards)
    accepted.push({ shard: shard.name, servers: await shard.acceptAuthority(runIds) });
  return accepted;
}

/** @throws {JobError} where none runs */
function changeJobs(
  context: AdminContext,
  { shard: name, ...change }: z.infer<typeof changeJobRequest>,
): { shard: string; job: JobSnapshot }[] {
  const named = shardsNamed(context, name);
  const running = named.filter((shard) => shard.snapshot().job?.state === 'running');
  return (running.length > 0 ? running : named).map((shard) => ({ shard: shard.name, job: shard.changeJob(change) }));
}

function startJobs(
  context: AdminContext,
  { shard: name, by, ...request }: z.infer<typeof startJobRequest>,
): { shard: string; job: JobSnapshot }[] {
  const defaults = { workloads: null, repair: false, dryRun: false, again: false, deletes: 0, sample: 100, limits: {} };
  const wanted = { ...defaults, ...request, automatic: false };
  return shardsNamed(context, name).map((shard) => ({ shard: shard.name, job: shard.startJob(wanted, by) }));
}
