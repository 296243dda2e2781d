/** Random commands. Keys of one type share a prefix; what is left of expired keys is none of their business. */
import type { Random } from '../world/random.js';

export interface Command {
  readonly args: readonly string[];
  readonly keys: readonly string[];
}

/** By kind: how often it is drawn. */
export interface Mix {
  readonly strings: number;
  readonly expiring: number;
  readonly counters: number;
  readonly lists: number;
  readonly blocking: number;
  readonly hashes: number;
  readonly sets: number;
  readonly transactions: number;
  readonly several: number;
  /** Single commands on keys whose histories are checked. */
  readonly followed: number;
}

export class Commands {
  readonly #kinds: readonly (keyof Mix)[];
  readonly #until: readonly number[];
  readonly #generations = new Map<string, number>();
  #value = 0;

  constructor(
    private readonly random: Random,
    mix: Partial<Mix>,
    /** How many keys of each kind. */
    private readonly keys: number,
  ) {
    this.#kinds = Object.keys(mix) as (keyof Mix)[];
    let sum = 0;
    this.#until = this.#kinds.map((kind) => (sum += mix[kind]!));
  }

  /** One command, or those of a transaction. */
  next(): readonly Command[] {
    const drawn = this.random.share() * this.#until[this.#until.length - 1];
    return this.#of(this.#kinds[this.#until.findIndex((until) => drawn < until)]);
  }

  #of(kind: keyof Mix): readonly Command[] {
    const { random } = this;
    switch (kind) {
      case 'strings':
        return [this.#string(this.#key('s'))];
      case 'expiring':
        return [this.#expiring(this.#key('e'))];
      case 'counters':
        return [this.#counter(this.#key('c'))];
      case 'lists':
        return [this.#list(this.#key('l'))];
      case 'blocking':
        return [this.#blocking(this.#key('b'))];
      case 'hashes':
        return [this.#hash(this.#key('h'))];
      case 'sets':
        return [this.#set(this.#key('t'))];
      case 'several':
        return [this.#several()];
      case 'followed':
        return [this.#followed()];
      case 'transactions':
        return this.#transaction(random.chance(0.3));
    }
  }

  #key(kind: string): string {
    return `${kind}${this.random.below(this.keys)}`;
  }

  #followed(): Command {
    const kind = this.random.pick(['ls', 'lc', 'll']);
    const key = this.#key(kind);
    const name = `${key}.${this.#generations.get(key) ?? 0}`;
    return kind === 'ls' ? this.#string(name) : kind === 'lc' ? this.#counter(name) : this.#list(name);
  }

  /** Uses another key in the place of this one. */
  retire(name: string): void {
    const [key, generation] = name.split('.');
    this.#generations.set(key, Math.max(this.#generations.get(key) ?? 0, Number(generation) + 1));
  }

  #string(key: string): Command {
    const value = this.#newValue();
    return one(
      this.random.pick([
        ['SET', key, value],
        ['SET', key, value],
        ['GET', key],
        ['GET', key],
        ['APPEND', key, value],
        ['GETSET', key, value],
        ['SETNX', key, value],
        ['SETRANGE', key, String(this.random.below(8)), value],
        ['STRLEN', key],
        ['DEL', key],
        ['GETDEL', key],
        ['SET', key, value, 'GET'],
        ['SET', key, value, this.random.pick(['NX', 'XX'])],
      ]),
    );
  }

  #expiring(key: string): Command {
    const value = this.#newValue();
    const ms = String(1 + this.random.below(this.random.pick([5, 80, 400, 2_000])));
    return one(
      this.random.pick([
        ['SET', key, value],
        ['GET', key],
        ['GET', key],
        ['INCR', key],
        ['APPEND', key, '1'],
        ['SET', key, '7', 'PX', ms],
        ['SET', key, value, 'PX', ms],
        ['SET', key, value, 'KEEPTTL'],
        ['PSETEX', key, ms, value],
        ['PEXPIRE', key, ms],
        ['PEXPIRE', key, ms],
        ['PERSIST', key],
        ['GETEX', key, 'PX', ms],
        ['EXISTS', key],
        ['TTL', key],
        ['DEL', key],
      ]),
    );
  }

  #counter(key: string): Command {
    const by = String(this.random.below(100) - 20);
    return one(
      this.random.pick([
        ['INCR', key],
        ['INCR', key],
        ['INCRBY', key, by],
        ['DECRBY', key, by],
        ['GET', key],
      ]),
    );
  }

  #list(key: string): Command {
    const value = this.#newValue();
    return one(
      this.random.pick([
        ['RPUSH', key, value],
        ['LPUSH', key, value],
        ['RPUSH', key, value, `${value}+`],
        ['LPOP', key],
        ['RPOP', key],
        ['LPOP', key, '2'],
        ['LLEN', key],
        ['LRANGE', key, '0', '-1'],
        ['LINDEX', key, String(this.random.below(4))],
        ['LSET', key, String(this.random.below(3)), value],
        ['LTRIM', key, '0', String(this.random.below(20))],
        ['LMOVE', key, key, 'LEFT', 'RIGHT'],
      ]),
    );
  }

  #blocking(key: string): Command {
    const value = this.#newValue();
    const seconds = (0.001 + this.random.share() * this.random.pick([0.01, 0.2])).toFixed(3);
    const other = this.#key('b');
    return this.random.pick([
      one(['BLPOP', key, seconds]),
      one(['BRPOP', key, seconds]),
      { args: ['BLPOP', key, other, seconds], keys: [key, other] },
      { args: ['BLMOVE', key, other, 'LEFT', 'RIGHT', seconds], keys: [key, other] },
      one(['RPUSH', key, value]),
      one(['LPUSH', key, value]),
      one(['LPUSH', key, value, `${value}+`]),
      one(['LPOP', key]),
      one(['DEL', key]),
    ]);
  }

  #hash(key: string): Command {
    const value = this.#newValue();
    const field = `f${this.random.below(4)}`;
    return one(
      this.random.pick([
        ['HSET', key, field, value],
        ['HSET', key, field, value, 'g', value],
        ['HGET', key, field],
        ['HDEL', key, field],
        ['HINCRBY', key, 'n', '3'],
        ['HGETALL', key],
        ['HLEN', key],
        ['DEL', key],
      ]),
    );
  }

  #set(key: string): Command {
    const member = `m${this.random.below(6)}`;
    return one(
      this.random.pick([
        ['SADD', key, member],
        ['SADD', key, member, `m${this.random.below(6)}`],
        ['SREM', key, member],
        ['SPOP', key],
        ['SISMEMBER', key, member],
        ['SCARD', key],
        ['SMEMBERS', key],
      ]),
    );
  }

  #several(): Command {
    const [first, second] = [this.#key('s'), this.#key('s')];
    const value = this.#newValue();
    return this.random.pick([
      { args: ['MSET', first, value, second, value], keys: [first, second] },
      { args: ['MGET', first, second], keys: [first, second] },
      { args: ['DEL', first, second], keys: [first, second] },
      { args: ['RENAME', first, second], keys: [first, second] },
      { args: ['COPY', first, second, 'REPLACE'], keys: [first, second] },
      { args: ['MSETNX', first, value, second, value], keys: [first, second] },
    ]);
  }

  #transaction(watches: boolean): readonly Command[] {
    const inside = Array.from({ length: 1 + this.random.below(4) }, () =>
      this.random.pick([
        () => this.#string(this.#key('s')),
        () => this.#counter(this.#key('c')),
        () => this.#list(this.#key('l')),
        () => this.#list(this.#key('b')),
        () => this.#expiring(this.#key('e')),
      ])(),
    );
    const keys = inside.flatMap((each) => each.keys);
    const end = this.random.chance(0.1) ? 'DISCARD' : 'EXEC';
    return [
      ...(watches ? [{ args: ['WATCH', ...new Set(keys)], keys: [] }] : []),
      { args: ['MULTI'], keys: [] },
      ...inside,
      { args: [end], keys },
    ];
  }

  #newValue(): string {
    return `v${(this.#value++).toString(36)}`;
  }
}

const one = (args: readonly string[]): Command => ({ args, keys: [args[1]] });
