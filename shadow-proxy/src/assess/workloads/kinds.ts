/**
 * Determines the purpose of a family of keys from its name, its types, its TTLs and its commands: the first matching
 * rule decides.
 */
import { countingKind } from '../../command/counting.js';
import { COMMANDS } from '../../command/table.generated.js';
import type { WorkloadClass } from '../../plan/plan.js';
import type { Calls } from '../instance-facts.js';
import { SET_IF_ABSENT, type Family } from './family.js';

export interface Kind {
  readonly name: string;
  readonly class: WorkloadClass;
  /** The reason, as a sentence. */
  readonly says: string;
  /** Whether a few such keys matter as much as many. */
  readonly matters?: boolean;
}

interface Rule extends Kind {
  readonly holds: (evidence: Evidence) => boolean;
}

/** The share that counts as nearly all keys of a family, because a few may differ. */
const MOST = 0.8;
/** A kind of command is frequent from this share of a family's commands on. */
const OFTEN = 0.1;
/** Fewer commands do not show how a family is used. */
const ENOUGH_COMMANDS = 20;
const SESSION = /^sess/;

/**
 * Names of keys that must not be lost, whatever their types and TTLs: a lock has a TTL, as a cache has. The patterns
 * match words of a name, such as `lock` in `app:order_lock:*`.
 */
const NAMED: readonly { readonly name: string; readonly words: RegExp; readonly says: string }[] = [
  {
    name: 'lock',
    words: /^(?![bcf]locks?$)[a-z]*locks?$|^(mutex|mutexes|leases?|semaphores?|leaders?|elections?)$/,
    says: 'a lost or stale lock lets two clients work at once.',
  },
  {
    name: 'idempotency key',
    words: /^(idem|idempoten.*|dedup.*|nonces?|processed|replay)$/,
    says: 'a lost key lets an action happen twice.',
  },
  {
    name: 'one-time code',
    words: /^(otp|totp|csrf|xsrf|pin|verification|verify|magiclink)$/,
    says: 'a lost code locks a user out, and a stale one works twice.',
  },
  {
    name: 'access',
    words:
      /^(o?auth[nz]?|authentication|authorization|logins?|tokens?|jwt|acl|permissions?|revoked|(deny|block)lists?|bans?)$/,
    says: 'it decides who is let in.',
  },
  {
    name: 'flag',
    words: /^(flags?|features?|toggles?|switch|switches|killswitch|settings?|config|configs|configuration)$/,
    says: 'few keys steer a whole application.',
  },
  {
    name: 'queue',
    words: /^(queues?|jobs?|tasks?|bull|bullmq|celery|sidekiq|resque|outbox|inbox)$/,
    says: 'a lost write is a lost job.',
  },
];
/** Names of purchases, unless clients count in such keys. */
const PURCHASE =
  /^(carts?|baskets?|checkouts?|orders?|payments?|invoices?|wallets?|balances?|accounts?|stock|inventory|reservations?|bookings?)$/;

/** Reading a session renews its TTL, and does not write its value. */
const RENEWS = new Set(['expire', 'pexpire', 'expireat', 'pexpireat', 'persist', 'touch']);
const namesWith = (flag: string): string[] =>
  COMMANDS.filter(([name, , , flags]) => flags.split(' ').includes(flag) && !RENEWS.has(name)).map(([name]) => name);
const READS = new Set([...namesWith('readonly'), 'getex']);
const WRITES = new Set([...namesWith('write').filter((name) => !READS.has(name)), SET_IF_ABSENT]);
const INCREMENTS = ['incr', 'incrby', 'incrbyfloat', 'decr', 'decrby', 'hincrby', 'hincrbyfloat'];
const WINDOW = ['zremrangebyscore', 'zremrangebyrank'];

/** In order: the first rule that holds decides. */
const RULES: readonly Rule[] = [
  ...NAMED.map(({ name, words, says }): Rule => ({
    name,
    class: 'critical',
    says: `By its name: ${says}`,
    matters: true,
    holds: ({ named }) => named(words),
  })),
  {
    name: 'lock',
    class: 'critical',
    says: 'Clients set them only where there is none (SET NX, SETNX): locks, or marks that something was done.',
    matters: true,
    // A window of a rate limit may begin so, too.
    holds: ({ shown }) =>
      shown((name) => name === SET_IF_ABSENT) >= OFTEN && shown((name) => INCREMENTS.includes(name)) === 0,
  },
  {
    name: 'counter',
    class: 'counter',
    says: 'Counters: clients increment them.',
    holds: ({ shareOf }) => shareOf((name) => INCREMENTS.includes(name)) >= OFTEN,
  },
  {
    name: 'counter',
    class: 'counter',
    says: 'Counters, it seems: whole numbers, and clients of this server call INCR or its like.',
    holds: ({ isSeen, numbers, called }) => !isSeen && numbers >= MOST && called(INCREMENTS),
  },
  {
    name: 'rate limit',
    class: 'counter',
    says: 'Windows of rate limits: sorted sets that are cut at one end.',
    holds: ({ isSeen, type, expiring, shareOf, called }) =>
      type('zset') >= MOST &&
      (isSeen ? shareOf((name) => countingKind(name) === 'window') >= OFTEN : expiring >= MOST && called(WINDOW)),
  },
  {
    name: 'leaderboard',
    class: 'leaderboard',
    says: 'Leaderboards: sorted sets.',
    holds: ({ type }) => type('zset') >= MOST,
  },
  {
    name: 'queue',
    class: 'critical',
    says: 'Queues: lists. A lost write is a lost job.',
    holds: ({ type, shareOf }) => type('list') >= MOST || shareOf((name) => countingKind(name) === 'list') >= 0.5,
  },
  {
    name: 'stream',
    class: 'critical',
    says: 'Streams. A lost write is a lost event.',
    holds: ({ type }) => type('stream') >= MOST,
  },
  {
    name: 'purchase',
    class: 'critical',
    says: 'By its name: it cannot be computed again.',
    holds: ({ named }) => named(PURCHASE),
  },
  {
    name: 'written often',
    class: 'general',
    says: 'Written more often than read.',
    holds: ({ isSeen, reads }) => isSeen && reads < 0.5,
  },
  {
    name: 'session',
    class: 'read-mostly',
    says: 'Sessions: strings or hashes with a TTL, by their name.',
    holds: ({ named, expiring, plain }) => plain >= MOST && expiring >= MOST && named(SESSION),
  },
  {
    name: 'cache',
    class: 'read-mostly',
    says: 'A cache: strings or hashes with a TTL.',
    holds: ({ expiring, plain }) => plain >= MOST && expiring >= MOST,
  },
  {
    name: 'read often',
    class: 'read-mostly',
    says: 'Mostly read. Without a TTL: make it critical if this is the only copy.',
    holds: ({ isSeen, reads }) => isSeen && reads >= MOST,
  },
  {
    name: 'expiring',
    class: 'general',
    says: 'With a TTL, and neither a cache nor a counter by its types.',
    holds: ({ expiring }) => expiring >= MOST,
  },
  {
    name: 'kept',
    class: 'critical',
    says: 'Without a TTL, so that this may be the only copy: make it general if it can be computed again.',
    holds: () => true,
  },
];

/** Shares are 0 to 1. */
interface Evidence {
  /** Whether a word of the family's name matches. */
  readonly named: (words: RegExp) => boolean;
  /** The share of the sampled keys with this type. */
  readonly type: (name: string) => number;
  readonly plain: number;
  readonly expiring: number;
  readonly numbers: number;
  /** Whether MONITOR showed enough commands. */
  readonly isSeen: boolean;
  /** The share of reads in MONITOR; 0 if there were too few commands. */
  readonly reads: number;
  readonly shareOf: (these: (command: string) => boolean) => number;
  /** The same as `shareOf`, even if there were only few commands. */
  readonly shown: (these: (command: string) => boolean) => number;
  /** Whether any client has called one of these commands, on any key. */
  readonly called: (commands: readonly string[]) => boolean;
}

/** @param calls calls by all clients of the source since it started */
export const kindOf = (family: Family, calls: Calls): Kind =>
  RULES.find(({ holds }) => holds(evidenceOf(family, calls)))!;

function evidenceOf({ pattern, keys, types, ttls, numbers, commands }: Family, calls: Calls): Evidence {
  const share = (n: number): number => (keys === 0 ? 0 : n / keys);
  const type = (name: string): number => share(types.get(name) ?? 0);
  const sum = (these: (command: string) => boolean): number =>
    [...commands].reduce((total, [name, n]) => total + (these(name) ? n : 0), 0);
  const all = sum((name) => READS.has(name) || WRITES.has(name));
  const isSeen = all >= ENOUGH_COMMANDS;
  const shown = (these: (command: string) => boolean): number => (all === 0 ? 0 : sum(these) / all);
  const shareOf = (these: (command: string) => boolean): number => (isSeen ? shown(these) : 0);
  const words = wordsOf(pattern);
  return {
    named: (these) => words.some((word) => these.test(word)),
    type,
    plain: type('string') + type('hash'),
    expiring: share(ttls.length),
    numbers: share(numbers),
    isSeen,
    reads: shareOf((name) => READS.has(name)),
    shareOf,
    shown,
    called: (these) => these.some((name) => (calls.get(name) ?? 0) > 0),
  };
}

/** The words of a pattern: `order` and `lock` for `app:orderLock:*`; in lower case, without digits. */
const wordsOf = (pattern: string): string[] =>
  pattern
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/);

/** Numbers of reads and writes of a family in MONITOR. */
export function readsAndWrites({ commands }: Pick<Family, 'commands'>): { reads: number; writes: number } {
  let [reads, writes] = [0, 0];
  for (const [name, n] of commands) {
    if (WRITES.has(name)) writes += n;
    else if (READS.has(name)) reads += n;
  }
  return { reads, writes };
}
