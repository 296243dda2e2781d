/**
 * The layout of the store: its keys, and the meaning of their values. Pure.
 *
 *     <prefix>:@regions                      hash   region → 1                  every region that ever joined
 *     <prefix>:@writers:{<region>}           hash   writer id → heartbeat       every writer of the region
 *     <prefix>:@gap:{<region>}               string g<heartbeat>                when the region last saw another again
 *     <prefix>:{<name>}:<writer id> string the writer's own part one for each writer that touched the counter
 *
 * A writer id is `<region>.<writer>.<epoch>`. The epoch is new at each start of a process: so a writer never continues
 * from a value that a server may have lost or set back. A part has one writer, which holds it in memory and always
 * writes the whole part: writing it again repairs it. A part begins with a letter, so that no server stores it as an
 * integer.
 */
import { CounterError, demand } from './errors.js';

const PART_OF_ID = /^[A-Za-z0-9_-]{1,64}$/;

export interface WriterName {
  readonly region: string;
  readonly writer: string;
  readonly epoch: string;
}

/** @throws {CounterError} OPTION */
export function writerId({ region, writer, epoch }: WriterName): string {
  for (const [option, value] of Object.entries({ region, writer, epoch })) {
    demand(
      PART_OF_ID.test(value),
      `${option} ${JSON.stringify(value)}: 1 to 64 letters, digits, "_" or "-" are allowed`,
    );
  }
  return `${region}.${writer}.${epoch}`;
}

/** Milliseconds since 1970 in base 36, and 32 random bits: no two starts have the same epoch. */
export const newEpoch = (nowMs: number, random: number): string =>
  `${nowMs.toString(36)}-${Math.floor(random * 2 ** 32).toString(36)}`;

/** The keys of one installation; `prefix` separates it from others in the same database. */
export class Keys {
  readonly regions: string;

  constructor(private readonly prefix: string) {
    demand(prefix.length > 0, 'prefix: at least one character');
    this.regions = `${prefix}:@regions`;
  }

  writers(region: string): string {
    return `${this.prefix}:@writers:{${region}}`;
  }

  gap(region: string): string {
    return `${this.prefix}:@gap:{${region}}`;
  }

  /** Braces separate the name, which may have any characters, from the rest. */
  part(name: string, id: string): string {
    return `${this.prefix}:{${name}}:${id}`;
  }
}

/** What one writer counted; both only grow. */
export interface Tally {
  readonly up: number;
  readonly down: number;
}

/**
 * A writer's part of a counter: `c <up> <down>`, then ` <writer id>=<up>/<down>` for each writer whose counts it reset.
 */
export interface CounterPart extends Tally {
  /** What the writer had seen of each writer at its last reset of the counter: these counts no longer apply. */
  readonly reset: ReadonlyMap<string, Tally>;
}

export const EMPTY_COUNTER: CounterPart = { up: 0, down: 0, reset: new Map() };

export function encodeCounter({ up, down, reset }: CounterPart): string {
  const resets = Array.from(reset, ([id, seen]) => ` ${id}=${seen.up}/${seen.down}`);
  return `c ${up} ${down}${resets.join('')}`;
}

/** @param key for the error's message. @throws {CounterError} FOREIGN_VALUE */
export function decodeCounter(value: string, key: () => string): CounterPart {
  const [kind, up, down, ...resets] = value.split(' ');
  const reset = new Map(
    resets.map((entry): [string, Tally] => {
      const [id, seenUp, seenDown] = entry.split(/[=/]/);
      return [id, { up: count(seenUp), down: count(seenDown) }];
    }),
  );
  const part = { up: count(up), down: count(down), reset };
  if (kind !== 'c' || [part, ...reset.values()].some((tally) => Number.isNaN(tally.up + tally.down)))
    throw foreign(key(), value);
  return part;
}

/** The sum of all counts minus all resets; writers without a part count as zero. */
export function totals(parts: ReadonlyMap<string, CounterPart>): Tally {
  const base = new Map<string, Tally>();
  for (const { reset } of parts.values()) for (const [id, seen] of reset) base.set(id, most(base.get(id), seen));
  let [up, down] = [0, 0];
  for (const [id, part] of parts) {
    const before = base.get(id) ?? { up: 0, down: 0 };
    up += Math.max(0, part.up - before.up);
    down += Math.max(0, part.down - before.down);
  }
  return { up, down };
}

/** `own` after a reset of all counts in `parts`; for each writer, the largest reset so far is kept. */
export function resetAll(own: CounterPart, parts: ReadonlyMap<string, CounterPart>): CounterPart {
  const reset = new Map(own.reset);
  for (const [id, part] of parts) reset.set(id, most(reset.get(id), part));
  return { ...own, reset };
}

const most = (a: Tally | undefined, b: Tally): Tally => ({
  up: Math.max(a?.up ?? 0, b.up),
  down: Math.max(a?.down ?? 0, b.down),
});

/** A writer's part of a limiter: admitted requests by the start of their bucket in Unix ms. `w <start>=<count> …` */
export type WindowPart = ReadonlyMap<number, number>;

export const encodeWindow = (part: WindowPart): string =>
  `w${Array.from(part, ([start, admitted]) => ` ${start}=${admitted}`).join('')}`;

/** @param key for the error's message. @throws {CounterError} FOREIGN_VALUE */
export function decodeWindow(value: string, key: () => string): WindowPart {
  const [kind, ...buckets] = value.split(' ');
  const part = new Map<number, number>();
  let wrong = kind !== 'w';
  for (const bucket of buckets) {
    const middle = bucket.indexOf('=');
    const [start, admitted] = [count(bucket.slice(0, middle)), count(bucket.slice(middle + 1))];
    wrong ||= middle < 0 || Number.isNaN(start + admitted);
    part.set(start, admitted);
  }
  if (wrong) throw foreign(key(), value);
  return part;
}

export const count = (text: string | undefined): number =>
  text !== undefined && /^\d{1,16}$/.test(text) ? Number(text) : NaN;

export const foreign = (key: string, value: string): CounterError =>
  new CounterError(
    'FOREIGN_VALUE',
    `${JSON.stringify(key)} holds ${JSON.stringify(value.slice(0, 40))}, which is none of this library's; give the counters a prefix of their own`,
  );
