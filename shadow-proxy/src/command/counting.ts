/**
 * Commands whose result depends on what the key held before: on two nodes that both accept writes they lose, or come
 * out otherwise on each. docs/active-active.md has what was measured for each kind.
 */
export const KINDS = ['increment', 'float', 'window', 'lock', 'append', 'list', 'stream', 'script', 'rewrite'] as const;

/**
 * - `increment`: whole numbers that are added to; exact while connected, lost in a full resync.
 * - `float`: fractions that are added to; differ as soon as two nodes add at once.
 * - `window`: a limiter's sorted set, cut at its old end.
 * - `lock`: set if nobody has it; both nodes give it.
 * - `append`, `list`, `stream`: what was added stands in another order on each node.
 * - `script`: reads and writes in one go.
 * - `rewrite`: a number that a client read and wrote back.
 */
export type CountingKind = (typeof KINDS)[number];

const NAMES: Readonly<Record<Exclude<CountingKind, 'rewrite'>, string>> = {
  increment: 'incr incrby decr decrby hincrby zincrby bitfield',
  float: 'incrbyfloat hincrbyfloat',
  window: 'zremrangebyscore zremrangebyrank',
  lock: 'setnx msetnx hsetnx',
  append: 'append setrange',
  list: 'lpush rpush lpushx rpushx linsert lset lrem ltrim lpop rpop lmove rpoplpush lmpop blpop brpop blmove brpoplpush blmpop',
  stream: 'xadd xreadgroup xack xclaim xautoclaim xgroup|create',
  script: 'eval evalsha fcall',
};

const kinds = new Map<string, CountingKind>();
for (const [kind, names] of Object.entries(NAMES))
  for (const name of names.split(' ')) kinds.set(name, kind as CountingKind);

/**
 * Of a command by its name alone; null where that says nothing, as of SET, which may be a lock or a number written
 * back.
 */
export const countingKind = (name: string): CountingKind | null => kinds.get(name) ?? null;

/**
 * The place of its kind in `KINDS`, for those that are looked at one by one: SET in that of `rewrite`, GET behind all;
 * -1 for others.
 */
export function watchedAs(name: string): number {
  if (name === 'get') return KINDS.length;
  const kind = name === 'set' ? 'rewrite' : countingKind(name);
  return kind === null ? -1 : KINDS.indexOf(kind);
}

/** By kind, from counts by command. */
export function byKind(
  commands: Readonly<Record<string, number>>,
): Partial<Record<CountingKind, Record<string, number>>> {
  const found: Partial<Record<CountingKind, Record<string, number>>> = {};
  for (const [name, count] of Object.entries(commands)) {
    const kind = countingKind(name);
    if (kind !== null && count > 0) (found[kind] ??= {})[name] = count;
  }
  return found;
}

/** How two nodes that both write lose it, and when; facts of KeyDB 6.3.4 (docs/active-active.md). */
export const LOSES: Readonly<Record<CountingKind, string>> = {
  increment: 'exact while the link is up; after a full resync the increments of one node are gone',
  float:
    'the two nodes hold different sums as soon as both add within the link’s delay; a full resync keeps one of them',
  window:
    'each node admits up to the limit while the link is cut, and more than it while it is slow; a full resync keeps one node’s window',
  lock: 'both nodes give the lock: for as long as the link’s delay, and always while it is cut',
  append: 'the length is right, the order is not the same on both; a full resync keeps one node’s',
  list: 'elements stand in another order on each node, and are popped on both; a full resync keeps one node’s',
  stream: 'both nodes assign IDs and order by themselves; a full resync keeps one node’s',
  script: 'like the commands that it calls: what it read may be old on this node',
  rewrite: 'one of two writers’ numbers wins as soon as both write within the link’s delay',
};
