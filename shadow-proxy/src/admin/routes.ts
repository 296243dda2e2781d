/**
 * The routes of the admin HTTP: one table. What is not in it is a 404.
 *
 * Errors are { error: { code, message, … } }. Every answer of a shard names it.
 */
import type { z } from 'zod';
import {
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

/** What the handlers may ask. */
export interface AdminContext {
  /** The plan's name. */
  readonly migration: () => string;
  readonly shards: () => readonly ShardControl[];
  /** Names of the shards that it takes when another process ends. */
  readonly waiting: () => readonly string[];
  /** Shards that are not started yet, and why: they are tried again each second. */
  readonly starting: () => readonly NotStarted[];
  /** The durable state of each shard, for a standby; those without one are left out. */
  readonly states: () => Promise<readonly SharedState[]>;
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>;
}

export interface SharedState {
  /** Whether this process serves the shard; else its state is what this process left, or copied. */
  readonly serves: boolean;
  readonly state: ShardState;
}

/** Load balancers ask these without a token: they are answered with the status code, and no word on the shards. */
export const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz']);

export interface Answer {
  /** 200 by default. */
  readonly status?: number;
  /** An object is sent as JSON. */
  readonly body: object | string;
  /** The content type of a text. */
  readonly contentType?: string;
}

export interface Endpoint {
  /** The schema of the request's body, which is JSON; null if no body is read. */
  readonly schema: z.ZodType | null;
  handle(context: AdminContext, asked: { readonly query: URLSearchParams; readonly body: unknown }): Promise<Answer>;
}

/** The endpoints by method. Its keys are the methods that the route accepts. */
export type Route = Readonly<Record<string, Endpoint>>;

/** Answers with JSON, from the query alone. */
const reads = (tell: (context: AdminContext, query: URLSearchParams) => object | Promise<object>): Endpoint => ({
  schema: null,
  handle: async (context, { query }) => ({ body: await tell(context, query) }),
});

/** Answers with JSON, from a body of that schema. */
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
  /** 200 while the process turns. */
  '/healthz': page(reads(() => ({ ok: true }))),
  /** 200 when every shard is ready, else 503: `notReady` names the others, `reason` is `standby` on a standby. */
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
  /** { shards: ShardEvidence[] }: of each workload the gates of its next stage; the latest mismatches, redacted. */
  '/api/evidence': page(
    reads(async ({ shards }) => ({
      version: 1,
      shards: await Promise.all(shards().map((shard) => shard.evidence())),
    })),
  ),
  /** ?shard=…&since=ms → { everyMs, series: [{ shard, …SeriesSnapshot }] }: how the shards fared since then. */
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
   * { shard?, workload?, to?, force?, reason?, by?, drill?, dryRun? } → { rollbacks: [{ shard, …Rollback }] }; without a
   * workload, all that the target answers.
   */
  '/api/rollback': changes(
    takes(rollbackRequest, async (context, { shard, ...wanted }) => ({
      rollbacks: await rollbackAll(shardsNamed(context, shard), wanted),
    })),
  ),
  /**
   * { shard, workload, from: { stage, percent }, why } → { takenBack: [{ shard }] }: puts the workload back where it was
   * minutes ago, for another process of the plan has refused the same change.
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
   * { runbook, step, kind, command, exit, held, by? } → { shards }: what an operator did by a runbook, into the history
   * of each shard.
   */
  '/api/note': changes(
    takes(noteRequest, async ({ shards }, note) => {
      const all = shards();
      for (const shard of all) await shard.note(note);
      return { shards: all.map(({ name }) => name) };
    }),
  ),
  /** { workload, state, what, by? } → { shards }: a promotion waits, has ended, or is cancelled, into each history. */
  '/api/wait': changes(
    takes(waitRequest, async ({ shards }, wait) => {
      const all = shards();
      for (const shard of all) await shard.note(wait);
      return { shards: all.map(({ name }) => name) };
    }),
  ),
  /** GET → { fences: [{ shard, …FenceReport }] }: who may not write to the sources, or could not. */
  '/api/fence': {
    GET: reads(async ({ shards }) => ({
      fences: await Promise.all(shards().map(async (shard) => ({ shard: shard.name, ...(await shard.fence('show')) }))),
    })),
    /** { shard?, action: apply | lift, reason?, by? } → { fences } */
    POST: takes(fenceRequest, async (context, { shard: name, action, ...note }) => ({
      fences: await fenceAll(shardsNamed(context, name), action, note),
    })),
  },
  /** { shard?, workload, state: pause | resume, reason, by? } → { shards }: the workload is not promoted by itself, or may be. */
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
  /** { states: [{ serves, state }] }: what the standby of these shards copies. */
  '/api/state': page(reads(async ({ states }) => ({ version: 1, states: await states() }))),
  /** GET → { jobs: [{ shard, job: JobSnapshot | null }] }: the job that is under way, or was the last. */
  '/api/jobs': {
    GET: reads(({ shards }) => ({ jobs: shards().map((shard) => ({ shard: shard.name, job: shard.snapshot().job })) })),
    /** { shard?, kind, workloads?, repair?, dryRun?, again?, deletes?, sample?, limits?, by? } → { jobs } */
    POST: takes(startJobRequest, (context, request) => ({ jobs: startJobs(context, request) })),
    /** Stops them where they are → { jobs }. */
    DELETE: reads(({ shards }) => ({
      jobs: shards()
        .filter((shard) => shard.snapshot().job?.state === 'running')
        .map((shard) => ({ shard: shard.name, job: shard.stopJob() })),
    })),
  },
};

/** Undefined if there is none. */
export const routeAt = (path: string): Route | undefined => (Object.hasOwn(ROUTES, path) ? ROUTES[path] : undefined);

/** Without a name, all. @throws {AdminError} if there is none */
function shardsNamed({ shards }: AdminContext, name: string | undefined): readonly ShardControl[] {
  const all = shards();
  const named = name === undefined ? all : all.filter((shard) => shard.name === name);
  if (named.length > 0) return named;
  throw new AdminError(
    'unknown-shard',
    `there is no shard ${name} here: ${all.map((shard) => shard.name).join(', ')}`,
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
  if (!Number.isFinite(since)) throw new AdminError('bad-request', 'since is a moment in milliseconds since 1970', 400);
  const shards = shardsNamed(context, query.get('shard') ?? undefined);
  return {
    version: 1,
    everyMs: SERIES_STEP_MS,
    series: shards.map((shard) => ({ shard: shard.name, ...shard.series(since) })),
  };
}

/** One shard after the other, up to the first that refuses. */
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

function startJobs(
  context: AdminContext,
  { shard: name, by, ...request }: z.infer<typeof startJobRequest>,
): { shard: string; job: JobSnapshot }[] {
  const defaults = { workloads: null, repair: false, dryRun: false, again: false, deletes: 0, sample: 100, limits: {} };
  const wanted = { ...defaults, ...request, automatic: false };
  return shardsNamed(context, name).map((shard) => ({ shard: shard.name, job: shard.startJob(wanted, by) }));
}
