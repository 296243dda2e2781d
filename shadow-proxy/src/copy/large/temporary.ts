/**
 * Keys that are built beside what they will replace: on the mirror only, while a large key is copied, and after a
 * sudden end.
 */

const PREFIX = 'shadow-proxy:copying:';

/** Under which name the mirror holds what there is of the copy so far. */
export const temporaryKey = (db: number, key: Buffer): Buffer => Buffer.concat([Buffer.from(`${PREFIX}${db}:`), key]);

/**
 * Whether a server's key is such a copy: no data of anybody's, to be left out of any comparison, and to be removed
 * where no copy is under way.
 */
export const isTemporary = (key: Buffer): boolean => key.toString('latin1', 0, PREFIX.length) === PREFIX;
