/**
 * What a connection does next: a pure function of the seed, the connection's number and the clock, but for the few
 * arguments that only a server can give (payloads of DUMP, stream IDs, digests of scripts).
 */
import { call, type Call } from './command.js';
import { textOf, type Plain } from './reply.js';
import { Values } from './values.js';
import { FUNCTIONS } from './commands/functions.js';
import { RULES } from './commands/index.js';

/** Some calls in a row: on their own, or between MULTI and `end`. */
export interface Step {
  readonly calls: readonly Call[];
  readonly end: 'EXEC' | 'DISCARD' | null;
}

const PROBE_DATABASES = [0, 1];

export class Generator extends Values {
  #token = 0;
  #life = 0;
  #counted: Record<string, number> = {};

  next(): Step {
    const { random } = this;
    this.steps++;
    this.prefix = random.pick(this.options.prefixes);
    this.cross = random.chance(0.02);
    if (random.chance(0.04)) return { calls: this.#probe(), end: null };
    if (random.chance(0.02)) return { calls: [this.#count()], end: null };
    // What is watched holds up to the next EXEC, which may answer nil then.
    if (random.chance(0.02))
      return {
        calls: [
          random.chance(0.1)
            ? call('status', 'UNWATCH')
            : call('status', 'WATCH', ...random.times(random.between(1, 3), () => this.anyKey())),
        ],
        end: null,
      };
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
    const some = (): Call[] =>
      selects && random.chance(0.4) ? [select(random.between(0, 3)), this.#any()] : [this.#any()];
    const calls = random.times(random.between(0, 6), some).flat();
    return this.db === db ? calls : [...calls, select(db)];
  }

  /** A step outside the rules: what only this connection knows, so that a reply to the wrong client shows. */
  #probe(): Call[] {
    const token = `token-${this.options.connection}-${++this.#token}`;
    const own = `token-${this.options.connection}-`;
    const key = `${this.prefix}probe:${this.options.connection}`;
    // Databases 2 and 3 may be swapped or flushed between the two.
    const sure = PROBE_DATABASES.includes(this.db);
    const echo = (reply: Plain): string | null => (textOf(reply) === token ? null : `expected ${token}`);
    const stored = (reply: Plain): string | null =>
      textOf(reply) === token || (!sure && (reply === null || textOf(reply)?.startsWith(own)))
        ? null
        : `expected ${token}`;
    return this.random.pick<() => Call[]>([
      () => [{ ...call('bulk', 'ECHO', token), check: echo }],
      () => [{ ...call('any', 'PING', token), check: echo }],
      () => [call('status', 'SET', key, token), { ...call('bulk?', 'GET', key), check: stored }],
      () => [{ ...call('bulk', 'EVAL', 'return ARGV[1]', 1, key, token), check: echo }],
    ])();
  }

  /** INCR of a counter that only this connection counts and that never expires: nothing is lost or done twice. */
  #count(): Call {
    const key = `${this.prefix}count:${this.options.connection}.${this.#life}`;
    const expected = (this.#counted[`${this.db} ${key}`] ??= 0) + 1;
    this.#counted[`${this.db} ${key}`] = expected;
    const check = (reply: Plain): string | null => (Number(textOf(reply)) === expected ? null : `expected ${expected}`);
    return PROBE_DATABASES.includes(this.db) ? { ...call('int', 'INCR', key), check } : call('int', 'INCR', key);
  }

  /** Starts a new counter: the connection was lost with commands under way, and whether they ran is unknown. */
  rebirth(): void {
    this.#life++;
  }

  /** What a connection may have begun when it disconnects: to block, to watch, a transaction, to listen. */
  ending(): Call[] {
    const { random } = this;
    const watch = (): Call => call('status', 'WATCH', ...random.times(random.between(1, 3), () => this.anyKey()));
    const multi = call('status', 'MULTI');
    const some = (): Call[] => random.times(random.between(0, 4), () => this.#any());
    this.prefix = random.pick(this.options.prefixes);
    this.cross = false;
    return random.pick<() => Call[]>([
      () => [],
      () => [
        random.pick<() => Call>([
          () => call('any', 'BLPOP', this.key('list'), this.key('list'), 0),
          () => call('any', 'BLMOVE', this.key('list'), this.key('list'), 'LEFT', 'RIGHT', 0),
          () => call('any', 'BZPOPMIN', this.key('zset'), 0),
          () => call('any', 'XREAD', 'BLOCK', 0, 'STREAMS', this.key('log'), '$'),
        ])(),
        ...some(),
      ],
      () => [watch(), ...some()],
      () => [multi, ...some()],
      () => [watch(), multi, ...some(), call('any', 'EXEC')],
      () => [
        call('any', 'SUBSCRIBE', 'chat:a', 'chat:b'),
        ...random.times(random.between(0, 1), () => call('any', 'PSUBSCRIBE', 'chat:*')),
      ],
    ])();
  }

  #any(): Call {
    if (this.options.functions?.includes(this.prefix) === true && this.random.chance(0.01))
      return this.random.pick(FUNCTIONS).make(this);
    let at = this.random.next() * TOTAL_WEIGHT;
    for (const { weight, make } of RULES) if ((at -= weight) < 0) return make(this);
    return RULES[0].make(this);
  }
}

const TOTAL_WEIGHT = RULES.reduce((sum, { weight }) => sum + weight, 0);
