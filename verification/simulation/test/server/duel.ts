/** The same commands to a model and to a real server: what both answer, and what both hold in the end. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import {
  startKeydb,
  startRedis,
  type LocalServer,
  type ServerConfig,
} from '../../../../shadow-proxy/src/local/servers.js';
import { decodeReply, type Reply } from '../../../../shadow-proxy/src/resp/decode.js';
import { encodeCommand } from '../../../../shadow-proxy/src/resp/encode.js';
import { FrameReader } from '../../../../shadow-proxy/src/resp/frame-reader.js';
import { EVERY_COMMAND } from '../../../../shadow-proxy/test/support/servers.js';
import { needs } from '../../../../shadow-proxy/test/support/needs.js';
import { Wire } from '../../../../shadow-proxy/test/support/wire.js';
import { ModelServer, type ModelClient } from '../../server/server.js';
import type { Engine } from '../../server/state.js';
import type { Surroundings } from '../../server/surroundings.js';
import { Random, seedOf } from './random.js';

export const ENGINES: readonly Engine[] = ['redis', 'keydb'];

export type Words = readonly string[];

/** The world of a model beside a real server: the same clock. */
export const REAL: Surroundings = {
  unixMs: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return { cancel: () => clearTimeout(timer) };
  },
  random: Math.random,
};

/** Without timers: an expired key is deleted only by a command that looks for it. */
export const WITHOUT_CYCLE: Surroundings = { ...REAL, after: () => ({ cancel: () => undefined }) };
/** Empties a server, and leaves expired keys to the commands that look for them there, too. */
const FRESH = [['DEBUG', 'SET-ACTIVE-EXPIRE', '0'], ['FLUSHALL'], ['SCRIPT', 'FLUSH'], ['ACL', 'DELUSER', 'u1', 'u2']];

export const startReal = (engine: Engine, config: ServerConfig = {}): Promise<LocalServer> =>
  engine === 'redis'
    ? startRedis({ config: { 'enable-debug-command': 'yes', ...config } })
    : startKeydb({ config: { ...EVERY_COMMAND.config, 'server-threads': 1, ...config } });

/** A client of a model whose replies are read as frames. */
export class ModelWire {
  readonly frames: string[] = [];
  readonly client: ModelClient;
  ended = false;
  readonly #reader = new FrameReader();

  constructor(model: ModelServer) {
    this.client = model.connect(
      (bytes) => {
        this.#reader.feed(bytes);
        while (this.#reader.next())
          this.frames.push(this.#reader.buffer.toString('latin1', this.#reader.start, this.#reader.end - 2));
      },
      () => (this.ended = true),
      { host: '127.0.0.1', port: 50_000 },
    );
  }

  send(words: Words): void {
    this.client.receive(encode(words));
  }

  /** What is answered at once; undefined where the client waits. */
  ask(words: Words): string | undefined {
    this.send(words);
    return this.frames.shift();
  }
}

const encode = (words: Words): Buffer => encodeCommand(words.map((word) => Buffer.from(word, 'latin1')));

/** A reply as something to compare: collections without an order sorted, numbers that depend on time apart. */
function shapeOf(frame: string, words: Words, queued: readonly Words[]): unknown {
  const { reply } = decodeReply(Buffer.from(`${frame}\r\n`, 'latin1'));
  const shape = plain(reply);
  if (words[0].toLowerCase() !== 'exec' || !Array.isArray(shape)) return inOrder(shape, words);
  return shape.map((each, i) => inOrder(each, queued[i]));
}

function inOrder(shape: unknown, [name]: Words): unknown {
  const command = name.toLowerCase();
  const tolerance = TIMED[command];
  if (tolerance !== undefined && typeof shape === 'string' && shape.length > 3) return ': a time';
  if (!Array.isArray(shape)) return shape;
  for (const [pattern, shown] of MASKED[command] ?? [])
    return inOrder(JSON.parse(JSON.stringify(shape).replace(pattern, shown)), ['']);
  if (UNORDERED.has(command)) return [...shape].sort(byText);
  if (PAIRED.has(command)) return pairs(shape).sort(byText);
  return shape;
}

const UNORDERED = new Set([
  ...['smembers', 'sinter', 'sunion', 'sdiff', 'keys', 'hkeys', 'hvals'],
  ...['spop', 'srandmember', 'hrandfield', 'zrandmember'],
]);
const PAIRED = new Set(['hgetall']);
/** What differs between two servers that do the same. */
const MASKED: Readonly<Record<string, readonly (readonly [RegExp, string])[]>> = {
  // Each server counts its connections.
  hello: [[/("\$id",":)\d+/, '$1']],
  // How long ago an entry was delivered.
  xpending: [[/("\$\d+-\d+","\$[^"]*",":)\d+/g, '$1']],
  // When a consumer was seen, and its entries delivered.
  xinfo: [[/((?:"\$idle",)?":)(?:\d+(?<="\$idle",":\d+)|1\d{12})/g, '$1']],
};
/** Replies that move with the clock, and by how much they may differ. */
const TIMED: Readonly<Record<string, number>> = { ttl: 1, pttl: 200, expiretime: 1, pexpiretime: 200 };

function plain(reply: Reply): unknown {
  if (reply.items !== null) {
    const items = reply.items.map(plain);
    if (reply.type === '*') return items;
    if (reply.type === '~') return [reply.type, ...items.sort(byText)];
    return [reply.type, ...(reply.type === '%' ? pairs(items).sort(byText) : items)];
  }
  return reply.data === null ? `${reply.type} nil` : `${reply.type}${reply.data.toString('latin1')}`;
}

const byText = (a: unknown, b: unknown): number => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

const pairs = (items: readonly unknown[]): unknown[] =>
  Array.from({ length: items.length / 2 }, (_, i) => [items[2 * i], items[2 * i + 1]]);

function same(words: Words, real: string, model: string | undefined, queued: readonly Words[] = []): boolean {
  if (real === model) return true;
  if (model === undefined) return false;
  const tolerance = TIMED[words[0].toLowerCase()];
  if (tolerance !== undefined && real.startsWith(':') && model.startsWith(':'))
    return Math.abs(Number(real.slice(1)) - Number(model.slice(1))) <= tolerance;
  return JSON.stringify(shapeOf(real, words, queued)) === JSON.stringify(shapeOf(model, words, queued));
}

/** Reads a key's value. */
const READS: Readonly<Record<string, (key: string) => Words>> = {
  string: (key) => ['GET', key],
  list: (key) => ['LRANGE', key, '0', '-1'],
  hash: (key) => ['HGETALL', key],
  set: (key) => ['SMEMBERS', key],
  zset: (key) => ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
  stream: (key) => ['XRANGE', key, '-', '+'],
};

interface Difference {
  readonly at: number;
  readonly words: Words;
  readonly real: string;
  readonly model: string | undefined;
}

/** A real server with its model. */
export class Duel {
  constructor(
    readonly engine: Engine,
    readonly real: LocalServer,
    /** Makes a model that is as the real server is. */
    private readonly begin: () => ModelServer = () => new ModelServer(engine, WITHOUT_CYCLE),
  ) {}

  /**
   * Fails where replies or keyspaces differ, with a short program that shows it.
   * @param seed of the program, for the message
   */
  async fight(t: TestContext, program: readonly Words[], seed: number): Promise<void> {
    t.diagnostic(`${program.length} commands of seed ${seed} to ${this.real.label}`);
    const found = await this.#play(program);
    if (found === null) return;
    const shown = program.slice(0, found.at + 1);
    const short = await this.#shrink(shown);
    const last = await this.#play(short);
    assert.fail(
      [
        `seed ${seed}, command ${found.at}: ${this.real.label} and its model differ.`,
        ...short.map((words) => `  ${words.map((word) => JSON.stringify(word)).join(' ')}`),
        `  server: ${JSON.stringify((last ?? found).real)}`,
        `  model:  ${JSON.stringify((last ?? found).model)}`,
      ].join('\n'),
    );
  }

  /** Halves what comes before the last command, as long as the difference stays. */
  async #shrink(program: readonly Words[]): Promise<readonly Words[]> {
    let kept = program;
    for (let size = kept.length >> 1; size >= 1; size >>= 1) {
      for (let at = 0; at + size < kept.length;) {
        const without = [...kept.slice(0, at), ...kept.slice(at + size)];
        const found = await this.#play(without);
        if (found === null) at += size;
        else kept = without.slice(0, found.at + 1);
      }
    }
    return kept;
  }

  async #play(program: readonly Words[]): Promise<Difference | null> {
    const wire = await Wire.open({ port: this.real.port });
    const fresh = await wire.pipeline(FRESH);
    assert.ok(!fresh.some((reply) => reply.startsWith('-')), String(fresh));
    const model = this.begin();
    const modelled = new ModelWire(model);
    const [tracker, modelTracker] = [await Wire.open({ port: this.real.port }), new ModelWire(model)];
    let queued: Words[] = [];
    try {
      for (const words of TRACK) assert.equal(modelTracker.ask(words)?.[0], (await tracker.ask(...words))[0]);
      for (let from = 0, to = 0; from < program.length; from = to) {
        for (to = from + 1; to < program.length && to < from + BATCH && !endsBatch(program[to - 1]);) to++;
        const batch = program.slice(from, to);
        const replies = wire.pipeline(batch.map((words) => words.map((word) => Buffer.from(word, 'latin1'))));
        const answers = batch.map((words) => modelled.ask(words));
        const reals = await replies.catch((error: unknown) => {
          throw new Error(`after ${from} commands, among ${JSON.stringify(batch)}`, { cause: error });
        });
        for (let i = 0; i < batch.length; i++) {
          if (!same(batch[i], reals[i], answers[i], queued))
            return { at: from + i, words: batch[i], real: reals[i], model: answers[i] };
          if (reals[i] === '+QUEUED') queued.push(batch[i]);
          else if (END_OF_QUEUE.has(batch[i][0].toUpperCase())) queued = [];
        }
        tracker.send('PING');
        modelTracker.send(['PING']);
        const real = await changesIn(() => tracker.frame());
        const expected = await changesIn(() => Promise.resolve(modelTracker.frames.shift()!));
        if (real !== expected) return { at: to - 1, words: ['PING'], real, model: expected };
      }
      return await this.#compareKeys(wire, modelled, program.length - 1);
    } finally {
      wire.destroy();
      tracker.destroy();
    }
  }

  /** Everything that both hold, read with plain commands. */
  async #compareKeys(wire: Wire, model: ModelWire, at: number): Promise<Difference | null> {
    const both = async (words: Words): Promise<[string, Difference | null]> => {
      const real = await wire.ask(...words.map((word) => Buffer.from(word, 'latin1')));
      const answer = model.ask(words);
      return [real, same(words, real, answer) ? null : { at, words, real, model: answer }];
    };
    // The program may have left a transaction, or another protocol.
    for (const words of [['RESET'], ['SELECT', '0']]) {
      const [, found] = await both(words);
      if (found !== null) return found;
    }
    for (const database of ['0', '1', '2']) {
      await both(['SELECT', database]);
      const [keys, found] = await both(['KEYS', '*']);
      if (found !== null) return found;
      const names = decodeReply(Buffer.from(`${keys}\r\n`, 'latin1')).reply.items!.map((item) =>
        item.data!.toString('latin1'),
      );
      for (const key of names) {
        const [type, other] = await both(['TYPE', key]);
        if (other !== null) return other;
        for (const words of [READS[type.slice(1)]?.(key) ?? ['TYPE', key], ['PTTL', key]]) {
          const [, different] = await both(words);
          if (different !== null) return different;
        }
      }
    }
    return null;
  }
}

/** What a server reports to a client that tracks keys, up to the next reply: the keys that changed, and the flushes. */
async function changesIn(nextFrame: () => Promise<string>): Promise<string> {
  const changed = new Set<string>();
  let flushes = 0;
  for (let frame = await nextFrame(); frame.startsWith('>'); frame = await nextFrame()) {
    const [, keys] = decodeReply(Buffer.from(`${frame}\r\n`, 'latin1')).reply.items!;
    if (keys.items === null) flushes++;
    else for (const { data } of keys.items) changed.add(data!.toString('latin1'));
  }
  return JSON.stringify([...changed].sort().concat(`${flushes} flushes`));
}

const TRACK = [
  ['HELLO', '3'],
  ['CLIENT', 'TRACKING', 'ON', 'BCAST'],
];
const BATCH = 200;
const END_OF_QUEUE = new Set(['EXEC', 'DISCARD', 'RESET']);
/** KeyDB answers KEYS and SCAN from another thread, and lets what a pipeline has behind them wait for more input. */
const endsBatch = ([name]: Words): boolean => ['KEYS', 'SCAN'].includes(name);

/** A test for each engine: `count` random commands. `SEED` sets another seed than the fixed one. */
export function duels(
  title: string,
  fixedSeed: number,
  count: number,
  command: (random: Random, engine: Engine) => Words,
): void {
  for (const engine of ENGINES)
    test(`the model of ${engine} ${title}`, async (t) => {
      if (!(await needs(t, engine === 'redis' ? 'redis=7.0' : 'keydb'))) return;
      const real = await startReal(engine);
      try {
        const seed = seedOf(fixedSeed);
        const random = new Random(seed);
        await new Duel(engine, real).fight(
          t,
          Array.from({ length: count }, () => command(random, engine)),
          seed,
        );
      } finally {
        await real.stop();
      }
    });
}
