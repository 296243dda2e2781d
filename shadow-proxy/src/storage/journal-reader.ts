/**
 * Reads the journal that a process left. If it cannot be read, or is not from the process that the state names, every
 * key is suspect.
 */
import { join } from 'node:path';
import { disk } from '../io/files.js';
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
  NAMES,
  NO,
  SEGMENT_BYTES,
  SERVES_AT,
  UNWRITTEN,
  WORKLOAD,
  bootId,
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

/**
 * The suspects that the last process left. No process may run now.
 * @param mark the state's entry; null if there is no state
 */
export function readJournal(directory: string, mark: JournalMark | null): JournalRecords {
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
  // Without a state no process has ever served the shard.
  if (mark === null) return { keys: [], workloads, everything: null };
  for (const name of NAMES) {
    const problem = readSegment(readIfThere(join(directory, name)), mark, note);
    if (problem !== null) reasons.push(`${join(directory, name)} ${problem}`);
  }
  return { keys: [...keys.values()], workloads, everything: reasons[0] ?? null };
}

const ZEROS = Buffer.alloc(64 << 10);
const EARLIER = 'is of an earlier release, which had no checksums';

type Note = (kind: number, db: number, body: Buffer) => void;

/** Returns why a part of the file cannot be trusted; null if all of it can, or if nothing was suspect. */
function readSegment(bytes: Buffer | null, { journal, cleanShutdown }: JournalMark, note: Note): string | null {
  const unless = (problem: string): string | null => (cleanShutdown ? null : problem);
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
  if (journal === null && !cleanShutdown) return EARLIER;
  const [id, before] = [8, 16].map((at) => bytes.toString('hex', at, at + 8));
  const isFollower = before === journal && isNo(bytes, SERVES_AT);
  if (journal !== null && id !== journal && !isFollower)
    return 'is not of the process that state.json names: one of them is an older copy';
  const torn = readBatches(bytes, note);
  if (torn !== null) return unless(torn);
  if (!isNo(bytes, GAP_AT)) return unless('is incomplete: the disk was full');
  const now = bootId();
  if (now === null || bytes.toString('latin1', 24, 24 + BOOT_BYTES) !== now)
    return unless('may lack its last records: the host was restarted since (its boot ID is another)');
  return null;
}

const isNo = (bytes: Buffer, at: number): boolean => bytes.subarray(at, at + NO.length).equals(NO);

/** Returns the problem of the batches; null if all can be read, and only zeros follow. */
function readBatches(bytes: Buffer, note: Note): string | null {
  let crc = bytes.readUInt32LE(CHECKED);
  let at = HEADER;
  for (; at + FRAME <= bytes.length;) {
    const length = bytes.readUInt32LE(at + 4);
    const end = at + FRAME + length;
    if (length === 0) break;
    if (end > bytes.length) return `is damaged at byte ${at}: the record is longer than the file`;
    crc = crc32(bytes, at + 4, end, crc);
    if (crc !== bytes.readUInt32LE(at)) return `is damaged at byte ${at}: its checksum does not match`;
    for (let record = at + FRAME; record < end;) {
      const body = record + HEAD + bytes.readUInt32LE(record + 5);
      note(bytes[record], bytes.readUInt32LE(record + 1), bytes.subarray(record + HEAD, body));
      record = body;
    }
    at = end;
  }
  if (bytes.length % SEGMENT_BYTES !== 0 || at + FRAME > bytes.length)
    return `was truncated: it ends after ${bytes.length} bytes`;
  return isZeros(bytes.subarray(at)) ? null : `is damaged after byte ${at}`;
}

/** Whether the bytes are all zero, as most of a segment is. */
function isZeros(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += ZEROS.length) {
    const part = bytes.subarray(at, at + ZEROS.length);
    if (!part.equals(ZEROS.subarray(0, part.length))) return false;
  }
  return true;
}

function readIfThere(path: string): Buffer | null {
  try {
    return disk.readFile(path);
  } catch (problem) {
    if ((problem as NodeJS.ErrnoException).code !== 'ENOENT') throw problem;
    return null;
  }
}
