/** The plan's `hashFieldTtl: strip`: the authority's hash for a mirror that has no TTLs of fields. */
import type { Sequencer } from '../../pipeline/sequencer.js';
import { otherSide, type Side } from '../../route/stage.js';
import { mayExpireFields, stripFieldTtls } from '../rdb/field-ttl.js';
import { keyDump, type CopiedKey, type KeyDump } from './key-dump.js';

/** The version that every mirror reads. */
const PLAIN_VERSION = 9;

interface Plain {
  readonly dump: KeyDump;
  /**
   * Whether the fields stay as they are for a while: none is about to expire, and none has expired and is still there.
   */
  readonly settled: boolean;
}

/**
 * @param side of the authority
 * @throws {TranscodeError} if the payload is damaged
 */
export function withoutFieldTtls({ fieldTtls, servers }: Sequencer, side: Side, key: CopiedKey, dump: KeyDump): Plain {
  if (fieldTtls === null || servers[otherSide(side)].traits.fieldTtlForm !== null) return { dump, settled: true };
  if (dump.payload === null || !mayExpireFields(dump.payload)) {
    fieldTtls.forget(key);
    return { dump, settled: true };
  }
  const { payload, fields, expired, next } = stripFieldTtls(dump.payload, PLAIN_VERSION, fieldTtls.now(side));
  const settled = fieldTtls.copied(key, side, fields, expired, next);
  return { dump: keyDump(payload, dump.life), settled };
}
