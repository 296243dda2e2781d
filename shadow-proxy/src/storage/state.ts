/**
 * The durable state of one shard: which stage each workload is in, which servers were seen, how the last process ended.
 *
 *   <state>/<shard>/state.json      replaced whole: temporary file, fsync, rename, fsync of the directory; with a checksum
 *   <state>/<shard>/history.jsonl   one line for each change, only ever appended
 *   <state>/<shard>/reserve         room for both on a disk that is full: a rollback must not fail for lack of room
 *
 * A file that cannot be read, or that is older than its history, stops the shard: a state that is guessed could send
 * clients to the wrong server.
 *
 * Room: storage: what outlives the process: state, history, journal, job file.
 * Called by: every room after it.
 * Calls: text, io, route, plan, telemetry.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { isoTime } from '../io/clock.js';
import { after, sleep } from '../io/timers.js';
import { diskAsync, writeAll, writeFileAsync } from '../io/files.js';
import { redactSecrets } from '../plan/endpoint.js';
import type { Plan, Stages } from '../plan/plan.js';
import { checkRouting, firstStages, perRegionOf, routingOf } from '../plan/reload.js';
import { formatPoint, STAGES, type StagePoint } from '../route/stage.js';
import { describeEvent, type HistoryEvent } from './history.js';
import { seal, unseal } from './sealed.js';

export { formatPoint };
export type { HistoryEvent };

/** The version of the whole folder. Raise it if earlier releases would misread a file: a release refuses newer ones. */
const VERSION = 2;
const HISTORY = 'history.jsonl';

const serverSeen = z.strictObject({
  runId: z.string(),
  /** Replication ID: which history its data belong to. Empty where it is unknown. */
  replId: z.string().default(''),
  version: z.string(),
  seenAt: z.string(),
});

const admission = z.strictObject({
  at: z.string(),
  target: z.string(),
  foreign: z.int().min(0),
  overwrites: z.int().min(0),
  deleteForeign: z.int().min(0),
});

/** Why nothing moves a workload by itself. */
const hold = z.strictObject({
  /**
   * `paused`: by an operator, and the guard still takes it back. `rolled-back`, `stopped`: by the guard. `failover`:
   * its authority was lost.
   */
  why: z.enum(['paused', 'rolled-back', 'stopped', 'failover']),
  at: z.string(),
  reason: z.string(),
  by: z.string().nullable(),
});

const shardState = z.strictObject({
  version: z.literal(VERSION),
  /** How many changes there were: a history that has a later one is newer than this file. */
  revision: z.number().int().nonnegative(),
  shard: z.string(),
  workloads: z.record(z.string(), z.strictObject({ stage: z.enum(STAGES), percent: z.number().min(0).max(100) })),
  /** Which pattern gave its keys to which workload, in order: a changed plan is checked against it. */
  routing: z.array(z.tuple([z.string(), z.string()])),
  /** Which keys the shard has of those on its target, as the plan said it; null where it said nothing. */
  owns: z.string().nullable().default(null),
  /** Every slot that a shard of a cluster has served, such as `0-5460`; null for other shards. */
  served: z.string().nullable().default(null),
  /** Workloads whose counters the target has with one part per region. */
  perRegion: z.array(z.string()).default([]),
  /**
   * Workloads that may be written to the target, and what was there before: `at` that time (ISO 8601) the target was
   * the process `target` (run ID). `foreign` keys only it had; `overwrites` keys the source had, too, and no copy has
   * replaced them yet; `deleteForeign` of the foreign keys may be deleted. With none of the three, the shard wrote all
   * that is there.
   */
  admitted: z.record(z.string(), admission).default({}),
  /** Releases of servers, such as `Redis 8.12`, that this one does not know and an operator has accepted. */
  acceptedReleases: z.array(z.string()).default([]),
  /**
   * The fence at the source: since when (ISO 8601), what an operator did by hand, and the rules of the users before
   * they lost their writes. Null where there is none.
   */
  fence: z
    .strictObject({
      at: z.string(),
      hand: z.enum(['applied', 'lifted']).nullable(),
      users: z.array(
        z.strictObject({ name: z.string(), commands: z.array(z.string()), selectors: z.array(z.string()) }),
      ),
    })
    .nullable()
    .default(null),
  /** By workload. */
  holds: z.record(z.string(), hold).default({}),
  source: serverSeen.nullable(),
  target: serverSeen.nullable(),
  /** By how many ms the target's clock was ahead of the source's; null where both were never read. */
  targetAheadMs: z.int().nullable().default(null),
  cleanShutdown: z.boolean(),
  /** Which process writes the journal; null before the first one serves. */
  journal: z.string().nullable(),
  /**
   * The process that had the shard last, and under what: run id of the server and number of its lease's connection
   * there.
   */
  owner: z
    .strictObject({ process: z.string(), source: z.string().nullable(), target: z.string().nullable() })
    .nullable()
    .default(null),
});

/** The server behind an endpoint when it was last seen. */
export type ServerSeen = Readonly<z.infer<typeof serverSeen>>;
/** What a target held when a workload was first written to it. */
export type Admission = Readonly<z.infer<typeof admission>>;
export type FenceState = NonNullable<ShardState['fence']>;
export type Hold = Readonly<z.infer<typeof hold>>;
export type ShardState = Readonly<z.infer<typeof shardState>>;
/** What a change may say, and what of the state it replaces. */
export type StatePatch = Partial<Omit<ShardState, 'version' | 'revision' | 'shard'>>;

/** The durable state cannot be read or written; the message names the file and what to do. */
export class StateError extends Error {
  override readonly name = 'StateError';
  constructor(
    readonly code: 'state-corrupt' | 'state-missing' | 'state-old' | 'state-version' | 'state-io',
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

/** Enough for both files of hundreds of workloads. */
const RESERVE_BYTES = 256 << 10;
/** A change that failed is written over so often before its failure is reported, and so far apart in ms. */
const PUT_BACK_TRIES = 10;
const PUT_BACK_MS = 100;

/** What a process that changes the state does around each change. */
export interface Around {
  /** Before it; throws where the shard has become another process's: the state is that one's then. */
  fence(next: ShardState): Promise<void>;
  /** When it is on the disk, before anybody relies on it. Does not throw. */
  spread(current: ShardState): Promise<void>;
  /** The history has the event, and the state holds. Does not throw. */
  recorded(event: HistoryEvent): void;
}

const ALONE: Around = {
  fence: () => Promise.resolve(),
  spread: () => Promise.resolve(),
  recorded: () => undefined,
};

export class StateStore {
  /** The state as the last process left it; null on the very first start. */
  readonly previous: ShardState | null;
  readonly #directory: string;
  #current: ShardState;
  #queue: Promise<unknown> = Promise.resolve();
  /** Whether the disk may have a change that failed. */
  #mayHaveFailed = false;
  /** Whether it is put back later. */
  #isPuttingBack = false;
  #closing = false;

  private constructor(
    directory: string,
    shard: string,
    previous: ShardState | null,
    private readonly around: Around,
  ) {
    this.#directory = directory;
    this.previous = previous;
    this.#current = previous ?? emptyState(shard);
  }

  /**
   * Reads the state of a shard, or starts an empty one where there never was any. `around` is for a process that
   * changes it.
   * @throws {StateError}
   */
  static async open(stateDirectory: string, shard: string, around: Around = ALONE): Promise<StateStore> {
    const directory = join(stateDirectory, shard);
    try {
      await diskAsync.mkdir(directory);
    } catch (error) {
      throw new StateError(
        'state-io',
        `${directory} cannot be created: ${(error as Error).message}. Set \`state\` to a directory that can be written`,
        error,
      );
    }
    return new StateStore(directory, shard, await read(directory, shard), around);
  }

  /** What is on the disk. */
  get current(): ShardState {
    return this.#current;
  }

  /**
   * Replaces part of the state, and appends the event to the history. Resolves when both are on the disk and `around`
   * has spread them; changes are made one after the other. `current` has the change from then on, and never one that
   * failed. A patch that builds on the current state is given as a function, which is called when its turn has come.
   * @throws {StateError} code `state-io`
   * @throws {Error} of `around.fence`
   */
  update(patch: StatePatch | ((current: ShardState) => StatePatch), event?: HistoryEvent): Promise<void> {
    const done = this.#queue.then(async () => {
      const revision = this.#current.revision + 1;
      const next: ShardState = {
        ...this.#current,
        ...(typeof patch === 'function' ? patch(this.#current) : patch),
        revision,
      };
      await this.around.fence(next);
      try {
        await this.#writeState(next);
        if (event)
          await this.#write(() => appendLine(this.#directory, redacted({ time: isoTime(), revision, ...event })));
        this.#current = next;
        this.#mayHaveFailed = false;
      } catch (error) {
        // The disk may have it nevertheless: then the next process would begin with a change that was refused. Before
        // the very first change there is nothing to put back: the shard does not start.
        if (this.#current.revision > 0) {
          this.#current = { ...this.#current, revision };
          this.#mayHaveFailed = true;
          await this.#putBack(PUT_BACK_TRIES);
        }
        throw new StateError('state-io', `${this.#directory} cannot be written: ${(error as Error).message}`, error);
      }
      await this.#keepReserve();
      await this.around.spread(next);
      if (event) this.around.recorded(redacted(event));
    });
    this.#queue = done.catch(() => undefined);
    return done;
  }

  /** Writes `current` over a change that failed, so often that a disk with a short fault takes it. */
  async #putBack(tries: number): Promise<void> {
    for (let left = tries; this.#mayHaveFailed && left > 0; left--) {
      try {
        await this.#writeState(this.#current);
        this.#mayHaveFailed = false;
      } catch {
        if (left > 1) await sleep(PUT_BACK_MS);
      }
    }
    if (!this.#mayHaveFailed || this.#closing || this.#isPuttingBack) return;
    this.#isPuttingBack = true;
    after(PUT_BACK_MS, () => {
      this.#isPuttingBack = false;
      this.#queue = this.#queue.then(() => this.#putBack(1));
    }).unref();
  }

  #writeState(state: ShardState): Promise<void> {
    return this.#write(() => replaceFile(this.#directory, 'state.json', seal(state, 2) + '\n'));
  }

  /** If the disk is full, the reserve is freed for the write. */
  async #write(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      await diskAsync.remove(this.#reserve);
      await work();
    }
  }

  get #reserve(): string {
    return join(this.#directory, 'reserve');
  }

  /** Makes it where it is missing, unless there is no room for it. */
  async #keepReserve(): Promise<void> {
    const kept = await diskAsync.stat(this.#reserve).catch(() => null);
    if (kept?.size === RESERVE_BYTES) return;
    await writeFileAsync(this.#reserve, 'w', Buffer.alloc(RESERVE_BYTES)).catch(() => diskAsync.remove(this.#reserve));
  }

  /** The last lines of the history, oldest first; those that a sudden end has cut are left out. */
  history(most: number): Promise<readonly HistoryEvent[]> {
    return readHistory(this.#directory, most);
  }

  /** Resolves when every change that was asked for is on the disk or failed. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#queue;
  }
}

const emptyState = (shard: string): ShardState => ({
  version: VERSION,
  revision: 0,
  shard,
  workloads: {},
  routing: [],
  owns: null,
  served: null,
  perRegion: [],
  admitted: {},
  acceptedReleases: [],
  fence: null,
  holds: {},
  source: null,
  target: null,
  targetAheadMs: null,
  cleanShutdown: true,
  journal: null,
  owner: null,
});

/** As `StateStore.history`, of a shard's directory. A line that cannot be read is shown as such. */
export async function readHistory(directory: string, most: number): Promise<readonly HistoryEvent[]> {
  const text = (await diskAsync.readFile(join(directory, HISTORY)).catch(() => '')).toString();
  const lines = text.split('\n').map((line, at) => ({ line, number: at + 1 }));
  // Behind the last newline is nothing, or what a sudden end has cut: its change may not have been made either.
  const cut = lines.pop()!;
  return [...lines.filter(({ line }) => line !== ''), ...(parseJson(cut.line) === null ? [] : [cut])]
    .slice(-most)
    .map(
      ({ line, number }) => redacted(parseJson(line) as HistoryEvent | null) ?? { event: 'unreadable', line: number },
    );
}

/** The value without passwords in any of its texts. */
function redacted<T>(value: T): T {
  if (typeof value === 'string') return redactSecrets(value) as T;
  if (Array.isArray(value)) return value.map((each: unknown) => redacted(each)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, redacted(each as unknown)])) as T;
}

/** Null where it is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** For who only looks, and makes nothing where there is nothing: null. @throws {StateError} */
export const readState = (directory: string, shard: string): Promise<ShardState | null> => read(directory, shard);

/** What a shard that was served leaves. */
const TRACES = [HISTORY, 'journal-a', 'journal-b', 'evidence.json', 'job.json'];

async function read(directory: string, shard: string): Promise<ShardState | null> {
  const path = join(directory, 'state.json');
  const wayOut = `Restore it from a copy. Only if the target never answered clients: move ${directory} away, and the plan's stages apply again`;
  // Before the state: a change now writes the state first.
  const newest = (await readHistory(directory, Infinity)).findLast(({ revision }) => typeof revision === 'number');
  let text: string;
  try {
    text = (await diskAsync.readFile(path)).toString();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new StateError('state-io', `${path} cannot be read: ${(error as Error).message}`, error);
    }
    const traces = (await diskAsync.list(directory).catch(() => [])).filter((name) => TRACES.includes(name));
    if (traces.length > 0) {
      throw new StateError(
        'state-missing',
        `${path} is missing, but the shard was served before: its folder has ${traces.join(', ')}. ${wayOut}`,
      );
    }
    return null;
  }
  const state = check(text, path, shard, wayOut);
  if (newest !== undefined && (newest.revision as number) > state.revision) {
    const what = `${String(newest.time)}: ${describeEvent(newest)}`;
    throw new StateError(
      'state-old',
      `${path} is older than the history in the same folder, whose last change it lacks (${what}). Restore the newest copy of state.json. Only if its stages are the right ones: move ${join(directory, HISTORY)} away`,
    );
  }
  return state;
}

function check(text: string, path: string, shard: string, wayOut: string): ShardState {
  const version = (parseJson(text) as { version?: unknown } | null)?.version;
  if (typeof version === 'number' && version > VERSION) {
    throw new StateError(
      'state-version',
      `${path} has version ${version}, and this proxy reads ${VERSION}: start the release that wrote it`,
    );
  }
  let value: unknown;
  try {
    value = fromEarlier(text) ?? unseal(text);
  } catch (error) {
    throw new StateError('state-corrupt', `${path} is damaged: ${(error as Error).message}. ${wayOut}`, error);
  }
  const parsed = shardState.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new StateError(
      'state-corrupt',
      `${path} is damaged at ${issue.path.join('.') || 'its top'}: ${issue.message}. ${wayOut}`,
    );
  }
  if (parsed.data.shard !== shard) {
    throw new StateError(
      'state-corrupt',
      `${path} is the state of shard ${parsed.data.shard}, not of ${shard}. ${wayOut}`,
    );
  }
  return parsed.data;
}

/**
 * A state of the release before checksums, as this one writes it; null where it is none. Its journal cannot be checked
 * either.
 */
function fromEarlier(text: string): unknown {
  const value = parseJson(text) as { version?: unknown; checksum?: unknown } | null;
  return value?.version === 1 && value.checksum === undefined
    ? { ...value, version: VERSION, revision: 0, journal: null }
    : null;
}

/** Checks a state that another proxy sent. Null where it is none. */
export function asState(value: unknown): ShardState | null {
  const parsed = shardState.safeParse(value);
  return parsed.success ? parsed.data : null;
}

/**
 * Replaces the state of a shard by that of the proxy which serves it, for the standby that may take over. What of it
 * names a process is left out: no journal of this folder belongs to it, so every key is suspect, unless that proxy
 * ends clean.
 * @throws {Error} where the disk does not take it
 */
export async function copyState(stateDirectory: string, theirs: ShardState, from: string): Promise<void> {
  const directory = join(stateDirectory, theirs.shard);
  await diskAsync.mkdir(directory);
  const copy: ShardState = { ...theirs, cleanShutdown: false, journal: null, owner: null };
  const event = { event: 'copied', from, revision: copy.revision, process: theirs.owner?.process ?? null };
  // The history first: it must never be newer than state.json.
  await appendLine(directory, redacted({ time: isoTime(), ...event }));
  await replaceFile(directory, 'state.json', seal(copy, 2) + '\n');
}

/**
 * Sets a state aside that is known to be wrong: the shard does not start from this folder until it is replaced.
 * @throws {Error} where the disk does not take it
 */
export async function setStateAside(directory: string, reason: string): Promise<void> {
  await appendLine(directory, { time: isoTime(), event: 'outdated', reason });
  await diskAsync
    .rename(join(directory, 'state.json'), join(directory, 'state.json.outdated'))
    .catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
}

/** Whether the state was copied from another proxy, and no process has served with it since. */
export const isCopy = (state: ShardState | null): boolean =>
  state !== null && state.owner === null && state.revision > 0;

async function replaceFile(directory: string, name: string, text: string): Promise<void> {
  const temporary = join(directory, `${name}.tmp`);
  await writeFileAsync(temporary, 'w', Buffer.from(text), { sync: true });
  await diskAsync.rename(temporary, join(directory, name));
  // The rename itself is only durable once its directory is.
  const folder = await diskAsync.open(directory, 'r');
  try {
    await diskAsync.sync(folder);
  } finally {
    await diskAsync.close(folder);
  }
}

async function appendLine(directory: string, value: unknown): Promise<void> {
  const path = join(directory, HISTORY);
  const file = await diskAsync.open(path, 'a+');
  try {
    const { size } = await diskAsync.stat(path);
    const last = Buffer.from('\n');
    if (size > 0) await diskAsync.read(file, last, 0, 1, size - 1);
    // What a sudden end, or a full disk, has cut stays a line of its own.
    await writeAll(file, Buffer.from(`${last.toString() === '\n' ? '' : '\n'}${JSON.stringify(value)}\n`));
    await diskAsync.sync(file);
  } finally {
    await diskAsync.close(file);
  }
}

export interface ResolvedStages {
  /** The effective stages: the state's where it knows the workload, else the plan's. */
  readonly stages: Stages;
  /** Differences between plan and state, for the log. */
  readonly notices: readonly string[];
  /** Why the plan cannot be used with this state; empty where it can. */
  readonly problems: readonly string[];
}

/** State beats plan: a plan's stage is a workload's first one only. */
export function resolveStages(plan: Plan, state: ShardState): ResolvedStages {
  const first = firstStages(plan);
  // `default` is always among them, so no workloads means that no plan was ever in effect.
  if (Object.keys(state.workloads).length === 0) return { stages: first, notices: [], problems: [] };
  const known = (name: string): StagePoint | undefined => state.workloads[name];
  const stages = Object.fromEntries(Object.entries(first).map(([name, point]) => [name, known(name) ?? point]));
  const notices = Object.entries(first).flatMap(([name, point]) => {
    const now = known(name);
    if (now === undefined || (now.stage === point.stage && now.percent === point.percent)) return [];
    return [
      `workload ${name} is in ${formatPoint(now)}; the plan's ${formatPoint(point)} was only the first stage, and is ignored`,
    ];
  });
  return {
    stages,
    notices,
    problems: checkRouting(state.routing, routingOf(plan), state.workloads, first, perRegionOf(plan)),
  };
}
