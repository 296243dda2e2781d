/**
 * Writes to the target that bypass the proxy. Each makes a difference that a command of a client shows: it must be
 * reported as what it is, in time, and repaired.
 */
import { Equality } from '../check/equality.js';
import { ReplyReader, type Reply } from '../clients/replies.js';
import type { ModelClient } from '../server/server.js';
import { WORLD } from '../world/events.js';
import type { KeyName } from '../world/key-name.js';
import type { End } from '../world/network.js';
import type { Scene } from './scene.js';

type Commands = readonly (readonly string[])[];

interface Case {
  /** Clients send this, … */
  readonly before: Commands;
  /** … another client runs this on the target, … */
  readonly bypassing: Commands;
  /** … and clients send this. */
  readonly shown: Commands;
  /** The target has evicted a key: this one, or another. */
  readonly evicts?: 'key' | 'other';
  /** Where it counts. */
  readonly as: readonly ['mismatches' | 'allowed' | 'inconclusive', string];
}

const RESET = 'evicted, after the statistics were reset';
const FEW = 2;

/** By name; `k` stands for a key that nobody else uses. */
const CASES: Readonly<Record<string, Case>> = {
  value: {
    ...{ before: [['SET', 'k', '5']], bypassing: [['SET', 'k', '7']], shown: [['GET', 'k']] },
    as: ['mismatches', 'value'],
  },
  written: {
    ...{ before: [['SET', 'k', '5']], bypassing: [['SET', 'k', '7']], shown: [['INCR', 'k']] },
    as: ['mismatches', 'value'],
  },
  'written with a TTL': {
    ...{ before: [['SET', 'k', '5', 'EX', '100']], bypassing: [['INCR', 'k']], shown: [['INCR', 'k']] },
    as: ['mismatches', 'value'],
  },
  missing: {
    ...{ before: [['SET', 'k', '5']], bypassing: [['DEL', 'k']], shown: [['GET', 'k']] },
    as: ['mismatches', 'missing-on-mirror'],
  },
  'missing with a TTL': {
    ...{ before: [['SET', 'k', '5', 'EX', '100']], bypassing: [['DEL', 'k']], shown: [['GET', 'k']] },
    as: ['mismatches', 'missing-on-mirror'],
  },
  'missing, and then with a short TTL': {
    ...{ before: [['SET', 'k', '5']], bypassing: [['DEL', 'k']] },
    shown: [
      ['GET', 'k'],
      ['PEXPIRE', 'k', '30'],
    ],
    as: ['inconclusive', 'written-since'],
  },
  'evicted, and missing': {
    ...{ before: [['SET', 'k', '5']], bypassing: [], shown: [['GET', 'k']], evicts: 'key' },
    as: ['allowed', 'evicted'],
  },
  [RESET]: {
    ...{ before: [['SET', 'k', '5']], bypassing: [['CONFIG', 'RESETSTAT']], shown: [['GET', 'k']], evicts: 'key' },
    as: ['allowed', 'evicted'],
  },
  'value, while another key is evicted': {
    ...{ before: [['SET', 'k', '5']], bypassing: [['SET', 'k', '7']], evicts: 'other' },
    // The other is lost by that eviction, and no other key is.
    shown: [
      ['INCR', 'k'],
      ['GET', 'k:other'],
    ],
    as: ['mismatches', 'value'],
  },
  extra: {
    ...{ before: [], bypassing: [['SET', 'k', '7']], shown: [['GET', 'k']] },
    as: ['mismatches', 'missing-on-authority'],
  },
  type: {
    ...{ before: [['SET', 'k', '5']], shown: [['GET', 'k']] },
    bypassing: [
      ['DEL', 'k'],
      ['RPUSH', 'k', 'a'],
    ],
    as: ['mismatches', 'error'],
  },
  order: {
    ...{ before: [['RPUSH', 'k', 'a', 'b']], bypassing: [['LMOVE', 'k', 'k', 'LEFT', 'RIGHT']] },
    shown: [['LRANGE', 'k', '0', '-1']],
    as: ['mismatches', 'order'],
  },
  'repeated elements': {
    ...{ before: [['RPUSH', 'k', 'a', 'a', 'b']], bypassing: [['LSET', 'k', '1', 'b']] },
    shown: [['LRANGE', 'k', '0', '-1']],
    as: ['mismatches', 'value'],
  },
  'unsorted elements': {
    ...{ before: [['RPUSH', 'k', 'a', 'b']], bypassing: [['LSET', 'k', '1', 'c']] },
    shown: [['SORT', 'k', 'BY', 'nosort']],
    as: ['mismatches', 'value'],
  },
  length: {
    ...{ before: [['RPUSH', 'k', 'a', 'b']], bypassing: [['RPUSH', 'k', 'c']], shown: [['LRANGE', 'k', '0', '-1']] },
    as: ['mismatches', 'length'],
  },
  'repeated values': {
    ...{ before: [['HSET', 'k', 'f', 'a', 'g', 'a', 'h', 'b']], bypassing: [['HSET', 'k', 'g', 'b']] },
    shown: [['HVALS', 'k']],
    as: ['mismatches', 'value'],
  },
  members: {
    ...{ before: [['SADD', 'k', 'a', 'b']], shown: [['SMEMBERS', 'k']] },
    bypassing: [
      ['SREM', 'k', 'a'],
      ['SADD', 'k', 'c'],
    ],
    as: ['mismatches', 'value'],
  },
  scores: {
    ...{ before: [['ZADD', 'k', '1', 'a', '2', 'b']], bypassing: [['ZADD', 'k', '3', 'b']] },
    shown: [['ZRANGE', 'k', '0', '-1', 'WITHSCORES']],
    as: ['mismatches', 'value'],
  },
};

export const NAMES = Object.keys(CASES);
/** The target has evicted so many keys before the proxy begins. */
const EVICTED_BEFORE = 3;
/** By then the mirror has what was written. */
const MIRRORED_MS = 100;
/** By then the difference is reported, and the key is repaired. */
const BOUND_MS = 3_000;
const CHECK_MS = 5;

/** Whether it is one of the keys that are changed on the target. */
export const isBypassed = (name: string): boolean => /^a\d/.test(name);

export class Bypassing {
  /** How often each case was tried. */
  readonly tried = new Map<string, number>();
  readonly #client: ModelClient;
  #end: End | null = null;
  readonly #replies: Reply[] = [];
  #keys = 0;
  /** Cases that are still to be tried, before each is tried again. */
  readonly #left: string[] = [];
  /** Since the proxy began. */
  #evicted = 0;

  constructor(private readonly scene: Scene) {
    for (const { as } of Object.values(CASES)) if (as[0] === 'mismatches') scene.trueMismatches.add(as[1]);
    scene.target.model.evicted = EVICTED_BEFORE;
    this.#client = scene.target.model.connect(
      () => undefined,
      () => undefined,
      { host: '10.0.1.9', port: 40_000 },
    );
  }

  start(): void {
    const reader = new ReplyReader();
    const { network } = this.scene.world;
    const end = network.connect(WORLD, '10.0.1.3', this.scene.address, () => void this.#run());
    this.#end = end;
    end.received = (bytes) => {
      reader.feed(bytes);
      for (let reply = reader.next(); reply !== undefined; reply = reader.next()) this.#replies.push(reply);
    };
  }

  async #run(): Promise<void> {
    for (;;) {
      const { scene } = this;
      await this.#passed(scene.random.between(0, 20));
      if (scene.isQuiet) continue;
      if (this.#left.length === 0) this.#left.push(...NAMES);
      const [name] = this.#left.splice(scene.random.below(this.#left.length), 1);
      // Of a count that was reset and is as high as before, nobody knows that it was reset.
      if (name === RESET && scene.target.model.evicted < FEW) continue;
      const problem = await this.#try(CASES[name], `a${this.#keys++}`);
      if (problem !== null) scene.fail(`a write that bypasses the proxy (${name}): ${problem}`, [`a${this.#keys - 1}`]);
      this.tried.set(name, (this.tried.get(name) ?? 0) + 1);
    }
  }

  /** @returns what is wrong */
  async #try({ before, bypassing, shown, evicts, as: [counter, kind] }: Case, key: string): Promise<string | null> {
    const { target } = this.scene;
    const own = (commands: Commands): Commands =>
      commands.map((args) => args.map((arg) => arg.replace(/^k(?=$|:)/, key)));
    await this.#ask(own(evicts === 'other' ? [...before, ['SET', 'k:other', '1']] : before));
    await this.#passed(MIRRORED_MS);
    for (const args of own(bypassing)) this.#client.receive(Buffer.from(`${args.join(' ')}\r\n`));
    if (evicts !== undefined && !target.model.evict(0, evicts === 'key' ? key : `${key}:other`))
      return 'the target lacks what was written';
    if (evicts !== undefined) this.#evicted++;
    const [earlier, mismatches] = [this.#count(counter, kind), this.#mismatches];
    await this.#ask(own(shown));
    const isReported = (): boolean => this.#count(counter, kind) > earlier;
    if (!(await this.#holds(isReported))) return `it is not reported: ${counter} of kind ${kind}`;
    const others = this.#mismatches - mismatches - Number(counter === 'mismatches');
    if (others > 0) return `more mismatches are reported than there are: ${others}`;
    const evicted = (): number | undefined => this.scene.proxy.snapshot()?.target.evicted;
    if (!(await this.#holds(() => evicted() === this.#evicted)))
      return `the status counts ${evicted()} evicted keys, not ${this.#evicted}`;
    return (await this.#holds(() => this.#isEqual(`0 ${key}`))) ? null : 'the key is not repaired';
  }

  #isEqual(key: KeyName): boolean {
    const { source, target } = this.scene;
    return new Equality(source, target).compare(key, this.scene.now);
  }

  #count(counter: Case['as'][0], kind: string): number {
    return this.scene.proxy.snapshot()?.[counter][kind] ?? 0;
  }

  /** All but what clients do with commands that only one server has. */
  get #mismatches(): number {
    const { mismatches = {} } = this.scene.proxy.snapshot() ?? {};
    return Object.entries(mismatches).reduce((sum, [kind, count]) => sum + (kind === 'unsupported' ? 0 : count), 0);
  }

  async #ask(commands: Commands): Promise<void> {
    if (commands.length === 0) return;
    this.#replies.length = 0;
    this.#end!.send(Buffer.from(commands.map((args) => `${args.join(' ')}\r\n`).join('')));
    if (!(await this.#holds(() => this.#replies.length >= commands.length)))
      this.scene.fail(`no reply to ${commands.map((args) => args.join(' ')).join('; ')}`);
  }

  /** Whether it holds in time. */
  async #holds(condition: () => boolean): Promise<boolean> {
    const end = this.scene.now + BOUND_MS;
    while (!condition()) {
      if (this.scene.now > end) return false;
      await this.#passed(CHECK_MS);
    }
    return true;
  }

  #passed(ms: number): Promise<void> {
    return new Promise((resolve) => this.scene.later(ms, resolve));
  }
}
