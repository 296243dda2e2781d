/** What a server holds under a key: its value and how long it stays. */
import { NO_KEY, lifeFromPttl, type KeyLife } from '../../resp/key-life.js';
import type { Scalars } from '../../resp/scalars.js';
import { CommandWriter } from '../../resp/command-writer.js';
import type { Workload } from '../../route/router.js';
import { isEmptyHash } from '../rdb/empty.js';
import { printableBytes } from '../../text/printable.js';

/** A key that is copied or verified. */
export interface CopiedKey {
  readonly db: number;
  readonly key: Buffer;
  readonly workload: Workload;
}

export interface KeyDump {
  /** As DUMP gave it; null if the key is not there. */
  readonly payload: Buffer | null;
  /** `absent` if there is no payload. */
  readonly life: KeyLife;
}

/** The questions about one key: DUMP and PTTL. */
export const COMMANDS_PER_KEY = 2;

const DUMP = Buffer.from('*2\r\n$4\r\nDUMP\r\n');
const PTTL = Buffer.from('*2\r\n$4\r\nPTTL\r\n');
/** About how many bytes the questions about one key take. */
const QUESTION_BYTES = 96;

/** What is there under each of the keys, and how long it stays. */
export function keyDumpCommands(keys: readonly CopiedKey[]): Buffer {
  const out = new CommandWriter(keys.length * QUESTION_BYTES);
  for (const { key } of keys) out.raw(DUMP).argument(key).raw(PTTL).argument(key);
  return out.finish();
}

export const ABSENT: KeyDump = { payload: null, life: NO_KEY };

/** Decodes the answers to the questions. A hash without fields counts as a missing key. */
export const keyDump = (payload: Buffer | null, life: KeyLife): KeyDump =>
  payload === null || isEmptyHash(payload) ? ABSENT : { payload, life };

/** The answers about one key, or the error with which the server refused. */
export function readKeyDump(replies: Scalars): KeyDump | string {
  const refusal = replies.isError ? printableBytes(replies.text()) : null;
  const payload = refusal === null ? replies.bytes() : null;
  if (replies.isError) return printableBytes(replies.text());
  const life = lifeFromPttl(replies.integer());
  return refusal ?? keyDump(payload, life);
}
