/**
 * The life of a key as in PTTL's reply: no such key (-2), no TTL (-1), or the remaining ms
 * (https://redis.io/docs/latest/commands/pttl/). The first two are opposite facts with the same sign, so nothing
 * outside this file compares the number.
 */
import { isError, text, type Reply } from './decode.js';

export type KeyLife =
  | { readonly state: 'absent' }
  | { readonly state: 'persistent' }
  /** `ms` is never negative; 0 is less than 1 ms. */
  | { readonly state: 'expires'; readonly ms: number };

export const NO_KEY: KeyLife = { state: 'absent' };
export const PERSISTENT: KeyLife = { state: 'persistent' };

/** @param pttl PTTL's reply: ms, -1 without a TTL, -2 without the key */
export const lifeFromPttl = (pttl: number): KeyLife =>
  pttl === -2 ? NO_KEY : pttl === -1 ? PERSISTENT : { state: 'expires', ms: pttl };

/** The life from a reply to PTTL; null if the server refused. */
export const lifeFromReply = (reply: Reply): KeyLife | null =>
  isError(reply) ? null : lifeFromPttl(Number(text(reply)));

/** The number that PTTL would reply, for reports. */
export const pttlOf = (life: KeyLife): number =>
  life.state === 'expires' ? life.ms : life.state === 'absent' ? -2 : -1;

/** Whether the key expires within `ms`. False for a key that does not exist. */
export const expiresWithin = (life: KeyLife, ms: number): boolean => life.state === 'expires' && life.ms <= ms;

/**
 * Whether a copy of the key would be a removal: the key does not exist, or less than 1 ms is left, which no command can
 * set.
 */
export const isOver = (life: KeyLife): boolean => life.state === 'absent' || expiresWithin(life, 0);
