/**
 * The journal: keys that would be suspect if the process crashed now. A write's keys are recorded before the write is
 * sent. They are removed when the mirror has confirmed everything that was in flight with them.
 *
 *   note(key) ──▶ memory ──(end of turn, before the sockets)──▶ write(2), no fsync
 *
 * The journal survives the process, even SIGKILL, because the page cache does. After a crash of the host nothing in it
 * is trusted. Two files alternate: one is written, the other waits until everything that it lists is confirmed, and is
 * then emptied.
 *
 * `journal-format.ts` has the layout of a file, `journal-reader.ts` reads what a process left.
 */
import { copyBytes } from '../io/copy-bytes.js';
import { disk } from '../io/files.js';
import { after, clearTimer, type Timer } from '../io/timers.js';
import { crc32 } from './checksum.js';
import {
  CHECKED,
  EVERYTHING,
  FRAME,
  GAP_AT,
  HEAD,
  HEADER,
  KEY,
  NO,
  SEGMENT_BYTES,
  SERVES_AT,
  UNWRITTEN,
  WORKLOAD,
  YES,
  headerOf,
  pathsIn,
} from './journal-format.js';
import type { JournalRecords, LeftKey } from './journal-reader.js';

/** Maximum size of both files together; beyond it, one record says that everything is suspect. */
const MAX_BYTES = 256 << 20;
/**
 * Minimum time in ms for which the record of scripts that hide their keys is kept. After that the files are rotated.
 */
const HIDDEN_MS = 1_000;
export interface JournalOptions {
  readonly directory: string;
  /** The ID of the process that writes the journal: 16 hex digits. */
  readonly id: string;
  /** The ID of the process that wrote the journal before; null if there was none, or it had no ID. */
  readonly before: string | null;
  /** The suspects that it left. */
  readonly left: JournalRecords;
  /** Resolves when everything that is in flight now is confirmed or suspect. */
  settle(): Promise<void>;
  /** Records again what is suspect at this moment. */
  carry(): void;
  /** Called when the disk fails: from then on a crash of the process loses the journal. */
  failed(problem: Error): void;
}

interface Segment {
  readonly fd: number;
  /** Bytes that were written; and the length of the file. */
  bytes: number;
  size: number;
  /** The CRC-32 of all bytes that were written. */
  crc: number;
  /** Whether the file's header says that a write is missing. */
  gap: boolean;
}

export class Journal {
  readonly #by: JournalOptions;
  readonly #header: Buffer;
  #current: Segment;
  #other: Segment;
  /** Set while the other file still lists unconfirmed keys; identifies the rotation that is under way. */
  #turning: symbol | null = null;
  /** The files are rotated at this number of bytes. */
  #rotateAt = SEGMENT_BYTES;
  #buffer = Buffer.allocUnsafe(64 * 1024);
  #used = FRAME;
  #closed = false;
  /** Whether a record could not be written whose command may still be in flight. */
  #gap = false;
  /** Whether the current file already says that keys may change without being named. */
  #hidden = false;
  #forgetting: Timer | undefined;

  /**
   * Begins a new journal that repeats what the process before left. The files are new ones: a process that lost its
   * lease and has not ended still has the old files open.
   * @throws {Error} if the directory cannot be written
   */
  constructor(options: JournalOptions) {
    const { directory, id, before } = (this.#by = options);
    disk.mkdir(directory);
    this.#header = headerOf(id, before ?? id);
    const paths = pathsIn(directory);
    const [current, other] = paths.map((path) => this.#open(`${path}.new`));
    this.#current = current;
    this.#other = other;
    this.#noteLeft();
    // If the process ends here, either file may still be the old one. Both are read, and together they list everything.
    for (const path of paths) disk.rename(`${path}.new`, path);
  }

  /**
   * Call this when the state names this process, before the first client comes. From then on, a state that names
   * another process is an older copy.
   */
  serve(): void {
    for (const { fd } of [this.#current, this.#other]) disk.write(fd, YES, 0, YES.length, SERVES_AT);
  }

  noteKey(db: number, frame: Buffer, start: number, end: number): void {
    this.#record(KEY, db, end - start);
    copyBytes(frame, start, end, this.#buffer, this.#used);
    this.#used += end - start;
  }

  /** Records a suspect. */
  noteSuspect({ db, key, touched }: LeftKey): void {
    if (touched) return this.noteKey(db, key, 0, key.length);
    this.#record(UNWRITTEN, db, key.length);
    this.#used += key.copy(this.#buffer, this.#used);
  }

  noteWorkload(name: string, why: string): void {
    this.#noteText(WORKLOAD, JSON.stringify([name, why]));
  }

  /** Records that every key of every workload is suspect. */
  noteEverything(why = 'a write with unknown keys was in flight'): void {
    this.#noteText(EVERYTHING, why);
  }

  /**
   * Records that a script is sent that may write to keys that it does not declare. Until the server has named these
   * keys, a crash of the process makes every key suspect. One record is enough for a file. It is removed soon after the
   * last such script.
   */
  noteHidden(): void {
    if (this.#hidden) return;
    this.#hidden = true;
    this.noteEverything('a script was in flight that may write undeclared keys');
    this.#forgetHiddenSoon();
  }

  #forgetHiddenSoon(): void {
    this.#forgetting ??= after(HIDDEN_MS, () => {
      this.#forgetting = undefined;
      if (!this.#hidden) return;
      if (this.#turning === null) this.rotate();
      else this.#forgetHiddenSoon();
    }).unref();
  }

  /**
   * Writes the records. Call it before the recorded commands are sent.
   * @returns whether the file has the records; if not, the file says that everything is suspect
   */
  flush(): boolean {
    if (this.#used === FRAME || this.#closed) return true;
    try {
      if (this.#current.bytes + this.#other.bytes > MAX_BYTES) this.#suspectEverything();
      this.#write();
      this.#used = FRAME;
    } catch (problem) {
      // A record that is lost here is written by the next flush that succeeds. Until then the header says so.
      this.#used = FRAME;
      this.noteEverything('the disk was full, and writes in flight could not be recorded');
      this.#gap = true;
      this.#markGap(this.#current);
      this.#by.failed(problem as Error);
      return false;
    }
    if ((this.#current.bytes > this.#rotateAt || this.#gap) && this.#turning === null) {
      this.#gap = false;
      this.#swapFiles();
    }
    return true;
  }

  /** Removes keys that are no longer suspect, as soon as everything in flight is confirmed. */
  rotate(): void {
    this.flush();
    if (this.#turning === null && !this.#closed) this.#swapFiles();
  }

  /**
   * Call this when everything is confirmed: then only suspects remain to be listed. At any moment, one of the two files
   * lists them.
   */
  settled(): void {
    this.#used = FRAME;
    this.#turning = null;
    this.#hidden = false;
    for (let file = 0; file < 2; file++) {
      [this.#current, this.#other] = [this.#other, this.#current];
      if (this.#carry()) this.#empty(this.#other);
    }
  }

  close(): void {
    if (this.#closed) return;
    this.flush();
    this.#closed = true;
    clearTimer(this.#forgetting);
    disk.close(this.#current.fd);
    disk.close(this.#other.fd);
  }

  #open(path: string): Segment {
    const fd = disk.open(path, 'w');
    disk.truncate(fd, SEGMENT_BYTES);
    disk.write(fd, this.#header, 0, HEADER, 0);
    return { fd, bytes: HEADER, size: SEGMENT_BYTES, crc: this.#header.readUInt32LE(CHECKED), gap: false };
  }

  #noteLeft(): void {
    const { keys, workloads, everything } = this.#by.left;
    for (const key of keys) this.noteSuspect(key);
    for (const [name, why] of workloads) this.noteWorkload(name, why);
    if (everything !== null) this.noteEverything(everything);
    if (this.#used > FRAME) this.#write();
    this.#used = FRAME;
    this.#rotateAt = Math.max(SEGMENT_BYTES, 2 * this.#current.bytes);
  }

  /** Writes all or nothing: nothing can be read behind a partial batch. */
  #write(): void {
    const segment = this.#current;
    const used = this.#used;
    this.#buffer.writeUInt32LE(used - FRAME, 4);
    const crc = crc32(this.#buffer, 4, used, segment.crc);
    this.#buffer.writeUInt32LE(crc, 0);
    // At least this number of zeros follows the last batch: if they are missing, the file was cut.
    if (segment.bytes + used + FRAME > segment.size) grow(segment, used + FRAME);
    try {
      for (let at = 0; at < used;) at += disk.write(segment.fd, this.#buffer, at, used - at, segment.bytes + at);
    } catch (problem) {
      disk.truncate(segment.fd, segment.bytes);
      disk.truncate(segment.fd, segment.size);
      throw problem;
    }
    segment.bytes += used;
    segment.crc = crc;
  }

  /**
   * Marks the gap by overwriting a byte of the header: a full disk has room for that. If the write fails, the file is
   * truncated instead, which may still succeed.
   */
  #markGap(segment: Segment): void {
    if (segment.gap) return;
    try {
      disk.write(segment.fd, YES, 0, YES.length, GAP_AT);
      segment.gap = true;
    } catch {
      try {
        this.#cut(segment);
      } catch {
        // The caller calls `failed`.
      }
    }
  }

  /** Cuts the file behind its header. Such a file is not a whole journal: everything is suspect. */
  #cut(segment: Segment): void {
    disk.truncate(segment.fd, HEADER);
    segment.bytes = segment.size = HEADER;
    segment.crc = this.#header.readUInt32LE(CHECKED);
  }

  /** Rotates the files. The old one is emptied when everything that it lists is confirmed. */
  #swapFiles(): void {
    const aside = this.#current;
    this.#current = this.#other;
    this.#other = aside;
    this.#hidden = false;
    const turning = (this.#turning = Symbol());
    void this.#by.settle().then(() => {
      if (this.#closed || this.#turning !== turning) return;
      const isCarried = this.#carry();
      this.#turning = null;
      if (isCarried) this.#empty(aside);
    });
  }

  /**
   * Records all suspects in the current file. With many suspects it may have room for nothing else, so it is rotated
   * again only after it has doubled.
   * @returns whether the file lists every suspect: until then, the other file is needed
   */
  #carry(): boolean {
    this.#by.carry();
    const isWritten = this.flush();
    this.#rotateAt = Math.max(SEGMENT_BYTES, 2 * this.#current.bytes);
    return isWritten;
  }

  #suspectEverything(): void {
    this.#empty(this.#current);
    this.#used = FRAME;
    this.noteEverything(`more writes in flight, or suspects, than the journal holds (${MAX_BYTES >> 20} MiB)`);
  }

  /**
   * Between the two calls the file looks as if it had been cut: a crash there makes more keys suspect than necessary.
   */
  #empty(segment: Segment): void {
    if (this.#closed || (segment.bytes === HEADER && segment.size > HEADER && !segment.gap)) return;
    try {
      this.#cut(segment);
      grow(segment, 0);
      if (segment.gap) disk.write(segment.fd, NO, 0, NO.length, GAP_AT);
      segment.gap = false;
    } catch (problem) {
      this.#by.failed(problem as Error);
    }
  }

  #noteText(kind: number, text: string): void {
    const bytes = Buffer.from(text);
    this.#record(kind, 0, bytes.length);
    this.#used += bytes.copy(this.#buffer, this.#used);
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

function grow(segment: Segment, bytes: number): void {
  const size = Math.ceil((segment.bytes + bytes) / SEGMENT_BYTES) * SEGMENT_BYTES;
  disk.truncate(segment.fd, size);
  segment.size = size;
}
