/**
 * Random writes on keys that live for 1 to 200 ms, while the mirror is now near, now far, and the proxy ends and starts
 * again: where no key is suspect, both servers hold the same.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Argument } from '../../../src/resp/encode.js';
import type { Wire } from '../../support/wire.js';
import { Random } from '../random/random.js';
import { withScene, type Scene } from './scene.js';

type Command = readonly Argument[];

const CLIENTS = 8;
const KEYS = 150;
const MOST_LIFE_MS = 200;
const MOST_LAG_MS = 50;
/** Commands of one segment. Then nothing runs, every key has outlived its deadline, and the servers are compared. */
const SEGMENT = 10_000;
/** Until the deadlines of both servers have passed: the mirror's may be later by what it lags. */
const OUTLIVED_MS = MOST_LIFE_MS + 2 * MOST_LAG_MS;

const below = (any: Random, most: number): number => any.between(0, most - 1);

const LIBRARY = `#!lua name=lives
redis.register_function('expire', function(keys, args)
  return redis.call('PEXPIRE', keys[1], args[1])
end)`;

/** By the type in the name of a key: what makes such a key, and what needs or keeps the life that it has. */
const TYPES: readonly {
  readonly make: (key: string) => Command;
  readonly keep: readonly ((key: string, other: string, any: Random) => Command)[];
}[] = [
  {
    make: (key) => ['SET', key, '0', 'KEEPTTL'],
    keep: [
      (key) => ['INCR', key],
      (key, _, any) => ['INCRBY', key, below(any, 9)],
      (key) => ['APPEND', key, '1'],
      (key, _, any) => ['SET', key, below(any, 9), 'KEEPTTL'],
      (key, _, any) => ['SETRANGE', key, below(any, 3), '7'],
      (key) => ['GETSET', key, '3'],
      (key) => ['SETNX', key, '5'],
      (key) => ['GETDEL', key],
      (key) => ['BITOP', 'NOT', key, key],
    ],
  },
  {
    make: (key) => ['HSET', key, 'a', 1],
    keep: [
      (key, _, any) => ['HSET', key, `f${below(any, 20)}`, 1],
      (key) => ['HINCRBY', key, 'a', 1],
      (key) => ['HDEL', key, 'a'],
    ],
  },
  {
    make: (key) => ['SADD', key, 'a', 'b'],
    keep: [
      (key, _, any) => ['SADD', key, `m${below(any, 20)}`],
      (key) => ['SPOP', key],
      (key, other) => ['SMOVE', key, other, 'a'],
      (key, other) => ['SUNIONSTORE', other, key],
      (key, other) => ['SDIFFSTORE', key, key, other],
    ],
  },
  {
    make: (key) => ['ZADD', key, 1, 'a', 2, 'b'],
    keep: [
      (key, _, any) => ['ZADD', key, below(any, 9), `m${below(any, 20)}`],
      (key) => ['ZINCRBY', key, 1, 'a'],
      (key) => ['ZPOPMIN', key],
      (key, other) => ['ZRANGESTORE', other, key, 0, -1],
    ],
  },
  {
    make: (key) => ['RPUSH', key, 'a', 'b'],
    keep: [
      (key, _, any) => ['RPUSH', key, below(any, 99)],
      (key) => ['LPOP', key],
      (key, other) => ['LMOVE', key, other, 'LEFT', 'RIGHT'],
      (key) => ['LPUSHX', key, 'x'],
      (key) => ['LTRIM', key, 0, 20],
    ],
  },
  {
    make: (key) => ['XADD', key, '*', 'f', 'v'],
    keep: [(key) => ['XADD', key, '*', 'f', 'v'], (key) => ['XTRIM', key, 'MAXLEN', 5]],
  },
];

/** The ways to give a key a life of `ms`. */
function lives(key: string, other: string, ms: number, any: Random, functions: boolean): Command {
  const isString = key.startsWith('{k}0');
  return any.pick<Command>([
    ['PEXPIRE', key, ms],
    ['PEXPIRE', key, ms, any.pick(['NX', 'XX', 'GT', 'LT'])],
    ['PEXPIREAT', key, Date.now() + ms],
    ['EVAL', "return redis.call('PEXPIRE', KEYS[1], ARGV[1])", 1, key, ms],
    ['EVAL', "return redis.call('PEXPIRE', KEYS[1], ARGV[1] + redis.call('TIME')[2] % 3)", 1, key, ms],
    ['RENAME', key, other],
    ['COPY', key, other, 'REPLACE'],
    ['PERSIST', key],
    ...(functions ? [['FCALL', 'expire', 1, key, ms]] : []),
    ...(isString
      ? [
          ['SET', key, below(any, 9), 'PX', ms],
          ['SET', key, below(any, 9), 'PXAT', Date.now() + ms],
          ['SET', key, below(any, 9), 'PX', ms, 'NX'],
          ['PSETEX', key, ms, below(any, 9)],
          ['GETEX', key, 'PX', ms],
          ['GETEX', key, 'PERSIST'],
          ['EVAL', "return redis.call('SET', KEYS[1], '4', 'PX', ARGV[1])", 1, key, ms],
        ]
      : []),
  ]);
}

function command(any: Random, functions: boolean): Command {
  const type = below(any, TYPES.length);
  const [key, other] = [below(any, KEYS), below(any, KEYS)].map((n) => `{k}${type}:${n}`);
  const dice = below(any, 10);
  if (dice < 2) return TYPES[type].make(key);
  if (dice < 6) return lives(key, other, 1 + below(any, MOST_LIFE_MS), any, functions);
  return any.pick(TYPES[type].keep)(key, other, any);
}

export interface Lived {
  readonly commands: number;
  readonly restarts: number;
  readonly segments: number;
  /** Keys that outlived their segment: it is they that can differ. */
  readonly left: number;
}

/** Sends about so many commands in one stage, and asserts after each segment that both servers hold the same. */
export async function loadLives(seed: number, stage: 'shadow' | 'live', commands: number): Promise<Lived> {
  const any = new Random(seed);
  const lived = { commands: 0, restarts: 0, segments: 0, left: 0 };
  await withScene({ default: { stage } }, async (scene) => {
    const toMirror = stage === 'live' ? scene.toSource : scene.toTarget;
    const direct = scene.client({ of: scene.target });
    const functions =
      stage === 'shadow' && /^redis:[78]/.test(`${scene.source.program.name}:${scene.source.program.version}`);
    if (functions) await scene.client().call('FUNCTION', 'LOAD', LIBRARY);
    while (lived.commands < commands) {
      const load = new Load(scene, any, functions);
      const isRestarted = below(any, 3) === 0;
      const running = load.run(SEGMENT);
      const lag = setInterval(() => (toMirror.delayMs = below(any, 2) * below(any, MOST_LAG_MS)), 20);
      try {
        if (isRestarted) {
          await sleep(below(any, 400));
          await scene.stopShard(any.pick(['at once', 'drained'] as const));
          await scene.startShard();
          load.resume();
        }
        await running;
      } finally {
        clearInterval(lag);
      }
      toMirror.delayMs = 0;
      // Each key has ended, or stays.
      await sleep(OUTLIVED_MS);
      try {
        await scene.assertEqual();
        assert.deepEqual(scene.shard.snapshot().mismatches, {}, JSON.stringify(scene.shard.findings().slice(0, 3)));
      } catch (problem) {
        (problem as Error).message +=
          ` (seed ${seed}, ${stage}, segment ${lived.segments}, ${isRestarted ? 'restarted' : 'not restarted'})`;
        throw problem;
      }
      lived.left += await direct.dbsize();
      lived.commands += SEGMENT;
      lived.restarts += Number(isRestarted);
      lived.segments++;
      await scene.client().flushall();
    }
  });
  return lived;
}

/** The clients of one segment. They reconnect when the proxy has restarted. */
class Load {
  #left = 0;
  #back: () => void = () => undefined;
  #isBack = new Promise<void>((resolve) => (this.#back = resolve));

  constructor(
    private readonly scene: Scene,
    private readonly any: Random,
    private readonly functions: boolean,
  ) {}

  resume(): void {
    this.#back();
  }

  async run(commands: number): Promise<void> {
    this.#left = commands;
    await Promise.all(Array.from({ length: CLIENTS }, () => this.#drive()));
  }

  async #drive(): Promise<void> {
    let wire: Wire | null = null;
    while (this.#left > 0) {
      wire ??= await this.scene.wire().catch(() => null);
      const many = 1 + below(this.any, 12);
      const sent = Array.from({ length: many }, () => command(this.any, this.functions));
      const asTransaction = below(this.any, 6) === 0;
      try {
        if (wire === null) throw new Error('no proxy');
        await wire.pipeline(asTransaction ? [['MULTI'], ...sent, ['EXEC']] : sent);
        this.#left -= many;
      } catch {
        wire?.destroy();
        wire = null;
        await this.#isBack;
      }
    }
    wire?.destroy();
  }
}
