/**
 * The journal's promise, at every moment: were the process killed now, the next start would find each key whose
 * equality is not certain.
 */
import { join } from 'node:path';
import { HEADER, KEY, NAMES, UNWRITTEN } from '../../../shadow-proxy/src/storage/journal-format.js';
import { firstPlace, readJournal, readOn, type Place } from '../../../shadow-proxy/src/storage/journal-reader.js';
import { partsOf, type KeyName } from '../world/key-name.js';
import type { Disk } from '../world/disk.js';
import type { Proxy } from '../world/proxy.js';
import type { SimulatedWorld } from '../world/world.js';

export class Journaled {
  readonly #files = NAMES.map((name) => new FollowedFile(name));

  constructor(
    private readonly world: SimulatedWorld,
    private readonly proxy: Proxy,
  ) {}

  /** Whether a start would suspect the key. */
  names(key: KeyName): boolean {
    const { process, parts } = this.proxy;
    if (process === null || parts === null) return false;
    const { id } = partsOf(key);
    const { disk } = process.host;
    return this.#files.some((file) => file.names(id, disk, parts.directory)) || this.left()(key);
  }

  /** Reads all of the journal, as a start does. @returns whether that start would suspect a key */
  left(): (key: KeyName) => boolean {
    const { process, parts } = this.proxy;
    if (process === null || parts === null) return () => false;
    const { directory, author } = parts;
    const { keys, everything, workloads } = this.world.events.as(process, () =>
      process.host.disk.glance(() => readJournal(directory, { journal: author.process, cleanShutdown: false })),
    );
    if (everything !== null || workloads.size > 0) return () => true;
    const ids = new Set(keys.map(({ db, key }) => `${db}:${key.toString('latin1')}`));
    return (key) => ids.has(partsOf(key).id);
  }
}

/** One of the journal's files, of which only what was added since the last look is read. */
class FollowedFile {
  readonly #ids = new Set<string>();
  /** Whether a record names more than one key. */
  #namesAll = false;
  #file: object | null = null;
  #rewrites = 0;
  #place: Place | null = null;

  constructor(private readonly name: string) {}

  names(id: string, disk: Disk, directory: string): boolean {
    const found = disk.follow(join(directory, this.name));
    if (found === null || found.bytes.length < HEADER) return false;
    const { file, rewrites, bytes } = found;
    if (file !== this.#file || rewrites !== this.#rewrites) {
      this.#ids.clear();
      this.#namesAll = false;
      this.#place = null;
      this.#file = file;
      this.#rewrites = rewrites;
    }
    this.#place = readOn(bytes, this.#place ?? firstPlace(bytes), (kind, db, body) => {
      if (kind === KEY || kind === UNWRITTEN) this.#ids.add(`${db}:${body.toString('latin1')}`);
      else this.#namesAll = true;
    });
    return this.#namesAll || this.#ids.has(id);
  }
}
