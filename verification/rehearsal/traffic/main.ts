/**
 * Runs on the load host; what to do comes as one line of JSON on the standard input, what came of it goes as one to the
 * standard output.
 *
 *   seed     fills the sources
 *   drive    sends load until the standard input ends; each second a line of progress. With each line of
 *            input the longest silence is measured from then on
 *   compare  compares every key of one server with what has to be there
 */
import { createInterface } from 'node:readline';
import { readFileSync, writeFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { connectApps, withIoredis, type Address, type Login } from './apps.js';
import { Drive } from './drive.js';
import { hasTtl, KEYS, KINDS, put, read, seeded, seedOf, keyOf, valueOf, type Expected } from './model.js';

export type Order = { readonly shards: readonly Address[]; readonly login: Login } & (
  | { readonly what: 'seed' }
  | { readonly what: 'drive'; readonly expected: string }
  | { readonly what: 'compare'; readonly expected: string }
);

export interface Comparison {
  readonly keys: number;
  readonly differences: readonly string[];
}

const AT_ONCE = 200;
const MAX_LISTED = 20;

const lines = createInterface({ input: process.stdin });
const over = new Promise<void>((resolve) => lines.once('close', resolve));
const order = JSON.parse(await new Promise<string>((resolve) => lines.once('line', resolve))) as Order;
const say = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`);

switch (order.what) {
  case 'seed':
    say(await seed(order));
    break;
  case 'drive':
    say(await drive(order));
    break;
  case 'compare':
    say(await compare(order));
    break;
}
process.exit(0);

async function seed({ shards, login }: Order): Promise<{ keys: number }> {
  const app = await withIoredis(shards, login);
  const all = KINDS.flatMap((kind) => Array.from({ length: KEYS }, (_, index) => ({ kind, index })));
  for (let i = 0; i < all.length; i += AT_ONCE) {
    await Promise.all(
      all.slice(i, i + AT_ONCE).map(({ kind, index }) => app.call(keyOf(kind, index), put(kind, index, seedOf(index)))),
    );
  }
  return { keys: all.length };
}

async function drive({ shards, login, expected }: Order & { readonly what: 'drive' }): Promise<unknown> {
  const load = new Drive();
  const apps = await connectApps(shards, login);
  const ticking = setInterval(() => say(load.report()), 1_000);
  lines.on('line', () => load.mark());
  void over.then(() => load.stop());
  await load.run(apps);
  clearInterval(ticking);
  writeFileSync(expected, JSON.stringify({ ...seeded(), ...load.expected }));
  return load.report();
}

/** Every key that is there or has to be, its value, and whether it has a time to live. */
async function compare({
  shards: [{ host, port }],
  login,
  expected: file,
}: Order & { readonly what: 'compare' }): Promise<Comparison> {
  const expected = JSON.parse(readFileSync(file, 'utf8')) as Expected;
  const client = new Redis({ host, port, username: login.user, password: login.password });
  const found = new Set<string>();
  // As docs/keydb.md advises: KeyDB answers more at once from a snapshot, which harms it.
  for await (const page of client.scanStream({ count: 99 })) for (const key of page as string[]) found.add(key);
  const differences = [...found]
    .filter((key) => !Object.hasOwn(expected, key))
    .map((key) => `${key} is there, and should not be`);
  const wanted = Object.entries(expected);
  for (let i = 0; i < wanted.length; i += AT_ONCE) {
    const found = await Promise.all(
      wanted.slice(i, i + AT_ONCE).map(([key, value]) => differenceOf(client, key, value)),
    );
    differences.push(...found.filter((each) => each !== null));
  }
  return {
    keys: found.size,
    differences:
      differences.length > MAX_LISTED
        ? [...differences.slice(0, MAX_LISTED), `and ${differences.length - MAX_LISTED} more`]
        : differences,
  };
}

async function differenceOf(client: Redis, key: string, value: number): Promise<string | null> {
  const [name, number] = key.split(':');
  const kind = KINDS.find((each) => each === name)!;
  const index = Number(number);
  const [command, ...args] = read(kind, index);
  const [reply, ttl] = await Promise.all([client.call(command, args), client.pttl(key)]);
  if (valueOf(kind, index, reply) !== value) return `${key} holds ${JSON.stringify(reply)} for ${value}`;
  return ttl > 0 === hasTtl(kind, index) ? null : `${key} has a time to live of ${ttl} ms`;
}
