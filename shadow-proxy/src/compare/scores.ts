/**
 * How a score is written. Redis 7 loses the sign of a zero in a small sorted set (its listpack stores integers), KeyDB
 * 6.3 does not: after `ZADD z -0 m`, or with a weight of -1, one answers `0`, the other `-0`. KeyDB, and Redis up to
 * 7.0, write a fraction with 17 digits (`0.10000000000000001`). Valkey, and Redis since 7.2, write the shortest form
 * (`0.1`); Redis since 8.0 does so for coordinates, too. The number is the same: order, ranges and sums are equal.
 */
import type { Reply } from '../resp/decode.js';
import { word } from './shape.js';
import type { CommandView } from './verdict.js';

type ScoreNormalizer = (reply: Reply) => Reply;

const NUMBER = /^-?\d[\d.]*(e[+-]?\d+)?$/;

/** The number in one notation; any other text, such as `inf`, is unchanged. */
function written(reply: Reply): Reply {
  const text = reply.data?.toString('latin1') ?? '';
  return NUMBER.test(text) ? { ...reply, data: Buffer.from(`${Number(text) + 0}`) } : reply;
}
/** The scores of `[member, score, …]`, or of `[[member, score], …]` as RESP3 has it. */
const ofPairs: ScoreNormalizer = (reply) =>
  map(reply, (item, i) => (item.items !== null ? at(1)(item) : i % 2 === 1 ? written(item) : item));
const ofEach: ScoreNormalizer = (reply) => map(reply, written);
const at =
  (index: number, inside: ScoreNormalizer = written): ScoreNormalizer =>
  (reply) =>
    map(reply, (item, i) => (i === index ? inside(item) : item));

const map = (reply: Reply, change: (item: Reply, index: number) => Reply): Reply =>
  reply.items === null ? reply : { ...reply, items: reply.items.map(change) };

const WHERE: ReadonlyMap<string, ScoreNormalizer> = new Map(
  Object.entries({
    zscore: written,
    zincrby: written,
    // With INCR; without it, the reply is an integer.
    zadd: written,
    zmscore: ofEach,
    zpopmin: ofPairs,
    zpopmax: ofPairs,
    bzpopmin: at(2),
    bzpopmax: at(2),
    zmpop: at(1, ofPairs),
    bzmpop: at(1, ofPairs),
    zscan: at(1, ofPairs),
    geopos: (reply) => map(reply, ofEach),
    zrank: at(1),
    zrevrank: at(1),
  }),
);
/** Commands that return scores only with the option. */
const WITHSCORES = new Set([
  'zrange',
  'zrevrange',
  'zrangebyscore',
  'zrevrangebyscore',
  'zdiff',
  'zinter',
  'zunion',
  'zrandmember',
]);

/** With WITHCOORD each place has its coordinates in its entry. */
const WITHCOORD = new Set(['geosearch', 'georadius', 'georadius_ro', 'georadiusbymember', 'georadiusbymember_ro']);
const ofPlaces: ScoreNormalizer = (reply) => map(reply, (place) => map(place, (item) => map(item, written)));

/** Whether scores or coordinates may be in the replies to the command. */
export const hasScores = (name: string): boolean => WHERE.has(name) || WITHSCORES.has(name) || WITHCOORD.has(name);

/** The reply with all scores in one notation. */
export function withScoresAlike({ name, args }: CommandView, reply: Reply): Reply {
  const where = WHERE.get(name);
  if (where !== undefined) return where(reply);
  if (WITHCOORD.has(name)) return ofPlaces(reply);
  return WITHSCORES.has(name) && args.some((arg, i) => i > 1 && word(arg) === 'WITHSCORES') ? ofPairs(reply) : reply;
}
