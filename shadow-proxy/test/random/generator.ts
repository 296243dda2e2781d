/**
 * What a connection does next: a pure function of the seed, the connection's number and the clock, but for the few
 * arguments that only a server can give (payloads of DUMP, stream IDs, digests of scripts).
 */
import { call, textOf, type Argument, type Call, type Plain } from './command.js';
import { Random } from './random.js';
import { FUNCTIONS } from './commands/functions.js';
import { RULES } from './commands/index.js';
import { TYPES, type KeyType } from './types.js';

/** Some calls in a row: on their own, or between MULTI and `end`. */
export interface Step {
  readonly calls: readonly Call[];
  readonly end: 'EXEC' | 'DISCARD' | null;
}

export interface GeneratorOptions {
  readonly seed: number;
  readonly connection: number;
  /** Keys start with one of these; a step keeps to one, but for one in fifty that crosses. */
  readonly prefixes: readonly string[];
  readonly keysPerType: number;
  /** Whether keys expire while the run goes on. */
  readonly expiring: boolean;
  /** FLUSHDB and SWAPDB, of databases 2 and 3 only. */
  readonly barriers: boolean;
  /** Prefixes of keys that functions may be called with; none when absent. */
  readonly functions?: readonly string[];
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const PROBE_DATABASES = [0, 1];

export class Generator {
  readonly random: Random;
  readonly now: () => number;
  /** The database that the connection is in when the step is sent. */
  db = 0;
  /** Payloads of DUMP, by the type of the key's name. */
  readonly dumps: { readonly type: KeyType; readonly payload: Buffer }[] = [];
  /** Stream IDs that a server gave. */
  readonly ids: string[] = [];
  readonly digests: string[] = ['0'.repeat(40)];
  /** Steps so far: explicit stream IDs grow with it. */
  steps = 0;
  #prefix = '';
  #cross = false;
  #token = 0;
  #life = 0;
  #counted: Record<string, number> = {};

  constructor(readonly options: GeneratorOptions) {
    this.random = new Random(options.seed, options.connection);
    this.now = options.now;
  }

  next(): Step {
    const { random } = this;
    this.steps++;
    this.#prefix = random.pick(this.options.prefixes);
    this.#cross = random.chance(0.02);
    if (random.chance(0.04)) return { calls: this.#probe(), end: null };
    if (random.chance(0.02)) return { calls: [this.#count()], end: null };
    // What is watched holds up to the next EXEC, which may answer nil then.
    if (random.chance(0.02)) return { calls: [random.chance(0.1) ? call('status', 'UNWATCH') : call('status', 'WATCH', ...random.times(random.between(1, 3), () => this.anyKey()))], end: null };
    if (!random.chance(0.06)) return { calls: [this.#any()], end: null };
    const calls = this.#inTransaction();
    if (random.chance(0.2)) calls.push(...this.#probe());
    return { calls, end: random.chance(0.12) ? 'DISCARD' : 'EXEC' };
  }

  /** Commands of a transaction, in several databases some of the time; it ends in the one that it begins in. */
  #inTransaction(): Call[] {
    const { random, db } = this;
    const selects = random.chance(0.3);
    const select = (to: number): Call => {
      this.db = to;
      return call('status', 'SELECT', to);
    };
    const some = (): Call[] => (selects && random.chance(0.4) ? [select(random.between(0, 3)), this.#any()] : [this.#any()]);
    const calls = random.times(random.between(0, 6), some).flat();
    return this.db === db ? calls : [...calls, select(db)];
  }

  /** A step outside the rules: what only this connection knows, so that a reply to the wrong client shows. */
  #probe(): Call[] {
    const token = `token-${this.options.connection}-${++this.#token}`;
    const own = `token-${this.options.connection}-`;
    const key = `${this.#prefix}probe:${this.options.connection}`;
    // Databases 2 and 3 may be swapped or flushed between the two.
    const sure = PROBE_DATABASES.includes(this.db);
    const echo = (reply: Plain): string | null => (textOf(reply) === token ? null : `expected ${token}`);
    const stored = (reply: Plain): string | null =>
      textOf(reply) === token || (!sure && (reply === null || textOf(reply)?.startsWith(own))) ? null : `expected ${token}`;
    return this.random.pick<() => Call[]>([
      () => [{ ...call('bulk', 'ECHO', token), check: echo }],
      () => [{ ...call('any', 'PING', token), check: echo }],
      () => [call('status', 'SET', key, token), { ...call('bulk?', 'GET', key), check: stored }],
      () => [{ ...call('bulk', 'EVAL', 'return ARGV[1]', 1, key, token), check: echo }],
    ])();
  }

  /** INCR of a counter that only this connection counts and that never expires: nothing is lost or done twice. */
  #count(): Call {
    const key = `${this.#prefix}count:${this.options.connection}.${this.#life}`;
    const expected = (this.#counted[`${this.db} ${key}`] ??= 0) + 1;
    this.#counted[`${this.db} ${key}`] = expected;
    const check = (reply: Plain): string | null => (Number(textOf(reply)) === expected ? null : `expected ${expected}`);
    return PROBE_DATABASES.includes(this.db) ? { ...call('int', 'INCR', key), check } : call('int', 'INCR', key);
  }

  /** The connection was lost with commands under way: what became of them is not known, so it counts anew. */
  rebirth(): void {
    this.#life++;
  }

  /** What a connection may have begun when it goes away: to block, to watch, a transaction, to listen. */
  ending(): Call[] {
    const { random } = this;
    const watch = (): Call => call('status', 'WATCH', ...random.times(random.between(1, 3), () => this.anyKey()));
    const multi = call('status', 'MULTI');
    const some = (): Call[] => random.times(random.between(0, 4), () => this.#any());
    this.#prefix = random.pick(this.options.prefixes);
    this.#cross = false;
    return random.pick<() => Call[]>([
      () => [],
      () => [random.pick<() => Call>([
        () => call('any', 'BLPOP', this.key('list'), this.key('list'), 0),
        () => call('any', 'BLMOVE', this.key('list'), this.key('list'), 'LEFT', 'RIGHT', 0),
        () => call('any', 'BZPOPMIN', this.key('zset'), 0),
        () => call('any', 'XREAD', 'BLOCK', 0, 'STREAMS', this.key('log'), '$'),
      ])(), ...some()],
      () => [watch(), ...some()],
      () => [multi, ...some()],
      () => [watch(), multi, ...some(), call('any', 'EXEC')],
      () => [call('any', 'SUBSCRIBE', 'chat:a', 'chat:b'), ...random.times(random.between(0, 1), () => call('any', 'PSUBSCRIBE', 'chat:*'))],
    ])();
  }

  #any(): Call {
    if (this.options.functions?.includes(this.#prefix) === true && this.random.chance(0.01)) return this.random.pick(FUNCTIONS).make(this);
    let at = this.random.next() * TOTAL_WEIGHT;
    for (const { weight, make } of RULES) if ((at -= weight) < 0) return make(this);
    return RULES[0].make(this);
  }

  /** A key of the type; one in thirty has another type. */
  key(type: KeyType): Argument {
    const { random } = this;
    const prefix = this.#cross ? random.pick(this.options.prefixes) : this.#prefix;
    const other = random.pick(TYPES);
    const named = random.chance(0.033) && !DELICATE.has(other) ? other : type;
    const few = named === 'log' || named === 'ids' ? Math.ceil(this.options.keysPerType / 3) : this.options.keysPerType;
    const number = random.between(0, few - 1);
    const key = `${prefix}${named}:${number}`;
    return number === 0 ? Buffer.concat([Buffer.from(key), BINARY]) : key;
  }

  keys(type: KeyType, most = 3): Argument[] {
    return this.random.times(this.random.between(1, most), () => this.key(type));
  }

  /** A key of any type. */
  anyKey(): Argument {
    return this.key(this.random.pick(TYPES));
  }

  /** Mostly short, sometimes binary, rarely up to 64 KiB, very rarely 1 MiB. */
  value(): Argument {
    const { random } = this;
    const dice = random.next();
    if (dice < 0.5) return `v${random.between(0, 999)}`;
    if (dice < 0.7) return this.number();
    if (dice < 0.85) return random.bytes(random.between(0, 64));
    if (dice < 0.98) return 'x'.repeat(random.between(0, 300));
    if (dice < 0.9995) return Buffer.alloc(random.between(0, 65_536), random.bytes(7));
    return Buffer.alloc(1 << 20, random.bytes(5));
  }

  number(): string {
    const { random } = this;
    if (random.chance(0.03)) return random.pick(['9223372036854775807', '-9223372036854775808', '9007199254740993', '00', '-0']);
    return String(random.between(-200, 10_000));
  }

  /** Text of a number with a fraction, an exponent, or neither. */
  float(): string {
    const { random } = this;
    if (random.chance(0.02)) return random.pick(['inf', '-inf', 'nan', '1e400', '1e-300', '3.0e3', '-0']);
    return random.pick([() => String(random.between(-50, 50)), () => (random.next() * 100 - 50).toFixed(random.between(1, 17)), () => '0.1'])();
  }

  /** Members and fields: a small common pool, some binary, some long enough to change the encoding. */
  member(): Argument {
    const number = this.random.between(0, 40);
    if (number === 0) return BINARY;
    if (number === 1) return 'm'.repeat(80);
    return number < 12 ? String(number) : `m${number}`;
  }

  members(most = 4): Argument[] {
    return this.random.times(this.random.between(1, most), () => this.member());
  }

  index(): number {
    return this.random.between(-8, 8);
  }

  /** Milliseconds; many are over before the run is, if keys are to expire in it. */
  ttl(): number {
    return this.random.chance(0.4) && this.options.expiring ? this.random.between(1, 2000) : this.random.between(20_000, 900_000);
  }

  /** Seconds to block for; never for ever. */
  wait(): string {
    return (this.random.between(1, 60) / 1000).toFixed(3);
  }

  /** The option if the coin says so. */
  maybe(...option: readonly (Argument | number)[]): readonly (Argument | number)[] {
    return this.random.chance(0.4) ? option : [];
  }

  /** An ID of the streams whose IDs the connections choose; grows while the run goes on. */
  explicitId(): string {
    const ms = this.steps + this.random.between(-5, 60);
    return this.random.pick([`${ms}-${this.random.between(0, 5)}`, `${ms}`, `${ms}-*`]);
  }

  /** An ID that may be in a stream. */
  knownId(): string {
    const known = this.ids.length > 0 ? this.random.pick(this.ids) : '1-1';
    return this.random.chance(0.7) ? known : `${this.random.between(1, this.steps)}-${this.random.between(0, 2)}`;
  }

  learnIds = (reply: Plain): void => {
    if (Array.isArray(reply)) reply.forEach((item: Plain) => this.learnIds(item));
    const text = textOf(reply);
    if (text === null || !/^\d{1,15}-\d{1,9}$/.test(text)) return;
    this.ids.push(text);
    if (this.ids.length > 200) this.ids.splice(0, 100);
  };
}

/**
 * What only commands of the type may change. KeyDB does not see that a HyperLogLog is corrupt, as Redis does; and the
 * order of members by name is defined only where all have one score.
 */
const DELICATE: ReadonlySet<KeyType> = new Set(['hll', 'lex']);

/** What a key or a member must survive: a NUL, a line break, the start of a frame, bytes that are no UTF-8. */
const BINARY = Buffer.from([0, 255, 13, 10, 36, 54, 13, 10, 128]);

const TOTAL_WEIGHT = RULES.reduce((sum, { weight }) => sum + weight, 0);
