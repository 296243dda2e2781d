/**
 * Keys that are built beside what they will replace: on the mirror only, while a large key is copied, and after a
 * sudden end.
 */
import { hashSlot, tagOf } from '../../route/slot.js';

const PREFIX = 'shadow-proxy:copying:';

/** Under which name the mirror holds what there is of the copy so far: in the key's slot, for a cluster renames it. */
export const temporaryKey = (db: number, key: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${PREFIX}{${tagOf(hashSlot(key, 0, key.length))}}:${db}:`), key]);

/**
 * Whether a server's key is such a copy: no data of anybody's, to be left out of any comparison, and to be removed
 * where no copy is under way.
 */
export const isTemporary = (key: Buffer): boolean => key.toString('latin1', 0, PREFIX.length) === PREFIX;
