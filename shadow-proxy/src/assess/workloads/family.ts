/** Families of keys whose names begin alike, with the results of sampling and of MONITOR. */
import { prefixOf } from '../../telemetry/prefixes.js';
import type { SampledKey } from '../key-sample.js';
import type { KeySighting } from '../monitor.js';

export interface LargeKey {
  readonly type: string;
  readonly bytes: number;
  /** Null if the key is no collection. */
  readonly elements: number | null;
}

/** The keys that match one pattern. */
export interface Family {
  /** The pattern for a plan; keys of other families do not match it, except those of narrower patterns. */
  readonly pattern: string;
  /** Number of its keys in the sample. */
  readonly keys: number;
  readonly bytes: number;
  /** Number of keys by type. */
  readonly types: ReadonlyMap<string, number>;
  /** TTLs of its keys that have one, in ms. */
  readonly ttls: readonly number[];
  /** Number of strings that are whole numbers. */
  readonly numbers: number;
  readonly large: readonly LargeKey[];
  /** Number of commands in MONITOR, by command. */
  readonly commands: ReadonlyMap<string, number>;
}

/** From these sizes on, a key is copied in chunks: `limits` of a plan. */
export interface LargeFrom {
  readonly bytes: number;
  readonly elements: number;
}

/** Further families count as nameless, because clients that invent names must not fill the memory. */
const MAX_FAMILIES = 10_000;
/** The name for `SETNX`, and for `SET` with that option, among the commands of a family. */
export const SET_IF_ABSENT = 'set NX';
/** The pattern for all keys whose names show nothing. */
export const NAMELESS = '*';

class Collected implements Family {
  keys = 0;
  bytes = 0;
  numbers = 0;
  readonly types = new Map<string, number>();
  readonly ttls: number[] = [];
  readonly large: LargeKey[] = [];
  readonly commands = new Map<string, number>();

  constructor(readonly pattern: string) {}
}

export class Families {
  readonly #families = new Map<string, Collected>();

  constructor(private readonly largeFrom: LargeFrom) {}

  add({ name, type, encoding, bytes, elements, ttlMs }: SampledKey): void {
    const family = this.#of(name);
    family.keys++;
    family.bytes += bytes;
    family.types.set(type, (family.types.get(type) ?? 0) + 1);
    if (ttlMs !== null) family.ttls.push(ttlMs);
    if (encoding === 'int') family.numbers++;
    if (bytes >= this.largeFrom.bytes || (elements ?? 0) >= this.largeFrom.elements)
      family.large.push({ type, bytes, elements });
  }

  /**
   * Each command counts once for a family. Calls of a script count, but not the script itself, which does not show what
   * it does.
   */
  see({ command, key, at, ifAbsent }: KeySighting): void {
    if (at > 0 || command.name.startsWith('eval') || command.name.startsWith('fcall')) return;
    const { commands } = this.#of(key);
    const name = ifAbsent ? SET_IF_ABSENT : command.name;
    commands.set(name, (commands.get(name) ?? 0) + 1);
  }

  get all(): Family[] {
    return [...this.#families.values()];
  }

  #of(name: Buffer): Collected {
    const pattern = patternOf(name.toString('latin1', 0, 256));
    const known = this.#families.get(pattern);
    if (known !== undefined) return known;
    const isFull = this.#families.size >= MAX_FAMILIES;
    if (isFull && pattern !== NAMELESS) return this.#of(Buffer.alloc(0));
    const family = new Collected(pattern);
    this.#families.set(pattern, family);
    return family;
  }
}

/** Joins several families. */
export function merge(pattern: string, families: readonly Family[]): Family {
  const sums = (of: (family: Family) => ReadonlyMap<string, number>): Map<string, number> => {
    const sum = new Map<string, number>();
    for (const family of families) for (const [name, n] of of(family)) sum.set(name, (sum.get(name) ?? 0) + n);
    return sum;
  };
  const total = (of: (family: Family) => number): number => families.reduce((sum, family) => sum + of(family), 0);
  return {
    pattern,
    keys: total(({ keys }) => keys),
    bytes: total(({ bytes }) => bytes),
    types: sums(({ types }) => types),
    ttls: families.flatMap(({ ttls }) => ttls),
    numbers: total(({ numbers }) => numbers),
    large: families.flatMap(({ large }) => large),
    commands: sums(({ commands }) => commands),
  };
}

/**
 * The pattern of a key: `rl:user:*` for `rl:user:17`, as for counters (`prefixOf`). A hash tag before the name is kept
 * as a part of its own: `{user:*}:cart` for `{user:17}:cart`, `{*}:cart` for `{17}:cart`.
 */
export function patternOf(key: string): string {
  const [, tag, separator, rest] = /^\{([^}]+)\}([:/.|]?)(.*)$/s.exec(key) ?? [];
  if (tag === undefined) return prefixOf(key);
  return `{${prefixOf(tag)}}${separator}${rest === '' ? '' : prefixOf(rest)}`;
}
