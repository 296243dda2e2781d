/** What a key holds. Bytes are latin1 text, one character a byte. */
import type { SortedSet } from './sorted-set.js';
import type { Stream } from './stream.js';

export interface Values {
  string: string;
  list: string[];
  hash: Map<string, string>;
  set: Set<string>;
  zset: SortedSet;
  stream: Stream;
}

export type Type = keyof Values;

export interface Entry<T extends Type = Type> {
  readonly type: T;
  value: Values[T];
  /** Unix milliseconds; -1 for never. */
  expireAt: number;
}
