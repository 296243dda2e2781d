/**
 * Effects, not guesses: what the mirror is told is what a write did on the authority, read from its reply.
 *
 * A command without an entry here is repeated as it was asked: given the same state it does the same, and its
 * reply is compared. The entries are the commands whose result is random, assigned, depends on the moment or on
 * the machine, or that the older server does not know.
 */
import type { Reply } from '../resp/decode.js';
import { isNull, text } from '../resp/decode.js';
import { DELETED } from './forms.js';
import { blockOption } from './policy.js';
import { array, bulk, encodeCommand, integer, OK, type Argument } from '../resp/encode.js';

export interface EffectCommand {
  readonly frame: Buffer;
  /** What the mirror must answer: a frame; `same`: what the authority answered; null: anything but an error. */
  readonly reply: Buffer | 'same' | null;
}

/**
 * - null: nothing happened.
 * - `verbatim`: the command is its own effect.
 * - `copy`: only the state of the keys that it wrote tells; copy them.
 * - commands: what to send instead.
 */
export type Effect = null | 'verbatim' | 'copy' | readonly EffectCommand[];

/**
 * @param args the command's arguments, `args[0]` its name
 * @param reply the authority's reply, never an error
 * @param probe the reply to `probeOf(args)`, where that asked for one
 */
export type EffectOf = (args: readonly Buffer[], reply: Reply, protocol: 2 | 3, probe?: Reply) => Effect;

const word = (arg: Buffer | undefined): string => arg?.toString('latin1').toUpperCase() ?? '';
const command = (args: readonly Argument[], reply: EffectCommand['reply']): EffectCommand => ({
  frame: encodeCommand(args),
  reply,
});
const one = (args: readonly Argument[], reply: EffectCommand['reply']): Effect => [command(args, reply)];
const strings = (items: readonly Reply[]): Buffer[] => items.map((item) => item.data!);

const CONDITIONS = new Set(['NX', 'XX', 'GT', 'LT']);

/** EXPIRE key time [NX|XX|GT|LT]: with a reply of 1 the time took effect, whatever the condition was. */
const conditionalExpire: EffectOf = (args, reply) => {
  if (!args.slice(3).some((arg) => CONDITIONS.has(word(arg)))) return 'verbatim';
  return text(reply) === '1' ? one(args.slice(0, 3), integer(1)) : null;
};

/**
 * SET … NX GET, which only newer servers know: nil says that it was set. KeyDB loses what SET … KEEPTTL writes to a
 * key that has expired and is not removed yet: a look at the key removes it.
 */
const set: EffectOf = (args, reply) => {
  const options = args.slice(3).map(word);
  if (options.includes('NX') && options.includes('GET')) {
    if (!isNull(reply)) return null;
    return one([...args.slice(0, 3), ...args.slice(3).filter((arg) => word(arg) !== 'NX' && word(arg) !== 'GET')], OK);
  }
  return options.includes('KEEPTTL') ? [command(['EXISTS', args[1]], null), command(args, 'same')] : 'verbatim';
};

const spop: EffectOf = (args, reply) => {
  const members = reply.items ? strings(reply.items) : reply.data ? [reply.data] : [];
  return members.length === 0 ? null : one(['SREM', args[1], ...members], integer(members.length));
};

/** BLPOP, BRPOP: key … timeout. */
const blpop: EffectOf = (args, reply) => {
  if (!reply.items) return null;
  const [key, value] = strings(reply.items);
  return one([word(args[0]) === 'BLPOP' ? 'LPOP' : 'RPOP', key], bulk(value));
};

/** BZPOPMIN, BZPOPMAX: key … timeout. */
const bzpop: EffectOf = (args, reply) => {
  if (!reply.items) return null;
  const [key, member, score] = reply.items;
  const told = score.type === ',' ? Buffer.from(`,${text(score)}\r\n`) : bulk(score.data!);
  return one([word(args[0]).slice(1), key.data!], array([bulk(member.data!), told]));
};

/** BLMOVE, BRPOPLPUSH: as without B, and without a timeout. */
const blmove: EffectOf = (args, reply) =>
  isNull(reply) ? null : one([word(args[0]).slice(1), ...args.slice(1, -1)], 'same');

/** BLMPOP, BZMPOP: the timeout comes first. */
const blocking =
  (effect: EffectOf): EffectOf =>
  (args, reply, protocol) =>
    effect([args[0], ...args.slice(2)], reply, protocol);

/** The mirror's lane must not block. */
const xreadgroup: EffectOf = (args, reply) =>
  blockOption(args) === -1 ? 'verbatim' : one(withoutBlock(ofWhatWoke(args, reply)), 'same');

function withoutBlock(args: readonly Buffer[]): readonly Buffer[] {
  const at = blockOption(args);
  return at === -1 ? args : [...args.slice(0, at), ...args.slice(at + 2)];
}

/**
 * XREADGROUP … STREAMS key … id …: who was woken is told of the stream that woke it, and not of what came to the others
 * at the same time.
 */
function ofWhatWoke(args: readonly Buffer[], reply: Reply): readonly Buffer[] {
  const items = reply.items ?? [];
  const woke =
    reply.type === '%'
      ? items.length === 2
        ? items[0]
        : undefined
      : items.length === 1
        ? items[0].items?.[0]
        : undefined;
  // After what a group and its consumer may be named.
  const first = args.findIndex((arg, i) => i > 3 && word(arg) === 'STREAMS') + 1;
  const count = (args.length - first) / 2;
  const at = args.findIndex((arg, i) => i >= first && woke?.data?.equals(arg) === true);
  return at === -1 || at >= first + count ? args : [...args.slice(0, first), args[at], args[at + count]];
}

/**
 * The removal of what a blocked client took, whatever it was that others took at the same time: from the end that it
 * took it from, the same value. `copy` where that leaves an order open.
 */
export function removalOf(args: readonly Buffer[], reply: Reply): Effect {
  const [key, taken] = reply.items ?? [];
  switch (word(args[0])) {
    case 'BLPOP':
      return one(['LREM', key.data!, 1, taken.data!], integer(1));
    case 'BRPOP':
      return one(['LREM', key.data!, -1, taken.data!], integer(1));
    case 'BZPOPMIN':
    case 'BZPOPMAX':
      return one(['ZREM', key.data!, taken.data!], integer(1));
    default:
      return 'copy';
  }
}

/** LMPOP numkeys key… LEFT|RIGHT: the reply names the key and what was popped. */
const lmpop: EffectOf = (args, reply) => {
  if (!reply.items) return null;
  const [key, popped] = reply.items;
  const left = word(args[2 + Number(args[1].toString())]) === 'LEFT';
  return one(
    [left ? 'LPOP' : 'RPOP', key.data!, popped.items!.length],
    array(strings(popped.items!).map((item) => bulk(item))),
  );
};

const zmpop: EffectOf = (args, reply, protocol) => {
  if (!reply.items) return null;
  const [key, popped] = reply.items;
  const min = word(args[2 + Number(args[1].toString())]) === 'MIN';
  const flat = popped.items!.flatMap((pair) => strings(pair.items!));
  return one(
    [min ? 'ZPOPMIN' : 'ZPOPMAX', key.data!, popped.items!.length],
    protocol === 2 ? array(flat.map((item) => bulk(item))) : null,
  );
};

/** The sum is the authority's: long doubles differ between processors. */
const incrbyfloat: EffectOf = (args, reply) => [
  command(['EXISTS', args[1]], null),
  command(['SET', args[1], reply.data!, 'KEEPTTL'], OK),
];
const hincrbyfloat: EffectOf = (args, reply) => one(['HSET', args[1], args[2], reply.data!], null);

/** Where XADD's ID stands, after its options. */
function xaddId(args: readonly Buffer[]): number {
  let at = 2;
  for (; at < args.length; at++) {
    const option = word(args[at]);
    if (option === 'NOMKSTREAM') continue;
    if (option !== 'MAXLEN' && option !== 'MINID' && option !== 'LIMIT') return at;
    if (word(args[at + 1]) === '=' || word(args[at + 1]) === '~') at++;
    at++;
  }
  return at;
}

const approximate = (args: readonly Buffer[], upTo: number): boolean =>
  args.slice(2, upTo).some((arg) => word(arg) === '~');

/** Carries the assigned ID; what an approximate trim left over is told by the stream's length (the probe). */
const xadd: EffectOf = (args, reply, _protocol, probe) => {
  if (isNull(reply)) return null;
  const at = xaddId(args);
  const entry = [reply.data!, ...args.slice(at + 1)];
  if (!approximate(args, at)) return one([...args.slice(0, at), ...entry], 'same');
  if (!probe) return 'copy';
  return [command(['XADD', args[1], ...entry], 'same'), command(['XTRIM', args[1], 'MAXLEN', text(probe)], null)];
};

const xtrim: EffectOf = (args, reply, _protocol, probe) => {
  if (!approximate(args, args.length)) return 'verbatim';
  if (text(reply) === '0') return null;
  return probe ? one(['XTRIM', args[1], 'MAXLEN', text(probe)], 'same') : 'copy';
};

const entryId = (entry: Reply): Buffer | null => (entry.items ? entry.items[0].data : entry.data);
const CLAIM_OPTIONS = new Set(['IDLE', 'TIME', 'RETRYCOUNT', 'FORCE', 'JUSTID', 'LASTID']);

/**
 * Whether an entry was idle for long enough is the authority's to say: the mirror claims what was claimed.
 * An ID that was asked for and did not come back may have left the pending list (a deleted entry).
 */
const xclaim: EffectOf = (args, reply) => {
  let options = 5;
  while (options < args.length && !CLAIM_OPTIONS.has(word(args[options]))) options++;
  const claimed = (reply.items ?? []).map(entryId);
  if (claimed.length !== options - 5 || claimed.includes(null)) return 'copy';
  return one([...args.slice(0, 4), '0', ...args.slice(5)], 'same');
};

const xautoclaim: EffectOf = (args, reply) => {
  const [, entries, deleted] = reply.items!;
  const claimed = entries.items!.map(entryId);
  // Before Redis 7 a deleted entry comes back as nil, or, with JUSTID, as any other.
  if (claimed.includes(null) || deleted === undefined) return claimed.length === 0 ? null : 'copy';
  const effects: EffectCommand[] = [];
  const justId = args.slice(6).some((arg) => word(arg) === 'JUSTID');
  if (claimed.length > 0)
    effects.push(
      command(['XCLAIM', ...args.slice(1, 4), '0', ...(claimed as Buffer[]), ...(justId ? ['JUSTID'] : [])], null),
    );
  if (deleted.items!.length > 0) effects.push(command(['XACK', args[1], args[2], ...strings(deleted.items!)], null));
  return effects.length === 0 ? null : effects;
};

/**
 * Entries that XAUTOCLAIM came by and that were deleted: Redis 7 lists them apart, KeyDB gives null and keeps them
 * pending.
 */
function deletedEntries({ items }: Reply): string | null {
  const [, entries, deleted] = items!;
  return (deleted?.items?.length ?? 0) > 0 || entries.items!.some(isNull) ? DELETED : null;
}

/** Drops an option with its value, which only newer servers know. */
const without =
  (...names: string[]): EffectOf =>
  (args) => {
    const kept: Buffer[] = [];
    for (let i = 0; i < args.length; i++) {
      if (i > 2 && names.includes(word(args[i]))) i++;
      else kept.push(args[i]);
    }
    return kept.length === args.length ? 'verbatim' : one(kept, 'same');
  };

/** SORT … BY … STORE: the order of ties is the server's own. */
const sort: EffectOf = (args) =>
  ['BY', 'STORE'].every((option) => args.slice(2).some((arg) => word(arg) === option)) ? 'copy' : 'verbatim';

/** What is near the edge of an area, and which of several COUNT takes, is the server's own. */
const georadius: EffectOf = (args) =>
  args.slice(5).some((arg) => word(arg) === 'STORE' || word(arg) === 'STOREDIST') ? 'copy' : 'verbatim';

const uncompared: EffectOf = (args) => one(args, null);

/** CONFIG SET: each server is configured by itself; but of what events clients want to be told is theirs to say. */
const configSet: EffectOf = (args) => {
  for (let i = args.length - 2; i >= 2; i -= 2)
    if (word(args[i]) === KEYSPACE_EVENTS) return one(['CONFIG', 'SET', args[i], args[i + 1]], null);
  return null;
};

const KEYSPACE_EVENTS = 'NOTIFY-KEYSPACE-EVENTS';

interface Entry {
  readonly effect: EffectOf;
  /** With fewer arguments, the name among them, the command is its own effect. */
  readonly least: number;
  /** What the authority's reply shows that one of the servers does not support (forms.ts). */
  readonly form?: (reply: Reply) => string | null;
}

const EFFECTS: Readonly<Record<string, Entry>> = {
  expire: { effect: conditionalExpire, least: 4 },
  pexpire: { effect: conditionalExpire, least: 4 },
  expireat: { effect: conditionalExpire, least: 4 },
  pexpireat: { effect: conditionalExpire, least: 4 },
  set: { effect: set, least: 4 },
  spop: { effect: spop, least: 0 },
  lmpop: { effect: lmpop, least: 0 },
  zmpop: { effect: zmpop, least: 0 },
  blpop: { effect: blpop, least: 0 },
  brpop: { effect: blpop, least: 0 },
  bzpopmin: { effect: bzpop, least: 0 },
  bzpopmax: { effect: bzpop, least: 0 },
  blmove: { effect: blmove, least: 0 },
  brpoplpush: { effect: blmove, least: 0 },
  blmpop: { effect: blocking(lmpop), least: 0 },
  bzmpop: { effect: blocking(zmpop), least: 0 },
  xreadgroup: { effect: xreadgroup, least: 7 },
  incrbyfloat: { effect: incrbyfloat, least: 0 },
  hincrbyfloat: { effect: hincrbyfloat, least: 0 },
  xadd: { effect: xadd, least: 0 },
  xtrim: { effect: xtrim, least: 0 },
  xclaim: { effect: xclaim, least: 0 },
  xautoclaim: { effect: xautoclaim, least: 0, form: deletedEntries },
  xsetid: { effect: without('ENTRIESADDED', 'MAXDELETEDID'), least: 4 },
  'xgroup|create': { effect: without('ENTRIESREAD'), least: 6 },
  'xgroup|setid': { effect: without('ENTRIESREAD'), least: 6 },
  'config|set': { effect: configSet, least: 0 },
  sort: { effect: sort, least: 6 },
  georadius: { effect: georadius, least: 8 },
  georadiusbymember: { effect: georadius, least: 7 },
  geosearchstore: { effect: () => 'copy', least: 0 },
  // The payload is in the source's RDB version, which the other server may not read.
  restore: { effect: () => 'copy', least: 0 },
  // What they did to the fields' times to live; a copy says where the mirror cannot hold it.
  ...Object.fromEntries(
    ['hexpire', 'hpexpire', 'hexpireat', 'hpexpireat', 'hpersist', 'hsetex', 'hgetex', 'hgetdel'].map(
      (name): [string, Entry] => [name, { effect: () => 'copy', least: 0 }],
    ),
  ),
  // Each server has receivers of its own.
  publish: { effect: uncompared, least: 0 },
  spublish: { effect: uncompared, least: 0 },
};

/** How to find a command's effect; undefined where it is its own. */
export const effectOf = (name: string): Entry | undefined => EFFECTS[name];
export type { Entry as EffectEntry };

/** The second read that a command's effect needs; it must run in the same transaction, right after it. */
export function probeOf(name: string, args: readonly Buffer[]): Buffer | null {
  if (name === 'xadd' && approximate(args, xaddId(args))) return encodeCommand(['XLEN', args[1]]);
  if (name === 'xtrim' && approximate(args, args.length)) return encodeCommand(['XLEN', args[1]]);
  return null;
}

/** Whether the command is a SET … KEEPTTL that does not look at the key for another option's sake. */
export function keepsTtlBlindly(args: readonly Buffer[]): boolean {
  const options = args.slice(3).map(word);
  return (
    word(args[0]) === 'SET' &&
    options.includes('KEEPTTL') &&
    !['NX', 'XX', 'GET'].some((option) => options.includes(option))
  );
}

/** Commands whose arguments may hold a time to live that counts from the moment they run. */
export const RELATIVE_TTL: ReadonlySet<string> = new Set([
  'expire',
  'pexpire',
  'setex',
  'psetex',
  'set',
  'getex',
  'restore',
]);
/** Commands whose arguments may hold a moment of expiry. */
export const ABSOLUTE_TTL: ReadonlySet<string> = new Set(['expireat', 'pexpireat', 'set', 'getex']);

interface TtlArgument {
  /** Which argument it is. */
  readonly at: number;
  readonly ms: number;
}

const ttl = (args: readonly Buffer[], at: number, unit: number): TtlArgument => ({
  at,
  ms: Number(args[at]?.toString()) * unit,
});

/** The option of SET or GETEX that is one of two, with its number. */
function ttlOption(args: readonly Buffer[], seconds: string, milliseconds: string): TtlArgument | null {
  const first = word(args[0]) === 'SET' ? 3 : 2;
  const at = args.findIndex((arg, i) => i >= first && (word(arg) === seconds || word(arg) === milliseconds));
  return at === -1 ? null : ttl(args, at + 1, word(args[at]) === seconds ? 1000 : 1);
}

/** A command's time to live that counts from the moment it runs; null where it has none. */
export function relativeTtl(args: readonly Buffer[]): TtlArgument | null {
  switch (word(args[0])) {
    case 'EXPIRE':
    case 'SETEX':
      return ttl(args, 2, 1000);
    case 'PEXPIRE':
    case 'PSETEX':
      return ttl(args, 2, 1);
    case 'RESTORE':
      return args[2].toString() === '0' ? null : ttl(args, 2, 1);
    case 'SET':
    case 'GETEX':
      return ttlOption(args, 'EX', 'PX');
    default:
      return null;
  }
}

/** A command's moment of expiry, in ms of Unix time; null where it has none. */
export function absoluteTtl(args: readonly Buffer[]): TtlArgument | null {
  switch (word(args[0])) {
    case 'EXPIREAT':
      return ttl(args, 2, 1000);
    case 'PEXPIREAT':
      return ttl(args, 2, 1);
    case 'SET':
    case 'GETEX':
      return ttlOption(args, 'EXAT', 'PXAT');
    default:
      return null;
  }
}

const IN_MILLISECONDS: Readonly<Record<string, string>> = { EXPIRE: 'PEXPIRE', SETEX: 'PSETEX', EXPIREAT: 'PEXPIREAT' };

/**
 * The same command with its time to live as what is left of it after `elapsedMs`; null where it has none.
 * What ran out meanwhile expires on arrival.
 */
export function shortenTtl(args: readonly Buffer[], elapsedMs: number): Buffer | null {
  const found = relativeTtl(args);
  return found && withTime(args, found.at, Math.round(found.ms - elapsedMs), 'PX');
}

/** The same command with its moment of expiry by a clock that is ahead by `aheadMs`; null where it has none. */
export function shiftTtl(args: readonly Buffer[], aheadMs: number): Buffer | null {
  const found = absoluteTtl(args);
  return found && withTime(args, found.at, found.ms + aheadMs, 'PXAT');
}

/** The same command with another time, in ms, at that place. */
function withTime(args: readonly Buffer[], at: number, ms: number, option: string): Buffer {
  const name = word(args[0]);
  // Only EXPIRE and its like take what is past; for the others it is an error.
  const time = String(/EXPIRE(AT)?$/.test(name) ? ms : Math.max(1, ms));
  const command: Argument[] = [IN_MILLISECONDS[name] ?? name, ...args.slice(1, at), time, ...args.slice(at + 1)];
  if (name === 'SET' || name === 'GETEX') command[at - 1] = option;
  return encodeCommand(command);
}
