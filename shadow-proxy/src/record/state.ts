/**
 * The durable state of one shard: which stage each workload is in, which servers were seen, how the last process ended.
 *
 *   <state>/<shard>/state.json      replaced whole: temporary file, fsync, rename, fsync of the directory
 *   <state>/<shard>/history.jsonl   one line for each change, only ever appended
 *   <state>/<shard>/reserve         room for both on a disk that is full: nobody should be unable to go back for want of it
 *
 * A file that cannot be read stops the shard: a state that is guessed could send clients to the wrong server.
 */
import { mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Plan, StagePoint, Stages } from '../plan/plan.js';
import { checkRouting, firstStages, perRegionOf, routingOf } from '../plan/reload.js';
import { formatPoint, STAGES } from '../route/stage.js';

export { formatPoint };

const serverSeen = z.strictObject({
  runId: z.string(),
  /** Replication ID: which history its data belong to. Empty where it was not told. */
  replId: z.string().default(''),
  version: z.string(),
  seenAt: z.string(),
});

const shardState = z.strictObject({
  version: z.literal(1),
  shard: z.string(),
  workloads: z.record(z.string(), z.strictObject({ stage: z.enum(STAGES), percent: z.number().min(0).max(100) })),
  /** Which pattern gave its keys to which workload, in order: a changed plan is checked against it. */
  routing: z.array(z.tuple([z.string(), z.string()])),
  /** Which keys the shard has of those on its target, as the plan said it; null where it said nothing. */
  owns: z.string().nullable().default(null),
  /** Workloads whose counters the target has in parts, one a region. */
  perRegion: z.array(z.string()).default([]),
  source: serverSeen.nullable(),
  target: serverSeen.nullable(),
  cleanShutdown: z.boolean(),
  /** The process that had the shard last, and under what: run id of the server and number of its lease's connection there. */
  owner: z.strictObject({ process: z.string(), source: z.string().nullable(), target: z.string().nullable() }).nullable().default(null),
});

/** The server behind an endpoint when it was last seen. */
export type ServerSeen = Readonly<z.infer<typeof serverSeen>>;
export type ShardState = Readonly<z.infer<typeof shardState>>;
/** What a change may say, and what of the state it replaces. */
export type StatePatch = Partial<Omit<ShardState, 'version' | 'shard'>>;
export interface HistoryEvent {
  readonly event: string;
  readonly [detail: string]: unknown;
}

/** The durable state cannot be read or written; the message names the file and what to do. */
export class StateError extends Error {
  override readonly name = 'StateError';
  constructor(
    readonly code: 'state-corrupt' | 'state-missing' | 'state-version' | 'state-io',
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

/** Enough for both files of hundreds of workloads. */
const RESERVE_BYTES = 256 << 10;

export class StateStore {
  /** The state as the last process left it; null on the very first start. */
  readonly previous: ShardState | null;
  /** Called before each change; throws where the shard has become another process's: the state is that one's then. */
  fence: (next: ShardState) => Promise<void> = () => Promise.resolve();
  readonly #directory: string;
  #current: ShardState;
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(directory: string, shard: string, previous: ShardState | null) {
    this.#directory = directory;
    this.previous = previous;
    this.#current = previous ?? emptyState(shard);
  }

  /**
   * Reads the state of a shard, or starts an empty one where there never was any.
   * @throws {StateError}
   */
  static async open(stateDirectory: string, shard: string): Promise<StateStore> {
    const directory = join(stateDirectory, shard);
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw new StateError('state-io', `${directory} cannot be made: ${(error as Error).message}. Set \`state\` to a directory that can be written`, error);
    }
    return new StateStore(directory, shard, await read(directory, shard));
  }

  /** What is on the disk. */
  get current(): ShardState {
    return this.#current;
  }

  /**
   * Replaces part of the state, and appends the event to the history. Resolves when both are on the disk; changes are made one
   * after the other. `current` has the change from then on, and never one that failed. A patch that builds on the current state
   * is given as a function, which is called when its turn has come.
   * @throws {StateError} code `state-io`
   * @throws {Error} of `fence`
   */
  update(patch: StatePatch | ((current: ShardState) => StatePatch), event?: HistoryEvent): Promise<void> {
    const done = this.#queue.then(async () => {
      const next: ShardState = { ...this.#current, ...(typeof patch === 'function' ? patch(this.#current) : patch) };
      await this.fence(next);
      try {
        await this.#write(() => replaceFile(this.#directory, 'state.json', JSON.stringify(next, null, 2) + '\n'));
        this.#current = next;
        if (event) await this.#write((again) => appendLine(join(this.#directory, 'history.jsonl'), { time: new Date().toISOString(), ...event }, again));
      } catch (error) {
        throw new StateError('state-io', `${this.#directory} cannot be written: ${(error as Error).message}`, error);
      }
      await this.#keepReserve();
    });
    this.#queue = done.catch(() => undefined);
    return done;
  }

  /** Where the disk is full, the reserve is given for it. */
  async #write(work: (again: boolean) => Promise<void>): Promise<void> {
    try {
      await work(false);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      await rm(this.#reserve, { force: true });
      await work(true);
    }
  }

  get #reserve(): string {
    return join(this.#directory, 'reserve');
  }

  /** Makes it where it is missing, unless there is no room for it. */
  async #keepReserve(): Promise<void> {
    const kept = await stat(this.#reserve).catch(() => null);
    if (kept?.size === RESERVE_BYTES) return;
    await writeFile(this.#reserve, Buffer.alloc(RESERVE_BYTES), { mode: 0o600 }).catch(() => rm(this.#reserve, { force: true }));
  }

  /** The last lines of the history, oldest first; those that a sudden end has cut are left out. */
  history(most: number): Promise<readonly HistoryEvent[]> {
    return readHistory(this.#directory, most);
  }

  /** Resolves when every change that was asked for is on the disk or failed. */
  async close(): Promise<void> {
    await this.#queue;
  }
}

const emptyState = (shard: string): ShardState => ({
  version: 1,
  shard,
  workloads: {},
  routing: [],
  owns: null,
  perRegion: [],
  source: null,
  target: null,
  cleanShutdown: true,
  owner: null,
});

/** As `StateStore.history`, of a shard's directory. */
export async function readHistory(directory: string, most: number): Promise<readonly HistoryEvent[]> {
  const text = await readFile(join(directory, 'history.jsonl'), 'utf8').catch(() => '');
  const lines = text.split('\n').filter((line) => line !== '').slice(-most);
  return lines.flatMap((line) => {
    try {
      return [JSON.parse(line) as HistoryEvent];
    } catch {
      return [];
    }
  });
}

/** For who only looks, and makes nothing where there is nothing: null. @throws {StateError} */
export const readState = (directory: string, shard: string): Promise<ShardState | null> => read(directory, shard);

async function read(directory: string, shard: string): Promise<ShardState | null> {
  const path = join(directory, 'state.json');
  const wayOut =
    `Restore it from a copy. Only if no client was ever sent to the target: move ${directory} away, and the plan's stages hold again`;
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new StateError('state-io', `${path} cannot be read: ${(error as Error).message}`, error);
    }
    if (await hasContent(join(directory, 'history.jsonl'))) {
      throw new StateError('state-missing', `${path} is gone, but its history is there. ${wayOut}`);
    }
    return null;
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new StateError('state-corrupt', `${path} is no JSON: ${(error as Error).message}. ${wayOut}`, error);
  }
  return check(value, path, shard, wayOut);
}

function check(value: unknown, path: string, shard: string, wayOut: string): ShardState {
  const version = (value as { version?: unknown } | null)?.version;
  if (typeof version === 'number' && version !== 1) {
    throw new StateError('state-version', `${path} has version ${version}, and this proxy reads 1: start the release that wrote it`);
  }
  const parsed = shardState.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new StateError('state-corrupt', `${path} is damaged at ${issue.path.join('.') || 'its top'}: ${issue.message}. ${wayOut}`);
  }
  if (parsed.data.shard !== shard) {
    throw new StateError('state-corrupt', `${path} is the state of shard ${parsed.data.shard}, not of ${shard}. ${wayOut}`);
  }
  return parsed.data;
}

async function hasContent(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null && (await stat(path)).size > 0;
}

async function replaceFile(directory: string, name: string, text: string): Promise<void> {
  const temporary = join(directory, `${name}.tmp`);
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, join(directory, name));
  // The rename itself is only durable once its directory is.
  const folder = await open(directory, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** @param again a part of it may be there already: it begins on a line of its own */
async function appendLine(path: string, value: unknown, again: boolean): Promise<void> {
  const file = await open(path, 'a', 0o600);
  try {
    await file.writeFile(`${again ? '\n' : ''}${JSON.stringify(value)}\n`);
    await file.datasync();
  } finally {
    await file.close();
  }
}

export interface ResolvedStages {
  /** The effective stages: the state's where it knows the workload, else the plan's. */
  readonly stages: Stages;
  /** Where plan and state differ, for the log. */
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
    return [`workload ${name} is in ${formatPoint(now)}; the plan's ${formatPoint(point)} was only its first stage and is ignored`];
  });
  return { stages, notices, problems: checkRouting(state.routing, routingOf(plan), state.workloads, first, perRegionOf(plan)) };
}
