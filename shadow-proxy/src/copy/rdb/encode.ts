import { TranscodeError } from './error.js';
import { writeStream } from './stream-encode.js';
import { NEWEST_WRITTEN, OLDEST_VERSION, SINCE, VALKEY_VERSIONS, WRITTEN } from './types.js';
import type { HashValue, Value, ZsetMember, ZsetValue } from './value.js';
import { PayloadWriter } from './payload-writer.js';

/**
 * A DUMP payload that servers reading RDB `version` (6 to 12) restore, in plain encodings: the server chooses its
 * own when it loads them. What the version cannot say about a stream (counters, active times) is left out.
 * @param fullBacklengths whether the servers are Valkey 9.1 or later, which lay out listpacks in their own way
 * @throws {TranscodeError} `TARGET` when the version has no streams, or no expiry of hash fields, and the value does
 */
export function encodeDump(value: Value, version: number, fullBacklengths = false): Buffer {
  checkTarget(version);
  const to = new PayloadWriter();
  writeValue(to, value, version, fullBacklengths);
  return to.finish(version);
}

/** @throws {TranscodeError} `TARGET` when this code cannot write the version */
export function checkTarget(version: number): void {
  if (Number.isInteger(version) && version >= OLDEST_VERSION && version <= NEWEST_WRITTEN) return;
  throw new TranscodeError(
    'TARGET',
    `cannot write RDB version ${version}, only ${OLDEST_VERSION} to ${NEWEST_WRITTEN}`,
    0,
  );
}

function writeValue(to: PayloadWriter, value: Value, version: number, fullBacklengths: boolean): void {
  switch (value.type) {
    case 'string':
      to.u8(WRITTEN.string);
      return to.string(value.bytes);
    case 'list':
      return writeStrings(to, WRITTEN.list, value.items);
    case 'set':
      return writeStrings(to, WRITTEN.set, value.members);
    case 'hash':
      return writeHash(to, value, version);
    case 'zset':
      return writeZset(to, value, version);
    case 'stream':
      if (version < SINCE.streams) refuse('stream', `RDB ${version} has no streams`);
      return writeStream(to, value, version, fullBacklengths);
  }
}

function writeStrings(to: PayloadWriter, type: number, strings: readonly Buffer[]): void {
  to.u8(type);
  to.length(strings.length);
  for (const string of strings) to.string(string);
}

function writeHash(to: PayloadWriter, { fields }: HashValue, version: number): void {
  let earliest = Infinity;
  for (const { expireAt } of fields) if (expireAt !== undefined && expireAt < earliest) earliest = expireAt;
  const expiring = earliest !== Infinity;
  if (expiring && version < SINCE.fieldExpiry) {
    refuse(
      'hash',
      `fields with a TTL, which RDB ${version} cannot hold. KeyDB's own field TTL differs: a field that is set again keeps its old expiry, and is lost. Remove the TTLs (HPERSIST), or set hashFieldTtl: strip in the plan; the key is copied then`,
    );
  }
  to.u8(expiring ? WRITTEN.hashExpiry : WRITTEN.hash);
  if (expiring) to.int64(BigInt(earliest));
  to.length(fields.length);
  for (const { field, value, expireAt } of fields) {
    if (expiring) to.length(expireAt === undefined ? 0 : expireAt - earliest + 1);
    to.string(field);
    to.string(value);
  }
}

/** How a server writes a hash whose fields expire: as Redis since 7.4, or as Valkey since 9.0. */
export type FieldTtlForm = 'redis' | 'valkey';

/** A hash with the TTLs of its fields, as a payload for such a server. */
export function encodeTimedHash(value: HashValue, form: FieldTtlForm): Buffer {
  const to = new PayloadWriter();
  if (form === 'redis') {
    writeHash(to, value, SINCE.fieldExpiry);
    return to.finish(SINCE.fieldExpiry);
  }
  to.u8(WRITTEN.hashOfValkey);
  to.length(value.fields.length);
  for (const { field, value: held, expireAt = -1 } of value.fields) {
    to.string(field);
    to.string(held);
    to.int64(BigInt(expireAt));
  }
  return to.finish(VALKEY_VERSIONS[0]);
}

function writeZset(to: PayloadWriter, { members }: ZsetValue, version: number): void {
  const binary = version >= SINCE.binaryScores;
  to.u8(binary ? WRITTEN.zset : WRITTEN.zsetText);
  to.length(members.length);
  const write = ({ member, score }: ZsetMember): void => {
    to.string(member);
    if (binary) to.double(score);
    else writeTextScore(to, score);
  };
  // Packed encodings ascend; servers load a descending order faster, every member going to the head.
  for (let i = members.length - 1; i >= 0; i--) write(members[i]);
}

function writeTextScore(to: PayloadWriter, score: number): void {
  if (score === Infinity) return to.u8(254);
  if (score === -Infinity) return to.u8(255);
  const text = Object.is(score, -0) ? '-0' : String(score);
  to.u8(text.length);
  to.raw(Buffer.from(text, 'latin1'));
}

function refuse(type: Value['type'], message: string): never {
  throw new TranscodeError('TARGET', message, 0, type);
}
