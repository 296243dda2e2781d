/**
 * SCAN and its like. Elements have the order of a hash, as in a server: an element that is there all the time is
 * returned, one that comes or goes may be.
 */
import { matches } from './glob.js';
import { needInteger } from './numbers.js';
import { Options } from './options.js';
import { array, arrayOf, bulk, bulks, Refusal, SYNTAX } from './reply.js';
import type { State } from './state.js';

interface ScanOptions {
  readonly cursor: number;
  readonly count: number;
  readonly pattern: string;
  readonly type: string | null;
}

/** @throws {Refusal} */
export function needCursor(text: string): number {
  if (!/^([+-]?[0-9]+)?$/.test(text)) throw new Refusal('ERR invalid cursor');
  const cursor = Number(text);
  // A negative one is read as a very high one.
  return cursor < 0 ? Infinity : cursor;
}

/** @param withType whether TYPE is an option */
export function scanOptions(args: readonly string[], at: number, withType: boolean): ScanOptions {
  const cursor = needCursor(args[at]);
  let [count, pattern, type]: [number, string, string | null] = [10, '*', null];
  const options = new Options(args, at + 1);
  while (options.more) {
    const word = options.word();
    if (word === 'count' && options.more) {
      count = needInteger(options.next());
      if (count < 1) throw SYNTAX;
    } else if (word === 'match' && options.more) pattern = options.next();
    else if (word === 'type' && withType && options.more) type = options.next();
    else throw SYNTAX;
  }
  return { cursor, count, pattern, type };
}

/** FNV-1a of 32 bits. */
function hashOf(text: string, begin = 0x811c9dc5): number {
  let hash = begin;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/**
 * The names from the cursor on, at least `count` of them as far as there are any, and the next cursor. Each start of a
 * server has an order of its own, as real servers draw the seed of their hash: a cursor means nothing to another one.
 */
export function scanStep(
  names: Iterable<string>,
  { runId }: Pick<State, 'runId'>,
  { cursor, count }: Pick<ScanOptions, 'cursor' | 'count'>,
): { next: number; found: string[] } {
  const seed = hashOf(runId);
  // A cursor is the hash of the first name to come, plus one: 0 is the beginning and the end.
  const from = Math.max(0, cursor - 1);
  const left: { name: string; hash: number }[] = [];
  for (const name of names) {
    const hash = hashOf(name, seed);
    if (hash >= from) left.push({ name, hash });
  }
  left.sort((a, b) => a.hash - b.hash);
  let end = Math.min(count, left.length);
  while (end < left.length && left[end].hash === left[end - 1].hash) end++;
  return { next: end < left.length ? left[end].hash + 1 : 0, found: left.slice(0, end).map(({ name }) => name) };
}

/**
 * The reply of HSCAN, SSCAN, ZSCAN. A small collection is returned whole.
 * @param row what is returned of an element
 */
export function scanCollection(
  server: Pick<State, 'runId'>,
  args: readonly string[],
  names: ReadonlyMap<string, unknown> | ReadonlySet<string>,
  row: (name: string) => readonly string[],
  small: number,
): string {
  const options = scanOptions(args, 2, false);
  const { next, found } =
    names.size <= small ? { next: 0, found: [...names.keys()] } : scanStep(names.keys(), server, options);
  const rows = found.filter((name) => matches(options.pattern, name)).flatMap(row);
  return arrayOf(2) + bulk(String(next)) + bulks(rows);
}

/** The reply to a scan of what is not there. */
export const NOTHING_SCANNED = arrayOf(2) + bulk('0') + array([]);
