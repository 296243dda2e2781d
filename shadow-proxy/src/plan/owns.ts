/** `owns` of a plan: how it is read, and whether two shards claim the same key. */
import { SLOTS } from '../route/slot.js';
import type { Owns, SlotRange } from '../route/owner.js';
import { UrlError } from './endpoint.js';
import { patternsOverlap } from './overlap.js';

/** Reads ranges such as `0-5460,7000`. @throws {UrlError} if a number is no slot */
export function parseSlots(text: string): readonly SlotRange[] {
  return text.split(',').map((range): SlotRange => {
    const [first, last = first] = range.split('-').map(Number);
    if (first > last || last >= SLOTS)
      throw new UrlError(
        `has ${JSON.stringify(range.trim())}: slots are 0 to ${SLOTS - 1}, the first of a range no higher than its last`,
      );
    return [first, last];
  });
}

/** The parts of both claims that can have the same key, as each claim says them; undefined if no key can be in both. */
export function commonTo(a: Owns, b: Owns): readonly [mine: string, theirs: string] | undefined {
  if ('slots' in a && 'slots' in b) return commonSlots(a.slots, b.slots);
  // A pattern may match keys of any slot.
  if ('slots' in a || 'slots' in b) return 'slots' in a ? ['slots', 'patterns'] : ['patterns', 'slots'];
  for (const mine of a.patterns)
    for (const theirs of b.patterns)
      if (patternsOverlap(mine, theirs)) return [JSON.stringify(mine), JSON.stringify(theirs)];
  return undefined;
}

function commonSlots(a: readonly SlotRange[], b: readonly SlotRange[]): readonly [string, string] | undefined {
  for (const mine of a)
    for (const theirs of b)
      if (mine[0] <= theirs[1] && theirs[0] <= mine[1]) return [`slots ${mine.join('-')}`, `slots ${theirs.join('-')}`];
  return undefined;
}
