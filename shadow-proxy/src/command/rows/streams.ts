/** Rows of stream commands. */
import { isNull, text, type Reply } from '../../resp/decode.js';
import { encodeCommand } from '../../resp/encode.js';
import {
  command,
  effect,
  one,
  strings,
  word,
  type EffectTraitPair,
  type EffectCommand,
  type EffectOf,
} from '../effect.js';
import { DELETED } from '../forms.js';
import { streamKeys } from '../hidden-keys.js';
import { blockOption } from '../policy.js';
import type { Rows } from '../row.js';

/** Whether only the authority creates a consumer that finds nothing. */
const createsAlone = (between: EffectTraitPair | undefined): boolean =>
  between !== undefined && between.authority.createsConsumers && !between.mirror.createsConsumers;

/** The mirror gets only the claimed entries: if there are none, nothing creates the consumer there. */
const createsOnClaim = (between: EffectTraitPair | undefined): boolean => between?.authority.createsConsumers === true;

const createConsumer = (key: Buffer, group: Buffer, consumer: Buffer): EffectCommand =>
  command(['XGROUP', 'CREATECONSUMER', key, group, consumer], null);

/**
 * The mirror's lane must not block. Since Redis 7.2 the consumer is created in every named stream; before, and in
 * KeyDB, only if it gets entries.
 */
const xreadgroup: EffectOf = (args, reply, _protocol, _probe, between) => {
  if (args.slice(groupAt(args) + 3, streamsIn(args).first).some((arg) => NEWER_READ.test(word(arg)))) return 'copy';
  const sent = blockOption(args) === -1 ? args : withoutBlock(ofWhatWoke(args, reply));
  const alike = between === undefined || between.authority.createsConsumers === between.mirror.createsConsumers;
  if (alike) return sent === args ? 'verbatim' : one(sent, 'same');
  const { first, keys } = streamsIn(sent);
  const served = keysIn(reply);
  const isServed = (key: Buffer): boolean => served.some((each) => each.equals(key));
  if (createsAlone(between)) {
    const [group, consumer] = sent.slice(groupAt(sent) + 1);
    const others = streamsIn(args).keys.filter((key) => !isServed(key));
    return [command(sent, 'same'), ...others.map((key) => createConsumer(key, group, consumer))];
  }
  const given = keys.flatMap((key, i) => (isServed(key) ? [i] : []));
  if (given.length === 0) return null;
  if (given.length === keys.length) return sent === args ? 'verbatim' : one(sent, 'same');
  const at = (from: number): Buffer[] => given.map((i) => sent[from + i]);
  return one([...sent.slice(0, first), ...at(first), ...at(first + keys.length)], 'same');
};

/**
 * With CLAIM (Redis 8.4), XREADGROUP takes over entries of other consumers; with limits of the reply (8.10) it reads
 * fewer. Only the stream shows what it did.
 */
const NEWER_READ = /^(CLAIM|MAXCOUNT|MAXSIZE)$/;

/** The index of GROUP: the first match, because a group or a consumer may have the same name. */
const groupAt = (args: readonly Buffer[]): number => args.findIndex((arg) => word(arg) === 'GROUP');

/** The streams that the command names, and where they begin. */
function streamsIn(args: readonly Buffer[]): { readonly first: number; readonly keys: readonly Buffer[] } {
  const after = groupAt(args) + 2;
  const first = args.findIndex((arg, i) => i > after && word(arg) === 'STREAMS') + 1;
  return { first, keys: args.slice(first, first + (args.length - first) / 2) };
}

/** The streams from which the reply has entries. */
function keysIn({ items, type }: Reply): readonly Buffer[] {
  if (items === null) return [];
  if (type === '%') return items.filter((_, i) => i % 2 === 0).map(({ data }) => data!);
  return items.map((each) => each.items![0].data!);
}

function withoutBlock(args: readonly Buffer[]): readonly Buffer[] {
  const at = blockOption(args);
  return at === -1 ? args : [...args.slice(0, at), ...args.slice(at + 2)];
}

/**
 * XREADGROUP … STREAMS key … id …: the woken client gets entries of the stream that woke it, and none of those that
 * arrived in the others at the same time.
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
  const { first, keys } = streamsIn(args);
  const at = keys.findIndex((key) => woke?.data?.equals(key) === true);
  return at === -1 ? args : [...args.slice(0, first), keys[at], args[first + at + keys.length]];
}

/** The options for the groups' references to removed entries, since Redis 8.2; KEEPREF is the default behaviour. */
const [KEEPS_REFERENCES, OTHER_REFERENCES] = ['KEEPREF', /^(DELREF|ACKED)$/];
/** Options with which a producer may send an entry again, since Redis 8.6, with the number of values of each. */
const PRODUCER = new Map([
  ['IDMP', 2],
  ['IDMPAUTO', 1],
]);

/** Where XADD's ID stands, after its options. */
function xaddId(args: readonly Buffer[]): number {
  let at = 2;
  for (; at < args.length; at++) {
    const option = word(args[at]);
    if (option === 'NOMKSTREAM' || option === KEEPS_REFERENCES || OTHER_REFERENCES.test(option)) continue;
    const values = PRODUCER.get(option);
    if (values !== undefined) {
      at += values;
      continue;
    }
    if (option !== 'MAXLEN' && option !== 'MINID' && option !== 'LIMIT') return at;
    if (word(args[at + 1]) === '=' || word(args[at + 1]) === '~') at++;
    at++;
  }
  return at;
}

const approximate = (args: readonly Buffer[], upTo: number): boolean =>
  args.slice(2, upTo).some((arg) => word(arg) === '~');

/** The probe: the length of the stream after an approximate trim. */
const lengthAfterTrim = (args: readonly Buffer[], upTo: number): Buffer | null =>
  approximate(args, upTo) ? encodeCommand(['XLEN', args[1]]) : null;

const keepOut = (args: readonly Buffer[], option: string, upTo: number): readonly Buffer[] =>
  args.filter((arg, i) => i < 2 || i >= upTo || word(arg) !== option);

/**
 * The effect has the assigned ID, and the length that an approximate trim left (the probe). The reply does not show
 * whether a producer has sent the entry before, nor which references a trim removed.
 */
const xadd: EffectOf = (asked, reply, _protocol, probe) => {
  if (isNull(reply)) return null;
  const options = asked.slice(2, xaddId(asked)).map(word);
  if (options.some((option) => PRODUCER.has(option) || OTHER_REFERENCES.test(option))) return 'copy';
  const args = keepOut(asked, KEEPS_REFERENCES, xaddId(asked));
  const at = xaddId(args);
  const entry = [reply.data!, ...args.slice(at + 1)];
  if (!approximate(args, at)) return one([...args.slice(0, at), ...entry], 'same');
  if (!probe) return 'copy';
  return [command(['XADD', args[1], ...entry], 'same'), command(['XTRIM', args[1], 'MAXLEN', text(probe)], null)];
};

const xtrim: EffectOf = (asked, reply, _protocol, probe) => {
  if (asked.slice(4).some((arg) => OTHER_REFERENCES.test(word(arg)))) return text(reply) === '0' ? null : 'copy';
  const args = keepOut(asked, KEEPS_REFERENCES, asked.length);
  if (!approximate(args, args.length)) return args.length === asked.length ? 'verbatim' : one(args, 'same');
  if (text(reply) === '0') return null;
  return probe ? one(['XTRIM', args[1], 'MAXLEN', text(probe)], 'same') : 'copy';
};

const entryId = (entry: Reply): Buffer | null => (entry.items ? entry.items[0].data : entry.data);
const CLAIM_OPTIONS = new Set(['IDLE', 'TIME', 'RETRYCOUNT', 'FORCE', 'JUSTID', 'LASTID']);

/**
 * Only the authority decides whether an entry was idle for long enough: the mirror claims the same entries. A requested
 * ID that was not returned may have left the pending list (a deleted entry).
 */
const xclaim: EffectOf = (args, reply) => {
  let options = 5;
  while (options < args.length && !CLAIM_OPTIONS.has(word(args[options]))) options++;
  const claimed = (reply.items ?? []).map(entryId);
  if (claimed.length !== options - 5 || claimed.includes(null)) return 'copy';
  return one([...args.slice(0, 4), '0', ...args.slice(5)], 'same');
};

const xautoclaim: EffectOf = (args, reply, _protocol, _probe, between) => {
  const [, entries, deleted] = reply.items!;
  const claimed = entries.items!.map(entryId);
  // Before Redis 7 a deleted entry is returned as nil; with JUSTID, like any other.
  if (claimed.includes(null) || deleted === undefined) return claimed.length === 0 ? null : 'copy';
  const effects: EffectCommand[] = [];
  // XCLAIM creates the consumer if it gives entries to it.
  if (claimed.length === 0 && createsOnClaim(between)) effects.push(createConsumer(args[1], args[2], args[3]));
  const justId = args.slice(6).some((arg) => word(arg) === 'JUSTID');
  if (claimed.length > 0)
    effects.push(
      command(['XCLAIM', ...args.slice(1, 4), '0', ...(claimed as Buffer[]), ...(justId ? ['JUSTID'] : [])], null),
    );
  if (deleted.items!.length > 0) effects.push(command(['XACK', args[1], args[2], ...strings(deleted.items!)], null));
  return effects.length === 0 ? null : effects;
};

/** Deleted entries that XAUTOCLAIM found: Redis 7 lists them separately, KeyDB returns null and keeps them pending. */
function deletedEntries({ items }: Reply): string | null {
  const [, entries, deleted] = items!;
  return (deleted?.items?.length ?? 0) > 0 || entries.items!.some(isNull) ? DELETED : null;
}

/** Removes an option with its value if the mirror does not know it. */
const without =
  (...names: string[]): EffectOf =>
  (args, _reply, _protocol, _probe, between) => {
    if (between === undefined || between.mirror.countsEntries) return 'verbatim';
    const kept: Buffer[] = [];
    for (let i = 0; i < args.length; i++) {
      if (i > 2 && names.includes(word(args[i]))) i++;
      else kept.push(args[i]);
    }
    return kept.length === args.length ? 'verbatim' : one(kept, 'same');
  };

/** The condition in words. */
const UNKNOWN = ', where the mirror is KeyDB, or Redis before 7.0';
const withoutEntriesRead = effect(without('ENTRIESREAD'), `without \`ENTRIESREAD\`${UNKNOWN}`, { least: 6 });

/**
 * The IDs after IDS and their number, each with its result in the reply. @param first index of the first possible
 * option
 */
function removed(
  args: readonly Buffer[],
  reply: Reply,
  first: number,
): { readonly id: Buffer; readonly what: string }[] {
  const at = args.findIndex((arg, i) => i >= first && word(arg) === 'IDS') + 2;
  return (reply.items ?? []).map((item, i) => ({ id: args[at + i], what: text(item) }));
}
const DELETED_ENTRY = '1';
const NO_ENTRY = '-1';
const deletesReferences = (args: readonly Buffer[], first: number): boolean =>
  args.slice(first).some((arg) => word(arg) === 'DELREF');

/**
 * XDELEX (Redis 8.2): the effect deletes the same entries. With DELREF, groups have lost their references to them, too.
 */
const xdelex: EffectOf = (args, reply) => {
  const deleted = removed(args, reply, 2).filter(({ what }) => what === DELETED_ENTRY);
  if (deleted.length === 0) return null;
  return deletesReferences(args, 2) ? 'copy' : one(['XDEL', args[1], ...deleted.map(({ id }) => id)], null);
};

/** XACKDEL (Redis 8.2): the effect acknowledges the same entries, and deletes those that were deleted. */
const xackdel: EffectOf = (args, reply) => {
  const found = removed(args, reply, 3).filter(({ what }) => what !== NO_ENTRY);
  if (found.length === 0) return null;
  const deleted = found.filter(({ what }) => what === DELETED_ENTRY);
  if (deleted.length > 0 && deletesReferences(args, 3)) return 'copy';
  const ids = (entries: typeof found): Buffer[] => entries.map(({ id }) => id);
  return [
    command(['XACK', args[1], args[2], ...ids(found)], null),
    ...(deleted.length === 0 ? [] : [command(['XDEL', args[1], ...ids(deleted)], null)]),
  ];
};

/** The mirror has no data about a stream's producers. */
const nothing: EffectOf = () => null;
const OF_PRODUCERS = 'nothing: the mirror does not remember the IDs of producers';

export const STREAMS: Rows = {
  xack: { takesOnly: true, counts: 'stream' },
  xackdel: {
    effect: effect(
      xackdel,
      '`XACK` of what was acknowledged, `XDEL` of what was deleted; with `DELREF` the key is copied',
    ),
    takesOnly: true,
    counts: 'stream',
  },
  xcfgset: { effect: effect(nothing, OF_PRODUCERS) },
  xdelex: { effect: effect(xdelex, '`XDEL` of what was deleted; with `DELREF` the key is copied'), takesOnly: true },
  xidmprecord: { effect: effect(nothing, OF_PRODUCERS) },
  xadd: {
    effect: effect(
      xadd,
      'the ID that was assigned; an approximate trim as the exact length that it left, read right after it. With `IDMP`, `IDMPAUTO`, `DELREF` or `ACKED` the key is copied',
      { probe: (args) => lengthAfterTrim(args, xaddId(args)) },
    ),
    counts: 'stream',
  },
  xautoclaim: {
    effect: effect(
      xautoclaim,
      '`XCLAIM` of what was claimed, `XACK` of what was deleted. From Redis 7.2 on, `XGROUP CREATECONSUMER` where nothing was claimed. From a server before 7.0 with deleted entries, the key is copied',
      { form: deletedEntries },
    ),
    counts: 'stream',
  },
  xclaim: {
    effect: effect(
      xclaim,
      'with an idle time of 0, for the IDs that were claimed; where an ID was not returned, the key is copied',
    ),
    counts: 'stream',
  },
  'xgroup|create': { effect: withoutEntriesRead, counts: 'stream' },
  'xgroup|setid': { effect: withoutEntriesRead },
  xread: { readKeys: streamKeys(false), blocking: { timeout: 'option', unit: 1 } },
  xreadgroup: {
    readKeys: streamKeys(true),
    blocking: { timeout: 'option', unit: 1 },
    effect: effect(
      xreadgroup,
      'with `CLAIM`, `MAXCOUNT` or `MAXSIZE` the key is copied; otherwise without `BLOCK`; from Redis 7.2 on, `XGROUP CREATECONSUMER` where the consumer was created and found nothing',
      { least: 7 },
    ),
    namedByReply: true,
    takesOnly: true,
    counts: 'stream',
  },
  xsetid: {
    effect: effect(without('ENTRIESADDED', 'MAXDELETEDID'), `without \`ENTRIESADDED\` and \`MAXDELETEDID\`${UNKNOWN}`, {
      least: 4,
    }),
  },
  xtrim: {
    effect: effect(
      xtrim,
      'an approximate trim as the exact length that it left, read right after it; otherwise as sent. With `DELREF` or `ACKED` the key is copied, or nothing where nothing was removed',
      { probe: (args) => lengthAfterTrim(args, args.length) },
    ),
  },
};
