/**
 * Measures what the layout costs compared with plain INCR: keys, bytes, reads, latency. `npm run counters:cost`
 *
 * Prints Markdown. Every figure is measured on a server that this program starts, with one client on the same machine,
 * one call at a time unless stated otherwise.
 */
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { build, type Histogram } from 'hdr-histogram-js';
import { Redis } from 'ioredis';
import { findKeydb } from '../../shadow-proxy/src/local/program.js';
import {
  startKeydb,
  startRedis,
  stopServers,
  type LocalServer,
  type ServerConfig,
} from '../../shadow-proxy/src/local/servers.js';
import { Counters, type PlainCounters } from '../src/index.js';
import { ioredisStore } from '../src/ioredis.js';

const KEYS = 20_000;
const CALLS = 1000;
const WRITERS = [1, 10, 50, 200];
const BUCKETS = 10;
const WINDOW = { limit: 1e9, windowMs: 1e9 };
const HEARTBEAT = String(8e15);

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const say = (line = ''): void => void process.stdout.write(`${line}\n`);
const row = (...cells: readonly (string | number)[]): void => say(`| ${cells.join(' | ')} |`);

interface Bench {
  readonly redis: Redis;
  readonly counters: Counters;
  readonly plain: PlainCounters;
}

/** Starts a server, and another that replicates from it. */
type Start = (config?: ServerConfig) => Promise<LocalServer>;

async function main(): Promise<void> {
  say(`Measured on ${availableParallelism()} cores with Node ${process.versions.node} and ioredis.`);
  await measure((config) => startRedis({ config }));
  if ((await findKeydb()) === null) say('\nNOT MEASURED ON KEYDB: there is no keydb-server.');
  else await measure((config) => startKeydb({ config: { 'active-replica': 'yes', 'multi-master': 'yes', ...config } }));
}

async function measure(start: Start): Promise<void> {
  const server = await start();
  const redis = new Redis({ host: '127.0.0.1', port: server.port });
  const counters = await Counters.open(ioredisStore(redis), { region: 'eu', writer: 'app-1', repairMs: 0 });
  const bench = { redis, counters, plain: counters.plain({ tendMs: 0 }) };
  say(`\n### ${server.label}\n`);
  await memory(bench);
  await latency(bench);
  await start({ replicaof: `127.0.0.1 ${server.port}` });
  while (!/^slave0:.*state=online/m.test(await redis.info('replication'))) await sleep(50);
  await throughput(bench);
  await counters.close();
  redis.disconnect();
  await stopServers();
}

/** Bytes for each key, over `KEYS` keys with names of 15 characters. */
async function memory({ redis, counters, plain }: Bench): Promise<void> {
  const nameOf = (i: number): string => `visits:${String(i).padStart(8, '0')}`;
  const fixed = counters.fixedWindow('api', WINDOW);
  const sliding = counters.slidingWindow('sly', { ...WINDOW, buckets: BUCKETS });
  const now = Date.now();
  const full = Array.from({ length: BUCKETS + 1 }, (_, i) => ` ${now - i * 1e8}=123`).join('');
  const kinds: [string, (i: number) => Promise<unknown>][] = [
    ['`INCR`', (i) => redis.incr(nameOf(i))],
    ['a part of a counter', (i) => counters.growOnly(nameOf(i)).add()],
    ['a part of a plain counter', (i) => plain.add(`plain:${nameOf(i)}`)],
    ['a part of a fixed window', (i) => fixed.take(nameOf(i))],
    ['a part of a sliding window, one bucket of 10 used', (i) => sliding.take(nameOf(i))],
    [
      'a part of a sliding window, all buckets used',
      (i) => redis.set(`counters:{sly:full:${nameOf(i)}}:${counters.id}`, `w${full}`, 'PX', 1e9),
    ],
  ];
  row('a key of', 'bytes on the server', 'bytes in the process');
  row('---', '---:', '---:');
  for (const [name, touch] of kinds) {
    const [server, own] = [await used(redis), heap()];
    for (let i = 0; i < KEYS; i += 1000) await Promise.all(Array.from({ length: 1000 }, (_, j) => touch(i + j)));
    const holds = name.includes('all buckets') || name === '`INCR`' ? '–' : Math.round((heap() - own) / KEYS);
    row(name, Math.round(((await used(redis)) - server) / KEYS), holds);
  }
  say();
}

const used = async (redis: Redis): Promise<number> =>
  Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))![1]);

function heap(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

/** Latency of one call at a time, by the number of writers whose parts are read. */
async function latency({ redis, counters, plain }: Bench): Promise<void> {
  row('writers', 'call', 'commands', 'p50 µs', 'p99 µs', 'p50 by that of `INCR`', 'p99 likewise');
  row('---:', '---', '---', '---:', '---:', '---:', '---:');
  await call(redis, 'any', '`add`', '`SET`', () => counters.growOnly('timed').add());
  for (const writers of WRITERS) {
    await enter(redis, writers);
    await counters.growOnly('timed').value();
    const fixed = counters.fixedWindow('timed-fixed', WINDOW);
    const sliding = counters.slidingWindow('timed-sliding', WINDOW);
    // The list of writers is read again after this time.
    await sleep(1200);
    const mget = `\`MGET\` of ${writers - 1}`;
    if (writers > 1) await call(redis, writers, '`value`', mget, () => counters.growOnly('timed').value());
    await call(redis, writers, 'plain `add`', writers > 1 ? `${mget}, \`SET\`` : '`SET`', () =>
      plain.add('timed-plain'),
    );
    const both = writers > 1 ? `\`SET\`, ${mget}` : '`SET`';
    await call(redis, writers, '`take`, fixed', both, () => fixed.take('user'));
    await call(redis, writers, '`take`, sliding', both, () => sliding.take('user'));
  }
  await redis.del('counters:@writers:{us}');
  say();
}

/** Announces `writers` writers, and gives each a part of the timed counters. */
async function enter(redis: Redis, writers: number): Promise<void> {
  const now = Date.now();
  for (let i = 1; i < writers; i++) {
    const id = `us.app-${i}.mf3k2x9q-1abcdef`;
    const window = now - (now % WINDOW.windowMs);
    await redis.hset('counters:@writers:{us}', id, HEARTBEAT);
    await redis.set(`counters:{timed}:${id}`, `c ${i}00000 0`);
    await redis.set(`counters:{timed-plain}:${id}`, `p ${i}00000 0 1 0 - 0 0`);
    for (const limiter of ['timed-fixed', 'timed-sliding'])
      await redis.set(`counters:{${limiter}:user}:${id}`, `w ${window}=123`);
  }
  await redis.hset('counters:@regions', 'us', '1');
}

/** Times each call next to an `INCR`, so that other load on the machine affects both. */
async function call(
  redis: Redis,
  writers: number | string,
  name: string,
  commands: string,
  once: () => Promise<unknown>,
): Promise<void> {
  const [own, plain] = [build(), build()];
  const timed = async (of: Histogram, body: () => Promise<unknown>): Promise<void> => {
    const from = performance.now();
    await body();
    of.recordValue(Math.round((performance.now() - from) * 1000));
  };
  for (let i = 0; i < 200; i++) await once();
  for (let i = 0; i < CALLS; i++) {
    await timed(own, once);
    await timed(plain, () => redis.incr('plain'));
  }
  const [p50, p99] = [50, 99].map((percent) => own.getValueAtPercentile(percent));
  row(
    writers,
    name,
    commands,
    p50,
    p99,
    (p50 / plain.getValueAtPercentile(50)).toFixed(1),
    (p99 / plain.getValueAtPercentile(99)).toFixed(1),
  );
}

/**
 * With 200 calls at a time: calls per second, the number of commands for them, and bytes that a replica gets for each
 * call.
 */
async function throughput({ redis, counters, plain }: Bench): Promise<void> {
  const calls = 50_000;
  const atATime = 200;
  row('200 at a time', 'calls/s', 'server commands a call', 'bytes replicated a call');
  row('---', '---:', '---:', '---:');
  const kinds: [string, (i: number) => Promise<unknown>][] = [
    ['`INCR`, one key', () => redis.incr('plain')],
    ['`add`, one key', () => counters.growOnly('hot').add()],
    ['plain `add`, one key', () => plain.add('hot-plain')],
    ['`INCR`, 1000 keys', (i) => redis.incr(`plain:${i % 1000}`)],
    ['`add`, 1000 keys', (i) => counters.growOnly(`hot:${i % 1000}`).add()],
    ['plain `add`, 1000 keys', (i) => plain.add(`hot-plain:${i % 1000}`)],
  ];
  for (const [name, once] of kinds) {
    const [offset, commands, from] = [await replicated(redis), await processed(redis), performance.now()];
    for (let i = 0; i < calls; i += atATime) await Promise.all(Array.from({ length: atATime }, (_, j) => once(i + j)));
    const seconds = (performance.now() - from) / 1000;
    const [bytes, count] = [(await replicated(redis)) - offset, (await processed(redis)) - commands];
    row(name, Math.round(calls / seconds).toLocaleString('en'), (count / calls).toFixed(2), (bytes / calls).toFixed(0));
  }
}

const replicated = async (redis: Redis): Promise<number> =>
  Number(/^master_repl_offset:(\d+)/m.exec(await redis.info('replication'))![1]);
const processed = async (redis: Redis): Promise<number> =>
  Number(/^total_commands_processed:(\d+)/m.exec(await redis.info('stats'))![1]);

await main();
