/** What commands of lists, sets and sorted sets have in common. */
import { integer, nilArray, ZERO } from './reply.js';
import type { Client, Database } from './state.js';
import type { Values } from './values.js';

/** Puts a collection in the place of what the key holds; deletes it where the collection is empty. @returns its size */
export function store<T extends 'set' | 'zset'>(database: Database, key: string, type: T, value: Values[T]): string {
  const old = database.get(key);
  if (value.size === 0) {
    if (old === undefined) return ZERO;
    database.delete(key);
  } else database.overwrite(key, type, value);
  database.touch(key);
  return integer(value.size);
}

/** The reply of the first key that has a collection of the type; waits where none has one, unless `ms` is null. */
export function popFirst<T extends 'list' | 'zset'>(
  client: Client,
  type: T,
  keys: readonly string[],
  popFrom: (key: string, value: Values[T]) => string,
  ms: number | null,
): string {
  const { database, protocol } = client;
  for (const key of keys) {
    const value = database.getAs(key, type);
    if (value !== undefined) return popFrom(key, value);
  }
  if (ms === null || client.mayNotBlock) return nilArray(protocol);
  const serve = (key: string): string | null =>
    database.get(key)?.type === type ? popFrom(key, database.getAs(key, type)!) : null;
  client.block({ type, keys, serve, atTimeout: nilArray(protocol) }, ms);
  return '';
}
