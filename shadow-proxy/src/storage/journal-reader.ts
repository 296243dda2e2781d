/**
 * Reads the journal that a process left. If it cannot be read, or is not from the process that the state names, every
 * key is suspect.
 */
import { monotonicMs } from '../io/clock.js';
import { disk } from '../io/files.js';
import { sleep } from '../io/timers.js';
import { crc32 } from './checksum.js';
import {
  BOOT_BYTES,
  CHECKED,
  FRAME,
  GAP_AT,
  HEAD,
  HEADER,
  KEY,
  MAGIC,
  NO,
  SEGMENT_BYTES,
  SERVES_AT,
  UNWRITTEN,
  WORKLOAD,
  bootId,
  pathsIn,
} from './journal-format.js';

/** A key that was written, or was suspect. */
export interface LeftKey {
  readonly db: number;
  readonly key: Buffer;
  /** Whether a client's write or a copy may have changed the key. */
  readonly touched: boolean;
}

export interface JournalRecords {
  readonly keys: readonly LeftKey[];
  /** Workloads that are suspect as a whole, each with the reason. */
  readonly workloads: ReadonlyMap<string, string>;
  /**
   * Why every key of every workload is suspect: the keys of a write are unknown, or a part of the journal cannot be
   * trusted. Null if that is not so.
   */
  readonly everything: string | null;
}

/** What the durable state says about its journal. */
export interface JournalMark {
  /** The ID of the process that wrote it; null in the state of an older release. */
  readonly journal: string | null;
  /** Whether everything was confirmed, and nothing was suspect, when that process ended. */
  readonly cleanShutdown: boolean;
}

/** How long, in ms, records may seem to be damaged because another process is writing them. */
const WRITTEN_MS = 1_000;
const AGAIN_MS = 10;

/**
 * The suspects that the last process left. That process has lost the shard, and may not have noticed: it may still
 * write. A read may then meet half of a write, or one file before a rotation and the other file after it. So the files
 * are read until two reads find the same; a file with damaged records is read again for `WRITTEN_MS`.
 *
 * What that process records from now on is sent to no server: its connections were closed before.
 * @param mark the state's entry; null if there is no state
 */
export async function readLeftJournal(directory: string, mark: JournalMark | null): Promise<JournalRecords> {
  if (mark === null) return NOTHING;
  const until = monotonicMs() + WRITTEN_MS;
  for (let files = readFiles(directory); ;) {
    const { records, isTorn } = parse(directory, files, mark);
    const again = readFiles(directory);
    const isSame = files.every((bytes, i) => isEqual(bytes, again[i]));
    if (isSame && !isTorn) return records;
    if (monotonicMs() >= until)
      return isSame ? records : { ...records, everything: `another process still writes to ${directory}` };
    await sleep(AGAIN_MS);
    files = readFiles(directory);
  }
}

/**
 * The same at once, where no process may write; for tests, and for the simulation's check of what a start would find.
 * @param mark the state's entry; null if there is no state
 * @public
 */
export function readJournal(directory: string, mark: JournalMark | null): JournalRecords {
  return mark === null ? NOTHING : parse(directory, readFiles(directory), mark).records;
}

type File = Buffer | null;

const readFiles = (directory: string): File[] => pathsIn(directory).map(readIfThere);
const isEqual = (one: File, other: File): boolean =>
  one === null || other === null ? one === other : one.equals(other);

/** @returns what the files say, and whether records are damaged */
function parse(
  directory: string,
  files: readonly File[],
  mark: JournalMark,
): { readonly records: JournalRecords; readonly isTorn: boolean } {
  const keys = new Map<string, LeftKey>();
  const workloads = new Map<string, string>();
  const reasons: string[] = [];
  const note: Note = (kind, db, body) => {
    if (kind === KEY || kind === UNWRITTEN) {
      const id = `${db}:${body.toString('latin1')}`;
      keys.set(id, { db, key: body, touched: kind === KEY || keys.get(id)?.touched === true });
    } else if (kind === WORKLOAD) workloads.set(...(JSON.parse(body.toString()) as [string, string]));
    else reasons.push(body.toString());
  };
  let isTorn = false;
  for (const [i, path] of pathsIn(directory).entries()) {
    const problem = readSegment(files[i], mark, note);
    if (problem === null) continue;
    reasons.push(`${path} ${problem.text}`);
    isTorn ||= problem.isTorn;
  }
  return { records: { keys: [...keys.values()], workloads, everything: reasons[0] ?? null }, isTorn };
}

/** Without a state no process has ever served the shard. */
const NOTHING: JournalRecords = { keys: [], workloads: new Map(), everything: null };

const ZEROS = Buffer.alloc(64 << 10);
const EARLIER = 'is not that of the process that served last, or of an earlier release, which had no checksums';

/** Called with each record: its kind (`journal-format.ts`), database and bytes. */
export type Note = (kind: number, db: number, body: Buffer) => void;

/** Why a part of a file cannot be trusted. */
interface Problem {
  readonly text: string;
  /** Whether the records are damaged, or seem so because the file was read in the middle of a write. */
  readonly isTorn: boolean;
}

/** Returns null if all of the file can be trusted, or if nothing was suspect. */
function readSegment(bytes: File, { journal, cleanShutdown }: JournalMark, note: Note): Problem | null {
  const always = (text: string): Problem => ({ text, isTorn: false });
  const unless = (text: string, isTorn = false): Problem | null => (cleanShutdown ? null : { text, isTorn });
  if (bytes === null) return unless('is missing');
  if (
    bytes.length < HEADER ||
    !bytes.subarray(0, MAGIC.length).equals(MAGIC) ||
    bytes.readUInt32LE(CHECKED) !== crc32(bytes, 0, CHECKED)
  ) {
    return unless(
      journal === null ? EARLIER : `is damaged: its header cannot be read (the file has ${bytes.length} bytes)`,
    );
  }
  if (journal === null && !cleanShutdown) return always(EARLIER);
  const [id, before] = [8, 16].map((at) => bytes.toString('hex', at, at + 8));
  const isFollower = before === journal && isNo(bytes, SERVES_AT);
  if (journal !== null && id !== journal && !isFollower)
    return always('is not of the process that state.json names: one of them is an older copy');
  const torn = readBatches(bytes, note);
  if (torn !== null) return unless(torn, true);
  if (!isNo(bytes, GAP_AT)) return unless('is incomplete: the disk was full');
  const now = bootId();
  if (now === null || bytes.toString('latin1', 24, 24 + BOOT_BYTES) !== now)
    return unless('may lack its last records: the host was restarted since (its boot ID is another)');
  return null;
}

const isNo = (bytes: Buffer, at: number): boolean => bytes.subarray(at, at + NO.length).equals(NO);

/** Returns the problem of the batches; null if all can be read, and only zeros follow. */
function readBatches(bytes: Buffer, note: Note): string | null {
  const { at, problem } = readOn(bytes, firstPlace(bytes), note);
  if (problem !== null) return problem;
  if (bytes.length % SEGMENT_BYTES !== 0 || at + FRAME > bytes.length)
    return `was truncated: it ends after ${bytes.length} bytes`;
  return isZeros(bytes.subarray(at)) ? null : `is damaged after byte ${at}`;
}

/** A place in a file, behind whole batches. */
export interface Place {
  readonly at: number;
  /** The CRC-32 of all bytes before it. */
  readonly crc: number;
}

/** The place of the first batch. */
export const firstPlace = (bytes: Buffer): Place => ({ at: HEADER, crc: bytes.readUInt32LE(CHECKED) });

/**
 * Reads batches from a place on.
 * @returns the place behind the last whole batch, and why the next one cannot be read; null if there is none
 * @public for the simulation's check, which follows a journal
 */
export function readOn(bytes: Buffer, from: Place, note: Note): Place & { readonly problem: string | null } {
  let { at, crc } = from;
  for (; at + FRAME <= bytes.length;) {
    const length = bytes.readUInt32LE(at + 4);
    const end = at + FRAME + length;
    if (length === 0) break;
    if (end > bytes.length) return { at, crc, problem: `is damaged at byte ${at}: the record is longer than the file` };
    const next = crc32(bytes, at + 4, end, crc);
    if (next !== bytes.readUInt32LE(at))
      return { at, crc, problem: `is damaged at byte ${at}: its checksum does not match` };
    crc = next;
    for (let record = at + FRAME; record < end;) {
      const body = record + HEAD + bytes.readUInt32LE(record + 5);
      note(bytes[record], bytes.readUInt32LE(record + 1), bytes.subarray(record + HEAD, body));
      record = body;
    }
    at = end;
  }
  return { at, crc, problem: null };
}

/** Whether the bytes are all zero, as most of a segment is. */
function isZeros(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += ZEROS.length) {
    const part = bytes.subarray(at, at + ZEROS.length);
    if (!part.equals(ZEROS.subarray(0, part.length))) return false;
  }
  return true;
}

function readIfThere(path: string): File {
  try {
    return disk.readFile(path);
  } catch (problem) {
    if ((problem as NodeJS.ErrnoException).code !== 'ENOENT') throw problem;
    return null;
  }
}
