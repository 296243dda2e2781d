/** The traffic of a cluster's slots, from MONITOR: the commands of each slot, and the number of keys that they use. */
import { hashSlot } from '../../route/slot.js';
import type { KeySighting } from '../monitor.js';

export interface SlotTraffic {
  readonly commands: number;
  /** Number of different keys; `MANY_KEYS` stands for that many or more. */
  readonly keys: number;
}

export const MANY_KEYS = 100;

export class SlotSample {
  readonly #slots = new Map<number, { commands: number; readonly keys: Set<string> }>();

  /** Calls of a script are in the script's slot, which was counted. */
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
