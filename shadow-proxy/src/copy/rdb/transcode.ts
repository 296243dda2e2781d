/**
 * Room: copy/rdb: DUMP payloads of any version → RDB 9; pure.
 * Called by: copy/job, copy/key, copy/verify.
 * Calls: io.
 */
import { openDump } from './decode.js';
import { checkTarget, encodeDump } from './encode.js';
import { checkFooter, FOOTER, seal } from './footer.js';
import { MAX_REPACKED, repackHash } from './repack.js';
import { VALKEY_VERSIONS } from './types.js';

export { decodeDump, openString } from './decode.js';
export { encodeDump } from './encode.js';
export { TranscodeError, type TranscodeErrorCode } from './error.js';
export type * from './value.js';

export interface PayloadDefects {
  /** A stream counted its entries wrongly; the result has those that the server served, and their number. */
  miscounted: boolean;
}

/**
 * A DUMP payload of Redis 2.8 to 8.10, KeyDB (RDB 6 to 15) or Valkey as one that servers reading RDB `targetVersion`
 * restore. The whole value is checked even where its bytes can stay as they are, because a server that restores a
 * damaged encoding may crash on it.
 * @param targetVersion 6 to 12; KeyDB 6.3 reads 9, Redis 7.0 reads 10
 * @param version of the payload, where the footer was checked already
 * @param fullBacklengths of `encodeDump`
 * @param defects gets what the payload had that the result has not
 * @throws {TranscodeError} if the payload is damaged, unknown or a module's, or the target cannot hold the value
 */
export function transcode(
  payload: Buffer,
  targetVersion = 9,
  version = checkFooter(payload),
  fullBacklengths = false,
  defects: PayloadDefects = { miscounted: false },
): Buffer {
  checkTarget(targetVersion);
  const repacked = repackHash(payload, version, targetVersion, packed);
  if (repacked > 0) return Buffer.from(packed.subarray(0, repacked));
  const { type, value, valueEnd } = openDump(payload, version);
  // Its listpacks may have the form of Redis, or of Valkey, that the target refuses.
  const recounts = value.type === 'stream' && value.miscounted === true;
  if (recounts) defects.miscounted = true;
  if (recounts || (value.type === 'stream' && (fullBacklengths || VALKEY_VERSIONS.includes(version))))
    return encodeDump(value, targetVersion, fullBacklengths);
  return type.since <= targetVersion ? reseal(payload, valueEnd, targetVersion) : encodeDump(value, targetVersion);
}

const packed = Buffer.allocUnsafeSlow(MAX_REPACKED);

/** The same value under another version. What KeyDB wrote after it falls away. */
function reseal(payload: Buffer, valueEnd: number, version: number): Buffer {
  const out = Buffer.allocUnsafe(valueEnd + FOOTER);
  payload.copy(out, 0, 0, valueEnd);
  return seal(out, valueEnd, version);
}
