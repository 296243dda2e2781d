/**
 * What a chunked copy is made of: `at`, which reads on the authority's lane and has what follows from it carried out
 * on the mirror at that place in the order; and `askAuthority`, which asks the authority off the clients' lane.
 *
 *   askAuthority ──▶ what there may be   (a connection of its own)
 *   at   ──▶ read, PTTL ──▶ effects      (the clients' lane, the mirror's lane)
 */
import { monotonicMs } from '../../io/clock.js';
import { sleep } from '../../io/timers.js';
import { lifeFromPttl, type KeyLife } from '../../resp/key-life.js';
import type { Connection } from '../../upstream/connection.js';
import type { Lane } from '../../pipeline/lane.js';
import type { MirrorLane } from '../../pipeline/mirror.js';
import {
  ACCEPT,
  NOTHING,
  Operation,
  questions,
  TTL_TOLERANCE_MS,
  ttlErrorMs,
  WRITE,
} from '../../pipeline/operation.js';
import type { Sequencer } from '../../pipeline/sequencer.js';
import { decodeReply, errorCode, isError, text, type Reply, errorText } from '../../resp/decode.js';
import { encodeCommand, type Argument } from '../../resp/encode.js';
import type { Workload } from '../../route/router.js';
import { otherSide } from '../../route/stage.js';
import { CopyError, refusalOfMirror } from '../key/copier.js';
import { Disturbed, EXPIRY_MARGIN_MS, type Meanwhile } from './meanwhile.js';
import { temporaryKey } from './temporary.js';

export type Command = readonly Argument[];

/** How much is read, and written, at one place in the order. */
export interface ChunkLimits {
  readonly chunkElements: number;
  readonly chunkBytes: number;
}

export interface PartsOptions {
  readonly sequencer: Sequencer;
  readonly workload: Workload;
  readonly db: number;
  readonly key: Buffer;
  readonly limits: ChunkLimits;
  readonly signal?: AbortSignal;
  /** Awaited before each chunk, with the bytes of the one before: the rate limiter takes time here. */
  readonly pace?: (bytes: number) => Promise<void>;
}

/** The answers of both servers at one place in the order, and how far apart in time they may be, in ms. */
export interface Both {
  readonly authority: readonly Reply[];
  readonly mirror: readonly Reply[];
  readonly lagMs: number;
}

/** The mirror has answered all effects of one place; `late` where a time to live among them may be off. */
/** @param lateMs by how much the time to live may be off, where that is more than tolerated; else 0 */
export type Confirmed = (answers: readonly Reply[], lateMs: number) => void;

/** Errors of the mirror that only say that the key is not what it should be by now. */
const UNEQUAL = /^(WRONGTYPE|NOGROUP|BUSYGROUP|ERR no such key)/;
const WAIT_MS = 2;

export class Parts {
  readonly key: Buffer;
  readonly temporary: Buffer;
  readonly limits: ChunkLimits;
  readonly mirror: MirrorLane;
  elements = 0;
  bytes = 0;
  /** When the next field of the hash expires, in Unix ms by the authority's clock. */
  #nextField = Infinity;
  readonly #runId: string;
  #paced = 0;

  constructor(
    private readonly options: PartsOptions,
    readonly lane: Lane,
    /** To the authority, for the discovery of what there is. */
    private readonly scout: Connection,
    readonly meanwhile: Meanwhile,
  ) {
    this.key = options.key;
    this.temporary = temporaryKey(options.db, options.key);
    this.limits = options.limits;
    const { sequencer } = options;
    this.mirror = sequencer.mirrors[otherSide(lane.server.side)];
    this.#runId = this.mirror.server.runId;
    meanwhile.belongsTo({ owns: (operation) => this.#own.has(operation), discard: () => void this.discard() });
  }

  readonly #own = new WeakSet<Operation>();

  /** Asks the authority off the clients' lane. @throws {Disturbed} if the key is of another type by now */
  async askAuthority(...command: Argument[]): Promise<Reply> {
    this.#assertWanted();
    const reply = await this.scout.ask(...command).catch(lostAuthority);
    if (isError(reply)) refused(reply);
    return reply;
  }

  /**
   * Reads on the authority's lane, neighbours, and has `effects` of the replies carried out on the mirror at that
   * place. `effects` is called at that place, with the key's life, which is not `absent`; `confirmed` when the mirror
   * has answered.
   * @returns the mirror's answers
   * @throws {Disturbed} if the key is not what it was, {CopyError} when a server refuses or a connection is lost
   */
  async at(
    reads: readonly Command[],
    effects: (replies: readonly Reply[], life: KeyLife) => readonly Command[],
    confirmed: Confirmed = () => undefined,
  ): Promise<readonly Reply[]> {
    await this.pace();
    return this.withLock(() => this.#send([...reads, ['PTTL', this.key]], effects, confirmed));
  }

  /** Waits for the rate limiter. */
  async pace(): Promise<void> {
    await this.options.pace?.(this.bytes - this.#paced);
    this.#paced = this.bytes;
  }

  /**
   * Does the work, which submits to the lane before it first awaits anything, when the key has its turn, and nothing is
   * moved or comes late.
   */
  async withLock<T>(work: () => Promise<T>): Promise<T> {
    const { sequencer, db } = this.options;
    const locks = sequencer.lanes[this.lane.server.side].locks(db);
    for (;;) {
      while (this.#mustWait) {
        this.#assertWanted();
        this.#assertServers();
        await sleep(WAIT_MS);
      }
      const done = await locks.withLock(this.lane, [this.key.toString('latin1')], false, async () => {
        if (this.#mustWait) return null;
        this.#assertWanted();
        this.#assertServers();
        return { value: await work() };
      });
      if (done !== null) return done.value;
    }
  }

  /**
   * Asks both servers the same at one place in the order. Errors are replies like others.
   * @throws {CopyError} if a connection is lost
   */
  async both(reads: readonly Command[]): Promise<Both> {
    await this.pace();
    return this.withLock(() => this.#askBoth(reads));
  }

  /**
   * Fields of the hash end in so many ms: the mirror gets them without that.
   * @throws {CopyError} if the plan does not allow it, or the mirror could hold that
   */
  fieldsExpire(ms: readonly number[]): void {
    if (ms.length === 0) return;
    const { fieldTtls } = this.options.sequencer;
    if (fieldTtls === null || this.mirror.server.traits.fieldTtlForm !== null)
      throw new CopyError(
        'payload',
        'it has fields with a TTL, which cannot be copied in chunks: raise limits.largeKeyBytes and limits.largeKeyElements, remove them (HPERSIST), or set hashFieldTtl: strip in the plan',
      );
    const { side } = this.lane.server;
    this.#nextField = Math.min(this.#nextField, fieldTtls.now(side) + Math.min(...ms));
    fieldTtls.copied(this.options, side, ms.length, 0, this.#nextField);
  }

  /** Whether the authority and its mirror have the command. */
  bothKnow(name: string): boolean {
    return this.lane.server.traits.commands.has(name) && this.mirror.server.traits.commands.has(name);
  }

  #askBoth(reads: readonly Command[]): Promise<Both> {
    const { sequencer, workload, db } = this.options;
    const frame = Buffer.concat(reads.map((command) => encodeCommand(command)));
    const bundle = questions(reads.length);
    return new Promise((resolve, reject) => {
      const lost = (which: string) => (): void =>
        reject(new CopyError('lost', `the connection to the ${which} was lost`));
      const answered = (asked: Operation, buffer: Buffer, start: number): void => {
        const authority = repliesIn(buffer, start, reads.length);
        const question = new Operation(frame, 0, frame.length, null, undefined, workload, db, 2, NOTHING);
        question.bundle = bundle;
        question.lane = this.lane;
        question.answeredAt = asked.answeredAt;
        question.check = ACCEPT;
        question.confirmed = (answer) => {
          if (answer === null) return lost('mirror')();
          this.bytes += answer.length;
          resolve({
            authority,
            mirror: repliesIn(answer, 0, reads.length),
            lagMs: monotonicMs() - asked.answeredAt + asked.stalledMs,
          });
        };
        this.mirror.append(question);
        this.mirror.flush();
      };
      const operation = new Operation(
        frame,
        0,
        frame.length,
        { answered, lost: lost('authority') },
        undefined,
        workload,
        db,
        2,
        NOTHING,
      );
      operation.bundle = bundle;
      sequencer.submit(operation, this.lane);
      sequencer.hold(operation, this.lane, [this.key.toString('latin1')]);
    });
  }

  /**
   * Removes what there is of a copy that is aborted; where the mirror is disconnected, it stays, and is known by its
   * name.
   */
  async discard(): Promise<void> {
    if (!this.mirror.connected) return;
    const [unlink] = this.#effects([['UNLINK', this.temporary]], monotonicMs());
    await new Promise<void>((resolve) => {
      unlink.confirmed = () => resolve();
      this.mirror.append(unlink);
    });
  }

  get #mustWait(): boolean {
    const { sequencer, workload } = this.options;
    return sequencer.blocked || workload.position.moving || !sequencer.allClosed;
  }

  #assertWanted(): void {
    if (this.options.signal?.aborted === true) throw new CopyError('declined', 'the copy was stopped');
  }

  #assertServers(): void {
    const { workload } = this.options;
    if (workload.position.rule(this.key, 0, this.key.length).authority !== this.lane.server.side)
      throw new CopyError('declined', 'its authority has changed');
    if (this.lane.closed) throw new CopyError('lost', 'the connection to the authority was lost');
    const refused = refusalOfMirror(this.options.sequencer, this.lane.server.side, this.options.db);
    if (refused !== null) throw refused;
    if (!this.mirror.connected || this.mirror.server.runId !== this.#runId)
      throw new CopyError('lost', 'the connection to the mirror was lost');
  }

  #send(
    reads: readonly Command[],
    effects: (replies: readonly Reply[], life: KeyLife) => readonly Command[],
    confirmed: Confirmed,
  ): Promise<readonly Reply[]> {
    const { sequencer, workload, db } = this.options;
    return new Promise((resolve, reject) => {
      const replies: Reply[] = [];
      const lost = (): void => reject(new CopyError('lost', 'the connection to the authority was lost'));
      reads.forEach((command, i) => {
        const last = i === reads.length - 1;
        const frame = encodeCommand(command);
        const sink: Operation['sink'] = {
          lost,
          answered: (operation, buffer, start) => {
            replies.push(decodeReply(buffer, start).reply);
            if (!last) return;
            try {
              const life = this.#judge(replies, operation);
              this.#follow(effects(replies, life), life, operation, confirmed, resolve, reject);
            } catch (problem) {
              reject(problem as Error);
            }
          },
        };
        const operation = new Operation(frame, 0, frame.length, sink, undefined, workload, db, 2, NOTHING);
        sequencer.submit(operation, this.lane);
        if (last) sequencer.hold(operation, this.lane, [this.key.toString('latin1')]);
      });
    });
  }

  /** @throws {Disturbed} if it was deleted, or may have been, and set again */
  #judge(replies: readonly Reply[], { answeredAt, submittedAt }: Operation): KeyLife {
    const { meanwhile } = this;
    const life = lifeFromPttl(Number(text(replies.at(-1)!)));
    if (life.state === 'absent') throw new Disturbed('it does not exist any more');
    for (const reply of replies) if (isError(reply) && errorCode(reply) !== 'NOGROUP') refused(reply);
    if (answeredAt + EXPIRY_MARGIN_MS >= meanwhile.expiresAt) meanwhile.disturb('it may have expired');
    meanwhile.assertUndisturbed();
    meanwhile.expiresFrom(life.state === 'expires' ? submittedAt + life.ms : Infinity);
    return life;
  }

  #follow(
    commands: readonly Command[],
    life: KeyLife,
    asked: Operation,
    confirmed: Confirmed,
    resolve: (answers: readonly Reply[]) => void,
    reject: (problem: Error) => void,
  ): void {
    if (commands.length === 0) return resolve([]);
    const { expiry } = this.options.sequencer;
    const { db } = this.options;
    const answers: Reply[] = [];
    const effects = this.#effects(commands, asked.answeredAt);
    let lateMs = 0;
    for (const [i, effect] of effects.entries()) {
      effect.stalledMs = asked.stalledMs;
      effect.confirmed = (answer) => {
        if (answer === null)
          return reject(new CopyError('lost', 'the connection to the mirror was lost, or it has no room'));
        const { reply } = decodeReply(answer, 0);
        if (isError(reply))
          return reject(
            UNEQUAL.test(text(reply))
              ? new Disturbed(`the mirror has another value (${errorText(reply)})`)
              : refusedByMirror(reply),
          );
        answers.push(reply);
        if (TIMES.has(commands[i][0] as string)) {
          const now = monotonicMs();
          expiry.copied(db, this.key, life, asked.submittedAt, now);
          const errorMs = ttlErrorMs(effect, now);
          lateMs = life.state === 'expires' && errorMs > TTL_TOLERANCE_MS ? errorMs : 0;
        }
        if (answers.length < commands.length) return;
        confirmed(answers, lateMs);
        resolve(answers);
      };
    }
    this.mirror.appendAll(effects);
    this.mirror.flush();
  }

  #effects(commands: readonly Command[], answeredAt: number): Operation[] {
    const { sequencer, workload, db } = this.options;
    return commands.map((command) => {
      const frame = encodeCommand(command);
      const spec = sequencer.table.byName((command[0] as string).toLowerCase());
      const effect = new Operation(frame, 0, frame.length, null, spec, workload, db, 2, WRITE);
      effect.lane = this.lane;
      effect.answeredAt = answeredAt;
      effect.check = ACCEPT;
      this.bytes += frame.length;
      this.#own.add(effect);
      return effect;
    });
  }

  /** The command that gives the mirror's key the authority's TTL. */
  timeToLive(life: KeyLife): Command {
    return life.state === 'expires' ? ['PEXPIRE', this.key, life.ms] : ['PERSIST', this.key];
  }
}

const TIMES = new Set(['PEXPIRE', 'PERSIST']);

export const refusedByMirror = (reply: Reply): CopyError =>
  new CopyError(errorCode(reply) === 'OOM' ? 'memory' : 'mirror', `the mirror refused: ${errorText(reply)}`);

function lostAuthority(): never {
  throw new CopyError('lost', 'the connection to the authority was lost');
}

function refused(reply: Reply): never {
  if (errorCode(reply) === 'WRONGTYPE') throw new Disturbed('it has another type now');
  throw new CopyError('authority', `the authority refused: ${errorText(reply)}`);
}

function repliesIn(buffer: Buffer, start: number, count: number): Reply[] {
  const replies: Reply[] = [];
  for (let at = start; replies.length < count;) {
    const { reply, end } = decodeReply(buffer, at);
    replies.push(reply);
    at = end;
  }
  return replies;
}
