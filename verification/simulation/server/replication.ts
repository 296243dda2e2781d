/**
 * Replication between two models, by what keys hold after each command: a stream of changes with offsets. How commands
 * are rewritten for replicas is not modelled; what a replica holds, and when, is.
 */
import { copyOf } from './dump.js';
import type { Database, State } from './state.js';
import type { Entry } from './values.js';

/** What a key holds now; null where it was deleted. */
export interface KeyChange {
  readonly database: number;
  readonly key: string;
  readonly entry: Entry | null;
}

/** Changes of one command, or everything. */
export interface Change {
  /** Whether these are all keys that there are. */
  readonly isAll: boolean;
  readonly keys: readonly KeyChange[];
  /** Of the primary. */
  readonly replId: string;
  readonly offset: number;
}

const copied = (entry: Entry): Entry => ({ type: entry.type, value: copyOf(entry), expireAt: entry.expireAt }) as Entry;

const changeOf = (database: Database, key: string): KeyChange => {
  const entry = database.keys.get(key);
  return { database: database.id, key, entry: entry === undefined ? null : copied(entry) };
};

/** A primary's stream: it notes the keys that commands touch, and hands them on after each command. */
export class Feed {
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #touched = new Map<Database, Set<string>>();
  #isAll = false;

  constructor(private readonly server: State) {}

  get isActive(): boolean {
    return this.#listeners.size > 0;
  }

  /** Everything as it is now, and then each change. */
  follow(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    listener(this.#everything());
    return () => void this.#listeners.delete(listener);
  }

  touched(database: Database, key: string): void {
    const keys = this.#touched.get(database);
    if (keys === undefined) this.#touched.set(database, new Set([key]));
    else keys.add(key);
  }

  /** A command has changed more than some keys. */
  changedAll(): void {
    this.#isAll = true;
  }

  /** Sends what has changed. */
  flush(): void {
    if (this.#touched.size === 0 && !this.#isAll) return;
    this.server.offset += 1;
    const keys = [...this.#touched].flatMap(([database, names]) => [...names].map((key) => changeOf(database, key)));
    const { replId, offset } = this.server;
    const change: Change = this.#isAll ? this.#everything() : { isAll: false, keys, replId, offset };
    this.#touched.clear();
    this.#isAll = false;
    for (const listener of this.#listeners) listener(change);
  }

  #everything(): Change {
    const { databases, replId, offset } = this.server;
    const keys = databases.flatMap((database) => [...database.keys.keys()].map((key) => changeOf(database, key)));
    return { isAll: true, keys, replId, offset };
  }
}

/** Takes over a change of the primary. */
export function apply(server: State, change: Change): void {
  if (change.isAll) for (const database of server.databases) database.clear();
  for (const { database: id, key, entry } of change.keys) {
    const database = server.databases[id];
    if (entry === null) database.delete(key);
    else {
      if (database.keys.has(key)) database.delete(key);
      // A change goes to several replicas.
      database.add(key, entry.type, copied(entry).value, entry.expireAt);
    }
    database.touch(key);
  }
  server.offset = change.offset;
}
