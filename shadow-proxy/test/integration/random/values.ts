/** What the arguments of commands are made of: keys by type, values, numbers; and what only a server could tell. */
import { Random } from './random.js';
import { textOf, type Argument, type Plain } from './reply.js';
import { TYPES, type KeyType } from './types.js';

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

export class Values {
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
  protected prefix = '';
  protected cross = false;

  constructor(readonly options: GeneratorOptions) {
    this.random = new Random(options.seed, options.connection);
    this.now = options.now;
  }

  /** A key of the type; one in thirty has another type. */
  key(type: KeyType): Argument {
    const { random } = this;
    const prefix = this.cross ? random.pick(this.options.prefixes) : this.prefix;
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
    if (random.chance(0.03))
      return random.pick(['9223372036854775807', '-9223372036854775808', '9007199254740993', '00', '-0']);
    return String(random.between(-200, 10_000));
  }

  /** Text of a number with a fraction, an exponent, or neither. */
  float(): string {
    const { random } = this;
    if (random.chance(0.02)) return random.pick(['inf', '-inf', 'nan', '1e400', '1e-300', '3.0e3', '-0']);
    return random.pick([
      () => String(random.between(-50, 50)),
      () => (random.next() * 100 - 50).toFixed(random.between(1, 17)),
      () => '0.1',
    ])();
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
    return this.random.chance(0.4) && this.options.expiring
      ? this.random.between(1, 2000)
      : this.random.between(20_000, 900_000);
  }

  /** Seconds to block for; never without a limit. */
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
