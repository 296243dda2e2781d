/**
 * The journal's promise, at every moment: were the process killed now, the next start would find each key whose
 * equality is not certain. It is read as that start reads it.
 */
import { readJournal } from '../../shadow-proxy/src/storage/journal-reader.js';
import type { Proxy } from '../world/proxy.js';
import { partsOf, type KeyName } from '../world/key-name.js';
import type { Process } from '../world/process.js';
import type { SimulatedWorld } from '../world/world.js';

export class Journaled {
  #known = new Set<string>();
  #everything = false;
  #process: Process | null = null;

  constructor(
    private readonly world: SimulatedWorld,
    private readonly proxy: Proxy,
  ) {}

  /** Whether a start would suspect the key. */
  names(key: KeyName): boolean {
    const { id } = partsOf(key);
    // What was named is named until `forget`, but for another process.
    if (this.#process === this.proxy.process && this.#known.has(id)) return true;
    this.#read();
    return this.#everything || this.#known.has(id);
  }

  /** Reads the journal again: a key that it named may be confirmed, and no longer be in it. */
  forget(): void {
    this.#process = null;
  }

  #read(): void {
    const { process, parts } = this.proxy;
    if (process === null || parts === null) return;
    this.#process = process;
    const { directory, author } = parts;
    const { keys, everything, workloads } = this.world.events.as(process, () =>
      process.host.disk.glance(() => readJournal(directory, { journal: author.process, cleanShutdown: false })),
    );
    this.#everything = everything !== null || workloads.size > 0;
    this.#known = new Set(keys.map(({ db, key }) => `${db}:${key.toString('latin1')}`));
  }
}
