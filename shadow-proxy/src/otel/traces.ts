/**
 * Traces of sampled commands: client → authority → mirror → verdict. It follows a sampled operation through the
 * sequencer's normal calls, and passes on the finished trace. It changes nothing.
 */
import type { Verdict } from '../compare/verdict.js';
import { monotonicMs } from '../io/clock.js';
import { randomShare } from '../io/random.js';
import type { LaneEvents } from '../pipeline/lane.js';
import type { MirrorEvents } from '../pipeline/mirror-events.js';
import type { Observer } from '../pipeline/observer.js';
import { NOTHING, type Carrier, type Operation } from '../pipeline/operation.js';
import type { Side } from '../route/stage.js';

/** All times in ms of the monotonic clock. */
export interface Trace {
  /** In lower case. */
  readonly command: string;
  readonly workload: string;
  readonly stage: string;
  readonly authority: Side;
  /** Redacted URL. */
  readonly server: string;
  /** Null if keys must not be shown, or the command does not have exactly one key. */
  readonly key: string | null;
  readonly startedAt: number;
  /** When the authority's reply came; null if the connection was lost. */
  answeredAt: number | null;
  /** Whether the authority answered with an error. */
  isError: boolean;
  /** When the mirror's reply came; null if nothing was replicated, or it was never confirmed. */
  mirrorAt: number | null;
  endedAt: number;
  /** A verdict; or `accepted`, `unconfirmed`, `dropped`; null if the mirror got nothing. */
  outcome: string | null;
  /** The rule, reason or kind of the verdict. */
  detail: string | null;
}

export interface TracesOptions {
  /** The share of the commands that is traced: above 0, up to 1. */
  readonly share: number;
  readonly showKeys: () => boolean;
  readonly finished: (trace: Trace) => void;
}

/** Maximum number of commands that are followed at a time; with a mirror far behind, no more are sampled. */
const MAX_OPEN = 1_000;
const MAX_KEY = 256;
const MINUS = '-'.charCodeAt(0);

export class Traces implements Observer {
  readonly #open = new Map<Operation, Trace>();
  /** How many commands pass before the next one is traced. */
  #gap: number;

  constructor(private readonly options: TracesOptions) {
    this.#gap = gapOf(options.share);
  }

  submit(operation: Operation, lane: Carrier): void {
    if (this.#gap-- === 0) {
      this.#gap = gapOf(this.options.share);
      this.#begin(operation, lane);
    }
    lane.submit(operation);
  }

  /** The proxy's own commands have no spec, and are not traced. */
  #begin(operation: Operation, lane: Carrier): void {
    const { spec, workload } = operation;
    if (spec === undefined || operation.sink === null || this.#open.size >= MAX_OPEN) return;
    const { side, endpoint } = lane.server;
    this.#open.set(operation, {
      command: spec.name,
      workload: workload.name,
      stage: workload.position.stage,
      authority: side,
      server: endpoint.label,
      key:
        this.options.showKeys() && spec.singleKey > 0
          ? (operation.command.args[spec.singleKey]?.toString('utf8', 0, MAX_KEY) ?? null)
          : null,
      startedAt: monotonicMs(),
      answeredAt: null,
      isError: false,
      mirrorAt: null,
      endedAt: 0,
      outcome: null,
      detail: null,
    });
  }

  ofLanes(events: LaneEvents): LaneEvents {
    return {
      answered: (operation, buffer, start, end, now) => {
        const trace = this.#open.size === 0 ? undefined : this.#open.get(operation);
        if (trace !== undefined) {
          trace.answeredAt = now;
          trace.isError = buffer[start] === MINUS;
        }
        events.answered(operation, buffer, start, end, now);
        // For all others, the mirror's answer, or the fact that the mirror gets nothing, ends the trace.
        if (trace !== undefined && (operation.follow === NOTHING || trace.isError)) this.#end(operation, null, now);
      },
      lost: (lane, operations, reason) => {
        for (const operation of operations) this.#end(operation, 'reply-lost', monotonicMs());
        events.lost(lane, operations, reason);
      },
    };
  }

  ofMirror(events: MirrorEvents): MirrorEvents {
    return {
      matched: (operation, now) => {
        if (this.#open.size > 0) this.#answered(operation, 'match', now);
        events.matched(operation, now);
      },
      accepted: (operation, now) => {
        if (this.#open.size > 0) this.#answered(operation, 'accepted', now);
        events.accepted(operation, now);
      },
      differs: (operation, buffer, start, end, now) => {
        const trace = this.#open.get(operation);
        if (trace !== undefined) trace.mirrorAt = now;
        events.differs(operation, buffer, start, end, now);
      },
      unconfirmed: (operation) => {
        this.#end(operation, 'unconfirmed', monotonicMs());
        events.unconfirmed(operation);
      },
      dropped: (operation) => {
        this.#end(operation, 'dropped', monotonicMs());
        events.dropped(operation);
      },
      refused: (operation, reason) => {
        this.#end(operation, reason, monotonicMs());
        events.refused(operation, reason);
      },
      failed: (operation, thrown) => {
        this.#end(operation, 'failed', monotonicMs());
        events.failed(operation, thrown);
      },
      database: (db, why) => events.database(db, why),
      connected: (up) => events.connected(up),
    };
  }

  concluded(operation: Operation, verdict: Verdict): void {
    const trace = this.#open.get(operation);
    if (trace !== undefined) trace.detail = detailOf(verdict);
    this.#end(operation, verdict.kind, monotonicMs());
  }

  /** Ends old traces that nothing else ends: commands without an effect are not sent to the mirror. */
  sweep(olderThanMs: number): void {
    const before = monotonicMs() - olderThanMs;
    for (const [operation, { answeredAt, startedAt, mirrorAt }] of this.#open)
      if ((answeredAt ?? startedAt) < before) this.#end(operation, null, mirrorAt ?? answeredAt ?? monotonicMs());
  }

  #answered(operation: Operation, outcome: string, now: number): void {
    const trace = this.#open.get(operation);
    if (trace === undefined) return;
    trace.mirrorAt = now;
    this.#end(operation, outcome, now);
  }

  #end(operation: Operation, outcome: string | null, now: number): void {
    const trace = this.#open.get(operation);
    if (trace === undefined) return;
    this.#open.delete(operation);
    trace.outcome = outcome;
    trace.endedAt = now;
    this.options.finished(trace);
  }
}

/** The number of commands to skip, chosen so that each command has the same chance, whatever pattern clients have. */
const gapOf = (share: number): number =>
  share >= 1 ? 0 : Math.floor(Math.log(1 - randomShare()) / Math.log(1 - share));

function detailOf(verdict: Verdict): string | null {
  if (verdict.kind === 'allowed') return verdict.rule;
  if (verdict.kind === 'inconclusive') return verdict.reason;
  return verdict.kind === 'mismatch' ? verdict.what : null;
}
