/**
 * The journal: keys whose equality a sudden end of the process would leave suspect. A write's keys are in it before
 * the write is sent; they leave it when everything that was on its way with them is confirmed by the mirror.
 *
 *   note(key) ──▶ memory ──(end of turn, before the sockets)──▶ write(2), no fsync
 *
 * It survives the process, SIGKILL too, for the page cache does; after the loss of a host nothing of it is believed.
 * Two files take turns: one is written, the other waits until what it lists is confirmed, and is emptied.
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
import { readJournal, type JournalMark, type JournalRecords, type LeftKey } from './journal-reader.js';

/** What both files may hold; beyond that, one record says that everything is suspect. */
const MAX_BYTES = 256 << 20;
/** How long the record of scripts that hide their keys is kept at least, in ms: the files take turns then. */
const HIDDEN_MS = 1_000;
export interface JournalOptions {
  readonly directory: string;
  /** The ID of the process that writes the journal: 16 hex digits. */
  readonly id: string;
  /** The mark in the state that the process began with; null if there was no state. */
  readonly before: JournalMark | null;
  /** Resolves when all that is on its way now is confirmed or suspect. */
  settle(): Promise<void>;
  /** Notes again what is suspect at this moment. */
  carry(): void;
  /** Called when the disk fails: from then on the end of the process is not survived. */
  failed(problem: Error): void;
}

interface Segment {
  readonly fd: number;
  /** Written; and the length of the file. */
  bytes: number;
  size: number;
  /** The CRC-32 of all bytes that were written. */
  crc: number;
  /** Its header says that something could not be written. */
  gap: boolean;
}

export class Journal {
  /** What the process before left suspect. */
  readonly left: JournalRecords;
  readonly #by: JournalOptions;
  readonly #header: Buffer;
  #current: Segment;
  #other: Segment;
  /** The other file still lists what is not confirmed: the turn that it is put aside in. */
  #turning: symbol | null = null;
  /** From so many bytes on the files take turns. */
  #rotateAt = SEGMENT_BYTES;
  #buffer = Buffer.allocUnsafe(64 * 1024);
  #used = FRAME;
  #closed = false;
  /** Something could not be written, and may be on its way still. */
  #gap = false;
  /** The file that is written says already that keys may change which nothing names. */
  #hidden = false;
  #forgetting: Timer | undefined;

  /**
   * Reads what is left of the journal before, and begins a new one, which repeats all of that. The files are new: a
   * process that was taken over from, and is not ended yet, still has the old ones open.
   * @throws {Error} when the directory cannot be written
   */
  constructor(options: JournalOptions) {
    const { directory, id, before } = (this.#by = options);
    disk.mkdir(directory);
    this.left = readJournal(directory, before);
    this.#header = headerOf(id, before?.journal ?? id);
    const paths = pathsIn(directory);
    const [current, other] = paths.map((path) => this.#open(`${path}.new`));
    this.#current = current;
    this.#other = other;
    this.#noteLeft();
    // Either file may be the old one still when the process ends here: both are read, and together they tell
    // everything.
    for (const path of paths) disk.rename(`${path}.new`, path);
  }

  /**
   * To be called when the state names this process, before the first client comes: from then on a state that names
   * another is an older copy.
   */
  serve(): void {
    for (const { fd } of [this.#current, this.#other]) disk.write(fd, YES, 0, YES.length, SERVES_AT);
  }

  noteKey(db: number, frame: Buffer, start: number, end: number): void {
    this.#record(KEY, db, end - start);
    copyBytes(frame, start, end, this.#buffer, this.#used);
    this.#used += end - start;
  }

  /** Notes a suspect. */
  noteSuspect({ db, key, touched }: LeftKey): void {
    if (touched) return this.noteKey(db, key, 0, key.length);
    this.#record(UNWRITTEN, db, key.length);
    this.#used += key.copy(this.#buffer, this.#used);
  }

  noteWorkload(name: string, why: string): void {
    this.#noteText(WORKLOAD, JSON.stringify([name, why]));
  }

  /** Every key of every workload is suspect. */
  noteEverything(why = 'a write with unknown keys was in flight'): void {
    this.#noteText(EVERYTHING, why);
  }

  /**
   * A script is sent that may write to keys which it does not declare: until the server has named them, an end of the
   * process leaves every key suspect. One record is enough for a file; soon after the last such script it is
   * forgotten.
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
   * Writes what was noted. To be called before anything that was noted is sent.
   * @returns whether the file has it; where not, it says that everything is suspect
   */
  flush(): boolean {
    if (this.#used === FRAME || this.#closed) return true;
    try {
      if (this.#current.bytes + this.#other.bytes > MAX_BYTES) this.#suspectEverything();
      this.#write();
      this.#used = FRAME;
    } catch (problem) {
      // What is lost here is written with the next flush that succeeds; and by the header, should none come.
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

  /** Forgets, as soon as what is on its way is confirmed, what is suspect no more. */
  rotate(): void {
    this.flush();
    if (this.#turning === null && !this.#closed) this.#swapFiles();
  }

  /**
   * Everything is confirmed: nothing is left to list but what is still suspect. At any moment, one of the files
   * lists it.
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
    const { keys, workloads, everything } = this.left;
    for (const key of keys) this.noteSuspect(key);
    for (const [name, why] of workloads) this.noteWorkload(name, why);
    if (everything !== null) this.noteEverything(everything);
    if (this.#used > FRAME) this.#write();
    this.#used = FRAME;
    this.#rotateAt = Math.max(SEGMENT_BYTES, 2 * this.#current.bytes);
  }

  /** All of it or nothing: behind a part of a batch, nothing can be read. */
  #write(): void {
    const segment = this.#current;
    const used = this.#used;
    this.#buffer.writeUInt32LE(used - FRAME, 4);
    const crc = crc32(this.#buffer, 4, used, segment.crc);
    this.#buffer.writeUInt32LE(crc, 0);
    // At least so many zeros are behind the last batch: where they are missing, the file was cut.
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

  /** In place, for which a full disk has room; a disk that takes no bytes at all may still cut the file. */
  #markGap(segment: Segment): void {
    if (segment.gap) return;
    try {
      disk.write(segment.fd, YES, 0, YES.length, GAP_AT);
      segment.gap = true;
    } catch {
      try {
        this.#cut(segment);
      } catch {
        // `failed` is called by the one that wanted it marked.
      }
    }
  }

  /** A file that ends behind its header is no whole journal: everything is suspect. */
  #cut(segment: Segment): void {
    disk.truncate(segment.fd, HEADER);
    segment.bytes = segment.size = HEADER;
    segment.crc = this.#header.readUInt32LE(CHECKED);
  }

  /** The files take turns; the one put aside is emptied when what it lists is confirmed. */
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
   * With many suspects the file may list nothing else. It is rotated again only after it has doubled.
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
   * Between the two calls the file looks as if it had been cut: an end of the process there makes more suspect than
   * need be.
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
