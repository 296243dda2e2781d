/**
 * A disk in memory. What was written outlives the process. A host that loses its power keeps what was synced, and of
 * the rest a part: the beginning of what was added to a file, and some of the names that were made, moved or removed.
 */
import { posix } from 'node:path';
import type { Random } from './random.js';
import { systemError } from './system-error.js';

export interface DiskFaults {
  /** Share of writes that fail because the disk is full, and of those that fail with an input/output error. */
  fullShare: number;
  errorShare: number;
}

/** Up to `size`, what is behind `bytes` is zeros: a journal of 4 MiB is nearly all zeros. */
interface Contents {
  readonly bytes: Buffer;
  readonly size: number;
}

/** Who reads a file, and may keep what was read while it lives. */
export interface Reader {
  readonly alive: boolean;
}

/** A buffer that has all of a file. */
class Copy {
  /** So many bytes of it may be other than zeros. */
  #bytes = 0;
  readonly #readers = new Set<Reader>();

  constructor(readonly all: Buffer) {}

  get isKept(): boolean {
    for (const reader of this.#readers) if (!reader.alive) this.#readers.delete(reader);
    return this.#readers.size > 0;
  }

  fill({ bytes, size }: Contents): void {
    const length = Math.min(size, bytes.length);
    bytes.copy(this.all, 0, 0, length);
    this.all.fill(0, length, Math.max(length, this.#bytes));
    this.#bytes = length;
  }

  /** @param reader null: it keeps nothing */
  read(reader: Reader | null): Buffer {
    if (reader !== null) this.#readers.add(reader);
    return this.all;
  }
}

/** Each start of the proxy reads journals of 4 MiB: the buffers are written again when no reader is alive. */
class Copies {
  readonly #unused: Copy[] = [];

  take(file: Contents): Copy {
    const at = this.#unused.findIndex((each) => each.all.length === file.size && !each.isKept);
    const copy = at === -1 ? new Copy(Buffer.alloc(file.size)) : this.#unused.splice(at, 1)[0];
    copy.fill(file);
    return copy;
  }

  giveBack(copy: Copy): void {
    if (this.#unused.push(copy) > MOST_COPIES) this.#unused.shift();
  }
}

const MOST_COPIES = 16;

class File implements Contents {
  bytes: Buffer = Buffer.alloc(0);
  size = 0;
  mtimeMs = 0;
  /** Everything behind it is zeros. */
  written = 0;
  /** How often something was changed that had been written before. */
  rewrites = 0;
  /** What outlives the host. */
  synced: Contents = { bytes: Buffer.alloc(0), size: 0 };
  /** As it was read last; null where it has changed since. */
  #copy: Copy | null = null;

  constructor(private readonly copies: Copies) {}

  /** `bytes` and `size` are others than before. */
  replaced(): void {
    this.written = this.bytes.length;
    this.rewrites++;
    this.changed();
  }

  /** To be called with each change of `bytes` or `size`, and where it has lost its name. */
  changed(): void {
    if (this.#copy !== null) this.copies.giveBack(this.#copy);
    this.#copy = null;
  }

  /** All of it. @param reader null: it keeps nothing */
  read(reader: Reader | null): Buffer {
    this.#copy ??= this.copies.take(this);
    return this.#copy.read(reader);
  }
}

/** All of it, in a buffer of its own. */
function whole({ bytes, size }: Contents): Buffer {
  const all = Buffer.alloc(size);
  bytes.copy(all, 0, 0, Math.min(size, bytes.length));
  return all;
}

const holding = (bytes: Buffer): Contents => ({ bytes, size: bytes.length });

const ZEROS = Buffer.alloc(64 << 10);

/** Whether there are only zeros from `start` to `end`. */
function isZeros({ bytes }: Contents, start: number, end: number): boolean {
  for (let at = start; at < Math.min(end, bytes.length); at += ZEROS.length) {
    const part = bytes.subarray(at, Math.min(end, at + ZEROS.length));
    if (!part.equals(ZEROS.subarray(0, part.length))) return false;
  }
  return true;
}

/** Whether the file begins with all of another, shorter one. */
function beginsWith(file: Contents, { bytes, size }: Contents): boolean {
  const common = Math.min(size, bytes.length, file.bytes.length);
  if (!file.bytes.subarray(0, common).equals(bytes.subarray(0, common))) return false;
  return isZeros(file, common, size) && isZeros({ bytes, size }, common, size);
}

/** The first bytes of a file, in a buffer of their own, without the zeros that it is long at the end. */
function firstOf({ bytes }: Contents, size: number): Contents {
  let length = Math.min(size, bytes.length);
  while (length > 0 && isZeros({ bytes, size }, Math.max(0, length - ZEROS.length), length))
    length = Math.max(0, length - ZEROS.length);
  return { bytes: Buffer.from(bytes.subarray(0, length)), size };
}

/** If neither `file` nor `rewrites` is another, the file has kept the bytes that it had, and may have more. */
export interface Followed {
  readonly file: object;
  readonly rewrites: number;
  readonly bytes: Buffer;
}

interface Open {
  readonly path: string;
  readonly file: File | null;
  readonly writes: boolean;
  readonly appends: boolean;
  at: number;
}

export class Disk {
  readonly faults: DiskFaults = { fullShare: 0, errorShare: 0 };
  /** How often a fault struck. */
  failures = 0;
  #keepsNothing = false;
  readonly #copies = new Copies();
  #files = new Map<string, File>();
  /** Names that outlive the host. */
  #syncedFiles = new Map<string, File>();
  readonly #folders = new Set<string>(['/']);
  readonly #open = new Map<number, Open>();
  #next = 3;

  constructor(
    private readonly random: Random,
    private readonly unixMs: () => number,
  ) {}

  open(path: string, flags: 'r' | 'w' | 'a+'): number {
    const name = posix.resolve(path);
    const descriptor = this.#next++;
    if (this.#folders.has(name)) {
      if (flags !== 'r') throw problem('EISDIR', 'open', path);
      this.#open.set(descriptor, { path: name, file: null, writes: false, appends: false, at: 0 });
      return descriptor;
    }
    let file = this.#files.get(name);
    if (file === undefined) {
      if (flags === 'r' || !this.#folders.has(posix.dirname(name))) throw problem('ENOENT', 'open', path);
      file = new File(this.#copies);
      file.mtimeMs = this.unixMs();
      this.#files.set(name, file);
    }
    if (flags === 'w') {
      file.bytes = Buffer.alloc(0);
      file.size = 0;
      file.replaced();
    }
    this.#open.set(descriptor, { path: name, file, writes: flags !== 'r', appends: flags === 'a+', at: 0 });
    return descriptor;
  }

  close(descriptor: number): void {
    if (!this.#open.delete(descriptor)) throw problem('EBADF', 'close');
  }

  /** A file that the host has, whatever happens. */
  place(path: string, text: string): void {
    this.mkdir(posix.dirname(path));
    const file = new File(this.#copies);
    file.bytes = Buffer.from(text);
    file.size = file.bytes.length;
    file.synced = holding(file.bytes);
    this.#files.set(path, file);
    this.#syncedFiles.set(path, file);
  }

  read(descriptor: number, bytes: Buffer, at: number, length: number, position: number): number {
    const { file } = this.#of(descriptor, 'read');
    const end = Math.min(file.size, position + length);
    if (position >= end) return 0;
    const copied = position < file.bytes.length ? file.bytes.copy(bytes, at, position, end) : 0;
    bytes.fill(0, at + copied, at + end - position);
    return end - position;
  }

  write(descriptor: number, bytes: Buffer, at: number, length: number, position: number | null): number {
    const open = this.#of(descriptor, 'write');
    const { file } = open;
    if (!open.writes) throw problem('EBADF', 'write');
    this.#strike('write');
    const from = open.appends ? file.size : (position ?? open.at);
    const end = from + length;
    reserve(file, end);
    if (from < file.written) file.rewrites++;
    file.written = Math.max(file.written, end);
    bytes.copy(file.bytes, from, at, at + length);
    file.size = Math.max(file.size, end);
    file.mtimeMs = this.unixMs();
    file.changed();
    if (position === null) open.at = end;
    return length;
  }

  truncate(descriptor: number, size: number): void {
    const { file } = this.#of(descriptor, 'ftruncate');
    // A file that is cut and grows again has zeros there.
    file.bytes.fill(0, Math.min(size, file.bytes.length));
    file.size = size;
    if (size < file.written) {
      file.written = size;
      file.rewrites++;
    }
    file.changed();
  }

  sync(descriptor: number): void {
    const open = this.#open.get(descriptor);
    if (open === undefined) throw problem('EBADF', 'fsync');
    this.#strike('fsync');
    if (open.file !== null) open.file.synced = { bytes: Buffer.from(open.file.bytes), size: open.file.size };
    else this.#syncNames(open.path);
  }

  /** @param reader gets a buffer that stays as it is while the reader lives; without one it always does */
  readFile(path: string, reader?: Reader): Buffer {
    const name = posix.resolve(path);
    const file = this.#files.get(name);
    if (file === undefined) throw problem(this.#folders.has(name) ? 'EISDIR' : 'ENOENT', 'open', path);
    return this.#keepsNothing ? file.read(null) : reader === undefined ? whole(file) : file.read(reader);
  }

  /** Reads files without a buffer for each: `read` keeps nothing of what it has read. */
  glance<T>(read: () => T): T {
    this.#keepsNothing = true;
    try {
      return read();
    } finally {
      this.#keepsNothing = false;
    }
  }

  /** What was written to a file, to follow it: no copy is made. Null where there is no file. */
  follow(path: string): Followed | null {
    const file = this.#files.get(posix.resolve(path));
    if (file === undefined) return null;
    return { file, rewrites: file.rewrites, bytes: file.bytes.subarray(0, file.written) };
  }

  stat(path: string): { readonly size: number; readonly mtimeMs: number } {
    const name = posix.resolve(path);
    const file = this.#files.get(name);
    if (file !== undefined) return { size: file.size, mtimeMs: file.mtimeMs };
    if (this.#folders.has(name)) return { size: 4096, mtimeMs: 0 };
    throw problem('ENOENT', 'stat', path);
  }

  rename(from: string, to: string): void {
    const [old, name] = [posix.resolve(from), posix.resolve(to)];
    const file = this.#files.get(old);
    if (file === undefined || !this.#folders.has(posix.dirname(name))) throw problem('ENOENT', 'rename', from);
    this.#files.get(name)?.changed();
    this.#files.delete(old);
    this.#files.set(name, file);
  }

  remove(path: string): void {
    const name = posix.resolve(path);
    this.#files.get(name)?.changed();
    this.#files.delete(name);
  }

  mkdir(path: string): void {
    for (let name = posix.resolve(path); !this.#folders.has(name); name = posix.dirname(name)) {
      if (this.#files.has(name)) throw problem('EEXIST', 'mkdir', path);
      this.#folders.add(name);
    }
  }

  list(path: string): string[] {
    const folder = posix.resolve(path);
    if (!this.#folders.has(folder)) throw problem('ENOENT', 'scandir', path);
    return [...this.#files.keys(), ...this.#folders]
      .filter((name) => name !== '/' && posix.dirname(name) === folder)
      .map((name) => posix.basename(name))
      .sort();
  }

  /** The file is changed behind the product's back; null removes it. Nothing happens where there is none. */
  damage(path: string, change: (bytes: Buffer) => Buffer | null): void {
    const file = this.#files.get(path);
    if (file === undefined) return;
    const bytes = change(whole(file));
    this.#files.delete(path);
    if (bytes === null) return;
    const changed = new File(this.#copies);
    Object.assign(changed, firstOf(holding(bytes), bytes.length));
    changed.synced = firstOf(changed, changed.size);
    this.#files.set(path, changed);
  }

  /** The host loses its power. */
  losePower(): void {
    this.#open.clear();
    const names = new Map(this.#syncedFiles);
    for (const name of new Set([...this.#files.keys(), ...names.keys()])) {
      if (!this.random.chance(0.5)) continue;
      const file = this.#files.get(name);
      if (file === undefined) names.delete(name);
      else names.set(name, file);
    }
    for (const file of new Set(names.values())) {
      const { synced } = file;
      const grows = file.size > synced.size && beginsWith(file, synced);
      const keptBytes = grows ? synced.size + this.random.below(file.size - synced.size + 1) : 0;
      const kept = grows ? firstOf(file, keptBytes) : this.random.chance(0.5) ? synced : file;
      Object.assign(file, firstOf(kept, kept.size));
      file.replaced();
      file.synced = firstOf(file, file.size);
    }
    this.#files = names;
    this.#syncedFiles = new Map(names);
  }

  #syncNames(folder: string): void {
    for (const name of [...this.#syncedFiles.keys()])
      if (posix.dirname(name) === folder && !this.#files.has(name)) this.#syncedFiles.delete(name);
    for (const [name, file] of this.#files) if (posix.dirname(name) === folder) this.#syncedFiles.set(name, file);
  }

  #of(descriptor: number, call: string): Open & { readonly file: File } {
    const open = this.#open.get(descriptor);
    if (open === undefined) throw problem('EBADF', call);
    if (open.file === null) throw problem('EISDIR', call);
    return open as Open & { readonly file: File };
  }

  #strike(call: string): void {
    const { fullShare, errorShare } = this.faults;
    const code = this.random.chance(fullShare) ? 'ENOSPC' : this.random.chance(errorShare) ? 'EIO' : null;
    if (code === null) return;
    this.failures++;
    throw problem(code, call);
  }
}

function reserve(file: File, size: number): void {
  if (file.bytes.length >= size) return;
  const bytes = Buffer.alloc(Math.max(size, 2 * file.bytes.length, 256));
  file.bytes.copy(bytes);
  file.bytes = bytes;
}

const TEXTS: Readonly<Record<string, string>> = {
  EBADF: 'bad file descriptor',
  EEXIST: 'file already exists',
  EIO: 'i/o error',
  EISDIR: 'illegal operation on a directory',
  ENOENT: 'no such file or directory',
  ENOSPC: 'no space left on device',
};

function problem(code: string, syscall: string, path?: string): NodeJS.ErrnoException {
  const where = path === undefined ? '' : ` '${path}'`;
  return Object.assign(systemError(`${code}: ${TEXTS[code]}, ${syscall}${where}`), { code, syscall, path });
}
