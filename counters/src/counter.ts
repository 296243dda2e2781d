/** Counters that only grow, and counters that go up and down. */
import { demand } from './errors.js';
import { decodeCounter, EMPTY_COUNTER, encodeCounter, resetAll, totals, type CounterPart } from './layout.js';
import { addSafely, type OwnedKey, type Seen, type Shape } from './owned-key.js';

export interface CounterOptions {
  /** When the counter expires: a date, or Unix ms. It must be the same in every process. Default: never. */
  readonly expiresAt?: Date | number;
}

/** What a counter needs from the `Counters` object that made it. */
export interface CounterPlace {
  readonly id: string;
  readonly name: string;
  keyOf(id: string): string;
  owned(): OwnedKey<CounterPart>;
  read(): Promise<Seen>;
}

export const counterShape = (expiresAt: number | null): Shape<CounterPart> => ({
  empty: EMPTY_COUNTER,
  encode: encodeCounter,
  expiresAt: () => expiresAt,
});

/** A counter that only grows: the sum over all regions. */
export class GrowOnlyCounter {
  constructor(protected readonly place: CounterPlace) {}

  /**
   * Resolves when the server of this region has the increment.
   * @param amount a positive whole number
   * @throws {CounterError} OPTION, REFUSED, UNCONFIRMED, CLOSED
   */
  async add(amount = 1): Promise<void> {
    demand(
      Number.isSafeInteger(amount) && amount > 0,
      `add(${amount}) to ${JSON.stringify(this.place.name)}: a positive whole number is allowed`,
    );
    await this.place.owned().write((part) => ({ ...part, up: addSafely(part.up, amount) }));
  }

  /**
   * The sum of what all writers have counted, as this region's server knows it. @throws {CounterError} FOREIGN_VALUE,
   * CLOSED; errors of the client library
   */
  async value(): Promise<number> {
    const { up, down } = totals(this.parts(await this.place.read(), this.place.owned().state));
    return up - down;
  }

  /**
   * Removes all counts that this region's server knows. Counts that another region makes at the same time, or has made
   * behind a broken link, are not removed. Two resets at the same time have the effect of one.
   * @returns the removed counts
   * @throws {CounterError} REFUSED, UNCONFIRMED, FOREIGN_VALUE, CLOSED
   */
  async reset(): Promise<number> {
    const seen = await this.place.read();
    let before = 0;
    await this.place.owned().write((own) => {
      const parts = this.parts(seen, own);
      const { up, down } = totals(parts);
      before = up - down;
      return resetAll(own, parts);
    });
    return before;
  }

  protected parts({ view, values }: Seen, own: CounterPart): Map<string, CounterPart> {
    const parts = new Map([[this.place.id, own]]);
    values.forEach((value, i) => {
      if (value !== null)
        parts.set(
          view.ids[i],
          decodeCounter(value, () => this.place.keyOf(view.ids[i])),
        );
    });
    return parts;
  }
}

/** A counter that goes up and down. */
export class UpDownCounter extends GrowOnlyCounter {
  /** @param amount a whole number, negative to count down; 0 is not allowed */
  override async add(amount = 1): Promise<void> {
    demand(
      Number.isSafeInteger(amount) && amount !== 0,
      `add(${amount}) to ${JSON.stringify(this.place.name)}: a whole number other than 0 is allowed`,
    );
    if (amount > 0) return super.add(amount);
    await this.place.owned().write((part) => ({ ...part, down: addSafely(part.down, -amount) }));
  }
}
