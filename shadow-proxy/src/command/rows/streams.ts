/** Commands about streams. */
import { isNull, text, type Reply } from '../../resp/decode.js';
import { encodeCommand } from '../../resp/encode.js';
import { command, effect, one, strings, word, type EffectCommand, type EffectOf } from '../effect.js';
import { DELETED } from '../forms.js';
import { streamKeys } from '../hidden-keys.js';
import { blockOption } from '../policy.js';
import type { Rows } from '../row.js';

/** The mirror's lane must not block. */
const xreadgroup: EffectOf = (args, reply) =>
  blockOption(args) === -1 ? 'verbatim' : one(withoutBlock(ofWhatWoke(args, reply)), 'same');

function withoutBlock(args: readonly Buffer[]): readonly Buffer[] {
  const at = blockOption(args);
  return at === -1 ? args : [...args.slice(0, at), ...args.slice(at + 2)];
}

/**
 * XREADGROUP … STREAMS key … id …: the woken client gets the stream that woke it, and not of what came to the others
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

/** The probe: how long an approximate trim left the stream. */
const lengthAfterTrim = (args: readonly Buffer[], upTo: number): Buffer | null =>
  approximate(args, upTo) ? encodeCommand(['XLEN', args[1]]) : null;

/** Carries the assigned ID; what an approximate trim left over is shown by the stream's length (the probe). */
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
 * An ID that was asked for and was not returned may have left the pending list (a deleted entry).
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
  // Before Redis 7 a deleted entry is returned as nil, or, with JUSTID, as any other.
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

const withoutEntriesRead = effect(without('ENTRIESREAD'), 'without `ENTRIESREAD`', { least: 6 });

export const STREAMS: Rows = {
  xack: { takesOnly: true, counts: 'stream' },
  xadd: {
    effect: effect(
      xadd,
      'the ID that was assigned; an approximate trim as the exact length that it left, read right after it',
      { probe: (args) => lengthAfterTrim(args, xaddId(args)) },
    ),
    counts: 'stream',
  },
  xautoclaim: {
    effect: effect(
      xautoclaim,
      '`XCLAIM` of what was claimed and `XACK` of what was deleted; from an older server with deleted entries, the key is copied',
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
    effect: effect(xreadgroup, 'without `BLOCK`', { least: 7 }),
    namedByReply: true,
    takesOnly: true,
    counts: 'stream',
  },
  xsetid: {
    effect: effect(without('ENTRIESADDED', 'MAXDELETEDID'), 'without `ENTRIESADDED` and `MAXDELETEDID`', { least: 4 }),
  },
  xtrim: {
    effect: effect(
      xtrim,
      'an approximate trim as the exact length that it left, read right after it; otherwise as sent',
      { probe: (args) => lengthAfterTrim(args, args.length) },
    ),
  },
};
