/**
 * The journal: keys whose equality a sudden end of the process would leave in doubt. A write's keys are in it before
 * the write is sent; they leave it when everything that was on its way with them is confirmed by the mirror.
 *
 *   note(key) ──▶ memory ──(end of turn, before the sockets)──▶ write(2), no fsync
 *
 * It survives the process, SIGKILL too, for the page cache does; after the loss of a host everything is to be verified.
 * Two files take turns: one is written, the other waits until what it tells is confirmed, and is emptied.
 *
 * A record: one byte of kind, four bytes of database, four bytes of length (little-endian), the bytes.
 */
import { closeSync, constants, fstatSync, ftruncateSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { copyBytes } from '../resp/bytes.js';

/** A file of this size is put aside. */
const SEGMENT_BYTES = 4 << 20;
/** What both files may hold; beyond that, one record says that everything is in doubt. */
const MAX_BYTES = 256 << 20;
const HEAD = 9;
const KEY = 1;
const WORKLOAD = 2;
const EVERYTHING = 3;
/** Appended to, wherever the file ends: it is emptied again and again. */
const ANEW = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND;

export interface JournalRecords {
  readonly keys: { readonly db: number; readonly key: Buffer }[];
  /** Workloads in doubt as a whole, and why. */
  readonly workloads: Map<string, string>;
  /** A write whose keys are not known, or more than the journal holds. */
  readonly everything: boolean;
}

interface Segment {
  readonly fd: number;
  bytes: number;
}

export class Journal {
  /** What the last process left. */
  readonly left: JournalRecords;
  readonly #paths: readonly [string, string];
  #current: Segment;
  #other: Segment;
  /** The other file still tells of what is not confirmed: the turn that it is put aside in. */
  #turning: symbol | null = null;
  /** From so many bytes on the files take turns. */
  #turnAt = SEGMENT_BYTES;
  #buffer = Buffer.allocUnsafe(64 * 1024);
  #used = 0;
  #closed = false;
  /** Something could not be written, and may be on its way still. */
  #gap = false;

  /**
   * @param settle resolves when all that is on its way now is confirmed or in doubt
   * @param carry notes again what is in doubt at this moment
   * @throws {Error} when the directory cannot be written
   */
  constructor(
    directory: string,
    private readonly settle: () => Promise<void>,
    private readonly carry: () => void,
    /** Called when the disk fails: from then on the end of the process is not survived. */
    private readonly failed: (problem: Error) => void,
  ) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    this.#paths = pathsIn(directory);
    this.left = readRecords(this.#paths);
    const [current, other] = this.#paths.map((path): Segment => {
      const fd = openSync(path, 'a', 0o600);
      return { fd, bytes: fstatSync(fd).size };
    });
    this.#current = current;
    this.#other = other;
  }

  /**
   * Notes again what the last process left and is still in doubt, then forgets the rest. The files are new ones: a
   * process that was taken over from, and is not ended yet, still has the old ones open.
   */
  begin(): void {
    const [first, second] = this.#paths;
    const old = [this.#current, this.#other];
    // However much there is to carry: the files cannot take turns before both are there.
    this.#turning = Symbol();
    this.flush();
    this.#current = { fd: openSync(`${first}.new`, ANEW, 0o600), bytes: 0 };
    this.#carry();
    renameSync(`${first}.new`, first);
    rmSync(second);
    this.#other = { fd: openSync(second, 'a', 0o600), bytes: 0 };
    for (const { fd } of old) closeSync(fd);
    this.#turning = null;
  }

  noteKey(db: number, frame: Buffer, start: number, end: number): void {
    this.#record(KEY, db, end - start);
    copyBytes(frame, start, end, this.#buffer, this.#used);
    this.#used += end - start;
  }

  noteWorkload(name: string, why: string): void {
    const bytes = Buffer.from(JSON.stringify([name, why]));
    this.#record(WORKLOAD, 0, bytes.length);
    this.#used += bytes.copy(this.#buffer, this.#used);
  }

  noteEverything(): void {
    this.#record(EVERYTHING, 0, 0);
  }

  /** Writes what was noted. To be called before anything that was noted is sent. */
  flush(): void {
    if (this.#used === 0 || this.#closed) return;
    try {
      if (this.#current.bytes + this.#other.bytes > MAX_BYTES) this.#giveUp();
      this.#write();
      this.#used = 0;
    } catch (problem) {
      // What is lost here is told with the next flush that succeeds.
      this.#used = 0;
      this.noteEverything();
      this.#gap = true;
      return this.failed(problem as Error);
    }
    if ((this.#current.bytes > this.#turnAt || this.#gap) && this.#turning === null) {
      this.#gap = false;
      this.#turn();
    }
  }

  /** All of it or nothing: behind a part of a record, none can be read. */
  #write(): void {
    const { fd, bytes } = this.#current;
    try {
      for (let at = 0; at < this.#used; ) at += writeSync(fd, this.#buffer, at, this.#used - at);
    } catch (problem) {
      ftruncateSync(fd, bytes);
      throw problem;
    }
    this.#current.bytes += this.#used;
  }

  /** Forgets, as soon as what is on its way is confirmed, what is in doubt no more. */
  turn(): void {
    this.flush();
    if (this.#turning === null && !this.#closed) this.#turn();
  }

  /** Everything is confirmed: nothing is left to tell but what is in doubt all the same. At any moment, one of the files tells it. */
  settled(): void {
    this.#used = 0;
    this.#turning = null;
    for (let file = 0; file < 2; file++) {
      [this.#current, this.#other] = [this.#other, this.#current];
      this.#carry();
      this.#empty(this.#other);
    }
  }

  close(): void {
    if (this.#closed) return;
    this.flush();
    this.#closed = true;
    closeSync(this.#current.fd);
    closeSync(this.#other.fd);
  }

  /** The files take turns; the one put aside is emptied when what it tells is confirmed. */
  #turn(): void {
    const aside = this.#current;
    this.#current = this.#other;
    this.#other = aside;
    const turning = (this.#turning = Symbol());
    void this.settle().then(() => {
      if (this.#closed || this.#turning !== turning) return;
      this.#carry();
      this.#turning = null;
      this.#empty(aside);
    });
  }

  /** Where much is in doubt, all the file may tell of that: as much again has to come before it is worth another turn. */
  #carry(): void {
    this.carry();
    this.flush();
    this.#turnAt = Math.max(SEGMENT_BYTES, 2 * this.#current.bytes);
  }

  #giveUp(): void {
    this.#empty(this.#current);
    this.#used = 0;
    this.noteEverything();
  }

  #empty(segment: Segment): void {
    if (this.#closed || segment.bytes === 0) return;
    ftruncateSync(segment.fd);
    segment.bytes = 0;
  }

  #record(kind: number, db: number, length: number): void {
    if (this.#used + HEAD + length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe((this.#used + HEAD + length) * 2);
      this.#buffer.copy(larger, 0, 0, this.#used);
      this.#buffer = larger;
    }
    this.#buffer[this.#used] = kind;
    this.#buffer.writeUInt32LE(db, this.#used + 1);
    this.#buffer.writeUInt32LE(length, this.#used + 5);
    this.#used += HEAD;
  }
}

/** Reads both files; a record that was cut by the end of the process was of a write that was never sent. */
const pathsIn = (directory: string): [string, string] => [join(directory, 'journal-a'), join(directory, 'journal-b')];

/** What the last process left in doubt, of which none runs now. */
export const readJournal = (directory: string): JournalRecords => readRecords(pathsIn(directory));

function readRecords(paths: readonly string[]): JournalRecords {
  const keys = new Map<string, { db: number; key: Buffer }>();
  const workloads = new Map<string, string>();
  let everything = false;
  for (const path of paths) {
    const bytes = readIfThere(path);
    for (let at = 0; at + HEAD <= bytes.length; ) {
      const end = at + HEAD + bytes.readUInt32LE(at + 5);
      if (end > bytes.length) break;
      const db = bytes.readUInt32LE(at + 1);
      const body = bytes.subarray(at + HEAD, end);
      if (bytes[at] === KEY) keys.set(`${db}:${body.toString('latin1')}`, { db, key: body });
      else if (bytes[at] === WORKLOAD) workloads.set(...(JSON.parse(body.toString()) as [string, string]));
      else everything = true;
      at = end;
    }
  }
  return { keys: [...keys.values()], workloads, everything };
}

function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (problem) {
    if ((problem as NodeJS.ErrnoException).code !== 'ENOENT') throw problem;
    return Buffer.alloc(0);
  }
}
