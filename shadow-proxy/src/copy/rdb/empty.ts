/**
 * Hashes without a field. Redis 6.2 leaves one behind where HINCRBYFLOAT fails on a key that is not there. No server
 * restores one, or loads it again.
 */
import { FOOTER } from './footer.js';
import { HASH_LISTPACK, HASH_ZIPLIST } from './repack.js';

/** Type, length and header of each, up to its end. */
const EMPTY: readonly Buffer[] = [
  Buffer.from([HASH_ZIPLIST, 11, 11, 0, 0, 0, 10, 0, 0, 0, 0, 0, 255]),
  Buffer.from([HASH_LISTPACK, 7, 7, 0, 0, 0, 0, 0, 255]),
];

/** Whether the payload is such a hash. */
export const isEmptyHash = (payload: Buffer): boolean =>
  EMPTY.some(
    (empty) => payload[0] === empty[0] && payload.length === empty.length + FOOTER && payload.indexOf(empty) === 0,
  );
