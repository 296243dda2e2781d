/** Hashes whose fields expire, for servers that cannot hold that: the same hash without the times to live. */
import { openDump } from './decode.js';
import { encodeDump, encodeTimedHash, type FieldTtlForm } from './encode.js';
import { FIELD_EXPIRY } from './types.js';

export interface HashWithoutTtls {
  /** The hash without times to live; null if every field has expired. */
  readonly payload: Buffer | null;
  /** How many fields had one. */
  readonly fields: number;
  /** How many of them have expired, though the server has not removed them yet: they are left out. */
  readonly expired: number;
  /** When the next one expires, in Unix ms by the server's clock; Infinity if none does. */
  readonly next: number;
}

/** Whether the payload is of a type that has times to live of fields. */
export const mayExpireFields = (payload: Buffer): boolean => FIELD_EXPIRY.has(payload[0]);

/**
 * The same hash as a payload for a server that holds such TTLs in its own form.
 * @throws {TranscodeError} if the payload is damaged
 */
export function withFieldTtls(payload: Buffer, form: FieldTtlForm): Buffer {
  const { value } = openDump(payload);
  return value.type === 'hash' ? encodeTimedHash(value, form) : payload;
}

/**
 * @param now in Unix ms, by the clock of the server that wrote the payload
 * @throws {TranscodeError} if the payload is damaged
 */
export function stripFieldTtls(payload: Buffer, version: number, now: number): HashWithoutTtls {
  const { value } = openDump(payload);
  const fields = value.type === 'hash' ? value.fields : [];
  const timed = fields.flatMap(({ expireAt }) => expireAt ?? []);
  const left = fields.filter(({ expireAt = Infinity }) => expireAt > now);
  return {
    payload:
      left.length === 0
        ? null
        : encodeDump({ type: 'hash', fields: left.map(({ field, value: held }) => ({ field, value: held })) }, version),
    fields: timed.length,
    expired: fields.length - left.length,
    next: timed.reduce((soonest, at) => (at > now && at < soonest ? at : soonest), Infinity),
  };
}
