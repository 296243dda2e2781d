/**
 * copyLarge(key): a key that is too large to be read, or written, at once is copied in chunks, each at its own place in
 * the order. Clients go on: the mirror gets what they do to the key, as always, and at the end holds what the
 * authority holds.
 *
 *   UNLINK ──▶ parts, by type ──▶ both lengths at one place ── equal ─▶ copied
 *      ▲                │                    └─ not equal ─┐
 *      └── begin again ─┴── disturbed ─────────────────────┘  three times: 'moving'
 *
 * Meanwhile the key is a suspect, and nobody else copies it.
 *
 * Room: copy/large: chunked copy: one large key in pieces.
 * Called by: copy/job, copy/repair, copy/foreign.
 * Calls: io, resp, route, command, upstream, pipeline, suspects, copy/key, copy/verify.
 */
import { monotonicMs } from '../../io/clock.js';
import { sleep } from '../../io/timers.js';
import type { Connection } from '../../upstream/connection.js';
import { DatabaseRefused } from '../../upstream/handshake.js';
import type { Lane } from '../../pipeline/lane.js';
import { Lateness } from '../../suspects/lateness.js';
import { keyId, LATE_COPIES, type Suspect, type Suspects } from '../../suspects/suspects.js';
import { text } from '../../resp/decode.js';
import { otherSide } from '../../route/stage.js';
import { CopyError, copyKey } from '../key/copier.js';
import { copyElements } from './elements.js';
import { copyList } from './list.js';
import { equalStreams } from './equal-streams.js';
import { Disturbed, EXPIRY_MARGIN_MS, Meanwhile } from './meanwhile.js';
import { Parts, type ChunkLimits, type PartsOptions } from './parts.js';
import { LENGTH, sizeOf, type KeySize } from './size.js';
import { copyStream } from './stream.js';
import { copyString } from './string.js';

/** A chunk takes either server about a millisecond. */
export const CHUNK: ChunkLimits = { chunkElements: 500, chunkBytes: 256 * 1024 };
/** How many times a chunked copy is begun. */
const ATTEMPTS = 3;
/** An end that came late is tried again after a while that doubles, in ms: a mirror may be late for a moment only. */
const LATE_MS = 50;
const MAX_LATE_MS = 2_000;
/** How often a chunked copy may end late, or with another suspicion, before that is accepted. */
const LATE_ENDS = 4;

export interface LargeCopy {
  /**
   * - `copied`: in chunks.
   * - `small`: it fits into one chunk by now, or is deleted: copied whole.
   * - `moving`: it changed under each attempt, and stays a suspect. An operator has to decide.
   */
  readonly outcome: 'copied' | 'small' | 'moving';
  /** How often it was begun again. */
  readonly restarts: number;
  /** Why, the last time. */
  readonly why: string | null;
  /** A stream that counts its entries wrongly on the authority: the mirror has those that the authority serves. */
  readonly miscounted: boolean;
  /** Elements, and bytes, of all attempts. */
  readonly elements: number;
  readonly bytes: number;
}

export interface LargeOptions extends Omit<PartsOptions, 'limits'> {
  readonly suspects: Suspects;
  /** Default: `CHUNK`. */
  readonly limits?: ChunkLimits;
}

/**
 * Copies a key in chunks from its authority to its mirror.
 * @throws {CopyError} if either server refuses, what it holds cannot be copied in chunks, a connection is lost, or
 * SWAPDB gives the database another number
 */
export async function copyLarge({ limits = CHUNK, ...given }: LargeOptions): Promise<LargeCopy> {
  const { sequencer, suspects, workload, db, key } = given;
  const id = keyId(db, key);
  const { authority, mirrorsWrites } = workload.position.rule(key, 0, key.length);
  if (!mirrorsWrites) throw new CopyError('declined', 'its writes are not mirrored');
  if (sequencer.suspects.chunked.has(id)) throw new CopyError('declined', 'its chunked copy is running already');
  const meanwhile = new Meanwhile(sequencer, authority, db, key);
  sequencer.suspects.chunked.set(id, meanwhile);
  suspects.mark(db, key, workload, 'copy');
  try {
    return await meet(given, meanwhile, (lane, scout) =>
      new Large({ ...given, limits }, lane, scout, meanwhile).copy(),
    );
  } finally {
    if (sequencer.suspects.chunked.get(id) === meanwhile) sequencer.suspects.chunked.delete(id);
  }
}

/**
 * Works on a key in chunks, with the clients' lane to its authority and a further connection; `meanwhile` gets what
 * happens to the key until that has ended.
 * @throws {CopyError} of the work; `lost` for whatever else fails
 */
export async function meet<T>(
  { sequencer, workload, db, key }: Omit<PartsOptions, 'limits'>,
  meanwhile: Meanwhile,
  work: (lane: Lane, scout: Connection) => Promise<T>,
): Promise<T> {
  const { authority } = workload.position.rule(key, 0, key.length);
  const unlisten = sequencer.mirrors[otherSide(authority)].listen((operation) => meanwhile.ordered(operation));
  const { server } = sequencer.lanes[authority];
  const identity = { db, protocol: 2, credentials: server.endpoint.credentials } as const;
  let scout: Connection | undefined;
  try {
    const lane = await sequencer.lanes[authority].open(identity);
    scout = await server.open(identity);
    return await work(lane, scout);
  } catch (problem) {
    if (problem instanceof CopyError) throw problem;
    throw new CopyError(problem instanceof DatabaseRefused ? 'authority' : 'lost', (problem as Error).message);
  } finally {
    scout?.destroy();
    unlisten();
  }
}

class Large {
  readonly #parts: Parts;
  readonly #suspect: Suspect;
  /** By how much a stream's own count of its entries is above their number. */
  #surplus = 0;
  #miscounted = false;

  constructor(
    private readonly options: PartsOptions & Pick<LargeOptions, 'suspects'>,
    private readonly lane: Lane,
    private readonly scout: Connection,
    private readonly meanwhile: Meanwhile,
  ) {
    this.#parts = new Parts(options, lane, scout, meanwhile);
    // More keys than are listed are suspect: then its workload is, as a whole.
    this.#suspect = options.suspects.get(keyId(options.db, options.key)) ?? {
      ...options,
      reason: 'copy',
      acknowledged: true,
      touched: true,
      generation: 0,
      copied: 0,
      confirmed: 0,
      script: null,
      lateness: new Lateness(LATE_COPIES),
    };
  }

  async copy(): Promise<LargeCopy> {
    let why: string | null = null;
    try {
      for (let restarts = 0; restarts < ATTEMPTS; restarts++) {
        try {
          return this.#outcome(await this.#attempt(), restarts, why);
        } catch (problem) {
          if (!(problem instanceof Disturbed)) throw problem;
          this.meanwhile.assertInPlace();
          why = problem.message;
          this.#suspect.copied = 0;
        }
        await this.#parts.discard();
        // What is about to expire has expired then.
        await sleep(Math.min(500, Math.max(0, this.meanwhile.expiresAt - monotonicMs() + EXPIRY_MARGIN_MS)));
      }
      return this.#outcome('moving', ATTEMPTS, why);
    } catch (problem) {
      this.#suspect.copied = 0;
      await this.#parts.discard();
      throw problem;
    }
  }

  #outcome(outcome: LargeCopy['outcome'], restarts: number, why: string | null): LargeCopy {
    const { elements, bytes } = this.#parts;
    return { outcome, restarts, why, miscounted: this.#miscounted, elements, bytes };
  }

  async #attempt(): Promise<'copied' | 'small'> {
    const parts = this.#parts;
    const { key, limits } = parts;
    this.meanwhile.begin();
    this.#surplus = 0;
    this.#miscounted = false;
    // SWAPDB leaves a connection to KeyDB with what its database held before.
    await parts.askAuthority('SELECT', this.options.db);
    const size = await sizeOf(this.scout, key);
    const { type, length, bytes } = size;
    if (
      length === 0 ||
      ((type === 'string' || length <= limits.chunkElements) && bytes > 0 && bytes <= limits.chunkBytes)
    )
      return this.#whole();
    await parts.at([['TYPE', key]], ([now]) => {
      if (text(now) !== type) throw new Disturbed('it has another type now');
      return [
        ['UNLINK', key],
        ['UNLINK', parts.temporary],
      ];
    });
    await this.#inChunks(size);
    return this.#end(LENGTH[type]);
  }

  async #inChunks(size: KeySize): Promise<void> {
    switch (size.type) {
      case 'string': {
        const { server } = this.#parts.mirror;
        const freight = await server.open({
          db: this.options.db,
          protocol: 2,
          credentials: server.endpoint.credentials,
        });
        return copyString(this.#parts, size.length, freight).finally(() => freight.destroy());
      }
      case 'list':
        return copyList(this.#parts, size);
      case 'stream':
        return copyStream(this.#parts, size);
      case 'hash':
      case 'set':
      case 'zset':
        return copyElements(this.#parts, size, this.lane.server.traits.commands);
      default:
        throw new CopyError('payload', `a key of type ${size.type} cannot be copied in chunks`);
    }
  }

  /** Both lengths at one place, and the TTL again: from there on the key is no suspect any more. */
  async #end(length: string): Promise<'copied'> {
    const parts = this.#parts;
    const { key } = parts;
    const lateness = new Lateness(LATE_ENDS);
    for (let suspected = 0; ;) {
      let wanted = '';
      let mustRepeat = false;
      let wasLate = false;
      let surplus = this.#surplus;
      // As it is asked: what is sent until the answer comes may have happened after it.
      const { generation } = this.#suspect;
      await parts.at(
        [[length, key]],
        ([there], life) => {
          wanted = text(there);
          this.#suspect.copied = generation;
          return [parts.timeToLive(life), [length, key]];
        },
        // At once: what the mirror answers next was written after the end.
        ([, here], lateMs) => {
          surplus = Number(wanted) - Number(text(here));
          if (surplus !== this.#surplus) {
            if (length !== LENGTH.stream || this.#surplus !== 0)
              this.meanwhile.disturb(`the mirror has ${text(here)} of ${wanted}`);
            return;
          }
          wasLate = lateMs > 0;
          const isSuspected = this.#suspect.generation !== generation && ++suspected <= LATE_ENDS;
          mustRepeat = (lateMs > 0 && !lateness.accepts(lateMs)) || isSuspected;
          if (!mustRepeat && this.meanwhile.disturbed === null) this.#settled(generation);
        },
      );
      this.meanwhile.assertUndisturbed();
      if (surplus !== this.#surplus) {
        // The stream may count its entries wrongly: what it serves is what counts.
        if (!(await equalStreams(parts, parts.limits.chunkElements)))
          throw new Disturbed(`the mirror lacks ${surplus} of ${wanted} entries`);
        this.#surplus = surplus;
        this.#miscounted = true;
        continue;
      }
      if (!mustRepeat) return 'copied';
      if (wasLate) await sleep(Math.min(MAX_LATE_MS, LATE_MS * 2 ** lateness.copies));
    }
  }

  #settled(generation: number): void {
    const { sequencer, suspects, db, key } = this.options;
    sequencer.suspects.chunked.delete(keyId(db, key));
    suspects.clear(this.#suspect, generation);
  }

  async #whole(): Promise<'small'> {
    const { sequencer, suspects, workload, db, key } = this.options;
    await this.#parts.withLock(() => {
      const { generation } = this.#suspect;
      return copyKey(sequencer, this.lane, this.options, {
        ordered: (bytes) => {
          this.#suspect.copied = generation;
          this.#parts.bytes += bytes;
        },
        confirmed: (lateMs) => {
          if (lateMs > 0) suspects.mark(db, key, workload, 'ttl-lag');
          this.#settled(generation);
        },
        // The mirror counts them itself.
        recounted: () => (this.#miscounted = true),
      });
    });
    this.meanwhile.assertInPlace();
    return 'small';
  }
}
