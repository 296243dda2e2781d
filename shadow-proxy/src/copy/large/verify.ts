/**
 * verifyLarge(key): a key that is too large to be read at once is compared in chunks. Both servers are asked the same
 * at one place in the order, for each part; what clients write meanwhile reaches both. So what was equal in its part
 * stays equal, and what came later was written to both. When every part of the authority's is on the mirror, and both
 * have as many, they hold the same.
 */
import { expiresWithin, lifeFromPttl, type KeyLife } from '../../resp/key-life.js';
import type { Connection } from '../../upstream/connection.js';
import { TTL_TOLERANCE_MS } from '../../pipeline/operation.js';
import { text, type Reply } from '../../resp/decode.js';
import { CopyError } from '../key/copier.js';
import { livesDiffer, type Differing } from '../verify/verifier.js';
import { chunks, ELEMENT_TYPES, fitting, pages } from './elements.js';
import { equalStreams, same } from './equal-streams.js';
import { CHUNK, meet } from './large.js';
import { LIST_HARMLESS } from './list.js';
import { Disturbed, Meanwhile } from './meanwhile.js';
import { Parts, type PartsOptions } from './parts.js';
import { LENGTH, sizeOf } from './size.js';

/** What a server has under a key that was not read as a whole; null if it has none. */
export interface Summary {
  readonly type: string;
  /** Elements; bytes of a string. */
  readonly length: number;
  readonly life: KeyLife;
}

export interface LargeDifference extends Differing {
  readonly authority: Summary | null;
  readonly mirror: Summary | null;
}

const VALUE: Differing = { kind: 'value', sure: true };
const surely = (differing: Differing | null): Differing | null => (differing?.sure ? differing : null);

/** How many times a comparison is begun. */
const ATTEMPTS = 3;

/**
 * How the two differ; null if they do not, `moving` where its elements shift so often that the result is unknown.
 * @throws {CopyError} if a server refuses, a connection is lost, or SWAPDB gives the database another number
 */
export async function verifyLarge(given: Omit<PartsOptions, 'limits'>): Promise<LargeDifference | null | 'moving'> {
  const { sequencer, workload, db, key } = given;
  const { authority } = workload.position.rule(key, 0, key.length);
  const meanwhile = new Meanwhile(sequencer, authority, db, key);
  return meet(given, meanwhile, async (lane, scout) => {
    const parts = new Parts({ ...given, limits: CHUNK }, lane, scout, meanwhile);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      meanwhile.begin();
      try {
        const difference = await new Comparison(parts, scout, db).run();
        // The further connection is in no order: behind a SWAPDB without an answer yet it reads another database.
        await sequencer.swaps.settled(given.signal);
        meanwhile.assertInPlace();
        return difference;
      } catch (problem) {
        meanwhile.assertInPlace();
        if (!(problem instanceof Disturbed)) throw problem;
      }
    }
    return 'moving';
  });
}

class Comparison {
  /** What both servers said last about the key as a whole. */
  #shapes: Pick<LargeDifference, 'authority' | 'mirror'> = { authority: null, mirror: null };

  constructor(
    private readonly parts: Parts,
    private readonly scout: Connection,
    private readonly db: number,
  ) {}

  async run(): Promise<LargeDifference | null> {
    const { parts } = this;
    // SWAPDB leaves a connection to KeyDB with what its database held before.
    await parts.askAuthority('SELECT', this.db);
    const size = await sizeOf(this.scout, parts.key);
    const differing =
      surely(await this.#whatThereIs(LENGTH[size.type] ?? 'EXISTS')) ??
      (size.length === 0 && size.type !== 'stream' ? null : await this.#values(size.type, size.length, size.bytes));
    return differing && { ...differing, ...this.#shapes };
  }

  async #values(type: string, length: number, bytes: number): Promise<Differing | null> {
    const { parts } = this;
    const count = fitting(parts.limits.chunkBytes, bytes / Math.max(1, length), parts.limits.chunkElements);
    let equal: boolean;
    if (type === 'string') equal = await this.#string();
    else if (type === 'list') equal = await this.#list(count);
    else if (type === 'stream') equal = await equalStreams(parts, count);
    else equal = await this.#elements(type, length, bytes);
    return equal ? this.#whatThereIs(LENGTH[type]) : VALUE;
  }

  /** Type, length and time to live. */
  async #whatThereIs(length: string): Promise<Differing | null> {
    const { key } = this.parts;
    const both = await this.parts.both([
      ['TYPE', key],
      ['PTTL', key],
      [length, key],
    ]);
    const summary = ([type, pttl, size]: readonly Reply[]): Summary | null =>
      text(type) === 'none'
        ? null
        : { type: text(type), length: Number(text(size)), life: lifeFromPttl(Number(text(pttl))) };
    const [authority, mirror] = [summary(both.authority), summary(both.mirror)];
    this.#shapes = { authority, mirror };
    const ending = (one: Summary | null): boolean =>
      one !== null && expiresWithin(one.life, both.lagMs + TTL_TOLERANCE_MS);
    if (authority === null || mirror === null) {
      if (authority === mirror || ending(authority) || ending(mirror)) return null;
      return { kind: mirror === null ? 'missing' : 'extra', sure: true };
    }
    if (authority.type !== mirror.type) return { kind: 'type', sure: true };
    // Neither shows one of what is of another type by now. A stream may count its entries wrongly: they are compared.
    if (length !== LENGTH.stream && !Object.is(authority.length, mirror.length)) return VALUE;
    return livesDiffer(authority.life, mirror.life, both.lagMs);
  }

  async #string(): Promise<boolean> {
    const { key, limits } = this.parts;
    for (let at = 0, length = Infinity; at < length; at += limits.chunkBytes) {
      const both = await this.parts.both([
        ['STRLEN', key],
        ['GETRANGE', key, at, at + limits.chunkBytes - 1],
      ]);
      if (!same(both)) return false;
      length = Number(text(both.authority[0]));
    }
    return true;
  }

  /** From the head: an element's index holds only while nothing but the tail grows. */
  async #list(count: number): Promise<boolean> {
    const { key, meanwhile } = this.parts;
    meanwhile.onWritten((name) => {
      if (!LIST_HARMLESS.has(name)) meanwhile.disturb(`${name} has moved its elements`);
    });
    for (let at = 0, length = Infinity; at < length; at += count) {
      const both = await this.parts.both([
        ['LLEN', key],
        ['LRANGE', key, at, at + count - 1],
      ]);
      meanwhile.assertUndisturbed();
      if (!same(both)) return false;
      length = Number(text(both.authority[0]));
    }
    return true;
  }

  async #elements(type: string, length: number, bytes: number): Promise<boolean> {
    const { parts } = this;
    const each = ELEMENT_TYPES[type];
    if (each === undefined) throw new CopyError('payload', `a key of type ${type} cannot be compared in chunks`);
    for await (const page of pages(parts, each, { type, length, bytes })) {
      for (const chunk of chunks(page, parts.limits)) {
        const names = chunk.map(({ element }) => element);
        // Times to live of fields pass on: a copy of such a hash is refused anyway.
        const reads = each.reads(parts.key, names, (name) => name !== 'hpttl' && parts.bothKnow(name));
        if (!same(await parts.both(reads), type === 'zset')) return false;
      }
    }
    return true;
  }
}
