/**
 * What a difference means. Equal bytes never come here: the judge sees the rest, names the rule that explains it,
 * or the mismatch; asks both servers where the frames alone do not tell; and has the keys healed.
 */
import { compareExec, compareReplies, judgeAbsence, needsEvidence, type CommandView, type Verdict } from '../compare/compare.js';
import { RELATIVE_TTL } from '../command/effects.js';
import { argumentsOf, decodeReply, isError, text } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import { increment } from '../route/router.js';
import { ACCEPT, NOTHING, Operation, WRITE } from './operation.js';
import type { Side } from '../route/stage.js';
import type { Sequencer } from './sequencer.js';
import type { Server } from './server.js';

export interface Finding {
  readonly workload: string;
  readonly command: string;
  readonly db: number;
  readonly key: Buffer | null;
  /** What differed. */
  readonly kind: string;
  readonly authority: Side;
  /** Both replies, whole frames. */
  readonly source: Buffer;
  readonly target: Buffer;
}

/** By how much a time to live may differ beyond the lag that was measured, in ms. */
export const TTL_TOLERANCE_MS = 50;
/** Questions to both servers at a time; a flood of differences beyond that stays without a verdict. */
const MAX_QUESTIONS = 256;

export class Judge {
  sequencer!: Sequencer;
  #questions = 0;
  #burying = 0;
  /** Servers with connections that may still run what they hold. */
  onBuried: () => void = () => undefined;

  constructor(private readonly found: (finding: Finding) => void) {}

  /** Whether no lost connection can still change anything. */
  get buried(): boolean {
    return this.#burying === 0;
  }

  /** Ends a lost connection at the server; keeps trying while the server cannot be reached. */
  bury(server: Server, clientId: number): void {
    this.#burying++;
    const runId = server.runId;
    const attempt = (): void => {
      server
        .identify()
        .then(() => (server.runId === runId ? server.bury(clientId) : undefined))
        .then(
          () => {
            this.#burying--;
            this.onBuried();
          },
          () => setTimeout(attempt, 100).unref(),
        );
    };
    attempt();
  }

  /** An effect was confirmed so late that a time to live in it may be off. */
  late(operation: Operation, now: number): void {
    if (operation.follow !== WRITE || operation.spec === undefined || !RELATIVE_TTL.has(operation.spec.name)) return;
    if (now - operation.answeredAt > TTL_TOLERANCE_MS) this.sequencer.doubtOperation(operation, 'ttl-lag');
  }

  /** The mirror's reply `buffer[start, end)` is not the authority's, byte by byte. */
  differs(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void {
    const counters = operation.workload.counters;
    const authority = operation.reply.subarray(operation.replyStart, operation.replyEnd);
    const mirror = Buffer.from(buffer.subarray(start, end));
    if (operation.follow === WRITE && mirror[0] === MINUS && (authority.length === 0 || authority[0] !== MINUS)) {
      counters.compared++;
      this.#mismatch(operation, { kind: 'mismatch', what: 'error' }, authority, mirror);
      return;
    }
    const command = viewOf(operation);
    const limits = { ttlMs: TTL_TOLERANCE_MS + (now - operation.answeredAt) };
    const verdict = operation.batch === null ? compareReplies(command, authority, mirror, limits) : compareExec(operation.batch.views, operation.batch.expected(authority, mirror), mirror, limits).verdict;
    if (verdict.kind === 'mismatch' && this.#inDoubt(operation)) {
      increment(counters.inconclusive, 'suspect');
      // What it read or wrote on the mirror may have been wrong: the doubt is not older than this.
      if (operation.follow === WRITE) this.sequencer.doubtOperation(operation, 'derived');
      return;
    }
    if (verdict.kind === 'mismatch' && operation.batch === null && needsEvidence(verdict, command, authority, mirror) !== null) {
      this.#ask(operation, verdict, authority, mirror, limits.ttlMs);
      return;
    }
    this.#conclude(operation, verdict, authority, mirror);
  }

  #conclude(operation: Operation, verdict: Verdict, authority: Buffer, mirror: Buffer): void {
    const counters = operation.workload.counters;
    switch (verdict.kind) {
      case 'match':
        counters.compared++;
        counters.matched++;
        return;
      case 'explained':
        counters.compared++;
        increment(counters.explained, verdict.rule);
        // An excused difference of a write has left different data behind; so has an eviction.
        if (operation.follow === WRITE || verdict.rule === 'evicted') this.sequencer.doubtOperation(operation, verdict.rule);
        return;
      case 'inconclusive':
        increment(counters.inconclusive, verdict.reason);
        this.#doubtAll(operation, 'inconclusive');
        return;
      case 'mismatch':
        counters.compared++;
        this.#mismatch(operation, verdict, authority, mirror);
    }
  }

  #mismatch(operation: Operation, verdict: Extract<Verdict, { kind: 'mismatch' }>, authority: Buffer, mirror: Buffer): void {
    increment(operation.workload.counters.mismatches, verdict.what);
    let key: Buffer | null = null;
    const [frame, start] = askedFrame(operation);
    this.sequencer.eachKey(frame, start, (k) => {
      key ??= Buffer.from(k);
    });
    const name = operation.spec?.name ?? argumentsOf(frame, start)[0].toString('latin1').toLowerCase();
    const side = operation.lane!.server.side;
    const [source, target] = side === 'source' ? [authority, mirror] : [mirror, authority];
    this.found({ workload: operation.workload.name, command: name, db: operation.db, key, kind: verdict.what, authority: side, source, target });
    this.#doubtAll(operation, 'mismatch');
  }

  /** Every key of the operation, read or written, is in doubt. */
  #doubtAll(operation: Operation, reason: string): void {
    const [frame, start] = askedFrame(operation);
    if (operation.batch !== null) {
      for (const inner of operation.batch.frames) this.sequencer.eachKey(inner, 0, (key) => this.sequencer.doubtKey(operation.db, key, reason));
      return;
    }
    this.sequencer.eachKey(frame, start, (key) => this.sequencer.doubtKey(operation.db, key, reason));
  }

  /** Whether a key of the operation is a suspect already, or is being asked about. */
  #inDoubt(operation: Operation): boolean {
    if (operation.workload.suspect !== null) return true;
    const { suspects } = this.sequencer;
    if (suspects.size === 0) return false;
    let doubt = false;
    const look = (key: Buffer): void => {
      doubt ||= suspects.has(operation.db, key);
    };
    const [frame, start] = askedFrame(operation);
    if (operation.batch !== null) for (const inner of operation.batch.frames) this.sequencer.eachKey(inner, 0, look);
    else this.sequencer.eachKey(frame, start, look);
    return doubt;
  }

  /** One side has the key and the other has not: did it expire, or was it evicted? */
  #ask(operation: Operation, verdict: Verdict, authority: Buffer, mirror: Buffer, toleranceMs: number): void {
    const sequencer = this.sequencer;
    const [frame, start] = askedFrame(operation);
    const keys: Buffer[] = [];
    sequencer.eachKey(frame, start, (key) => keys.push(Buffer.from(key)));
    const lane = operation.lane!;
    if (keys.length === 0 || this.#questions >= MAX_QUESTIONS || lane.closed) {
      this.#conclude(operation, { kind: 'inconclusive', reason: keys.length === 0 ? 'keys-unknown' : 'no-evidence' }, authority, mirror);
      return;
    }
    this.#questions++;
    const writtenSince = this.#writtenSince(operation, keys);
    Promise.all(keys.map((key) => this.#pttlOnBoth(operation, key)))
      .then(async (answers) => {
        const authorityEvicted = await lane.server.evictedSince();
        const mirrorEvicted = await sequencer.mirrorOf(operation).server.evictedSince();
        const verdicts = answers.map(({ authorityPttl, mirrorPttl }) =>
          judgeAbsence(verdict, { authorityPttl, mirrorPttl, authorityEvicted, mirrorEvicted, writtenSince, toleranceMs }),
        );
        // With several keys, one that explains it is enough.
        this.#conclude(operation, verdicts.find((v) => v.kind === 'explained') ?? verdicts[0], authority, mirror);
      })
      .catch(() => this.#conclude(operation, { kind: 'inconclusive', reason: 'no-evidence' }, authority, mirror))
      .finally(() => {
        this.#questions--;
      });
  }

  /** Whether a write to one of the keys is already ordered after the operation. */
  #writtenSince(operation: Operation, keys: readonly Buffer[]): boolean {
    let written = false;
    this.sequencer.mirrorOf(operation).eachQueued((other) => {
      if (other.follow === WRITE && other.db === operation.db) {
        this.sequencer.eachKey(...askedFrame(other), (key) => {
          written ||= keys.some((wanted) => wanted.equals(key));
        });
      }
      return !written;
    });
    return written;
  }

  /** PTTL at one place in the order: on the authority, and at its reply's place on the mirror. */
  #pttlOnBoth(operation: Operation, key: Buffer): Promise<{ authorityPttl: number | null; mirrorPttl: number | null }> {
    const frame = encodeCommand(['PTTL', key]);
    return new Promise((resolve, reject) => {
      const lane = operation.lane!;
      const lost = (): void => reject(new Error('lost'));
      const question = new Operation(
        frame,
        0,
        frame.length,
        {
          lost,
          answered: (asked, buffer, start) => {
            const authorityPttl = numberOf(buffer, start);
            const echo = new Operation(frame, 0, frame.length, null, undefined, operation.workload, operation.db, operation.protocol, NOTHING);
            echo.lane = lane;
            echo.answeredAt = asked.answeredAt;
            echo.reply = buffer;
            echo.check = ACCEPT;
            echo.confirmed = (answer) => (answer === null ? lost() : resolve({ authorityPttl, mirrorPttl: numberOf(answer, 0) }));
            this.sequencer.mirrorOf(echo).append(echo);
          },
        },
        undefined,
        operation.workload,
        operation.db,
        operation.protocol,
        NOTHING,
      );
      this.sequencer.submit(question, lane);
    });
  }
}

function numberOf(buffer: Buffer, start: number): number | null {
  const { reply } = decodeReply(buffer, start);
  return isError(reply) ? null : Number(text(reply));
}

/** The command as the client gave it: what the ledger names, and whose keys are in doubt. */
function askedFrame(operation: Operation): [Buffer, number] {
  return operation.asked === null ? [operation.frame, operation.start] : [operation.asked, 0];
}

/** The command that was sent to the mirror: whose reply is judged. */
function viewOf(operation: Operation): CommandView {
  const args = argumentsOf(operation.frame, operation.start);
  const name = operation.asked === null && operation.spec !== undefined ? operation.spec.name : args[0].toString('latin1').toLowerCase();
  return { name, args };
}

const MINUS = '-'.charCodeAt(0);
