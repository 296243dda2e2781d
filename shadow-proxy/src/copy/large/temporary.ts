/**
 * Keys that are built beside what they will replace: on the mirror only, while a large key is copied, and after a
 * sudden end.
 */
import { hashSlot, tagOf } from '../../route/slot.js';
import { keyId } from '../../suspects/suspects.js';

const PREFIX = 'shadow-proxy:copying:';

/** Under which name the mirror holds what there is of the copy so far: in the key's slot, for a cluster renames it. */
export const temporaryKey = (db: number, key: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${PREFIX}{${tagOf(hashSlot(key, 0, key.length))}}:${db}:`), key]);

const FORM = new RegExp(`^${PREFIX}\\{[^}]*\\}:(\\d+):`);

/** Whether a chunked copy is in progress that builds this key. @param chunked those in progress, by `keyId` */
export function isBeingBuilt(key: Buffer, chunked: ReadonlyMap<string, unknown>): boolean {
  const [head, db] = FORM.exec(key.toString('latin1')) ?? [];
  return head !== undefined && chunked.has(keyId(Number(db), key.subarray(head.length)));
}

/**
 * Whether a server's key is such a copy: no client's data, to be left out of any comparison, and to be removed where no
 * copy builds it.
 */
export const isTemporary = (key: Buffer): boolean => key.toString('latin1', 0, PREFIX.length) === PREFIX;
