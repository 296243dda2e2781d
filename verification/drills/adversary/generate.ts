/** A program from a seed: a pure function of the seed and the options. */
import { createHash } from 'node:crypto';
import type { Argument } from '../../../shadow-proxy/test/integration/random/reply.js';
import { Generator } from '../../../shadow-proxy/test/integration/random/generator.js';
import { Random } from '../../../shadow-proxy/test/integration/random/random.js';
import { HIDDEN, KEY_TYPES, randomScript } from './lua.js';
import { EPOCH_MS, STAGES, WORKLOADS, type Act, type Fault, type Login, type Program } from './program.js';

/**
 * What a program may be without: links that fail and processes that are killed; scripts; clients that close their end
 * only.
 */
export const PARTS = ['faults', 'scripts', 'half-close'] as const;
export type Part = (typeof PARTS)[number];

export interface GenerateOptions {
  /** How many acts; default 300. */
  readonly acts?: number;
  readonly without?: readonly Part[];
}

const PREFIXES = ['a:', 'b:', ''];
/** Their values are compared with what was acknowledged. */
export const COUNTERS = ['cnt:0', 'cnt:1', 'a:cnt', 'b:cnt'];

/** @param seed a whole number; the same one gives the same program */
export function generate(seed: number, options: GenerateOptions = {}): Program {
  return new Maker(seed, options).program();
}

class Maker {
  readonly #random: Random;
  readonly #clients: readonly Login[];
  readonly #generators: readonly Generator[];
  readonly #scripts: string[] = [];

  constructor(
    private readonly seed: number,
    private readonly options: GenerateOptions,
  ) {
    const random = (this.#random = new Random(seed));
    this.#clients = random.times(random.between(2, 8), () => ({
      protocol: random.pick([2, 3] as const),
      user: random.pick([null, null, null, 'app', 'narrow'] as const),
      db: random.pick([0, 0, 0, 1, 2, 3]),
    }));
    const keysPerType = random.pick([1, 2, 8]);
    this.#generators = this.#clients.map(({ db }, connection) => {
      const generator = new Generator({
        seed,
        connection,
        prefixes: PREFIXES,
        keysPerType,
        expiring: true,
        barriers: true,
        functions: PREFIXES,
        now: () => EPOCH_MS,
      });
      generator.db = db;
      return generator;
    });
  }

  program(): Program {
    const random = this.#random;
    const stage = (): (typeof STAGES)[number] => random.pick([...STAGES, 'shadow']);
    const acts = random.times(this.options.acts ?? 300, () => this.#act());
    return { seed: this.seed, stages: { a: stage(), b: stage(), default: stage() }, clients: this.#clients, acts };
  }

  #has(part: Part): boolean {
    return !this.options.without?.includes(part);
  }

  #act(): Act {
    const random = this.#random;
    const client = random.between(0, this.#clients.length - 1);
    const dice = random.next();
    if (dice < 0.72) return this.#send(client);
    if (dice < 0.8) return { do: 'await', client };
    if (dice < 0.9) return { do: 'pause', ms: random.pick([0, 0, 1, 1, 2, 5, 20]) };
    if (dice < 0.93)
      return { do: 'leave', client, how: this.#has('half-close') && random.chance(0.5) ? 'half-close' : 'reset' };
    if (dice < 0.94) return { do: 'stop-reading', client, ms: random.between(1, 400) };
    if (dice < 0.97) return { do: 'stage', workload: random.pick(WORKLOADS), to: random.pick(STAGES) };
    if (!this.#has('faults') || dice < 0.975) return this.#send(client);
    if (dice < 0.996) return this.#fault();
    return { do: 'kill', what: random.pick(['proxy', 'proxy', 'target']) };
  }

  #fault(): Fault {
    const random = this.#random;
    const kind = random.pick(['cut', 'cut', 'abandon', 'silence'] as const);
    return {
      do: 'fault',
      side: random.pick(['source', 'target'] as const),
      direction: random.pick(['up', 'down'] as const),
      bytes: random.pick([0, random.between(0, 50), random.between(0, 5_000)]),
      kind,
      all: random.chance(0.4),
      ms: kind === 'silence' ? random.pick([20, 60, 200, 1_000, 5_000]) : 0,
    };
  }

  #send(client: number): Act {
    const random = this.#random;
    const commands = random.times(random.pick([1, 1, 2, random.between(1, 30)]), () => this.#commands(client)).flat();
    const text = commands.map((args) => args.map(asText));
    const bytes = text.reduce((sum, args) => sum + args.reduce((length, arg) => length + arg.length + 8, 6), 0);
    const pieces = random.chance(0.15)
      ? random.times(random.between(1, 4), () => random.between(1, Math.max(1, bytes))).sort((a, b) => a - b)
      : undefined;
    return { do: 'send', client, commands: text, ...(pieces && { pieces }) };
  }

  #commands(client: number): (readonly Argument[])[] {
    const random = this.#random;
    const generator = this.#generators[client];
    const one = (): (readonly Argument[])[] => {
      const args = this.#one(client, generator);
      // A connection that was opened again is in the database of its login, where the counters may be.
      return args[0] === 'FLUSHDB' ? [['SELECT', '2'], args] : [args];
    };
    const some = (most: number): (readonly Argument[])[] => random.times(random.between(0, most), one).flat();
    const moving = (): (readonly Argument[])[] => (random.chance(0.15) ? [this.#select(generator), ...one()] : one());
    const inside = (): (readonly Argument[])[] => random.times(random.between(0, 6), moving).flat();
    if (random.chance(0.03)) return [['MULTI'], ...inside(), [random.chance(0.15) ? 'DISCARD' : 'EXEC']];
    if (random.chance(0.02))
      return [['WATCH', generator.anyKey(), generator.anyKey()], ...some(2), ['MULTI'], ...one(), ['EXEC']];
    return one();
  }

  #one(client: number, generator: Generator): readonly Argument[] {
    const random = this.#random;
    if (random.chance(0.08)) return ['ECHO', `${TOKEN}${client}-${random.between(0, 1e9)}`];
    if (random.chance(0.06)) return ['INCR', random.pick(COUNTERS)];
    if (random.chance(0.06) && this.#has('scripts')) return this.#eval(generator);
    if (random.chance(0.02)) return this.#select(generator);
    if (random.chance(0.01)) return random.pick(this.#has('scripts') ? [...ODD, ...ODD_SCRIPTS] : ODD)(random);
    const { calls } = generator.next();
    const args = calls[0]?.args ?? ['PING'];
    return !this.#has('scripts') && SCRIPT.test(String(args[0])) ? ['PING'] : args;
  }

  #select(generator: Generator): readonly Argument[] {
    generator.db = this.#random.between(0, 3);
    return ['SELECT', String(generator.db)];
  }

  #eval(generator: Generator): readonly Argument[] {
    const random = this.#random;
    const prefix = random.pick(PREFIXES);
    const keys = KEY_TYPES.map((type) => `${prefix}${type}:${random.between(1, 2)}`);
    const known = this.#scripts.length > 0 && random.chance(0.4) ? random.pick(this.#scripts) : null;
    const text = known ?? randomScript(random, prefix);
    if (known === null) this.#scripts.push(text);
    const operands = [String(keys.length), ...keys, generator.member(), generator.member()];
    return random.chance(0.3)
      ? ['EVALSHA', createHash('sha1').update(text, 'latin1').digest('hex'), ...operands]
      : ['EVAL', text, ...operands];
  }
}

const SCRIPT = /^(EVAL|FCALL|SCRIPT)/;

/** An ECHO's text: the client that sent it, so that a reply to the wrong one shows. */
export const TOKEN = 'adversary-';

/** Commands beside the keys, each of which has once been an edge of something. */
const ODD: readonly ((random: Random) => readonly Argument[])[] = [
  () => ['PING'],
  () => ['UNWATCH'],
  () => ['CLIENT', 'ID'],
  () => ['CLIENT', 'SETNAME', 'adversary'],
  () => ['CLIENT', 'LIST'],
  () => ['CONFIG', 'GET', 'maxmemory'],
  () => ['DEBUG', 'SLEEP', '0'],
  () => ['COMMAND', 'COUNT'],
  () => ['INFO', 'server'],
  () => ['DBSIZE'],
  (random) => ['HELLO', String(random.pick([2, 3]))],
  (random) => ['SWAPDB', String(random.between(1, 3)), String(random.between(2, 3))],
  (random) => ['PUBLISH', random.pick(['chat:a', 'chat:b']), 'text'],
  (random) => ['BLPOP', `list:${random.between(0, 1)}`, `a:list:${random.between(0, 1)}`, '0.02'],
  (random) => ['XREAD', 'BLOCK', '20', 'STREAMS', `log:${random.between(0, 1)}`, '$'],
  (random) => ['WAIT', '0', String(random.between(1, 10))],
];

const ODD_SCRIPTS: typeof ODD = [
  () => ['SCRIPT', 'FLUSH'],
  () => ['SCRIPT', 'EXISTS', '0'.repeat(40)],
  () => ['EVAL', `return redis.call('SET', '${HIDDEN}', ARGV[1])`, '0', 'v'],
  () => ['EVAL', "return redis.call('SET', ARGV[1] .. ':x', '1')", '0', 'a'],
];

const asText = (argument: Argument): string => (typeof argument === 'string' ? argument : argument.toString('latin1'));
