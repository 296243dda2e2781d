/**
 * Notifies people: of events in a shard's history, at once; of conditions, which are found by scraping all shards every
 * few seconds. It has a timer of its own. The data path neither waits for it nor uses it.
 *
 *   state.update ─▶ recorded ─┐
 *   timer ─▶ scrape ─▶ look ──┴─▶ NoticeQueue of each receiver ─▶ HTTP
 *
 * Room: notify: who is notified of what happens: webhooks, Slack, PagerDuty, Alertmanager.
 * Called by: shard, cli.
 * Calls: text, io, route, plan, telemetry, storage.
 */
import type { Logger } from 'pino';
import { unixMs } from '../io/clock.js';
import { randomUuid } from '../io/random.js';
import { clearTimer, every, type Timer } from '../io/timers.js';
import type { Plan } from '../plan/plan.js';
import type { HistoryEvent } from '../storage/history.js';
import type { ReceiverSnapshot, ScrapedShard } from '../telemetry/snapshot.js';
import { printableAll } from '../text/printable.js';
import { Conditions } from './conditions.js';
import type { Happening, Notice } from './notice.js';
import { NoticeQueue } from './notice-queue.js';
import { happeningOf } from './recorded.js';

/** Milliseconds between two scrapes. */
const CHECK_MS = 5_000;
/** Alertmanager forgets an alert that is not sent again. */
const REFRESH_MS = 60_000;
const CLOSE_MS = 2_000;

export interface NotifierOptions {
  /** The shards of this process. */
  readonly scrape: () => readonly ScrapedShard[];
  readonly logger: Logger;
  readonly checkMs?: number;
}

type NotifiedPlan = Pick<Plan, 'name' | 'notify'>;

export class Notifier {
  readonly #outboxes = new Map<string, NoticeQueue>();
  readonly #conditions = new Map<string, Conditions>();
  #timer: Timer | undefined;
  #refreshedAt = 0;

  constructor(
    private plan: NotifiedPlan,
    private readonly options: NotifierOptions,
  ) {
    this.reload(plan);
  }

  /** For metrics. */
  get receivers(): readonly ReceiverSnapshot[] {
    return [...this.#outboxes.values()].map(({ snapshot }) => snapshot);
  }

  /** If the plan has no receivers, no condition is checked. */
  reload(plan: NotifiedPlan): void {
    this.plan = plan;
    for (const [name, outbox] of this.#outboxes) {
      if (plan.notify.some((receiver) => receiver.name === name)) continue;
      this.#outboxes.delete(name);
      void outbox.close(CLOSE_MS);
    }
    for (const receiver of plan.notify) {
      const outbox = this.#outboxes.get(receiver.name);
      if (outbox === undefined) this.#outboxes.set(receiver.name, new NoticeQueue(receiver, this.options.logger));
      else outbox.reload(receiver);
    }
    clearTimer(this.#timer);
    if (plan.notify.length > 0)
      this.#timer = every(this.options.checkMs ?? CHECK_MS, () => this.#checkConditions()).unref();
  }

  /** Called with each new event in the history of the shard. */
  recorded(shard: string, event: HistoryEvent): void {
    if (this.plan.notify.length === 0) return;
    const happening = happeningOf(shard, event, unixMs());
    if (happening !== null) this.#push(happening);
  }

  /** Sends waiting notices, for at most two seconds. */
  async close(): Promise<void> {
    clearTimer(this.#timer);
    await Promise.all([...this.#outboxes.values()].map((outbox) => outbox.close(CLOSE_MS)));
  }

  #checkConditions(): void {
    const now = unixMs();
    try {
      for (const shard of this.options.scrape()) {
        const conditions = this.#conditions.get(shard.name) ?? new Conditions(shard.name);
        this.#conditions.set(shard.name, conditions);
        for (const happening of conditions.update(shard, now)) this.#push(happening);
      }
      if (now - this.#refreshedAt >= REFRESH_MS) this.#refresh(now);
    } catch (error) {
      this.options.logger.error({ err: error }, 'the conditions that people are notified of cannot be checked');
    }
  }

  #refresh(now: number): void {
    this.#refreshedAt = now;
    const firing = [...this.#conditions.values()].flatMap((conditions) => conditions.firing);
    const notices = firing.map((happening) => noticeOf(this.plan.name, happening));
    for (const outbox of this.#outboxes.values()) outbox.refresh(notices);
  }

  #push(happening: Happening): void {
    const notice = noticeOf(this.plan.name, happening);
    for (const outbox of this.#outboxes.values()) outbox.push(notice);
  }
}

export const noticeOf = (migration: string, happening: Happening): Notice => ({
  ...printableAll(happening),
  id: randomUuid(),
  migration,
  at: unixMs(),
});
