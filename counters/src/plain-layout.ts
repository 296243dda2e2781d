/**
 * The meaning of a plain counter's parts, and what a command changes in them. Pure; times in Unix ms.
 *
 *     <prefix>:{<name>}:<writer id> p <up> <down> <since> <stamp> <at|-> <cut> <then> [<writer id>=<since>/<up>/<down>
 * …]
 *
 * A part counts in generations: `since` begins one, and `up` and `down` only grow within it. So of two versions of a
 * part the newer one is known without a clock, and a reset of one generation does not affect the next.
 *
 * A key has one expiry, that of the part with the newest stamp. Generations that began before its `cut` have expired
 * already; when `at` has passed, so have those that began before `then`. A key whose parts have all expired, or are
 * reset, does not exist.
 */
import { CounterError } from './errors.js';
import { count, foreign } from './layout.js';

export interface Generation {
  /** 0: nothing was ever counted. */
  readonly since: number;
  readonly up: number;
  readonly down: number;
}

/** The expiry of a key, as one writer set it. */
export interface Expiry {
  /** 0: no expiry was ever set. */
  readonly stamp: number;
  /** Null: never. */
  readonly at: number | null;
  readonly cut: number;
  readonly then: number;
}

export interface PlainPart extends Generation {
  readonly expiry: Expiry;
  /** What this writer had seen of each other writer at its last reset: these counts no longer apply. */
  readonly reset: ReadonlyMap<string, Generation>;
  /** Until when the store keeps the part at least, although it has expired; not part of the value. */
  readonly keepUntil?: number;
  /** When its writer first wrote the part; not part of the value. */
  readonly first?: number;
}

const NEVER: Expiry = { stamp: 0, at: null, cut: 0, then: 0 };
export const EMPTY_PLAIN: PlainPart = { since: 0, up: 0, down: 0, expiry: NEVER, reset: new Map() };

export function encodePlain({ since, up, down, expiry: { stamp, at, cut, then }, reset }: PlainPart): string {
  const resets = Array.from(reset, ([id, seen]) => ` ${id}=${seen.since}/${seen.up}/${seen.down}`);
  return `p ${up} ${down} ${since} ${stamp} ${at ?? '-'} ${cut} ${then}${resets.join('')}`;
}

/** @param key for the error's message. @throws {CounterError} FOREIGN_VALUE */
export function decodePlain(value: string, key: () => string): PlainPart {
  const [kind, up, down, since, stamp, at, cut, then, ...resets] = value.split(' ');
  const expiry = { stamp: count(stamp), at: at === '-' ? null : count(at), cut: count(cut), then: count(then) };
  const reset = new Map(
    resets.map((entry): [string, Generation] => {
      const [id, ...seen] = entry.split(/[=/]/);
      return [id, { since: count(seen[0]), up: count(seen[1]), down: count(seen[2]) }];
    }),
  );
  const part = { since: count(since), up: count(up), down: count(down), expiry, reset };
  const numbers = [part, ...reset.values()].flatMap((each) => [each.since, each.up, each.down]);
  if (kind !== 'p' || [...numbers, expiry.stamp, expiry.at ?? 0, expiry.cut, expiry.then].some(Number.isNaN))
    throw foreign(key(), value);
  return part;
}

export type PlainParts = ReadonlyMap<string, PlainPart>;

/** The state of a key at a time. */
export interface CounterState {
  readonly exists: boolean;
  readonly value: number;
  /** When the key expires; null if it does not exist, or never expires. */
  readonly endsAt: number | null;
}

export function counterState(parts: PlainParts, now: number): CounterState {
  const expiry = newest(parts);
  const shares = sharesOf(parts, now);
  let value = 0;
  for (const { up, down } of shares.values()) value += up - down;
  const exists = shares.size > 0;
  return { exists, value, endsAt: exists && expiry.at !== null && expiry.at > now ? expiry.at : null };
}

/** The key's newest expiry; of two with the same stamp, the later one. */
function newest(parts: PlainParts): Expiry {
  let best = NEVER;
  for (const { expiry } of parts.values())
    if (expiry.stamp > best.stamp || (expiry.stamp === best.stamp && (expiry.at ?? Infinity) > (best.at ?? Infinity)))
      best = expiry;
  return best;
}

const cutAt = ({ at, cut, then }: Expiry, now: number): number =>
  at !== null && at <= now ? Math.max(cut, then) : cut;

/** What still counts of each part; absent if nothing does. */
function sharesOf(parts: PlainParts, now: number): Map<string, Generation> {
  const cut = cutAt(newest(parts), now);
  const resets = resetsOf(parts);
  const shares = new Map<string, Generation>();
  for (const [id, { since, up, down }] of parts) {
    const reset = resets.get(id);
    if (since < cut || (reset !== undefined && reset.since > since)) continue;
    const left =
      reset?.since === since
        ? { since, up: Math.max(0, up - reset.up), down: Math.max(0, down - reset.down) }
        : { since, up, down };
    if (left.up + left.down > 0) shares.set(id, left);
  }
  return shares;
}

/** The largest reset of each writer by any other. */
function resetsOf(parts: PlainParts): Map<string, Generation> {
  const resets = new Map<string, Generation>();
  for (const { reset } of parts.values()) for (const [id, seen] of reset) resets.set(id, most(resets.get(id), seen));
  return resets;
}

function most(a: Generation | undefined, b: Generation): Generation {
  if (a === undefined || a.since < b.since) return b;
  return a.since > b.since ? a : { since: a.since, up: Math.max(a.up, b.up), down: Math.max(a.down, b.down) };
}

/** A key as its writer sees it before a write. */
export interface Scene {
  readonly id: string;
  readonly own: PlainPart;
  readonly others: PlainParts;
  readonly now: number;
  /** Whether an earlier start of the same writer had this ID; it has ended. */
  isPredecessor(id: string): boolean;
}

/** The result of a step: the new part of the writer, which is the same object if nothing changes, and a value. */
export interface Stepped<T> {
  readonly own: PlainPart;
  readonly reply: T;
}

export type Step<T> = (scene: Scene) => Stepped<T>;

const partsOf = ({ id, own, others }: Scene): PlainParts => new Map([...others, [id, own]]);
export const look = (scene: Scene): CounterState => counterState(partsOf(scene), scene.now);

/**
 * Adds a whole number. @returns the value after it. @throws {CounterError} OPTION if the result cannot be counted
 * exactly
 */
export const add =
  (by: number): Step<number> =>
  (scene) => {
    const begun = begin(scene);
    // A counter with the value zero exists, so a step of zero still counts.
    const up = begun.up + (by > 0 ? by : by === 0 ? 1 : 0);
    const down = begun.down + (by < 0 ? -by : by === 0 ? 1 : 0);
    const own = { ...begun, up, down };
    const { value } = look({ ...scene, own });
    if (![up, down, value].every(Number.isSafeInteger))
      throw new CounterError(
        'OPTION',
        `a counter goes from -${Number.MAX_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}, and so far up and down by itself`,
      );
    return { own, reply: value };
  };

/**
 * The writer's part, ready to count: it takes over its predecessors' counts, and starts again if its generation has
 * expired.
 */
function begin(scene: Scene): PlainPart {
  const parts = partsOf(scene);
  const shares = sharesOf(parts, scene.now);
  let next = shares.has(scene.id)
    ? { ...scene.own, expiry: newest(parts), reset: heirOf(scene) }
    : emptyPart(scene, newest(parts));
  for (const [id, share] of shares)
    if (scene.isPredecessor(id))
      next = {
        ...next,
        up: next.up + share.up,
        down: next.down + share.down,
        reset: withReset(next.reset, id, parts.get(id)!),
      };
  return next;
}

/** A part of the writer without counts. */
const emptyPart = (scene: Scene, expiry: Expiry): PlainPart => ({
  ...scene.own,
  since: Math.max(scene.now, scene.own.since + 1, cutAt(expiry, scene.now)),
  up: 0,
  down: 0,
  expiry,
  reset: heirOf(scene),
});

/** What the writer and its predecessors have reset. */
function heirOf({ own, others, isPredecessor }: Scene): ReadonlyMap<string, Generation> {
  let reset = own.reset;
  for (const [id, part] of others)
    if (isPredecessor(id)) for (const [of, seen] of part.reset) reset = withReset(reset, of, seen);
  return reset;
}

const withReset = (
  reset: ReadonlyMap<string, Generation>,
  id: string,
  { since, up, down }: Generation,
): ReadonlyMap<string, Generation> => new Map(reset).set(id, most(reset.get(id), { since, up, down }));

/**
 * Sets the key's expiry, or removes it (null). @returns whether the key exists, and with null whether it had an expiry
 */
export const expireAt =
  (at: number | null): Step<boolean> =>
  (scene) => {
    const { exists, endsAt } = look(scene);
    if (!exists || (at === null && endsAt === null)) return { own: scene.own, reply: false };
    if (at !== null && at <= scene.now) return remove(scene);
    return { own: { ...scene.own, expiry: register(scene, at) }, reply: true };
  };

/** Everything that began by now, even by a clock that is ahead, expires at `at`. */
function register(scene: Scene, at: number | null): Expiry {
  const parts = partsOf(scene);
  const before = newest(parts);
  const latest = Math.max(...Array.from(sharesOf(parts, scene.now).values(), ({ since }) => since));
  return {
    stamp: Math.max(scene.now, before.stamp + 1),
    at,
    cut: cutAt(before, scene.now),
    then: at === null ? 0 : Math.max(at, latest + 1),
  };
}

/** Removes all counts that are seen, and the expiry. @returns whether the key existed */
export const remove: Step<boolean> = (scene) => {
  const shares = sharesOf(partsOf(scene), scene.now);
  if (shares.size === 0) return { own: scene.own, reply: false };
  let own = emptyPart(scene, register(scene, null));
  for (const id of shares.keys())
    if (id !== scene.id) own = { ...own, reset: withReset(own.reset, id, scene.others.get(id)!) };
  return { own, reply: true };
};

/**
 * Sets this writer's own part to `value` (and its predecessors' to nothing), and the key's expiry to `at` if that is
 * not null.
 */
export const begins =
  (value: number, at: number | null): Step<number> =>
  (scene) => {
    const withdrawn = withdraw(scene).own;
    const counted = add(value)({ ...scene, own: withdrawn });
    if (at === null) return counted;
    return { own: expireAt(at)({ ...scene, own: counted.own }).own, reply: counted.reply };
  };

/** Removes what this writer and its predecessors counted, and nothing else. */
export const withdraw: Step<boolean> = (scene) => {
  const parts = partsOf(scene);
  let own = emptyPart(scene, newest(parts));
  for (const id of sharesOf(parts, scene.now).keys())
    if (scene.isPredecessor(id)) own = { ...own, reset: withReset(own.reset, id, parts.get(id)!) };
  return { own, reply: true };
};

/** When a part expires for good by its own entries; null if it has not, or the time is unknown. */
function overAt({ since, up, down, expiry: { stamp, at, cut, then } }: PlainPart): number | null {
  if (up + down === 0) return Math.max(since, stamp);
  if (since < cut) return Math.max(cut, stamp);
  return at !== null && since < then ? at : null;
}

/** Until when the store keeps a part: long enough after its expiry that all regions know of it. */
export function keptUntil(part: PlainPart, graceMs: number): number | null {
  const over = overAt(part);
  return over === null ? null : Math.max(over + graceMs, part.keepUntil ?? 0);
}

/**
 * Whether a writer should check if a part is still needed, or must take in changes by others. A part that expires may
 * have been reset meanwhile: it takes in the reset before that is forgotten.
 */
export function wantsTending(part: PlainPart, graceMs: number, now: number): boolean {
  const over = overAt(part);
  return over === null || now < over || now > over + graceMs / 2;
}

export interface Tended {
  /** Whether the part is no longer needed. */
  readonly done: boolean;
  /** Predecessors whose parts are no longer needed by anyone. */
  readonly useless: readonly string[];
}

/**
 * What must be done for a part that is not written. @param unseenSince since when a region is out of sight; null: none
 * is
 */
export const tend =
  (graceMs: number, unseenSince: number | null): Step<Tended> =>
  (scene) => {
    const { id, own, others, now } = scene;
    const parts = partsOf(scene);
    const expiry = newest(parts);
    const shares = sharesOf(parts, now);
    // Counts that others have reset, or that expired, expire with this part from now on.
    const ended = !shares.has(id) && overAt({ ...own, expiry }) === null;
    let next = ended ? emptyPart(scene, expiry) : expiry.stamp > own.expiry.stamp ? { ...own, expiry } : own;
    const reset = new Map([...next.reset].filter(([of, seen]) => (others.get(of)?.since ?? 0) <= seen.since));
    if (reset.size < next.reset.size) next = { ...next, reset };
    const until = keptUntil(next, graceMs);
    const left = new Map([...others, [id, next]]);
    let done = false;
    if (until !== null && wantsTending(next, graceMs, now)) {
      // A writer that is out of sight may return with counts that this part has ended; and a present writer may still
      // have them.
      const isUnseen = unseenSince !== null && (own.first ?? now) <= unseenSince;
      // Counts that this part has reset or ended may be kept for longer than the part.
      done = !isUnseen && wouldStand(left, now) && isUseless(id, left, now);
      if (done && until - now > graceMs) next = { ...next, keepUntil: now + graceMs };
      if (!done && until - now < (KEPT_GRACES * graceMs) / 2)
        next = { ...next, keepUntil: now + KEPT_GRACES * graceMs };
    }
    // By then, every node has the counts that were taken over.
    const isSettled = unseenSince === null && now - (own.first ?? now) > graceMs;
    const useless = [...others.keys()].filter(
      (each) => isSettled && scene.isPredecessor(each) && isUseless(each, left, now) && left.delete(each),
    );
    return { own: next, reply: { done, useless } };
  };

/**
 * How many grace periods an entry is kept that others have not taken in yet, in case this process ends. Parts are
 * checked more often than every half of that.
 */
const KEPT_GRACES = 20;

/**
 * Whether the key has the same state without the parts that are done: all of them, because each is removed when its
 * writer no longer keeps it.
 */
function wouldStand(parts: PlainParts, now: number): boolean {
  const isOver = (part: PlainPart): boolean => (overAt(part) ?? Infinity) <= now;
  return same(counterState(parts, now), counterState(new Map([...parts].filter(([, part]) => !isOver(part))), now));
}

/** Whether the key has the same state without that part. */
const isUseless = (id: string, parts: PlainParts, now: number): boolean =>
  same(counterState(parts, now), counterState(new Map([...parts].filter(([each]) => each !== id)), now));

const same = (a: CounterState, b: CounterState): boolean =>
  a.exists === b.exists && a.value === b.value && a.endsAt === b.endsAt;
