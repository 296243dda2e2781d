/** What MONITOR shows of the slots of a cluster: commands of each, and how many keys they are about. */
import { hashSlot } from '../../route/slot.js';
import type { KeySighting } from '../monitor.js';

export interface SlotTraffic {
  readonly commands: number;
  /** Different keys: at most `MANY_KEYS`, which stands for as many or more. */
  readonly keys: number;
}

export const MANY_KEYS = 100;

export class SlotSample {
  readonly #slots = new Map<number, { commands: number; readonly keys: Set<string> }>();

  /** What scripts call is in the slot of the script, which was counted. */
  add({ key, at, isScripted }: KeySighting): void {
    // All keys of a command are in one slot.
    if (isScripted || at > 0) return;
    const slot = hashSlot(key, 0, key.length);
    let seen = this.#slots.get(slot);
    if (seen === undefined) this.#slots.set(slot, (seen = { commands: 0, keys: new Set() }));
    seen.commands++;
    if (seen.keys.size < MANY_KEYS) seen.keys.add(key.toString('latin1', 0, 64));
  }

  get slots(): Map<number, SlotTraffic> {
    return new Map([...this.#slots].map(([slot, { commands, keys }]) => [slot, { commands, keys: keys.size }]));
  }
}
