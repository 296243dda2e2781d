/** The commands that make a mirror hold what its authority holds. */
import { NO_KEY, isOver, type KeyLife } from '../../resp/key-life.js';
import type { Scalars } from '../../resp/scalars.js';
import { CommandWriter } from '../../resp/command-writer.js';
import { isSince } from '../../upstream/identity.js';
import type { CopiedKey, KeyDump } from './key-dump.js';
import { checkFooter, FOOTER } from '../rdb/footer.js';
import type { FieldTtlForm } from '../rdb/encode.js';
import { mayExpireFields, withFieldTtls } from '../rdb/field-ttl.js';
import { MAX_REPACKED, repackHash } from '../rdb/repack.js';
import { Span } from '../rdb/span.js';
import { openString, transcode, type PayloadDefects } from '../rdb/transcode.js';
import { SINCE, TYPES, WRITTEN } from '../rdb/types.js';
import { printableBytes } from '../../text/printable.js';

/** The newest RDB version that every supported mirror reads (KeyDB 6.3.4, Redis 5 and later). */
const RDB_VERSION = 9;
/** Types whose payload says more in a newer version: of streams what they counted, and consumers' active time. */
const STREAMS: ReadonlySet<number> = new Set(
  [...TYPES].flatMap(([byte, { kind }]) => (kind === 'stream' ? [byte] : [])),
);
const SET = Buffer.from('$3\r\nSET\r\n');
const PX = Buffer.from('$2\r\nPX\r\n');
const RESTORE = Buffer.from('*5\r\n$7\r\nRESTORE\r\n');
const NO_EXPIRY = Buffer.from('$1\r\n0\r\n');
const REPLACE = Buffer.from('$7\r\nREPLACE\r\n');
const PEXPIRE = Buffer.from('*3\r\n$7\r\nPEXPIRE\r\n');
const UNLINK = Buffer.from('*2\r\n$6\r\nUNLINK\r\n');
/** About how many bytes a command takes besides the value. */
export const COMMAND_BYTES = 96;

/** What copies have to know about the server that gets them. */
export interface CopyTarget {
  /** `redis_version` */
  readonly version: string;
  /** Whether its streams count their entries. */
  readonly countsEntries: boolean;
  /** How it writes TTLs of fields; null if it has none. */
  readonly fieldTtlForm: FieldTtlForm | null;
  /** Whether the server lays out listpacks as Valkey does since 9.1. */
  readonly fullBacklengths: boolean;
}

/** A form that each supported server can read. */
const ANY_TARGET: CopyTarget = { version: '0', countsEntries: false, fieldTtlForm: null, fullBacklengths: false };

/** A key whose copy is on its way, with the place of its TTL in the commands: an argument and its length line. */
export interface PendingCopy<K> {
  readonly key: K;
  /** How many commands, and so replies, it takes. */
  readonly commands: number;
  /** As the authority reported it. */
  readonly life: KeyLife;
  readonly ttlStart: number;
  readonly ttlEnd: number;
  /** A stream that counts its entries wrongly on the authority. */
  readonly miscounted: boolean;
}

/**
 * Adds the commands that make the mirror hold the same. A string goes as what it is: half the work of a RESTORE on
 * either side. What is restored gets its time to live by itself: KeyDB, and Redis before 7, write RESTORE into their
 * append-only file as they got it, and the time to live would begin again with each restart.
 * @param taker absent: any supported server
 * @throws {TranscodeError} if the payload is damaged, unknown or a module's, or the mirror cannot hold the value
 */
export function appendCopy<K extends Pick<CopiedKey, 'key'>>(
  key: K,
  { payload, life }: KeyDump,
  to: CommandWriter,
  taker: CopyTarget = ANY_TARGET,
): PendingCopy<K> {
  const name = key.key;
  // The key may have expired between the two questions. With less than 1 ms left the next command still finds it.
  if (payload === null || isOver(life)) {
    to.raw(UNLINK).argument(name);
    return { key, commands: 1, life: payload === null ? NO_KEY : life, ttlStart: 0, ttlEnd: 0, miscounted: false };
  }
  const isString = payload[0] === WRITTEN.string;
  let miscounted = false;
  if (isString) appendString(name, payload, life.state === 'expires' ? 5 : 3, to);
  else miscounted = appendRestore(name, payload, to, taker);
  if (life.state !== 'expires') return { key, commands: 1, life, ttlStart: 0, ttlEnd: 0, miscounted };
  if (isString) to.raw(PX);
  else to.raw(PEXPIRE).argument(name);
  const ttlStart = to.length;
  to.integer(life.ms);
  return { key, commands: isString ? 1 : 2, life, ttlStart, ttlEnd: to.length, miscounted };
}

/** Whether the key is a string without a time to live. */
export const isLastingString = (dump: KeyDump): dump is KeyDump & { readonly payload: Buffer } =>
  dump.payload !== null && dump.life.state === 'persistent' && dump.payload[0] === WRITTEN.string;

/** Adds the name of a key and the string that it holds, as arguments. @throws {TranscodeError} */
export function appendPair(name: Buffer, payload: Buffer, to: CommandWriter): void {
  const decoded = openValue(payload);
  to.argument(name);
  appendValue(decoded, to);
}

function appendString(name: Buffer, payload: Buffer, args: number, to: CommandWriter): void {
  const decoded = openValue(payload);
  to.command(args).raw(SET).argument(name);
  appendValue(decoded, to);
}

const value = new Span();

/** Null if `value` holds the string already; else the decoded string: long, a number, or followed by other data. */
function openValue(payload: Buffer): Buffer | null {
  checkFooter(payload);
  const limit = payload.length - FOOTER;
  return value.open(payload, 1, limit) && value.next === limit ? null : openString(payload);
}

function appendValue(decoded: Buffer | null, to: CommandWriter): void {
  if (decoded === null) to.argument(value.bytes, value.start, value.end);
  else to.argument(decoded);
}

const repacked = Buffer.allocUnsafeSlow(MAX_REPACKED);

/** Whether it is a stream that counts its entries wrongly. */
function appendRestore(name: Buffer, payload: Buffer, to: CommandWriter, taker: CopyTarget): boolean {
  const defects: PayloadDefects = { miscounted: false };
  const version = checkFooter(payload);
  const form = taker.fieldTtlForm;
  const size = repackHash(payload, version, RDB_VERSION, repacked);
  const timed = form !== null && mayExpireFields(payload);
  const target = STREAMS.has(payload[0]) ? streamVersionOf(taker) : RDB_VERSION;
  const restored = timed
    ? withFieldTtls(payload, form)
    : size > 0
      ? null
      : transcode(payload, target, version, taker.fullBacklengths, defects);
  to.raw(RESTORE).argument(name).raw(NO_EXPIRY);
  if (restored === null) to.argument(repacked, 0, size);
  else to.argument(restored);
  to.raw(REPLACE);
  return defects.miscounted;
}

function streamVersionOf({ version, countsEntries }: CopyTarget): number {
  if (!countsEntries) return RDB_VERSION;
  return isSince(version, [7, 2]) ? SINCE.activeTime : SINCE.streamCounters;
}

/** Whether the command deletes the key on the mirror: the authority lacks it, or will lack it within 1 ms. */
export const isRemoval = ({ life }: PendingCopy<unknown>): boolean => isOver(life);

/** Whether the command gives the mirror's key a TTL. */
export const isTimed = (
  put: PendingCopy<unknown>,
): put is PendingCopy<unknown> & { readonly life: { readonly ms: number } } => put.ttlStart > 0;

/**
 * The same commands with what is left of their times to live: at the least 1 ms, for 0 would mean no expiry.
 * @param base where in the frame they begin
 */
export function withTtlsShortened(frame: Buffer, puts: readonly PendingCopy<unknown>[], ms: number, base = 0): Buffer {
  const out = new CommandWriter(frame.length);
  let from = 0;
  for (const put of puts) {
    if (!isTimed(put)) continue;
    out.raw(frame.subarray(from, base + put.ttlStart)).integer(Math.max(1, Math.round(put.life.ms - ms)));
    from = base + put.ttlEnd;
  }
  return out.raw(frame.subarray(from)).finish();
}

/** Passes the answers to a key's commands, in order; the first refusal, or null. */
export function refusalOf({ commands }: PendingCopy<unknown>, replies: Scalars): string | null {
  let refusal: string | null = null;
  for (let i = 0; i < commands; i++) {
    const said = replies.isError ? printableBytes(replies.text()) : null;
    if (said === null) replies.skipLine();
    refusal ??= said;
  }
  return refusal;
}
