/** Repairs a process's own keys that are not written otherwise. */
import type { OwnedKey } from './owned-key.js';
import type { Store } from './store.js';

const KEYS_AT_A_TIME = 500;

/** `all`: every key, because other servers may have another value. `differing`: keys that differ on our own server. */
export type Which = 'all' | 'differing';

/**
 * Writes keys again, and removes expired ones from `owned` (`now`: Unix ms).
 * @returns how many keys were written again
 */
export async function rewrite(
  owned: Map<string, OwnedKey<unknown>>,
  store: Store,
  now: number,
  which: Which,
): Promise<number> {
  let written = 0;
  const all = [...owned.values()];
  for (let from = 0; from < all.length; from += KEYS_AT_A_TIME) {
    const some = all
      .slice(from, from + KEYS_AT_A_TIME)
      .filter((each) => owned.get(each.key) === each && !forgotten(owned, each, now));
    if (some.length === 0) continue;
    const wanted = which === 'all' ? some : await differing(some, store);
    await Promise.all(wanted.map((each) => each.write((state) => state)));
    written += wanted.length;
  }
  return written;
}

async function differing(some: readonly OwnedKey<unknown>[], store: Store): Promise<OwnedKey<unknown>[]> {
  const values = (await store.send(['MGET', ...some.map(({ key }) => key)])) as (string | null)[];
  return some.filter((each, i) => each.idle && each.value !== values[i]);
}

function forgotten(owned: Map<string, OwnedKey<unknown>>, each: OwnedKey<unknown>, now: number): boolean {
  return each.idle && (each.untouched || each.isOver(now)) && owned.delete(each.key);
}
