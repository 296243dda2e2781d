/** The ways to count that are drilled: what is written on all nodes, and what each node then says. */
import { Redis } from 'ioredis';
import { Counters, type GrowOnlyCounter, type Limiter } from '../../../counters/src/index.js';
import { ioredisStore } from '../../../counters/src/ioredis.js';
import { ofEach } from '../../../shadow-proxy/src/local/active-nodes.js';
import { ownDriver } from './driver.js';
import type { Name } from './mesh.js';
import { clientOf, NOTHING, onEach, takeMany, type Driven, type Place } from './place.js';

/** A layout in one round. */
export interface Layout {
  /** While the link is up. */
  before?(): Promise<Driven>;
  /** While it is delayed, or cut. */
  drive(): Promise<Driven>;
  /** When it is up again: every writer writes once more. */
  again?(): Promise<Driven>;
  /** What a node says when all have settled. */
  count(name: Name): Promise<number>;
  close?(): Promise<void>;
}

export interface Kind {
  readonly name: string;
  /** Whether memtier can drive it; it shows no replies, which a limiter goes by. */
  readonly memtier: boolean;
  open(place: Place): Promise<Layout>;
}

/** As in docs/active-active.md: 2,500 on two nodes, 3,500 on three. */
const TIMES: Readonly<Record<Name, number>> = { a: 1000, b: 1500, c: 1000 };
const SHARE_BEFORE = 0.1;
/** Of a limiter: how many pass, and how many ask at each node. */
export const LIMIT = 100;
const ASKED = 200;
const WINDOW_MS = 86_400_000;
const WINDOW_S = WINDOW_MS / 1000;

const nodePort = ({ mesh }: Place, name: Name): number => mesh.nodes[name].port;

const increments =
  (place: Place, commandOf: (name: Name) => readonly string[], port = nodePort) =>
  (share: number) =>
    onEach(place, async (name) => {
      const times = Math.round(TIMES[name] * share);
      return { attempted: times, acknowledged: await place.drive(port(place, name), times, commandOf(name)) };
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
      count: async (name) => Number(await clientOf(place, name).get(key)),
    };
  },
};

const hash: Kind = {
  name: 'hash, a field per region',
  memtier: true,
  async open(place) {
    const key = `${place.prefix}:hash`;
    const send = increments(place, (name) => ['HINCRBY', key, name, '1']);
    const sum = (fields: Record<string, string>): number =>
      Object.values(fields).reduce((total, each) => total + Number(each), 0);
    return {
      before: () => send(SHARE_BEFORE),
      drive: () => send(1 - SHARE_BEFORE),
      count: async (name) => sum(await clientOf(place, name).hgetall(key)),
    };
  },
};

const limiter =
  (place: Place, take: (name: Name) => Promise<boolean>): (() => Promise<Driven>) =>
  () =>
    onEach(place, (name) => takeMany(ASKED, () => take(name)));

const fixedWindow: Kind = {
  name: 'INCR and EXPIRE window',
  memtier: false,
  async open(place) {
    const key = `${place.prefix}:window`;
    const take = async (name: Name): Promise<boolean> => {
      const [[, count]] = (await clientOf(place, name).multi().incr(key).expire(key, WINDOW_S).exec()) as [
        Error | null,
        number,
      ][];
      return count <= LIMIT;
    };
    return { drive: limiter(place, take), count: async (name) => Number(await clientOf(place, name).get(key)) };
  },
};

const SCRIPT = `local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('expire', KEYS[1], ARGV[2]) end return n <= tonumber(ARGV[1]) and 1 or 0`;

const lua: Kind = {
  name: 'Lua limiter',
  memtier: false,
  async open(place) {
    const key = `${place.prefix}:lua`;
    const take = async (name: Name): Promise<boolean> =>
      (await clientOf(place, name).eval(SCRIPT, 1, key, LIMIT, WINDOW_S)) === 1;
    return { drive: limiter(place, take), count: async (name) => Number(await clientOf(place, name).get(key)) };
  },
};

const sortedSet: Kind = {
  name: 'sorted-set window',
  memtier: false,
  async open(place) {
    const key = `${place.prefix}:zset`;
    let member = 0;
    const take = async (name: Name): Promise<boolean> => {
      const now = Date.now();
      const replies = await clientOf(place, name)
        .multi()
        .zremrangebyscore(key, 0, now - WINDOW_MS)
        .zadd(key, now, `${name}-${member++}`)
        .zcard(key)
        .exec();
      return (replies![2][1] as number) <= LIMIT;
    };
    return { drive: limiter(place, take), count: (name) => clientOf(place, name).zcard(key) };
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
      count: async (name) =>
        (await clientOf(place, name).mget(keys)).reduce((sum, value) => sum + Number(value) - first, 0),
    };
  },
});

/** Quick to learn of each other, so that a round is short. */
const REFRESH_MS = 200;

const openLibrary = async (place: Place, name: Name, writer: string): Promise<Counters> =>
  Counters.open(ioredisStore(clientOf(place, name)), {
    region: name,
    writer,
    prefix: place.prefix,
    refreshMs: REFRESH_MS,
    blindAfterMs: 10 * REFRESH_MS,
    repairMs: 0,
  });

const openEach = async (place: Place, writer: string): Promise<Readonly<Record<Name, Counters>>> => {
  const { names } = place.mesh;
  const opened = await Promise.all(names.map((name) => openLibrary(place, name, writer)));
  return ofEach(names, (name) => opened[names.indexOf(name)]);
};

const closeEach = async ({ mesh }: Place, writers: Readonly<Record<Name, Counters>>): Promise<void> =>
  void (await Promise.all(mesh.names.map((name) => writers[name].close())));

/** What a reader that has just connected, and holds nothing of its own, reads at a node. */
async function readFresh(place: Place, name: Name, read: (counters: Counters) => Promise<number>): Promise<number> {
  const reader = await openLibrary(place, name, 'reader');
  return read(reader).finally(() => reader.close());
}

const library: Kind = {
  name: 'the library, counter',
  memtier: false,
  async open(place) {
    const writers = await openEach(place, 'drill');
    const counters = ofEach<Name, GrowOnlyCounter>(place.mesh.names, (name) => writers[name].growOnly('n'));
    const add = (share: number, most = Infinity) =>
      onEach(place, async (name) =>
        takeMany(Math.min(most, Math.round(TIMES[name] * share)), () => counters[name].add().then(() => true)).then(
          ({ attempted, acknowledged }) => ({ attempted, acknowledged }),
        ),
      );
    return {
      before: () => add(SHARE_BEFORE),
      drive: () => add(1 - SHARE_BEFORE),
      again: () => add(1, 1),
      count: (name) => readFresh(place, name, (reader) => reader.growOnly('n').value()),
      close: () => closeEach(place, writers),
    };
  },
};

const libraryLimiter: Kind = {
  name: 'the library, window',
  memtier: false,
  async open(place) {
    const writers = await openEach(place, 'limits');
    const windows = ofEach<Name, Limiter>(place.mesh.names, (name) =>
      writers[name].fixedWindow('w', { limit: LIMIT, windowMs: WINDOW_MS }),
    );
    let admitted = 0;
    return {
      // Only what is admitted counts, and is what must not be lost.
      drive: async () => {
        const driven = await limiter(place, async (name) => (await windows[name].take('all')).admitted)();
        admitted = driven.admitted!;
        return { ...driven, acknowledged: admitted };
      },
      again: async () => {
        await Promise.all(place.mesh.names.map((name) => writers[name].repair()));
        return NOTHING;
      },
      // `remaining` ends at 0: a window that would hold more shows how many it has.
      count: (name) =>
        readFresh(
          place,
          name,
          async (reader) =>
            COUNTABLE -
            (await reader.fixedWindow('w', { limit: COUNTABLE, windowMs: WINDOW_MS }).peek('all')).remaining,
        ),
      close: () => closeEach(place, writers),
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
        onEach(place, async (name) => ({
          attempted: 1,
          acknowledged: await ownDriver(portOf(place, name), 1, ['INCR', key]),
        })),
      count: (name) => throughProxy(place, name, async (client) => Number(await client.get(key))),
    };
  },
};

const rewrittenWindow: Kind = {
  name: 'rewritten window',
  memtier: false,
  async open(place) {
    const key = `${place.prefix}:rewritten-window`;
    const clients = ofEach(place.mesh.names, (name) => proxyClient(place, name));
    const take = async (name: Name): Promise<boolean> => {
      const count = await clients[name].incr(key);
      if (count === 1) await clients[name].expire(key, WINDOW_S);
      return count <= LIMIT;
    };
    return {
      drive: limiter(place, take),
      again: () =>
        onEach(place, async (name) => ({
          attempted: 1,
          acknowledged: await ownDriver(portOf(place, name), 1, ['INCR', key]),
        })),
      count: (name) =>
        throughProxy(place, name, async (client) => ((await client.ttl(key)) > 0 ? Number(await client.get(key)) : -1)),
      close: async () => place.mesh.names.forEach((name) => clients[name].disconnect()),
    };
  },
};

const portOf = ({ proxies }: Place, name: Name): number => proxies.ports[name];
const proxyClient = (place: Place, name: Name): Redis =>
  new Redis({ host: '127.0.0.1', port: portOf(place, name), maxRetriesPerRequest: null });

async function throughProxy(place: Place, name: Name, read: (client: Redis) => Promise<number>): Promise<number> {
  const client = proxyClient(place, name);
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
