/** What a key holds, as a hash: equal values have equal ones, however their servers encode them. */
import { createHmac } from 'node:crypto';
import { decodeDump } from '../rdb/transcode.js';
import type { StreamGroup, StreamId, Value } from '../rdb/value.js';

const DIGITS = 16;

/**
 * @param salt hides what a short value is: digests of one salt tell equal from different, nothing more
 * @throws {TranscodeError} if the payload cannot be read
 */
export const digestOf = (payload: Buffer, salt: Buffer): string =>
  createHmac('sha256', salt)
    .update(JSON.stringify(canonical(decodeDump(payload))))
    .digest('hex')
    .slice(0, DIGITS);

const text = (bytes: Buffer): string => bytes.toString('latin1');
const id = ({ ms, seq }: StreamId): string => `${ms}-${seq}`;

/** The value in the form that `equal-values.ts` compares. */
function canonical(value: Value): unknown {
  switch (value.type) {
    case 'string':
      return ['string', text(value.bytes)];
    case 'list':
      return ['list', value.items.map(text)];
    case 'set':
      return ['set', value.members.map(text).sort()];
    case 'hash':
      return [
        'hash',
        value.fields
          .map(({ field, value: held, expireAt }) => JSON.stringify([text(field), text(held), expireAt]))
          .sort(),
      ];
    case 'zset':
      return ['zset', value.members.map(({ member, score }) => JSON.stringify([text(member), String(score)])).sort()];
    case 'stream':
      return [
        'stream',
        id(value.lastId),
        value.entries.map((entry) => [id(entry.id), entry.fields.map(text)]),
        value.groups.map(canonicalGroup).sort(),
      ];
  }
}

function canonicalGroup({ name, lastId, consumers }: StreamGroup): string {
  const pending = consumers.map((consumer) =>
    JSON.stringify([text(consumer.name), consumer.pending.map((entry) => [id(entry.id), String(entry.deliveries)])]),
  );
  return JSON.stringify([text(name), id(lastId), pending.sort()]);
}
