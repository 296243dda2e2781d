/** The prefixes of keys that are counters: bounded, so that clients cannot let the table grow. */
import type { CountingSnapshot } from './snapshot.js';

/**
 * Maximum number of prefixes. A prefix with more than 1/256 of the commands is always among them (Misra and Gries,
 * 1982).
 */
const MAX_PREFIXES = 256;
const WINDOW_MS = 60_000;
/** Maximum number of parts of a key that may be names: the next part is an ID, a user or a time. */
const MAX_PARTS = 2;
const WORD = /^[A-Za-z_-]{1,24}$/;

interface Entry {
  readonly of: Pick<CountingSnapshot, 'workload' | 'kind' | 'prefix'>;
  readonly commands: Map<string, number>;
  /** The entry is removed when its weight is used up. */
  weight: number;
  /** Commands of this window, and of the window before. */
  recent: number;
  before: number;
}

export class Prefixes {
  readonly #entries = new Map<string, Entry>();
  #windowAt: number;
  #beforeMs = 0;

  /** @param now in ms of the monotonic clock */
  constructor(now: number) {
    this.#windowAt = now;
  }

  /** @param times the number of commands that this one represents */
  add(of: Entry['of'], command: string, times: number): void {
    const id = `${of.workload}\0${of.kind}\0${of.prefix}`;
    let entry = this.#entries.get(id);
    if (entry === undefined) {
      if (this.#entries.size >= MAX_PREFIXES && !this.#makeRoom(times)) return;
      this.#entries.set(id, (entry = { of, commands: new Map(), weight: 0, recent: 0, before: 0 }));
    }
    entry.commands.set(command, (entry.commands.get(command) ?? 0) + times);
    entry.weight += times;
    entry.recent += times;
  }

  /** Takes the new entry's weight from every entry; an entry whose weight is used up is removed. */
  #makeRoom(by: number): boolean {
    for (const [id, entry] of this.#entries) if ((entry.weight -= by) <= 0) this.#entries.delete(id);
    return this.#entries.size < MAX_PREFIXES;
  }

  /** Call it now and then: rates are over the last one to two minutes. */
  rotate(now: number): void {
    if (now - this.#windowAt < WINDOW_MS) return;
    this.#beforeMs = now - this.#windowAt;
    this.#windowAt = now;
    for (const entry of this.#entries.values()) [entry.before, entry.recent] = [entry.recent, 0];
  }

  /** The most frequent first. */
  snapshot(now: number): CountingSnapshot[] {
    const seconds = Math.max(1, (now - this.#windowAt + this.#beforeMs) / 1000);
    return [...this.#entries.values()]
      .map(({ of, commands: exact, recent, before }) => {
        const commands: Record<string, number> = {};
        let total = 0;
        for (const [name, times] of exact) total += commands[name] = Math.round(times);
        return { total, entry: { ...of, commands, perSecond: (recent + before) / seconds } };
      })
      .sort((a, b) => b.total - a.total)
      .map(({ entry }) => entry);
  }
}

/** `rl:user:17` and `rl:user:18` have the prefix `rl:user:*`, `hits7` has `hits*`, and `hits` is its own prefix. */
export function prefixOf(key: string): string {
  const parts = key.slice(0, 128).split(/([:/.|])/);
  if (parts.length === 1) return WORD.test(key) ? key : `${/^[A-Za-z_-]{1,24}(?=\d)/.exec(key)?.[0] ?? ''}*`;
  let prefix = '';
  for (let i = 0; i < Math.min(parts.length - 2, 2 * MAX_PARTS) && WORD.test(parts[i]); i += 2)
    prefix += parts[i] + parts[i + 1];
  return `${prefix}*`;
}
