/**
 * The queue of one receiver: notices are sent one after the other, and again after a growing pause if that fails. The
 * queue is bounded; dropped notices are counted and logged.
 */
import type { Logger } from 'pino';
import { unixMs } from '../io/clock.js';
import { randomShare } from '../io/random.js';
import { after, clearTimer, sleep, type Timer } from '../io/timers.js';
import type { ReceiverPlan } from '../plan/plan.js';
import type { ReceiverSnapshot } from '../telemetry/snapshot.js';
import type { Notice } from './notice.js';
import { send as sendNow, type Answer } from './send.js';

export interface NoticeQueueLimits {
  readonly notices: number;
  /** A notice that is older is no longer useful. In ms. */
  readonly ageMs: number;
  readonly firstRetryMs: number;
  readonly lastRetryMs: number;
}

const LIMITS: NoticeQueueLimits = { notices: 100, ageMs: 60 * 60_000, firstRetryMs: 1_000, lastRetryMs: 60_000 };
/** Maximum pause that a receiver may request, in ms. */
const MOST_AFTER_MS = 5 * 60_000;

type Drop = keyof ReceiverSnapshot['dropped'];

export class NoticeQueue {
  readonly #queue: Notice[] = [];
  readonly #dropped: Record<Drop, number> = { full: 0, expired: 0, refused: 0 };
  #sent = 0;
  #failedAttempts = 0;
  #retries = 0;
  #sending: Promise<void> | null = null;
  #retry: Timer | undefined;
  #closed = false;

  constructor(
    private receiver: ReceiverPlan,
    private readonly logger: Logger,
    private readonly limits = LIMITS,
    private readonly send: (notice: Notice, receiver: ReceiverPlan) => Promise<Answer> = sendNow,
  ) {}

  get snapshot(): ReceiverSnapshot {
    return {
      name: this.receiver.name,
      queued: this.#queue.length,
      sent: this.#sent,
      failedAttempts: this.#failedAttempts,
      dropped: { ...this.#dropped },
    };
  }

  /** Takes over another URL, secret or list of events; waiting notices are sent there. */
  reload(receiver: ReceiverPlan): void {
    this.receiver = receiver;
  }

  push(notice: Notice): void {
    if (this.#closed || (notice.event !== 'test' && !this.receiver.events.includes(notice.event))) return;
    // The newest notice shows the present state, so an older one is dropped.
    if (this.#queue.length >= this.limits.notices)
      this.#drop(this.#queue.splice(this.#sending === null ? 0 : 1, 1)[0], 'full');
    this.#queue.push(notice);
    if (this.#retry === undefined) this.#next();
  }

  /** Repeats present conditions, for a receiver that would forget them, unless it already has enough to do. */
  refresh(notices: readonly Notice[]): void {
    if (this.receiver.kind === 'alertmanager' && this.#queue.length === 0)
      for (const notice of notices) this.push(notice);
  }

  /** Tries once more to send waiting notices, for at most `ms`, and then sends nothing more. */
  async close(ms: number): Promise<void> {
    clearTimer(this.#retry);
    this.#retry = undefined;
    this.#next();
    const late = new AbortController();
    await Promise.race([this.#idle(), sleep(ms, undefined, { signal: late.signal }).catch(() => undefined)]);
    late.abort();
    this.#closed = true;
    clearTimer(this.#retry);
    if (this.#queue.length > 0)
      this.logger.warn(
        { receiver: this.receiver.name, notifications: this.#queue.length },
        'notifications were not sent before the proxy stopped',
      );
  }

  /** Resolves when nothing waits, or the next attempt is delayed. */
  async #idle(): Promise<void> {
    while (this.#sending !== null) await this.#sending;
  }

  #next(): void {
    if (this.#sending !== null || this.#closed || this.#queue.length === 0) return;
    this.#sending = this.#attempt().then((maySendNext) => {
      this.#sending = null;
      if (maySendNext) this.#next();
    });
  }

  /** @returns whether the next notice can be sent at once */
  async #attempt(): Promise<boolean> {
    const [notice] = this.#queue;
    if (unixMs() - notice.at > this.limits.ageMs) {
      this.#drop(this.#queue.shift()!, 'expired');
      return true;
    }
    const { outcome, text, afterMs } = await this.send(notice, this.receiver);
    if (outcome === 'later') {
      this.#failedAttempts++;
      if (this.#retries === 0)
        this.logger.warn({ receiver: this.receiver.name, problem: text }, 'a notification is not delivered: retrying');
      this.#wait(afterMs);
      return false;
    }
    this.#retries = 0;
    this.#queue.shift();
    if (outcome === 'accepted') this.#sent++;
    else this.#drop(notice, 'refused', text);
    return true;
  }

  #wait(afterMs: number | null): void {
    const { firstRetryMs, lastRetryMs } = this.limits;
    const pause = Math.min(lastRetryMs, firstRetryMs * 2 ** this.#retries++) * (0.5 + randomShare() / 2);
    this.#retry = after(Math.max(pause, Math.min(afterMs ?? 0, MOST_AFTER_MS)), () => {
      this.#retry = undefined;
      this.#next();
    }).unref();
  }

  #drop(notice: Notice, reason: Drop, problem?: string): void {
    this.#dropped[reason]++;
    this.logger.error(
      { receiver: this.receiver.name, reason, problem, event: notice.event, dropped: this.#dropped[reason] },
      `a notification was dropped: ${notice.summary}`,
    );
  }
}
