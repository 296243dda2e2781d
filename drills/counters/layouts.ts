/** The ways to count that are drilled: what is written on both nodes, and what each node then says. */
import { Redis } from 'ioredis';
import { Counters, type GrowOnlyCounter, type Limiter } from '../../counters/src/index.js';
import { ioredisStore } from '../../counters/src/ioredis.js';
import type { Side } from '../../shadow-proxy/src/local/active-pair.js';
import { ownDriver } from './driver.js';
import { both, clientOf, NOTHING, takeMany, type Driven, type Place } from './place.js';

/** A layout in one round. */
export interface Layout {
  /** While the link is up. */
  before?(): Promise<Driven>;
  /** While it is delayed, or cut. */
  drive(): Promise<Driven>;
  /** When it is up again: every writer writes once more. */
  again?(): Promise<Driven>;
  /** What a node says when both have settled. */
  count(side: Side): Promise<number>;
  close?(): Promise<void>;
}

export interface Kind {
  readonly name: string;
  /** Whether memtier can drive it; it shows no replies, which a limiter goes by. */
  readonly memtier: boolean;
  open(place: Place): Promise<Layout>;
}

/** As in docs/active-active.md: 2,500 in all. */
const TIMES: Readonly<Record<Side, number>> = { a: 1000, b: 1500 };
const SHARE_BEFORE = 0.1;
/** Of a limiter: how many pass, and how many ask at each node. */
export const LIMIT = 100;
const ASKED = 200;
const WINDOW_MS = 86_400_000;
const WINDOW_S = WINDOW_MS / 1000;

/** Both nodes at once. */
const onBoth = async (work: (side: Side) => Promise<Driven>): Promise<Driven> =>
  both(...(await Promise.all([work('a'), work('b')])));

const nodePort = ({ pair }: Place, side: Side): number => pair.nodes[side].port;

const increments =
  (place: Place, commandOf: (side: Side) => readonly string[], port = nodePort) =>
  (share: number) =>
    onBoth(async (side) => {
      const times = Math.round(TIMES[side] * share);
      return { attempted: times, acknowledged: await place.drive(port(place, side), times, commandOf(side)) };
    });

const plain: Kind = {
  name: 'INCR',
  memtier: true,
  async open(place) {
    const key = `${place.prefix}:incr`;
    const send = increments(place, () => ['INCR', key]);
    return {
      before: () => send(SHARE_BEFORE),
      drive: () => send(1 - SHARE_BEFORE),
      count: async (side) => Number(await clientOf(place, side).get(key)),
    };
  },
};

const hash: Kind = {
  name: 'hash, a field per region',
  memtier: true,
  async open(place) {
    const key = `${place.prefix}:hash`;
    const send = increments(place, (side) => ['HINCRBY', key, side, '1']);
    const sum = (fields: Record<string, string>): number =>
      Object.values(fields).reduce((total, each) => total + Number(each), 0);
    return {
      before: () => send(SHARE_BEFORE),
      drive: () => send(1 - SHARE_BEFORE),
      count: async (side) => sum(await clientOf(place, side).hgetall(key)),
    };
  },
};

const limiter =
  (take: (side: Side) => Promise<boolean>): (() => Promise<Driven>) =>
  () =>
    onBoth((side) => takeMany(ASKED, () => take(side)));

const fixedWindow: Kind = {
  name: 'INCR and EXPIRE window',
  memtier: false,
  async open(place) {
    const key = `${place.prefix}:window`;
    const take = async (side: Side): Promise<boolean> => {
      const [[, count]] = (await clientOf(place, side).multi().incr(key).expire(key, WINDOW_S).exec()) as [
        Error | null,
        number,
      ][];
      return count <= LIMIT;
    };
    return { drive: limiter(take), count: async (side) => Number(await clientOf(place, side).get(key)) };
  },
};

const SCRIPT = `local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('expire', KEYS[1], ARGV[2]) end return n <= tonumber(ARGV[1]) and 1 or 0`;

const lua: Kind = {
  name: 'Lua limiter',
  memtier: false,
  async open(place) {
    const key = `${place.prefix}:lua`;
    const take = async (side: Side): Promise<boolean> =>
      (await clientOf(place, side).eval(SCRIPT, 1, key, LIMIT, WINDOW_S)) === 1;
    return { drive: limiter(take), count: async (side) => Number(await clientOf(place, side).get(key)) };
  },
};

const sortedSet: Kind = {
  name: 'sorted-set window',
  memtier: false,
  async open(place) {
    const key = `${place.prefix}:zset`;
    let member = 0;
    const take = async (side: Side): Promise<boolean> => {
      const now = Date.now();
      const replies = await clientOf(place, side)
        .multi()
        .zremrangebyscore(key, 0, now - WINDOW_MS)
        .zadd(key, now, `${side}-${member++}`)
        .zcard(key)
        .exec();
      return (replies![2][1] as number) <= LIMIT;
    };
    return { drive: limiter(take), count: (side) => clientOf(place, side).zcard(key) };
  },
};

const PINNED_KEYS = 50;

/**
 * Counters that only A writes, and that begin at `first`: KeyDB keeps numbers under 10,000 otherwise than larger ones.
 */
const pinned = (name: string, first: number): Kind => ({
  name,
  memtier: false,
  async open(place) {
    const keys = Array.from({ length: PINNED_KEYS }, (_, i) => `${place.prefix}:from-${first}:${i}`);
    const writer = clientOf(place, 'a');
    const each = async (times: number): Promise<Driven> => {
      for (let i = 0; i < times; i++) await writer.pipeline(keys.map((key) => ['incr', key])).exec();
      return { attempted: times * PINNED_KEYS, acknowledged: times * PINNED_KEYS };
    };
    return {
      async before() {
        for (const key of keys) await writer.set(key, first);
        return each(5);
      },
      async drive() {
        const driven = await each(10);
        // Keys of its own, which only happen to hold the same numbers.
        for (let number = first; number <= first + 20; number++)
          await clientOf(place, 'b').set(`${place.prefix}:other:${number}`, number);
        return driven;
      },
      count: async (side) =>
        (await clientOf(place, side).mget(keys)).reduce((sum, value) => sum + Number(value) - first, 0),
    };
  },
});

/** Quick to learn of each other, so that a round is short. */
const REFRESH_MS = 200;

const openLibrary = async (place: Place, side: Side, writer: string): Promise<Counters> =>
  Counters.open(ioredisStore(clientOf(place, side)), {
    region: side,
    writer,
    prefix: place.prefix,
    refreshMs: REFRESH_MS,
    blindAfterMs: 10 * REFRESH_MS,
    repairMs: 0,
  });

/** What a reader that has just connected, and holds nothing of its own, reads at a node. */
async function readFresh(place: Place, side: Side, read: (counters: Counters) => Promise<number>): Promise<number> {
  const reader = await openLibrary(place, side, 'reader');
  return read(reader).finally(() => reader.close());
}

const library: Kind = {
  name: 'the library, counter',
  memtier: false,
  async open(place) {
    const writers = { a: await openLibrary(place, 'a', 'drill'), b: await openLibrary(place, 'b', 'drill') };
    const counters: Record<Side, GrowOnlyCounter> = { a: writers.a.growOnly('n'), b: writers.b.growOnly('n') };
    const add = (share: number, most = Infinity) =>
      onBoth(async (side) =>
        takeMany(Math.min(most, Math.round(TIMES[side] * share)), () => counters[side].add().then(() => true)).then(
          ({ attempted, acknowledged }) => ({ attempted, acknowledged }),
        ),
      );
    return {
      before: () => add(SHARE_BEFORE),
      drive: () => add(1 - SHARE_BEFORE),
      again: () => add(1, 1),
      count: (side) => readFresh(place, side, (reader) => reader.growOnly('n').value()),
      close: async () => void (await Promise.all([writers.a.close(), writers.b.close()])),
    };
  },
};

const libraryLimiter: Kind = {
  name: 'the library, window',
  memtier: false,
  async open(place) {
    const writers = { a: await openLibrary(place, 'a', 'limits'), b: await openLibrary(place, 'b', 'limits') };
    const windows: Record<Side, Limiter> = {
      a: writers.a.fixedWindow('w', { limit: LIMIT, windowMs: WINDOW_MS }),
      b: writers.b.fixedWindow('w', { limit: LIMIT, windowMs: WINDOW_MS }),
    };
    let admitted = 0;
    return {
      // Only what is admitted counts, and is what must not be lost.
      drive: async () => {
        const driven = await limiter(async (side) => (await windows[side].take('all')).admitted)();
        admitted = driven.admitted!;
        return { ...driven, acknowledged: admitted };
      },
      again: async () => {
        await Promise.all([writers.a.repair(), writers.b.repair()]);
        return NOTHING;
      },
      // `remaining` ends at 0: a window that would hold more shows how many it has.
      count: (side) =>
        readFresh(
          place,
          side,
          async (reader) =>
            COUNTABLE -
            (await reader.fixedWindow('w', { limit: COUNTABLE, windowMs: WINDOW_MS }).peek('all')).remaining,
        ),
      close: async () => void (await Promise.all([writers.a.close(), writers.b.close()])),
    };
  },
};

const COUNTABLE = 1_000_000;

/** Plain `INCR` through a proxy at each node. */
const rewriting: Kind = {
  name: 'the proxy’s rewriting',
  memtier: true,
  async open(place) {
    const key = `${place.prefix}:rewritten`;
    const send = increments(place, () => ['INCR', key], portOf);
    return {
      before: () => send(SHARE_BEFORE),
      drive: () => send(1 - SHARE_BEFORE),
      again: () =>
        onBoth(async (side) => ({
          attempted: 1,
          acknowledged: await ownDriver(portOf(place, side), 1, ['INCR', key]),
        })),
      count: (side) => throughProxy(place, side, async (client) => Number(await client.get(key))),
    };
  },
};

const rewrittenWindow: Kind = {
  name: 'rewritten window',
  memtier: false,
  async open(place) {
    const key = `${place.prefix}:rewritten-window`;
    const clients = { a: proxyClient(place, 'a'), b: proxyClient(place, 'b') };
    const take = async (side: Side): Promise<boolean> => {
      const count = await clients[side].incr(key);
      if (count === 1) await clients[side].expire(key, WINDOW_S);
      return count <= LIMIT;
    };
    return {
      drive: limiter(take),
      again: () =>
        onBoth(async (side) => ({
          attempted: 1,
          acknowledged: await ownDriver(portOf(place, side), 1, ['INCR', key]),
        })),
      count: (side) =>
        throughProxy(place, side, async (client) => ((await client.ttl(key)) > 0 ? Number(await client.get(key)) : -1)),
      close: async () => (clients.a.disconnect(), clients.b.disconnect()),
    };
  },
};

const portOf = ({ proxies }: Place, side: Side): number => proxies.ports[side];
const proxyClient = (place: Place, side: Side): Redis =>
  new Redis({ host: '127.0.0.1', port: portOf(place, side), maxRetriesPerRequest: null });

async function throughProxy(place: Place, side: Side, read: (client: Redis) => Promise<number>): Promise<number> {
  const client = proxyClient(place, side);
  return read(client).finally(() => client.disconnect());
}

export const KINDS: readonly Kind[] = [
  plain,
  fixedWindow,
  lua,
  sortedSet,
  hash,
  pinned('one writer, from 0', 0),
  pinned('one writer, from 100,000', 100_000),
  library,
  libraryLimiter,
  rewriting,
  rewrittenWindow,
];
/** What must not lose anything. */
export const EXACT: ReadonlySet<string> = new Set([
  library.name,
  libraryLimiter.name,
  rewriting.name,
  rewrittenWindow.name,
]);
