/** The end of a DUMP payload: the RDB version (16 bits) and the CRC-64 of all that is before it, little-endian. */
import { Crc64 } from './crc64.js';
import { TranscodeError } from './error.js';
import { NEWEST_VERSION, OLDEST_VERSION, VALKEY_VERSIONS, WRITTEN } from './types.js';

/** Its size in bytes. */
export const FOOTER = 10;

/**
 * Returns the RDB version. One that is newer than those that are known is taken for a plain string alone: its form has
 * been the same since the first version.
 * @throws {TranscodeError} if the payload is damaged, or of a version that is not known
 */
export function checkFooter(payload: Buffer): number {
  const at = payload.length - FOOTER;
  if (at < 2) throw new TranscodeError('TRUNCATED', `a payload of ${payload.length} bytes`, 0);
  const version = payload.readUInt16LE(at);
  const crc = new Crc64().update(payload, 0, at + 2);
  if (crc.low !== payload.readUInt32LE(at + 2) || crc.high !== payload.readUInt32LE(at + 6)) {
    throw new TranscodeError('CHECKSUM', 'the CRC-64 does not match: the payload was truncated or damaged', at + 2);
  }
  const isKnown = version <= NEWEST_VERSION || VALKEY_VERSIONS.includes(version);
  if (version < OLDEST_VERSION || (!isKnown && payload[0] !== WRITTEN.string)) {
    throw new TranscodeError(
      'VERSION',
      `RDB version ${version}, known are ${OLDEST_VERSION} to ${NEWEST_VERSION}, and of Valkey ${VALKEY_VERSIONS.join(' and ')}`,
      at,
    );
  }
  return version;
}

/** Writes it behind the value, which ends at `at`; returns the payload. */
export function seal(bytes: Buffer, at: number, version: number): Buffer {
  return bytes.subarray(0, sealAt(bytes, at, version));
}

/** Writes the footer behind the value, which ends at `at`; returns the index at which the payload ends. */
export function sealAt(bytes: Buffer, at: number, version: number): number {
  bytes.writeUInt16LE(version, at);
  const crc = new Crc64().update(bytes, 0, at + 2);
  bytes.writeUInt32LE(crc.low, at + 2);
  bytes.writeUInt32LE(crc.high, at + 6);
  return at + FOOTER;
}
