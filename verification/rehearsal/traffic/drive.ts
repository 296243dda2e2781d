/**
 * Load with a memory: each worker writes its own keys, checks every reply, and knows at the end what has to be there.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { App } from './apps.js';
import { BUSY, KINDS, keyOf, read, seedOf, step, valueOf, type Expected, type Kind } from './model.js';

export interface Report {
  readonly commands: Readonly<Record<string, number>>;
  /** Replies that were errors, or never came: the first of each library. */
  readonly errors: number;
  readonly firstErrors: Readonly<Record<string, string>>;
  /** Replies that were not what one Redis would have given: what they were. */
  readonly wrong: readonly string[];
  /** The longest time that one worker had no reply, since the last mark, milliseconds; one that still waits counts. */
  readonly longestSilenceMs: number;
  /** What has had no reply for 10 s: library and key. */
  readonly waiting: readonly string[];
}

const WORKERS = 6;
const REST_MS = 4;
const MAX_LISTED = 20;
const LONG_MS = 10_000;

/** What one worker waits for. */
interface Waiting {
  readonly what: string;
  readonly since: number;
}

export class Drive {
  readonly expected: Expected = {};
  readonly #commands: Record<string, number> = {};
  readonly #firstErrors: Record<string, string> = {};
  readonly #wrong: string[] = [];
  /** By worker. */
  readonly #waiting = new Map<number, Waiting>();
  #errors = 0;
  #markedAt = performance.now();
  #silence = 0;
  #stopped = false;

  /** Until `stop`. */
  async run(apps: readonly App[]): Promise<void> {
    this.mark();
    const workers = apps.flatMap((app, a) =>
      Array.from({ length: WORKERS }, (_, w) => this.#worker(app, a * WORKERS + w, apps.length * WORKERS)),
    );
    await Promise.all(workers);
  }

  /** The longest silence is measured from now on. */
  mark(): void {
    this.#markedAt = performance.now();
    this.#silence = 0;
  }

  stop(): void {
    this.#stopped = true;
  }

  report(): Report {
    const now = performance.now();
    const waiting = [...this.#waiting.values()];
    return {
      commands: { ...this.#commands },
      errors: this.#errors,
      firstErrors: { ...this.#firstErrors },
      wrong: this.#wrong.slice(0, MAX_LISTED),
      longestSilenceMs: Math.round(Math.max(this.#silence, ...waiting.map(({ since }) => this.#sinceMark(since, now)))),
      waiting: waiting
        .filter(({ since }) => now - since >= LONG_MS)
        .map(({ what, since }) => `${what} for ${Math.round((now - since) / 1_000)} s`),
    };
  }

  #sinceMark(since: number, now: number): number {
    return now - Math.max(since, this.#markedAt);
  }

  async #worker(app: App, number: number, workers: number): Promise<void> {
    const own = KINDS.flatMap((kind) => Array.from({ length: BUSY }, (_, index) => ({ kind, index }))).filter(
      (_, i) => i % workers === number,
    );
    const values = new Map(own.map(({ kind, index }) => [keyOf(kind, index), seedOf(index)]));
    while (!this.#stopped) {
      const { kind, index } = own[Math.floor(Math.random() * own.length)];
      const key = keyOf(kind, index);
      const known = values.get(key)!;
      const since = performance.now();
      this.#waiting.set(number, { what: `${app.library}, ${key}`, since });
      values.set(
        key,
        Math.random() < 0.3 ? await this.#write(app, kind, index, known) : await this.#read(app, kind, index, [known]),
      );
      this.#waiting.delete(number);
      this.#silence = Math.max(this.#silence, this.#sinceMark(since, performance.now()));
      await sleep(REST_MS);
    }
    for (const [key, value] of values) this.expected[key] = value;
  }

  async #write(app: App, kind: Kind, index: number, known: number): Promise<number> {
    try {
      const reply = await this.#call(app, keyOf(kind, index), step(kind, index, known));
      if (kind === 'rl' && Number(reply) !== known + 1)
        this.#wrong.push(`INCR ${keyOf(kind, index)}: ${String(reply)} for ${known + 1}`);
      return known + 1;
    } catch {
      // Whether it ran is not known: the data shows.
      return this.#read(app, kind, index, [known, known + 1]);
    }
  }

  /** What the key holds, which has to be one of `allowed`; asked until a server answers. */
  async #read(app: App, kind: Kind, index: number, allowed: readonly number[]): Promise<number> {
    for (;;) {
      try {
        const reply = await this.#call(app, keyOf(kind, index), read(kind, index));
        const value = valueOf(kind, index, reply);
        if (value !== null && allowed.includes(value)) return value;
        this.#wrong.push(`${keyOf(kind, index)}: ${JSON.stringify(reply)} for ${allowed.join(' or ')}`);
        return value ?? allowed[0];
      } catch {
        if (this.#stopped) return allowed[0];
        await sleep(100);
      }
    }
  }

  async #call(app: App, key: string, command: Parameters<App['call']>[1]): Promise<unknown> {
    try {
      const reply = await app.call(key, command);
      this.#commands[app.library] = (this.#commands[app.library] ?? 0) + 1;
      return reply;
    } catch (error) {
      this.#errors++;
      this.#firstErrors[app.library] ??= `${command[0]}: ${(error as Error).message}`;
      throw error;
    }
  }
}
