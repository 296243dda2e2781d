/**
 * Commands whose result depends on the earlier value of the key. On two nodes that both accept writes they lose
 * changes, or give different results. docs/active-active.md has the measurements for each kind.
 */
export const KINDS = ['increment', 'float', 'window', 'lock', 'append', 'list', 'stream', 'script', 'rewrite'] as const;

/**
 * - `increment`: additions to whole numbers; exact while connected, lost in a full resync.
 * - `float`: additions to fractions; the nodes differ as soon as both add at once.
 * - `window`: a limiter's sorted set, from which old entries are removed.
 * - `lock`: set if it does not exist; both nodes grant it.
 * - `append`, `list`, `stream`: additions are in a different order on each node.
 * - `script`: reads and writes in one step.
 * - `rewrite`: a number that a client read and wrote back.
 */
export type CountingKind = (typeof KINDS)[number];

/** What two writing nodes lose, and when; facts of KeyDB 6.3.4 (docs/active-active.md). */
export const LOSES: Readonly<Record<CountingKind, string>> = {
  increment: 'exact while the link is up; a full resync discards the increments of one node',
  float:
    'the two nodes hold different sums as soon as both add within the link’s delay; a full resync keeps one of the sums',
  window:
    'each node admits up to the limit while the link is cut, and more than it while it is slow; a full resync keeps one node’s window',
  lock: 'both nodes give the lock: for as long as the link’s delay, and always while it is cut',
  append: 'the length is right, the order is not the same on both; a full resync keeps one node’s',
  list: 'elements have another order on each node, and are popped on both; a full resync keeps one node’s',
  stream: 'both nodes assign IDs and order by themselves; a full resync keeps one node’s',
  script: 'as the commands that it calls: what it reads may be stale on this node',
  rewrite: 'one of two writers’ numbers wins as soon as both write within the link’s delay',
};
