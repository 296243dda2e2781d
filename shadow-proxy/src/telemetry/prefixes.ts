/** Which keys are counted in, by prefix: bounded, so that no client can grow it. */
import type { CountingSnapshot } from './snapshot.js';

/**
 * Prefixes that are distinguished. Whatever has more than its 1/256th of the commands is among them (Misra and Gries,
 * 1982).
 */
const MAX_PREFIXES = 256;
const WINDOW_MS = 60_000;
/** Of a key, what may be a name: the next part is an ID, a user or a moment. */
const MAX_PARTS = 2;
const WORD = /^[A-Za-z_-]{1,24}$/;

interface Entry {
  readonly of: Pick<CountingSnapshot, 'workload' | 'kind' | 'prefix'>;
  readonly commands: Map<string, number>;
  /** What keeps it from being thrown out. */
  weight: number;
  /** Commands of this window, and of the one before. */
  recent: number;
  before: number;
}

export class Prefixes {
  readonly #entries = new Map<string, Entry>();
  #windowAt: number;
  #beforeMs = 0;

  /** @param now monotonic, in ms */
  constructor(now: number) {
    this.#windowAt = now;
  }

  /** @param times how many commands this one stands for */
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

  /** Everybody gives way by as much as the newcomer brings; one that has nothing left goes. */
  #makeRoom(by: number): boolean {
    for (const [id, entry] of this.#entries) if ((entry.weight -= by) <= 0) this.#entries.delete(id);
    return this.#entries.size < MAX_PREFIXES;
  }

  /** To be called now and then: rates are over the last one to two minutes. */
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

/** `rl:user:17` and `rl:user:18` have the prefix `rl:user:*`, `hits7` has `hits*`, `hits` stands for itself. */
export function prefixOf(key: string): string {
  const parts = key.slice(0, 128).split(/([:/.|])/);
  if (parts.length === 1) return WORD.test(key) ? key : `${/^[A-Za-z_-]{1,24}(?=\d)/.exec(key)?.[0] ?? ''}*`;
  let prefix = '';
  for (let i = 0; i < Math.min(parts.length - 2, 2 * MAX_PARTS) && WORD.test(parts[i]); i += 2)
    prefix += parts[i] + parts[i + 1];
  return `${prefix}*`;
}
