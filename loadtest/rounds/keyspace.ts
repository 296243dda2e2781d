/**
 * The run's own keys on a server: filled before, added up and removed after. No other key is touched, and nothing is
 * flushed.
 */
import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Address } from '../driver/driver.js';
import { LoadtestError } from '../rig/errors.js';
import { withClient } from '../sides/client.js';
import { counterOf, fill, wordsOf, type Counter } from '../workload/command.js';
import { keyNames, type Naming } from '../workload/keys.js';
import type { Profile } from '../workload/profile.js';

const BATCH = 1_000;

/** The keys of a load, and their names. */
export interface Keyspace {
  readonly profile: Profile;
  readonly prefix: string;
  readonly naming: Naming;
}

/**
 * Sends the prefill once for each key, with alternating sizes in the profile's proportions.
 * @returns what it added to counters
 * @throws {LoadtestError} if a command is refused, or `stop` was aborted
 */
export async function prefill(
  address: Address,
  { profile, prefix, naming }: Keyspace,
  stop: AbortSignal,
): Promise<number> {
  const data = values(profile.value);
  const { count } = profile.keys;
  await withClient(address, async (client) => {
    for (const command of profile.prefill) {
      const words = wordsOf(fill(command, prefix, profile.expiry));
      await inBatches(
        client,
        count,
        (i) => words.map((word) => (word === '__data__' ? data(i) : word.replaceAll('__key__', naming(prefix, i + 1)))),
        stop,
      );
    }
  });
  return profile.prefill.reduce((sum, command) => sum + (counterOf(command)?.amount ?? 0) * count, 0);
}

/** Removes every key that the run may have left, by its name; each batch waits for the one before. */
export async function removeKeys(address: Address, { profile, prefix, naming }: Keyspace): Promise<void> {
  const names = keyNames(profile, prefix, naming);
  await withClient(address, async (client) => {
    for (let i = 0; i < names.length; i += BATCH) await client.unlink(...names.slice(i, i + BATCH));
  });
}

/** The sum of all counters of the profile; null if it has none. */
export async function sumCounters(address: Address, keyspace: Keyspace): Promise<number | null> {
  const { profile, prefix, naming } = keyspace;
  const texts = [...profile.prefill, ...profile.commands.map(({ command }) => command)];
  const places = new Map<string, Counter>();
  for (const counter of texts.map(counterOf))
    if (counter !== null) places.set(`${counter.in} ${counter.key} ${counter.field}`, counter);
  if (places.size === 0) return null;
  return withClient(address, async (client) => {
    let sum = 0;
    for (const counter of places.values()) {
      const keys =
        counter.key === '__key__'
          ? Array.from({ length: profile.keys.count }, (_, i) => naming(prefix, i + 1))
          : [fill(counter.key, prefix, profile.expiry)];
      sum += await sumOf(client, counter, keys);
    }
    return sum;
  });
}

async function sumOf(client: Redis, counter: Counter, keys: readonly string[]): Promise<number> {
  if (counter.in === 'zset') {
    // Pairs if the server uses RESP3, else one flat list.
    const all = ((await client.call('ZRANGE', keys[0], 0, -1, 'WITHSCORES')) as unknown[]).flat();
    return all.reduce<number>((sum, each, i) => sum + (i % 2 === 1 ? Number(each) : 0), 0);
  }
  const ask = (i: number): string[] => (counter.in === 'hash' ? ['HGET', keys[i], counter.field!] : ['GET', keys[i]]);
  const replies = await inBatches(client, keys.length, ask);
  return replies.reduce<number>((sum, reply) => sum + Number(reply ?? 0), 0);
}

async function inBatches(
  client: Redis,
  count: number,
  command: (i: number) => (string | Buffer)[],
  stop?: AbortSignal,
): Promise<unknown[]> {
  const replies: unknown[] = [];
  for (let from = 0; from < count; from += BATCH) {
    if (stop?.aborted) throw new LoadtestError('MEASUREMENT', 'stopped');
    const batch = client.pipeline();
    for (let i = from; i < Math.min(count, from + BATCH); i++) {
      const [name, ...args] = command(i);
      batch.call(String(name), ...args);
    }
    for (const [error, reply] of (await batch.exec())!) {
      if (error)
        throw new LoadtestError(
          'MEASUREMENT',
          `${client.options.host}:${client.options.port} refused ${String(command(from)[0])}: ${error.message}`,
        );
      replies.push(reply);
    }
  }
  return replies;
}

/** A value for key `i`: random bytes of alternating sizes. */
function values(value: Profile['value']): (i: number) => Buffer {
  const sizes =
    'bytes' in value
      ? [value.bytes]
      : Object.entries(value.weights).flatMap(([size, weight]) => Array<number>(weight).fill(Number(size)));
  const noise = randomBytes(2 * Math.max(...sizes));
  return (i) => {
    const size = sizes[i % sizes.length];
    const from = i % (noise.length - size);
    return noise.subarray(from, from + size);
  };
}
