/**
 * A change that waits for its time, in the operator's own process. Each shard's history says that it waits.
 * `shadow-compare cancel` writes to the history, too, and the waiting process reads it.
 */
import { userInfo } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError, type Command } from 'commander';
import { onStop } from '../io/signals.js';
import { duration as seconds } from '../text/figures.js';
import { CliError, exitCode } from './exit.js';
import type { Fleet } from './fleet.js';
import { stderr } from './output.js';
import { StatusLine } from './silence.js';

/** A time of the day, in minutes since midnight, by this machine's clock. */
type Minute = number;

/** A period between two times of the day; it may end on the next day. */
export interface Window {
  readonly from: Minute;
  readonly to: Minute;
}

export interface ScheduleOptions {
  readonly at?: Minute;
  readonly window?: Window;
}

/** When a change may be made, in ms since 1970. */
export interface Opening {
  readonly from: number;
  /** The latest time; null if there is none. */
  readonly to: number | null;
}

/** How often the history is read, in ms. */
const LOOK_MS = 5_000;
const DAY = 24 * 60;
/** Maximum delay of a change, in ms, such as on a machine that slept. */
const LATE_MS = 600_000;

export const addScheduleOptions = (command: Command): Command =>
  command
    .option(
      '--at <time>',
      'make the change at this time of the day, such as 02:00, by the clock of this machine',
      minute,
    )
    .option('--window <times>', 'make it only between these times, such as 22:00-05:00', windowOf);

/** @throws {InvalidArgumentError} */
export function minute(text: string): Minute {
  const [, hours, minutes] = /^(\d{1,2}):(\d{2})$/.exec(text) ?? [];
  const value = Number(hours) * 60 + Number(minutes);
  if (Number(hours) < 24 && Number(minutes) < 60) return value;
  throw new InvalidArgumentError('Give a time of the day, such as 02:00.');
}

/** @throws {InvalidArgumentError} */
export function windowOf(text: string): Window {
  const [from, to, more] = text.split('-');
  if (to === undefined || more !== undefined) throw new InvalidArgumentError('Give two times, such as 22:00-05:00.');
  const window = { from: minute(from), to: minute(to) };
  if (window.from !== window.to) return window;
  throw new InvalidArgumentError('Give two times that differ, such as 22:00-05:00.');
}

/**
 * The next time at which a change may be made; null without a schedule.
 * @param now in ms since 1970
 * @throws {CliError} if the time is not in the window
 */
export function openingOf({ at, window }: ScheduleOptions, now: number): Opening | null {
  if (window === undefined) return at === undefined ? null : { from: next(at, now), to: null };
  if (at !== undefined && !isIn(at, window))
    throw new CliError('option', '--at is not a time within --window', exitCode.usage);
  const from = at === undefined ? (isIn(minuteOf(now), window) ? now : next(window.from, now)) : next(at, now);
  return { from, to: next(window.to, from) };
}

/** Midnight is computed for each day, because some days are longer or shorter by an hour. */
function next(time: Minute, after: number): number {
  const day = new Date(after);
  for (let days = 0; ; days++) {
    const there = new Date(day.getFullYear(), day.getMonth(), day.getDate() + days, 0, time).getTime();
    if (there > after) return there;
  }
}

const minuteOf = (ms: number): Minute => new Date(ms).getHours() * 60 + new Date(ms).getMinutes();
const isIn = (time: Minute, { from, to }: Window): boolean => (time - from + DAY) % DAY < (to - from + DAY) % DAY;

/** For example `Sat 02:00`. */
export const clock = (ms: number): string =>
  new Date(ms).toLocaleString('en-GB', { weekday: 'short', hour: '2-digit', minute: '2-digit' }).replace(',', '');

/** The wait of one change, which any operator may cancel. */
export class Waiting {
  #begun = false;

  /** @param change the change in words, such as `sessions to live 10 %` */
  constructor(
    private readonly fleet: Fleet,
    private readonly workload: string,
    private readonly change: string,
  ) {}

  /**
   * Returns at the opening. @param meanwhile the state of the gates, for the line about the wait
   * @throws {CliError} if an operator cancels or stops the wait; nothing was changed
   */
  async until({ from }: Opening, meanwhile: string): Promise<void> {
    if (from <= Date.now()) return;
    await this.#note('waits', `${this.change}, ${clock(from)}`);
    this.#begun = true;
    stderr.write(
      `${this.change} waits until ${clock(from)}. Keep this process running, as in tmux. Ctrl-C stops it, and so does shadow-compare cancel ${this.workload}, from any machine\n`,
    );
    const line = new StatusLine();
    const stopped = new AbortController();
    const stop = (): void => stopped.abort();
    const forget = onStop(stop, stop);
    try {
      for (let leftMs = from - Date.now(); leftMs > 0; leftMs = from - Date.now()) {
        if (process.stderr.isTTY) line.show(`In ${seconds(leftMs / 1_000)}: ${this.change}${meanwhile}`);
        await sleep(Math.min(leftMs, LOOK_MS), undefined, { signal: stopped.signal }).catch(() => undefined);
        if (stopped.signal.aborted) {
          await this.end('stopped by its operator');
          throw new CliError('interrupted', 'Stopped waiting: nothing was changed', exitCode.interrupted);
        }
        await this.#mustGoOn();
      }
      if (Date.now() - from > LATE_MS) {
        await this.end('this machine slept');
        throw new CliError('too-late', `It is too late for ${clock(from)}: nothing was changed`, exitCode.fails);
      }
    } finally {
      line.end();
      forget();
    }
  }

  /** Records in the history that the wait is over. */
  async end(why: string): Promise<void> {
    if (this.#begun) await this.#note('ended', why).catch(() => undefined);
    this.#begun = false;
  }

  #note(state: 'waits' | 'ended', what: string): Promise<void> {
    return this.fleet.noteWait({ workload: this.workload, state, what, by: userInfo().username });
  }

  /** Continues if the proxy is restarting. @throws {CliError} if the wait was cancelled */
  async #mustGoOn(): Promise<void> {
    const by = await cancelledBy(this.fleet, this.workload).catch((error: unknown) => {
      if (error instanceof CliError) return null;
      throw error;
    });
    if (by === null) return;
    this.#begun = false;
    throw new CliError('cancelled', `Cancelled: ${by}. Nothing was changed`, exitCode.fails);
  }
}

/** The last entry about a wait for the workload in each history. */
async function lastWaits(
  fleet: Fleet,
  workload: string,
): Promise<readonly { readonly state: string; readonly what: string; readonly by: string }[]> {
  return (await fleet.history()).flatMap(({ events }) => {
    const last = events.findLast((event) => event.event === 'wait' && event.workload === workload);
    return last === undefined
      ? []
      : [{ state: String(last.state), what: String(last.what), by: String(last.by ?? 'an operator') }];
  });
}

async function cancelledBy(fleet: Fleet, workload: string): Promise<string | null> {
  const found = (await lastWaits(fleet, workload)).find(({ state }) => state === 'cancelled');
  return found === undefined ? null : `${found.what}, by ${found.by}`;
}

/** Descriptions of the changes that wait for this workload; empty if there are none. */
export const waitsOf = async (fleet: Fleet, workload: string): Promise<readonly string[]> => [
  ...new Set(
    (await lastWaits(fleet, workload)).flatMap(({ state, what, by }) =>
      state === 'waits' ? [`${what}, by ${by}`] : [],
    ),
  ),
];
