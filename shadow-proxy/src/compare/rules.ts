/**
 * Which replies may differ: a table of named rules. The first rule that applies to the command and allows the pair
 * gives the verdict its name. If no rule allows the pair, it is a mismatch.
 */
import { isError, isNull, text, type Reply } from '../resp/decode.js';
import { allowsCursor, allowsRandom, allowsUnordered, sizeOfElements } from './collections.js';
import { fieldDifferences, pendingEntriesAgree } from './fields.js';
import { haveSameStrings } from './multiset.js';
import { hasScores } from './scores.js';
import { areCounts, integerOf, isString, isWithin, itemsOfBoth, same, word } from './shape.js';
import type { CommandView, Difference, RuleName } from './verdict.js';
import { meanTheSame } from './wording.js';

export interface Rule {
  readonly name: RuleName;
  /** What the rule allows, for people. */
  readonly sentence: string;
  /** Whether the rule applies to the command of this name. */
  appliesTo(name: string): boolean;
  allows(difference: Difference): boolean;
  /** The same from the bytes, if that is faster; after false, `allows` decides. */
  allowsBytes?(command: CommandView, authority: Buffer, mirror: Buffer): boolean;
}

const oneOf = (...names: readonly string[]): ((name: string) => boolean) => {
  const set = new Set(names);
  return (name) => set.has(name);
};

/** Commands whose replies are about the server, or about its clients. */
const OF_THE_SERVER =
  /^(info|hello|role|time|lastsave|lolwut|command|wait|waitaof|publish|spublish|memory\|(stats|doctor|malloc-stats)|.+\|help)$/;
/** Commands all of whose subcommands are about the server. */
const ALL_OF_THE_SERVER = /^(client|config|command|acl|latency|slowlog|cluster|module|pubsub)\|/;

/** Whether replies to the command are about the server, and not about a key's data. */
export const isOfTheServer = (name: string): boolean => OF_THE_SERVER.test(name) || ALL_OF_THE_SERVER.test(name);

export const RULES: readonly Rule[] = [
  {
    name: 'error-wording',
    sentence: 'Both servers refuse with the same error code; the two texts mean the same in other words.',
    appliesTo: () => true,
    allows: ({ command, authority, mirror }) =>
      isError(authority) && authority.type === mirror.type && meanTheSame(text(authority), text(mirror), command),
  },
  {
    name: 'null-form',
    sentence: 'LPOP and RPOP with a count return nil: one server as a null array, the other as a null string.',
    appliesTo: oneOf('lpop', 'rpop'),
    allows: ({ command, authority, mirror }) => command.args.length > 2 && isNull(authority) && isNull(mirror),
  },
  {
    name: 'score-form',
    sentence:
      'A score or a coordinate is the same number on both servers, written with other digits, or zero with a sign.',
    appliesTo: hasScores,
    // All rules see the replies with scores in one notation.
    allows: ({ authority, mirror }) => same(authority, mirror),
  },
  {
    name: 'hll-cache',
    sentence: 'A HyperLogLog is read as a string: it is equal except for the cached count that PFCOUNT writes into it.',
    appliesTo: oneOf('get', 'getset', 'getdel', 'getex', 'set', 'mget'),
    allows: ({ authority, mirror }) => same(withoutLastCount(authority), withoutLastCount(mirror)),
  },
  {
    name: 'unordered',
    sentence: 'The same members, fields or keys in another order, where the order has no meaning.',
    appliesTo: oneOf('smembers', 'sinter', 'sunion', 'sdiff', 'hkeys', 'hvals', 'hgetall', 'keys'),
    allows: allowsUnordered,
    allowsBytes: (command, authority, mirror) => haveSameStrings(authority, mirror, sizeOfElements(command)),
  },
  {
    name: 'random',
    sentence: 'Both servers chose at random: as many elements, of the same shape; elements that both chose are equal.',
    appliesTo: oneOf('srandmember', 'hrandfield', 'zrandmember', 'randomkey'),
    allows: allowsRandom,
  },
  {
    name: 'ttl-tolerance',
    sentence: "Two TTLs, or two timestamps by each server's own clock, differ by no more than the tolerance.",
    appliesTo: oneOf('ttl', 'pttl', 'expiretime', 'pexpiretime'),
    allows: allowsTtl,
  },
  {
    name: 'cursor',
    sentence: 'Each server has its own cursors; where one call returned everything, the elements are the same.',
    appliesTo: oneOf('scan', 'hscan', 'sscan', 'zscan'),
    allows: allowsCursor,
  },
  {
    name: 'encoding',
    sentence: 'Both servers have the value, of one type; each stores it in its own encoding.',
    appliesTo: oneOf('object|encoding', 'object|refcount', 'memory|usage', 'dump', 'debug|object', 'xinfo|stream'),
    allows: allowsEncoding,
  },
  {
    name: 'time-dependent',
    sentence: 'The reply says how long ago something was, or how often; the rest is equal.',
    appliesTo: oneOf('object|idletime', 'object|freq', 'xpending', 'xinfo|consumers', 'xinfo|stream'),
    allows: allowsTime,
  },
  {
    name: 'newer-fields',
    sentence: 'One server is newer: it reports more of a stream, or omits deleted entries; what both report is equal.',
    appliesTo: oneOf('xinfo|stream', 'xinfo|groups', 'xinfo|consumers', 'xautoclaim', 'xclaim'),
    allows: allowsNewer,
  },
  {
    name: 'estimates',
    sentence:
      'Two releases estimate in their own ways what a group of a stream has read, and its lag; the rest is equal.',
    appliesTo: oneOf('xinfo|groups', 'xinfo|stream'),
    allows: (difference) => principal(difference) === 'estimates',
  },
  {
    name: 'server-identity',
    sentence: 'The reply is about the server or its clients, not about the data; it has the same type.',
    appliesTo: isOfTheServer,
    allows: ({ authority, mirror }) =>
      !isError(authority) && authority.type === mirror.type && !isNull(authority) && !isNull(mirror),
  },
];

/** The reply with bytes 8 to 15 of each HyperLogLog cleared: they cache its last count (hyperloglog.c). */
function withoutLastCount(reply: Reply): Reply {
  const { items, data } = reply;
  if (items !== null) return { ...reply, items: items.map(withoutLastCount) };
  if (data === null || data.length < 16 || data.toString('latin1', 0, 4) !== 'HYLL') return reply;
  return { ...reply, data: Buffer.concat([data.subarray(0, 8), Buffer.alloc(8), data.subarray(16)]) };
}

function allowsTtl({ command, authority, mirror, limits }: Difference): boolean {
  const [a, m] = [integerOf(authority), integerOf(mirror)];
  // -1 and -2 are no times.
  if (a === null || m === null || a < 0n || m < 0n) return false;
  // Seconds are rounded: times within the tolerance may differ by one second more.
  const unit = command.name.startsWith('p') ? 1 : 1000;
  const apart = Math.abs(Number(m - a) - (command.name.endsWith('expiretime') ? (limits.clockAheadMs ?? 0) / unit : 0));
  return apart <= Math.ceil(limits.ttlMs / unit);
}

/** The types of keys that can have an encoding: `listpack` can be a hash, a set or a sorted set. */
const TYPES_OF: Readonly<Record<string, string>> = {
  int: 'string',
  embstr: 'string',
  raw: 'string',
  quicklist: 'list',
  linkedlist: 'list',
  intset: 'set',
  hashtable: 'set hash',
  skiplist: 'zset',
  zipmap: 'hash',
  ziplist: 'list hash zset',
  listpack: 'list set hash zset',
  listpackex: 'hash',
  stream: 'stream',
};
/** The same for the first byte of a DUMP: the RDB types of each type of key. */
const TYPES_OF_DUMP: Readonly<Record<string, readonly number[]>> = {
  string: [0],
  list: [1, 10, 14, 18],
  set: [2, 11, 20],
  zset: [3, 5, 12, 17],
  hash: [4, 9, 13, 16, 22, 23, 24, 25, 29, 31],
  module: [6, 7],
  stream: [15, 19, 21, 26, 27],
};
const TYPE_OF_DUMP: ReadonlyMap<number, string> = new Map(
  Object.entries(TYPES_OF_DUMP).flatMap(([type, bytes]) => bytes.map((byte): [number, string] => [byte, type])),
);

function allowsEncoding(difference: Difference): boolean {
  const { command, authority, mirror } = difference;
  switch (command.name) {
    case 'object|encoding':
      return isString(authority) && isString(mirror) && shareAType(TYPES_OF[text(authority)], TYPES_OF[text(mirror)]);
    case 'debug|object':
      return shareAType(typesOfObject(authority), typesOfObject(mirror));
    case 'dump':
      return shareAType(typeOfDump(authority), typeOfDump(mirror));
    case 'xinfo|stream':
      return principal(difference) === 'encoding';
    default:
      return areCounts(authority, mirror);
  }
}

const typeOfDump = (reply: Reply): string | undefined =>
  isString(reply) ? TYPE_OF_DUMP.get(reply.data![0]) : undefined;
const typesOfObject = (reply: Reply): string | undefined =>
  reply.type === '+' ? TYPES_OF[/ encoding:(\w+) /.exec(text(reply))?.[1] ?? ''] : undefined;

const shareAType = (a: string | undefined, b: string | undefined): boolean =>
  Boolean(a && b) && a!.split(' ').some((type) => b!.split(' ').includes(type));

/** The rule that allows all differences in an XINFO; null if one of them is not allowed. */
function principal({ command, authority, mirror, limits }: Difference): RuleName | null {
  const why = fieldDifferences(command.name, authority, mirror, limits.sameRelease ?? true);
  return (['newer-fields', 'estimates', 'encoding', 'time-dependent'] as const).find((rule) => why?.has(rule)) ?? null;
}

function allowsTime(difference: Difference): boolean {
  const { command, authority, mirror } = difference;
  if (command.name.startsWith('object|')) return areCounts(authority, mirror);
  if (command.name !== 'xpending') return principal(difference) === 'time-dependent';
  return pendingEntriesAgree(authority, mirror);
}

function allowsNewer(difference: Difference): boolean {
  const { command, authority, mirror } = difference;
  if (command.name.startsWith('xinfo|')) return principal(difference) === 'newer-fields';
  const replies = itemsOfBoth(authority, mirror);
  if (replies === null) return false;
  if (command.name === 'xclaim') return leavesOutDeleted(...replies) || leavesOutDeleted(replies[1], replies[0]);
  const [newer, older] = replies[0].length === 3 ? replies : [replies[1], replies[0]];
  if (newer.length !== 3 || older.length !== 2 || !same(newer[0], older[0])) return false;
  const [entries, claimed, deleted] = [newer[1].items, older[1].items, newer[2].items];
  if (entries === null || claimed === null || deleted === null) return false;
  if (claimed.length !== entries.length + deleted.length) return false;
  const justIds = command.args.some((arg, i) => i > 4 && word(arg) === 'JUSTID');
  return justIds ? interleaves(claimed, entries, deleted) : leavesOutDeleted(entries, claimed);
}

/** Whether `older` is `newer` with a nil for each deleted entry. */
function leavesOutDeleted(newer: readonly Reply[], older: readonly Reply[]): boolean {
  const left = older.filter((entry) => entry.items !== null || entry.data !== null);
  return left.length === newer.length && left.every((entry, i) => same(entry, newer[i]));
}

/** Whether `all` has the `entries` in their order, with `deleted` entries in between. */
function interleaves(all: readonly Reply[], entries: readonly Reply[], deleted: readonly Reply[]): boolean {
  let next = 0;
  const rest = all.filter((id) => {
    const isNext = next < entries.length && same(id, entries[next]);
    if (isNext) next++;
    return !isNext;
  });
  // If all entries were found, the lengths show that the rest are deleted ones.
  return isWithin(rest, deleted, 1);
}
