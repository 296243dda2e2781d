/**
 * The ledger: mismatches as JSON lines. It is redacted, bounded and rotated, and old lines are removed.
 *
 *   record() → a line in memory → one append at a time → ledger.jsonl → ledger.jsonl.1 → …
 *
 * A flood of mismatches must not stall the proxy. If the rate or the queue is exceeded, or the disk fails, entries are
 * counted but not written. The next line says how many were left out.
 */
import { dirname } from 'node:path';
import { hashKey } from '../compare/redact.js';
import { isoTime, monotonicMs, unixMs } from '../io/clock.js';
import { diskAsync, writeAll } from '../io/files.js';
import { randomBytes } from '../io/random.js';
import { clearTimer, every, type Timer } from '../io/timers.js';
import type { Side } from '../route/stage.js';
import { pruneLines } from './ledger-prune.js';
import { readLatest, redactEntry, type RedactedEntry } from './ledger-tail.js';

/** A mismatch as the data path reports it. The buffers are read before `record` returns. */
export interface Mismatch {
  readonly workload: string;
  /** Name of the command, without its arguments. */
  readonly command: string;
  /** Null if the command has no key. */
  readonly key: Buffer | null;
  /** The pattern that matches the key; null if the command has no key, or the workload is `default`. */
  readonly pattern: string | null;
  readonly db: number;
  readonly kind: string;
  readonly authority: Side;
  /** Whole reply frames. */
  readonly source: Buffer;
  readonly target: Buffer;
}

export interface ReplyRecord {
  /** First byte of the frame: `$`, `*`, `:`, `-`, … */
  readonly type: string;
  readonly bytes: number;
  /**
   * The salt differs for each process, so that short values cannot be looked up. It only shows whether two replies are
   * equal.
   */
  readonly hash: string;
  /** The frame as text with escapes; only in a ledger that is not redacted. */
  readonly reply?: string;
}

/** One line of the ledger. */
export interface LedgerEntry {
  readonly time: string;
  readonly shard: string;
  readonly workload: string;
  readonly command: string;
  readonly db: number;
  readonly kind: string;
  readonly authority: Side;
  /** The plan's pattern: it shows what the key is about, without the key. */
  readonly pattern: string | null;
  /** `hash` is the start of the key's HMAC. A person who knows the key and has the state folder can find its lines. */
  readonly key: { readonly hash: string; readonly bytes: number; readonly text?: string } | null;
  readonly source: ReplyRecord;
  readonly target: ReplyRecord;
  /** Offset of the first byte at which the frames differ; -1 if they are equal. */
  readonly differsAt: number;
  /** Number of entries that were left out just before this one. */
  readonly leftOut?: number;
}

export interface LedgerOptions {
  readonly shard: string;
  /** Null: entries are kept in memory only. */
  readonly file: string | null;
  /** Size of one file, in bytes. Default 16 MiB. */
  readonly maxBytes?: number;
  /** Number of files that are kept, including the current one. Default 4. */
  readonly files?: number;
  /** Default true. */
  readonly redact?: boolean;
  /** Lines older than this are removed, within an hour. Default 30. */
  readonly keepDays?: number;
  /** The key of the hashes. Default: a random one that is lost with the process. */
  readonly hashKey?: Buffer;
  /** Maximum rate, after a burst of twice as many; each megabyte of replies counts as one more entry. Default 100. */
  readonly entriesPerSecond?: number;
  /** Called with the first of several disk errors in a row. */
  readonly onError?: (error: Error) => void;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

export interface LedgerTail {
  /** Mismatches since the start of the process. */
  readonly total: number;
  /** How many of them are in no file. */
  readonly notWritten: number;
  /** The newest is the last. */
  readonly latest: readonly RedactedEntry[];
}

interface Line {
  readonly text: string;
  /** How many entries the line says were left out before it. If the line is lost, they are counted again. */
  readonly leftOut: number;
}

const IN_MEMORY = 20;
const DAY_MS = 86_400_000;
const PRUNE_MS = 3_600_000;
const MAX_QUEUED_BYTES = 4 * 1024 * 1024;
const NO_LINE: Line = { text: '', leftOut: 0 };

export class Ledger {
  #options: Required<Omit<LedgerOptions, 'file'>> & { file: string | null };
  readonly #salt = randomBytes(16);
  readonly #latest: LedgerEntry[] = [];
  /** Mismatches of earlier processes. */
  readonly #recalled: readonly RedactedEntry[];
  #total = 0;
  #notWritten = 0;
  #leftOut = 0;
  #tokens: number;
  #refilledAt: number;
  #queue: Line[] = [];
  #queuedBytes = 0;
  #writing: Promise<void> | null = null;
  #handle: number | null = null;
  #size = 0;
  #failing = false;
  #closed = false;
  #pruneDue = false;
  readonly #pruner: Timer;

  constructor(options: LedgerOptions) {
    this.#options = {
      maxBytes: 16 * 1024 * 1024,
      files: 4,
      redact: true,
      keepDays: 30,
      hashKey: randomBytes(32),
      entriesPerSecond: 100,
      onError: () => undefined,
      now: () => monotonicMs(),
      ...options,
    };
    this.#tokens = this.#burst;
    this.#refilledAt = this.#options.now();
    this.#recalled = options.file === null ? [] : readLatest(options.file, IN_MEMORY);
    this.#pruner = every(PRUNE_MS, () => this.#prune()).unref();
    this.#prune();
  }

  /** The options hold from the next entry on. */
  configure({
    maxBytes,
    files,
    redact,
    keepDays,
  }: Required<Pick<LedgerOptions, 'maxBytes' | 'files' | 'redact' | 'keepDays'>>): void {
    this.#options = { ...this.#options, maxBytes, files, redact, keepDays };
  }

  /** Mismatches that were recorded or counted. */
  get total(): number {
    return this.#total;
  }

  /** How many mismatches are in no file: the rate or the queue was exceeded, or the disk failed. */
  get notWritten(): number {
    return this.#notWritten;
  }

  /** Never waits, never throws. */
  record(mismatch: Mismatch): void {
    this.#total++;
    if (this.#closed || !this.#takeToken(mismatch)) return this.#lose([NO_LINE]);
    const entry = this.#describe(mismatch);
    this.#latest.push(entry);
    if (this.#latest.length > IN_MEMORY) this.#latest.shift();
    if (this.#options.file === null) return;
    const line = { text: JSON.stringify(entry) + '\n', leftOut: entry.leftOut ?? 0 };
    if (this.#queuedBytes + line.text.length > MAX_QUEUED_BYTES) return this.#lose([line]);
    this.#queue.push(line);
    this.#queuedBytes += line.text.length;
    this.#writing ??= this.#writeAll();
  }

  /** The last 20 entries, the newest last. */
  latest(): readonly LedgerEntry[] {
    return [...this.#latest];
  }

  /** For viewers who may not see keys and replies: the last lines, including those before a restart. */
  tail(): LedgerTail {
    return {
      total: this.#total,
      notWritten: this.#notWritten,
      latest: [...this.#recalled, ...this.#latest.map(redactEntry)].slice(-IN_MEMORY),
    };
  }

  /** Writes waiting lines and closes the file. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimer(this.#pruner);
    await this.#writing;
    await this.#closeFile();
  }

  get #burst(): number {
    return 2 * this.#options.entriesPerSecond;
  }

  /** The bucket may go below zero, so that a reply of any size can be written; later entries pay for it. */
  #takeToken({ source, target }: Mismatch): boolean {
    const now = this.#options.now();
    this.#tokens = Math.min(
      this.#burst,
      this.#tokens + ((now - this.#refilledAt) / 1000) * this.#options.entriesPerSecond,
    );
    this.#refilledAt = now;
    if (this.#tokens <= 0) return false;
    this.#tokens -= 1 + (source.length + target.length) / (1024 * 1024);
    return true;
  }

  #lose(lines: readonly Line[]): void {
    this.#notWritten += lines.length;
    for (const { leftOut } of lines) this.#leftOut += 1 + leftOut;
  }

  #describe({ key, source, target, ...rest }: Mismatch): LedgerEntry {
    const leftOut = this.#leftOut;
    this.#leftOut = 0;
    return {
      time: isoTime(),
      shard: this.#options.shard,
      workload: rest.workload,
      command: rest.command,
      db: rest.db,
      kind: rest.kind,
      authority: rest.authority,
      pattern: rest.pattern,
      key: key && {
        hash: hashKey(key, this.#options.hashKey),
        bytes: key.length,
        ...(this.#options.redact ? {} : { text: escaped(key) }),
      },
      source: this.#reply(source),
      target: this.#reply(target),
      differsAt: firstDifference(source, target),
      ...(leftOut > 0 ? { leftOut } : {}),
    };
  }

  #reply(frame: Buffer): ReplyRecord {
    return {
      type: frame.toString('latin1', 0, 1),
      bytes: frame.length,
      hash: hashKey(frame, this.#salt),
      ...(this.#options.redact ? {} : { reply: escaped(frame) }),
    };
  }

  /** Prunes between two writes. */
  #prune(): void {
    if (this.#options.file === null) return;
    this.#pruneDue = true;
    this.#writing ??= this.#writeAll();
  }

  async #removeOld(): Promise<void> {
    const { file, keepDays, onError } = this.#options;
    this.#pruneDue = false;
    try {
      if (!(await pruneLines(file!, new Date(unixMs() - keepDays * DAY_MS)))) return;
      // The name now belongs to another file.
      await this.#closeFile();
    } catch (error) {
      if (!this.#failing) onError(error as Error);
      this.#failing = true;
    }
  }

  async #writeAll(): Promise<void> {
    while (this.#queue.length > 0 || this.#pruneDue) {
      if (this.#pruneDue) {
        await this.#removeOld();
        continue;
      }
      const lines = this.#queue;
      this.#queue = [];
      this.#queuedBytes = 0;
      for (const batch of this.#batches(lines)) await this.#write(batch);
    }
    this.#writing = null;
  }

  /** Joins lines so that none is written across a rotation. */
  *#batches(lines: readonly Line[]): Generator<readonly Line[]> {
    let batch: Line[] = [];
    let bytes = 0;
    for (const line of lines) {
      if (batch.length > 0 && bytes + Buffer.byteLength(line.text) > this.#options.maxBytes / 2) {
        yield batch;
        batch = [];
        bytes = 0;
      }
      batch.push(line);
      bytes += Buffer.byteLength(line.text);
    }
    yield batch;
  }

  async #write(lines: readonly Line[]): Promise<void> {
    const bytes = Buffer.from(lines.map(({ text }) => text).join(''));
    try {
      await this.#makeRoom(bytes.length);
      await writeAll(this.#handle!, bytes);
      this.#size += bytes.length;
      this.#failing = false;
    } catch (error) {
      this.#lose(lines);
      if (!this.#failing) this.#options.onError(error as Error);
      this.#failing = true;
      await this.#closeFile().catch(() => undefined);
    }
  }

  async #makeRoom(bytes: number): Promise<void> {
    const { file, maxBytes, files } = this.#options;
    if (this.#handle === null) await this.#open(file!);
    if (this.#size === 0 || this.#size + bytes <= maxBytes) return;
    await this.#closeFile();
    for (let n = files - 1; n >= 1; n--) {
      await diskAsync.rename(n === 1 ? file! : `${file}.${n - 1}`, `${file}.${n}`).catch(ignoreMissing);
    }
    await this.#open(file!, files === 1 ? 'w' : 'a+');
  }

  async #open(file: string, flags: 'w' | 'a+' = 'a+'): Promise<void> {
    await diskAsync.mkdir(dirname(file));
    this.#handle = await diskAsync.open(file, flags);
    this.#size = (await diskAsync.stat(file)).size;
  }

  async #closeFile(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    if (handle !== null) await diskAsync.close(handle);
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}

/** Printable ASCII stays; every other byte becomes `\xNN`, a backslash `\\`. */
const escaped = (bytes: Buffer): string =>
  bytes
    .toString('latin1')
    .replace(/[^\x20-\x7e]|\\/g, (c) => (c === '\\' ? '\\\\' : `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`));

const STEP = 4096;

/**
 * Offset of the first byte that differs. If one is the beginning of the other: the length of the shorter one; -1 if
 * both are equal.
 */
export function firstDifference(a: Buffer, b: Buffer): number {
  const common = Math.min(a.length, b.length);
  for (let at = 0; at < common; at += STEP) {
    const end = Math.min(at + STEP, common);
    if (a.compare(b, at, end, at, end) === 0) continue;
    while (a[at] === b[at]) at++;
    return at;
  }
  return a.length === b.length ? -1 : common;
}
