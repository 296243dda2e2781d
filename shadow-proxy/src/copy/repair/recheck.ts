/**
 * Compares again what could not be compared while a key was a suspect: at one place in the order behind the key's copy,
 * where both servers must hold the same.
 *
 *   lane(authority): DUMP PTTL │ the reads │ DUMP PTTL of the key      neighbours: nothing comes between them
 *   mirror:          the copy  │ the reads │ DUMP PTTL of the key
 *
 * So a key that scripts change all the time is compared as well: what they do comes behind that place. Keys that
 * scripts change and no client reads are compared now and then, or nothing would show that they are equal.
 */
import { isCondition } from '../../compare/wording.js';
import { monotonicMs } from '../../io/clock.js';
import type { Lane } from '../../pipeline/lane.js';
import { ACCEPT, NOTHING, Operation, READ } from '../../pipeline/operation.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import type { Adjudicator } from '../../suspects/adjudicator.js';
import type { DeferredPair, DeferredPairs } from '../../suspects/deferred.js';
import { keyId, type Suspect, type Suspects } from '../../suspects/suspects.js';
import { mayBeLarge, onLane, usedBytes, type Thresholds } from '../large/size.js';
import { Verification } from '../verify/verifier.js';

/** The pause, in ms, after a key that scripts change was compared without need. */
const SAMPLE_MS = 10;
/** A larger key is not compared without need, by `MEMORY USAGE`. */
const SAMPLE_BYTES = 64 * 1024;

export interface RecheckContext {
  readonly sequencer: Sequencer;
  readonly suspects: Suspects;
  readonly deferred: DeferredPairs;
  readonly adjudicator: Adjudicator;
  readonly large: Thresholds;
}

const MINUS = '-'.charCodeAt(0);

/** Whether a difference at a place in the order is one of the data. */
type Decides = () => boolean;
/** Called at the place of the authority's reply. */
type Place = (answeredAt: number) => Decides;

export class Recheck {
  #sampledAt = -Infinity;

  constructor(private readonly by: RecheckContext) {
    by.deferred.ready = (db, key) => void this.#alone(db, key);
  }

  /**
   * What is to be compared behind the copy of the suspect, which has so much `MEMORY USAGE`; the caller gives it to
   * `ask` or `giveBack`.
   */
  takeFor({ db, key, workload, script, reason }: Suspect, used: number | null): DeferredPair[] {
    const { deferred } = this.by;
    const pairs = deferred.take(db, key);
    const now = monotonicMs();
    if (
      script === null ||
      // The key was compared, and would be copied again without a limit.
      reason === 'mismatch' ||
      used === null ||
      used > SAMPLE_BYTES ||
      now - this.#sampledAt < SAMPLE_MS ||
      !workload.position.rule(key, 0, key.length).mirrorsReads ||
      pairs.some(({ read }) => read === null)
    )
      return pairs;
    this.#sampledAt = now;
    deferred.asked++;
    return [...pairs, { db, workload, read: null, keys: [key], pairs: 0, tries: 0 }];
  }

  /** The pairs wait for the next copy, if there is one. */
  giveBack(suspect: Suspect, pairs: readonly DeferredPair[]): void {
    const { deferred, suspects, adjudicator } = this.by;
    const waits = suspects.get(keyId(suspect.db, suspect.key)) === suspect;
    for (const pair of pairs) {
      deferred.asked--;
      if (pair.pairs > 0 && !(waits && deferred.add(suspect, pair))) adjudicator.inconclusive(pair, suspect);
    }
  }

  /**
   * Sends them on the lane; no other lane may have a write to one of the keys in flight.
   * @param copied the key whose copy was asked for right before; null if none was
   */
  ask(lane: Lane, pairs: readonly DeferredPair[], copied: Buffer | null): void {
    for (const pair of pairs) {
      const place = (answeredAt: number): Decides => this.#placeOf(lane, pair, copied, answeredAt);
      if (!this.#isWrittenTwice(lane, pair)) this.#lost(pair);
      else if (pair.read === null) this.#askValue(lane, pair, place);
      else this.#askRead(lane, pair, pair.read, place);
    }
  }

  /** Whether both servers have what is compared: since the pair was read, the stage of a key may have changed. */
  #isWrittenTwice(lane: Lane, { keys }: DeferredPair): boolean {
    return keys.every((key) => {
      const { authority, mirrorsWrites } = this.by.sequencer.router
        .match(key, 0, key.length)
        .position.rule(key, 0, key.length);
      return mirrorsWrites && authority === lane.server.side;
    });
  }

  #askRead(lane: Lane, pair: DeferredPair, frame: Buffer, place: Place): void {
    const { sequencer, deferred, adjudicator } = this.by;
    const { db, workload } = pair;
    const spec = sequencer.keys.specOf(frame, 0);
    const question = new Operation(
      frame,
      0,
      frame.length,
      {
        lost: () => this.#lost(pair),
        answered: ({ answeredAt, stalledMs }, buffer, start, end) => {
          // What the authority cannot answer now says nothing of the data.
          if (buffer[start] === MINUS && isCondition(buffer.toString('latin1', start + 1, end)))
            return this.#lost(pair);
          const decides = place(answeredAt);
          const echo = new Operation(frame, 0, frame.length, null, spec, workload, db, 2, READ);
          echo.lane = lane;
          echo.answeredAt = answeredAt;
          echo.stalledMs = stalledMs;
          echo.reply = buffer;
          echo.replyStart = start;
          echo.replyEnd = end;
          // `confirmed` compares.
          echo.check = ACCEPT;
          echo.confirmed = (answer) => {
            deferred.asked--;
            if (answer !== null) adjudicator.recompared(echo, answer, pair, decides());
          };
          sequencer.mirrorOf(echo).append(echo);
        },
      },
      spec,
      workload,
      db,
      2,
      NOTHING,
    );
    sequencer.submit(question, lane);
    sequencer.hold(
      question,
      lane,
      pair.keys.map((key) => key.toString('latin1')),
    );
  }

  #askValue(lane: Lane, pair: DeferredPair, place: Place): void {
    const { sequencer, deferred, adjudicator } = this.by;
    const { db, workload } = pair;
    let decides: Decides = () => false;
    new Verification(sequencer, lane, [{ db, workload, key: pair.keys[0] }], {
      answered: () => (decides = place(monotonicMs())),
      verified: (_key, difference) => {
        deferred.asked--;
        adjudicator.valuesCompared(pair, lane.server.side, difference, decides());
      },
      failed: () => this.#lost(pair),
    }).start();
  }

  #lost(pair: DeferredPair): void {
    this.by.deferred.asked--;
    this.by.adjudicator.inconclusive(pair);
  }

  /**
   * A difference at the place is one of the data if no key is a suspect when the mirror answers: a script that ran
   * before the place is named by then. The key that was copied right before the place may be one again, if the mirror
   * has confirmed the copy: what made it suspect since comes behind the place.
   */
  #placeOf(lane: Lane, { db, keys }: DeferredPair, copied: Buffer | null, answeredAt: number): Decides {
    const { sequencer, suspects, adjudicator } = this.by;
    if (sequencer.changes[lane.server.side].mayShow(db, lane, answeredAt)) return () => false;
    const suspect = copied === null ? undefined : suspects.get(keyId(db, copied));
    const generation = suspect?.generation ?? 0;
    const isBehindCopy = suspect !== undefined && suspect.copied === generation;
    const isCertain = (key: Buffer): boolean => {
      const id = keyId(db, key);
      const workload = sequencer.router.match(key, 0, key.length);
      if (sequencer.expiry.asksAbout(db, key) || sequencer.suspects.isWhole(workload)) return false;
      return isBehindCopy && copied?.equals(key) === true
        ? suspect.confirmed >= generation
        : suspects.get(id) === undefined && !adjudicator.asksAbout(id);
    };
    return () => keys.every(isCertain);
  }

  /** The key is no suspect any more, and had pairs that were not compared behind its copy. */
  async #alone(db: number, key: Buffer): Promise<void> {
    const { sequencer, deferred, large } = this.by;
    let pairs = deferred.take(db, key);
    try {
      const workload = sequencer.router.match(key, 0, key.length);
      const { authority, mirrorsWrites } = workload.position.rule(key, 0, key.length);
      const lanes = sequencer.lanes[authority];
      const lane = await lanes.open({ db, protocol: 2, credentials: lanes.server.endpoint.credentials });
      if (pairs.some(({ read }) => read === null)) {
        const used = usedBytes(await onLane(sequencer, lane, workload, db).ask('MEMORY', 'USAGE', key));
        // The copy of a large key is made in chunks, and each is compared there.
        if (used !== 0 && mayBeLarge(used, large)) {
          for (const pair of pairs.filter(({ read }) => read === null)) this.#lost(pair);
          pairs = pairs.filter(({ read }) => read !== null);
        }
      }
      await lanes.locks(db).withLock(lane, keysOf(pairs), false, () => {
        const isStill = workload.position.rule(key, 0, key.length).authority === authority && mirrorsWrites;
        if (lane.closed || sequencer.blocked || workload.position.moving || !isStill) throw new Error('not now');
        this.ask(lane, pairs, null);
        pairs = [];
        return Promise.resolve();
      });
    } catch {
      for (const pair of pairs) this.#lost(pair);
    }
  }
}

/** The keys of all of them, each once. */
export const keysOf = (pairs: readonly DeferredPair[], ...more: readonly Buffer[]): string[] => [
  ...new Set([...more, ...pairs.flatMap(({ keys }) => keys)].map((key) => key.toString('latin1'))),
];
