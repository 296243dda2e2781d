/**
 * Replies that describe a stream field by field (XINFO): which fields may differ, and why. The names are those of
 * Redis 7.0.15 and KeyDB 6.3.4, and of Redis 7.2, 8.6 and 8.8 where they added some.
 */
import type { Reply } from '../resp/decode.js';
import { isNull, text } from '../resp/decode.js';
import { areCounts, integerOf, same } from './shape.js';
import type { RuleName } from './verdict.js';

type Why = Extract<RuleName, 'newer-fields' | 'estimates' | 'encoding' | 'time-dependent'>;

interface Fields {
  /** Fields that only newer servers have. */
  readonly newer?: readonly string[];
  /** Points in time or spans, in ms. */
  readonly time?: readonly string[];
  /** How the server stores the stream. */
  readonly layout?: readonly string[];
  /** Numbers, or nil, that each release estimates in its own way from the same entries. */
  readonly estimates?: readonly string[];
  /** Fields that are lists, of more fields or of tuples. */
  readonly lists?: Readonly<Record<string, Fields | Tuple>>;
}

/** A list of fixed positions, one of them a time. */
interface Tuple {
  readonly timeAt: number;
}

const CONSUMER: Fields = { newer: ['inactive'], time: ['idle', 'inactive'] };
/** The fields about idempotent producers of a stream. */
const OF_PRODUCERS = ['idmp-duration', 'idmp-maxsize', 'pids-tracked', 'iids-tracked', 'iids-added', 'iids-duplicates'];
const GROUP: Fields = { newer: ['entries-read', 'lag', 'nacked-count'], estimates: ['entries-read', 'lag'] };
const STREAM: Fields = {
  newer: ['max-deleted-entry-id', 'entries-added', 'recorded-first-entry-id', ...OF_PRODUCERS],
  layout: ['radix-tree-keys', 'radix-tree-nodes'],
  lists: {
    // Fields with FULL; without FULL the reply has their number.
    groups: {
      ...GROUP,
      lists: {
        pending: { timeAt: 2 },
        consumers: { newer: ['active-time'], time: ['seen-time', 'active-time'], lists: { pending: { timeAt: 1 } } },
      },
    },
  },
};

/** XPENDING key group [IDLE ms] start end count: a list of ID, consumer, idle time, deliveries. */
const PENDING: Tuple = { timeAt: 2 };

/** Whether two lists of pending entries are equal except for their idle times. */
export const pendingEntriesAgree = (authority: Reply, mirror: Reply): boolean =>
  new Differences().inList(PENDING, authority, mirror);

/** Whether the entries that are in both lists are equal except for their idle times. */
export function sharedPendingAgree(authority: readonly Reply[], mirror: readonly Reply[]): boolean {
  const others = new Map(mirror.map((entry) => [text(entry.items?.[0] ?? entry), entry]));
  return authority.every((entry) => {
    const other = others.get(text(entry.items?.[0] ?? entry));
    return other === undefined || new Differences().inTuple(PENDING, entry, other);
  });
}

/**
 * Why two replies to XINFO differ; null if a difference is not allowed.
 * @param sameRelease whether one release gave both
 */
export function fieldDifferences(
  name: string,
  authority: Reply,
  mirror: Reply,
  sameRelease: boolean,
): ReadonlySet<Why> | null {
  const found = new Differences(sameRelease);
  const holds =
    name === 'xinfo|stream'
      ? found.inFields(STREAM, authority, mirror)
      : found.inList(name === 'xinfo|groups' ? GROUP : CONSUMER, authority, mirror);
  return holds ? found.why : null;
}

class Differences {
  readonly why = new Set<Why>();
  /** The side with the newer fields; it must be the same throughout the reply. */
  #newer: 'authority' | 'mirror' | null = null;

  constructor(private readonly sameRelease = true) {}

  inFields(fields: Fields, authority: Reply, mirror: Reply): boolean {
    if (authority.type !== mirror.type) return false;
    const [a, m] = [fieldsOf(authority), fieldsOf(mirror)];
    if (a === null || m === null) return false;
    for (const [name, value] of a) {
      const other = m.get(name);
      if (other === undefined ? !this.#added(fields, name, 'authority') : !this.#inField(fields, name, value, other))
        return false;
    }
    return [...m.keys()].every((name) => a.has(name) || this.#added(fields, name, 'mirror'));
  }

  inList(of: Fields | Tuple, authority: Reply, mirror: Reply): boolean {
    const [a, m] = [authority.items, mirror.items];
    if (a === null || m === null || authority.type !== mirror.type || a.length !== m.length) return false;
    return a.every((item, i) => ('timeAt' in of ? this.inTuple(of, item, m[i]) : this.inFields(of, item, m[i])));
  }

  #inField(fields: Fields, name: string, a: Reply, m: Reply): boolean {
    if (same(a, m)) return true;
    if (fields.time?.includes(name)) return areCounts(a, m) && this.#because('time-dependent');
    if (fields.layout?.includes(name)) return areCounts(a, m) && this.#because('encoding');
    if (fields.estimates?.includes(name))
      return !this.sameRelease && [a, m].every(isEstimate) && this.#because('estimates');
    const list = fields.lists?.[name];
    return list !== undefined && this.inList(list, a, m);
  }

  inTuple({ timeAt }: Tuple, a: Reply, m: Reply): boolean {
    if (a.items === null || m.items === null || a.type !== m.type || a.items.length !== m.items.length) return false;
    return a.items.every((item, i) => {
      const other = m.items![i];
      return same(item, other) || (i === timeAt && areCounts(item, other) && this.#because('time-dependent'));
    });
  }

  #added(fields: Fields, name: string, side: 'authority' | 'mirror'): boolean {
    if (!fields.newer?.includes(name) || (this.#newer !== null && this.#newer !== side)) return false;
    this.#newer = side;
    return this.#because('newer-fields');
  }

  #because(why: Why): true {
    this.why.add(why);
    return true;
  }
}

const isEstimate = (reply: Reply): boolean => integerOf(reply) !== null || isNull(reply);

/** A map, or RESP2's flat list of names and values; null for any other reply. */
function fieldsOf(reply: Reply): Map<string, Reply> | null {
  const { items, type } = reply;
  if (items === null || (type !== '%' && type !== '*') || items.length % 2 !== 0) return null;
  const fields = new Map<string, Reply>();
  for (let i = 0; i < items.length; i += 2) {
    if (items[i].data === null) return null;
    fields.set(text(items[i]), items[i + 1]);
  }
  return fields.size === items.length / 2 ? fields : null;
}
