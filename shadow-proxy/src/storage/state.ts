/**
 * The durable state of one shard: the stage of each workload, the servers that were seen, how the last process ended.
 *
 *   <state>/<shard>/state.json      replaced whole: temporary file, fsync, rename, fsync of folder; checksum
 *   <state>/<shard>/history.jsonl   one line for each change, only ever appended
 *   <state>/<shard>/reserve         room for both on a full disk, because a rollback must not fail for lack of room
 *
 * The shard does not start if a file cannot be read, or is older than the history: a guessed state could send clients
 * to the wrong server.
 *
 * Room: storage: what outlives the process: state, history, journal, job file.
 * Called by: every room after it.
 * Calls: text, io, route, plan, telemetry.
 */
import { join } from 'node:path';
import * as z from 'zod';
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
  /** The server's replication ID, which identifies the history of its data. Empty if it is unknown. */
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

/** Why a workload is not moved automatically. */
const hold = z.strictObject({
  /**
   * `paused`: by an operator; the guard may still move the workload back. `rolled-back`, `stopped`: by the guard.
   * `failover`: the authority was lost.
   */
  why: z.enum(['paused', 'rolled-back', 'stopped', 'failover']),
  at: z.string(),
  reason: z.string(),
  by: z.string().nullable(),
});

const shardState = z.strictObject({
  version: z.literal(VERSION),
  /** Number of changes so far. If the history has a later one, it is newer than this file. */
  revision: z.number().int().nonnegative(),
  shard: z.string(),
  workloads: z.record(z.string(), z.strictObject({ stage: z.enum(STAGES), percent: z.number().min(0).max(100) })),
  /** Patterns with their workloads, in order: a changed plan is checked against them. */
  routing: z.array(z.tuple([z.string(), z.string()])),
  /** The keys of the shard among those on its target, as in the plan; null if the plan did not say. */
  owns: z.string().nullable().default(null),
  /** Every slot that a shard of a cluster has served, such as `0-5460`; null for other shards. */
  served: z.string().nullable().default(null),
  /** Workloads whose counters have one part per region on the target. */
  perRegion: z.array(z.string()).default([]),
  /**
   * Workloads that may be written to the target, and what the target held before. At time `at` (ISO 8601) it was the
   * process `target` (run ID). It had `foreign` keys that the source lacked, and `overwrites` keys that the source had,
   * too, and that no copy has replaced yet. `deleteForeign` of the foreign keys may be deleted. If all three are
   * absent, the shard wrote everything there.
   */
  admitted: z.record(z.string(), admission).default({}),
  /** Releases of servers, such as `Redis 8.12`, that this release does not know and that an operator has accepted. */
  acceptedReleases: z.array(z.string()).default([]),
  /**
   * The fence at the source: since when (ISO 8601), what an operator did by hand, and the rules of the users before
   * they lost their writes. Null if there is no fence.
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
  /** Holds by workload. */
  holds: z.record(z.string(), hold).default({}),
  source: serverSeen.nullable(),
  target: serverSeen.nullable(),
  /** How far the target's clock was ahead of the source's, in ms; null if both were never read. */
  targetAheadMs: z.int().nullable().default(null),
  cleanShutdown: z.boolean(),
  /** The process that writes the journal; null before the first one serves. */
  journal: z.string().nullable(),
  /**
   * The process that had the shard last, and its lease: the run ID of the server, and the client ID of the lease's
   * connection there.
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
/** The fields of the state that a change may replace. */
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

/** Enough for both files with hundreds of workloads. */
const RESERVE_BYTES = 256 << 10;
/**
 * How many times the old state is written over a failed change before the failure is reported, and how long to wait in
 * between, in ms.
 */
const PUT_BACK_TRIES = 10;
const PUT_BACK_MS = 100;

/** What a process that changes the state does around each change. */
export interface AroundChange {
  /** Runs before the change. It throws if another process has taken over the shard, to which the state belongs then. */
  fence(next: ShardState): Promise<void>;
  /** Runs when the change is on the disk, before anything relies on it. It does not throw. */
  spread(current: ShardState): Promise<void>;
  /** Runs when the history has the event and the state is in effect. It does not throw. */
  recorded(event: HistoryEvent): void;
}

const ALONE: AroundChange = {
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
  /** Whether the disk may contain a change that failed. */
  #mayHaveFailed = false;
  /** Whether the old state is being written back later. */
  #isPuttingBack = false;
  #closing = false;

  private constructor(
    directory: string,
    shard: string,
    previous: ShardState | null,
    private readonly around: AroundChange,
  ) {
    this.#directory = directory;
    this.previous = previous;
    this.#current = previous ?? emptyState(shard);
  }

  /**
   * Reads the state of a shard, or starts an empty one if there never was any. `around` is for a process that changes
   * the state.
   * @throws {StateError}
   */
  static async open(stateDirectory: string, shard: string, around: AroundChange = ALONE): Promise<StateStore> {
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

  /** The state on the disk. */
  get current(): ShardState {
    return this.#current;
  }

  /**
   * Replaces part of the state, and appends the event to the history. Changes are made one after the other. It resolves
   * when both are on the disk and `around` has run. From then on `current` contains the change; it never contains one
   * that failed. A patch that depends on the current state is given as a function, which is called when its turn comes.
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
        // The disk may contain the change nevertheless: then the next process would begin with a change that was
        // refused. Before the very first change there is nothing to restore: the shard does not start.
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

  /** Writes `current` over a change that failed, repeatedly, so that it succeeds on a disk that fails only briefly. */
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

  /** Creates the reserve if it is missing, unless there is no room for it. */
  async #keepReserve(): Promise<void> {
    const kept = await diskAsync.stat(this.#reserve).catch(() => null);
    if (kept?.size === RESERVE_BYTES) return;
    await writeFileAsync(this.#reserve, 'w', Buffer.alloc(RESERVE_BYTES)).catch(() => diskAsync.remove(this.#reserve));
  }

  /** The last lines of the history, oldest first. Lines that a crash has cut are left out. */
  history(most: number): Promise<readonly HistoryEvent[]> {
    return readHistory(this.#directory, most);
  }

  /** Resolves when every change so far is on the disk, or has failed. */
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

/**
 * The history in a shard's directory, as `StateStore.history` returns it. A line that cannot be read is shown as
 * unreadable.
 */
export const readHistory = async (directory: string, most: number): Promise<readonly HistoryEvent[]> =>
  (await readLines(directory)).slice(-most).map(eventOf);

interface Line {
  readonly line: string;
  /** The first one has number 1. */
  readonly number: number;
}

/** The lines of the history, without a last one that a crash has cut. */
async function readLines(directory: string): Promise<readonly Line[]> {
  const text = (await diskAsync.readFile(join(directory, HISTORY)).catch(() => '')).toString();
  const lines = text.split('\n').map((line, at) => ({ line, number: at + 1 }));
  // Behind the last newline there is nothing, or a line that a crash has cut, whose change may not have been made.
  const cut = lines.pop()!;
  return [...lines.filter(({ line }) => line !== ''), ...(parseJson(cut.line) === null ? [] : [cut])];
}

const eventOf = ({ line, number }: Line): HistoryEvent =>
  redacted(parseJson(line) as HistoryEvent | null) ?? { event: 'unreadable', line: number };

/** The last such event of the history; undefined if it has none. */
async function lastEvent(
  directory: string,
  isWanted: (event: HistoryEvent) => boolean,
): Promise<HistoryEvent | undefined> {
  const lines = await readLines(directory);
  for (let at = lines.length - 1; at >= 0; at--) {
    const event = eventOf(lines[at]);
    if (isWanted(event)) return event;
  }
  return undefined;
}

/** The value without passwords in any of its texts. */
function redacted<T>(value: T): T {
  if (typeof value === 'string') return redactSecrets(value) as T;
  if (Array.isArray(value)) return value.map((each: unknown) => redacted(each)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, redacted(each as unknown)])) as T;
}

/** Null if the text is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Reads the state without creating anything; null if there is none. @throws {StateError} */
export const readState = (directory: string, shard: string): Promise<ShardState | null> => read(directory, shard);

/** Files that a shard leaves once it was served. */
const TRACES = [HISTORY, 'journal-a', 'journal-b', 'evidence.json', 'job.json'];

async function read(directory: string, shard: string): Promise<ShardState | null> {
  const path = join(directory, 'state.json');
  const wayOut = `Restore it from a copy. Only if the target never answered clients: move ${directory} away, and the plan's stages apply again`;
  // Read before the state: a change writes the state first.
  const newest = await lastEvent(directory, ({ revision }) => typeof revision === 'number');
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
 * A state of the release before checksums, in the present format; null if it is no such state. Its journal cannot be
 * checked either.
 */
function fromEarlier(text: string): unknown {
  const value = parseJson(text) as { version?: unknown; checksum?: unknown } | null;
  return value?.version === 1 && value.checksum === undefined
    ? { ...value, version: VERSION, revision: 0, journal: null }
    : null;
}

/** Checks a state that another proxy sent. Null if it is no valid state. */
export function asState(value: unknown): ShardState | null {
  const parsed = shardState.safeParse(value);
  return parsed.success ? parsed.data : null;
}

/**
 * Replaces the state of a shard by the state of the proxy that serves it, for a standby that may take over. Entries
 * that name a process are left out: no journal of this folder belongs to the state, so every key is suspect, unless
 * that proxy ends clean.
 * @throws {Error} if the disk does not take it
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
 * Sets aside a state that is known to be wrong: the shard does not start from this folder until the state is replaced.
 * @throws {Error} if the disk does not take it
 */
export async function setStateAside(directory: string, reason: string): Promise<void> {
  await appendLine(directory, { time: isoTime(), event: 'outdated', reason });
  await diskAsync
    .rename(join(directory, 'state.json'), join(directory, 'state.json.outdated'))
    .catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
}

/** A process that had the shard, and its note: a digest of its stages. Both are empty if they are not known. */
export interface Holder {
  readonly process: string;
  readonly note: string;
}

/**
 * Records that another process has the shard. If it has a state folder of its own, this folder is outdated from now on.
 * Nothing is recorded if this folder is that process's, or has no state.
 * @param lostBy the process that has lost the shard: nothing is recorded if this folder is not its any more
 * @throws {Error} if the disk does not take it
 */
export async function recordHolder(
  directory: string,
  shard: string,
  { process, note }: Holder,
  lostBy: string | null = null,
): Promise<void> {
  const state = await readState(directory, shard).catch(() => null);
  const owner = state?.owner?.process;
  if (state === null || owner === process || (lostBy !== null && owner !== lostBy)) return;
  await appendLine(directory, { time: isoTime(), event: 'holder', process, note });
}

/** Records that no other process has had the shard since: the holder that was recorded last does not count. */
export const recordUnfollowed = (directory: string): Promise<void> =>
  appendLine(directory, { time: isoTime(), event: 'unfollowed' });

/** The process that had the shard after the one that this folder belongs to; null if none is known. */
export async function holderSince(directory: string): Promise<Holder | null> {
  const last = await lastEvent(directory, ({ event }) => HOLDERS.has(event));
  return last?.event === 'holder' ? { process: String(last.process), note: String(last.note) } : null;
}

/** Events that say which process has the shard. */
const HOLDERS: ReadonlySet<string> = new Set(['owner', 'holder', 'unfollowed']);

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
    // A line that a crash or a full disk has cut stays a line of its own.
    await writeAll(file, Buffer.from(`${last.toString() === '\n' ? '' : '\n'}${JSON.stringify(value)}\n`));
    await diskAsync.sync(file);
  } finally {
    await diskAsync.close(file);
  }
}

export interface ResolvedStages {
  /** The stages in effect: the state's for workloads that it knows, else the plan's. */
  readonly stages: Stages;
  /** Differences between plan and state, for the log. */
  readonly notices: readonly string[];
  /** Why the plan cannot be used with this state; empty if it can. */
  readonly problems: readonly string[];
}

/** Determines the stages. The state has precedence: a plan's stage holds at a workload's first start only. */
export function resolveStages(plan: Plan, state: ShardState): ResolvedStages {
  const first = firstStages(plan);
  // `default` is always among the workloads, so none at all means that no plan was ever in effect.
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
