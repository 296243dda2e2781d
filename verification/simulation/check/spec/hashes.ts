/** Hashes. */
import { bulk, Refused, unordered, type Run, type Space } from './space.js';

const hashOf = (space: Space, key: string): Record<string, string> => space.get(key, 'hash') ?? {};

const set: Run = (space, [, key, ...words]) => {
  const hash = hashOf(space, key);
  let added = 0;
  for (let i = 0; i < words.length; i += 2) {
    if (!(words[i] in hash)) added++;
    hash[words[i]] = words[i + 1];
  }
  space.put(key, 'hash', hash);
  return added;
};

export const HASH_RUNS: Readonly<Record<string, Run>> = {
  HSET: set,
  HMSET(space, args) {
    set(space, args);
    return '+OK';
  },
  HSETNX: (space, args) => (args[2] in hashOf(space, args[1]) ? 0 : set(space, args)),
  HGET: (space, [, key, field]) => bulk(hashOf(space, key)[field]),
  HMGET(space, [, key, ...fields]) {
    const hash = hashOf(space, key);
    return fields.map((field) => bulk(hash[field]));
  },
  HEXISTS: (space, [, key, field]) => (field in hashOf(space, key) ? 1 : 0),
  HLEN: (space, [, key]) => Object.keys(hashOf(space, key)).length,
  HDEL(space, [, key, ...fields]) {
    const hash = hashOf(space, key);
    const before = Object.keys(hash).length;
    for (const field of fields) delete hash[field];
    space.put(key, 'hash', hash);
    return before - Object.keys(hash).length;
  },
  HINCRBY(space, [, key, field, by]) {
    const hash = hashOf(space, key);
    const value = Number(hash[field] ?? '0');
    if (!Number.isInteger(value)) throw new Refused('ERR');
    hash[field] = String(value + Number(by));
    space.put(key, 'hash', hash);
    return value + Number(by);
  },
  HGETALL: (space, [, key]) =>
    unordered(
      space,
      Object.entries(hashOf(space, key)).map(([field, value]) => [`$${field}`, `$${value}`]),
    ),
  HKEYS: (space, [, key]) =>
    unordered(
      space,
      Object.keys(hashOf(space, key)).map((field) => [`$${field}`]),
    ),
  HVALS: (space, [, key]) =>
    unordered(
      space,
      Object.values(hashOf(space, key)).map((value) => [`$${value}`]),
    ),
};
