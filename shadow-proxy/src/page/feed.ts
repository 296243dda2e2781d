/// <reference lib="dom" />
/** Runs in the browser: asks the proxy repeatedly, and keeps its answers. It changes nothing but a running job. */
import type { ShardEvidence } from '../stages/next-stage.js';
import { COLUMNS, type Column, type SeriesSnapshot } from '../telemetry/series.js';
import type { NotStarted, ShardSnapshot } from '../telemetry/snapshot.js';
import type { HistoryEvent } from '../storage/history.js';
import type { WantedChange } from './job-controls.js';
import type { ShardView } from './shard.js';
import { printableAll } from '../text/printable.js';
import { attentionOf } from './attention.js';

const STATUS_MS = 2_000;
const SERIES_MS = 5_000;
const EVIDENCE_MS = 10_000;
const TIMEOUT_MS = 10_000;
/** Maximum number of points of a series: as many as the proxy keeps. */
const MAX_POINTS = 2_880;
const TOKEN = 'shadow-proxy-token';

export interface Feed {
  /** The plan's name; null before the first answer. */
  readonly migration: string | null;
  readonly starting: readonly NotStarted[];
  readonly shards: readonly ShardView[];
  /** Time of the last answer, in ms since 1970; null before the first. */
  readonly answeredAt: number | null;
  /** Why the last question had no answer; null if it had one. */
  readonly problem: string | null;
  /** Whether the proxy requires a token that is missing. */
  readonly wantsToken: boolean;
  /** Whether a token was given, and refused. */
  readonly refused: boolean;
}

class TokenRefused extends Error {}

export class Poller {
  #migration: string | null = null;
  #starting: readonly NotStarted[] = [];
  #status: readonly ShardSnapshot[] = [];
  #before: readonly ShardSnapshot[] = [];
  #evidence: readonly ShardEvidence[] = [];
  readonly #series = new Map<string, SeriesSnapshot>();
  readonly #history = new Map<string, readonly HistoryEvent[]>();
  #flips = '';
  #answeredAt: number | null = null;
  #problem: string | null = null;
  #refused = false;
  #wantsToken = false;

  constructor(private readonly changed: (feed: Feed) => void) {}

  start(): void {
    this.#every(STATUS_MS, () => this.#readStatus());
    this.#every(SERIES_MS, () => this.#readSeries());
    this.#every(EVIDENCE_MS, () => this.#readEvidence());
  }

  /** Keeps the token as long as this tab is open. */
  giveToken(token: string): void {
    sessionStorage.setItem(TOKEN, token);
    this.#wantsToken = false;
    void this.#ask(async () => {
      await this.#readStatus();
      await Promise.all([this.#readSeries(), this.#readEvidence()]);
    });
  }

  /** Resolves with why it was refused; null where it was done. */
  async changeJob(shard: string, change: WantedChange): Promise<string | null> {
    try {
      await ask('/api/jobs', 'PATCH', { shard, ...change, by: 'the status page' });
    } catch (error) {
      return error instanceof TokenRefused ? 'the proxy wants its admin token' : (error as Error).message;
    }
    await this.#ask(() => this.#readStatus());
    return null;
  }

  get feed(): Feed {
    const shards = this.#status.map((snapshot): ShardView => {
      const { name } = snapshot;
      const before = this.#before.find((each) => each.name === name);
      const seconds = before === undefined ? 0 : (snapshot.uptimeMs - before.uptimeMs) / 1000;
      return {
        snapshot,
        rate:
          before === undefined || seconds <= 0 ? null : Math.max(0, snapshot.operations - before.operations) / seconds,
        attention: attentionOf(snapshot),
        evidence: this.#evidence.find(({ shard }) => shard === name) ?? null,
        series: this.#series.get(name) ?? null,
        history: this.#history.get(name) ?? [],
      };
    });
    return {
      migration: this.#migration,
      starting: this.#starting,
      shards,
      answeredAt: this.#answeredAt,
      problem: this.#problem,
      wantsToken: this.#wantsToken,
      refused: this.#refused,
    };
  }

  /** Asks one question after the other; a hidden tab asks nothing. */
  #every(ms: number, read: () => Promise<void>): void {
    const askNext = async (): Promise<void> => {
      if (!document.hidden && !this.#wantsToken) await this.#ask(read);
      setTimeout(() => void askNext(), ms);
    };
    void askNext();
  }

  async #ask(read: () => Promise<void>): Promise<void> {
    try {
      await read();
      this.#problem = null;
      this.#answeredAt = Date.now();
      this.#refused = false;
    } catch (error) {
      if (error instanceof TokenRefused) {
        // Several requests may have been sent with the refused token.
        this.#refused ||= sessionStorage.getItem(TOKEN) !== null;
        sessionStorage.removeItem(TOKEN);
        this.#wantsToken = true;
      } else this.#problem = (error as Error).message;
    }
    this.changed(this.feed);
  }

  async #readStatus(): Promise<void> {
    const {
      migration,
      shards,
      starting = [],
    } = await get<{
      migration: string;
      shards: ShardSnapshot[];
      starting?: NotStarted[];
    }>('/api/status');
    this.#migration = migration;
    this.#starting = starting;
    this.#before = this.#status;
    this.#status = shards;
    // The history is read again if something may have been added to it.
    const flips = shards
      .map(({ name, flips: count, frozen, job }) => [
        name,
        count,
        frozen,
        job && JSON.stringify([job.limits, job.paused]),
      ])
      .join();
    if (flips === this.#flips) return;
    const { history } = await get<{ history: { shard: string; events: HistoryEvent[] }[] }>('/api/history');
    this.#flips = flips;
    for (const { shard, events } of history) this.#history.set(shard, events);
  }

  async #readEvidence(): Promise<void> {
    this.#evidence = (await get<{ shards: ShardEvidence[] }>('/api/evidence')).shards;
  }

  /** Reads only new points. */
  async #readSeries(): Promise<void> {
    const last = Math.max(0, ...[...this.#series.values()].map(({ at }) => at.at(-1) ?? 0));
    const { series } = await get<{ series: ({ shard: string } & SeriesSnapshot)[] }>(`/api/series?since=${last}`);
    for (const { shard, at, columns } of series) {
      const known = this.#series.get(shard);
      this.#series.set(shard, known === undefined ? { at, columns } : joined(known, { at, columns }));
    }
  }
}

function joined(a: SeriesSnapshot, b: SeriesSnapshot): SeriesSnapshot {
  const join = <T>(x: readonly T[], y: readonly T[]): T[] => [...x, ...y].slice(-MAX_POINTS);
  return {
    at: join(a.at, b.at),
    columns: Object.fromEntries(COLUMNS.map((name) => [name, join(a.columns[name], b.columns[name])])) as Record<
      Column,
      (number | null)[]
    >,
  };
}

/**
 * @throws {TokenRefused} if the proxy requires another token
 * @throws {Error} if it does not answer, or answers with an error
 */
const get = <T>(path: string): Promise<T> => ask(path, 'GET');

/** @throws as `get` does */
async function ask<T>(path: string, method: string, body?: object): Promise<T> {
  const token = sessionStorage.getItem(TOKEN);
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  if (body !== undefined) headers['content-type'] = 'application/json';
  const request = { method, headers, body: body && JSON.stringify(body) };
  const response = await fetch(path, { ...request, cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(
    (error: Error) => {
      throw new Error(
        error.name === 'TimeoutError'
          ? `the proxy did not answer within ${TIMEOUT_MS / 1000} s`
          : 'the proxy cannot be reached',
      );
    },
  );
  if (response.status === 401) throw new TokenRefused();
  const answer = printableAll(await response.json()) as T & { error?: { message: string } };
  if (response.ok) return answer;
  throw new Error(answer.error?.message ?? `HTTP ${response.status}`);
}
