/** Waits for gates that open by waiting within a short time, and shows what it waits for and how long. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Option, type Command } from 'commander';
import { onStop } from '../io/signals.js';
import type { Gate } from '../stages/gates.js';
import { about } from '../stages/pace.js';
import { duration as seconds } from '../text/figures.js';
import { CliError, duration, exitCode } from './exit.js';
import { StatusLine } from './silence.js';

export interface WaitOptions {
  /** Maximum wait in ms; false with `--no-wait`; undefined: depends on the terminal. */
  readonly wait?: number | false;
  readonly json?: boolean;
}

/** How long to wait on a terminal, in ms. */
export const WAIT_MS = 120_000;
/** `shadow-compare runbook` passes its own value to the commands of its steps, which have no terminal. */
export const WAIT_VARIABLE = 'SHADOW_COMPARE_WAIT';
/** Maximum wait for a gate that names no time, in ms. */
const SOON_MS = 30_000;
const POLL_MS = 1_000;
/** For a longer wait, in ms, the time at which it ends is shown. */
const CLOCK_MS = 120_000;

export const addWaitOptions = (command: Command): Command =>
  command
    .addOption(
      new Option(
        '--wait <duration>',
        'wait this long for gates that open by waiting (default: 2m on a terminal, else not at all)',
      )
        .argParser(duration)
        .env(WAIT_VARIABLE),
    )
    .option('--no-wait', 'judge the gates once');

export function waitOf({ wait, json = false }: WaitOptions): number {
  if (wait === false) return 0;
  return wait ?? (process.stdin.isTTY && process.stderr.isTTY && !json ? WAIT_MS : 0);
}

/** Whether all of these gates open within the time. A gate that an operator must open is not awaited. */
export const opensWithin = (closed: readonly Gate[], ms: number): boolean =>
  closed.length > 0 && closed.every(({ opensInMs }) => opensInMs !== undefined && (opensInMs ?? 0) <= ms);

/**
 * Checks again each second while the closed gates open by waiting. Returns the last result.
 * @throws {CliError} if the operator stops it
 */
export async function awaitGates<T>(
  poll: () => Promise<T>,
  closedOf: (seen: T) => readonly Gate[],
  options: WaitOptions,
): Promise<T> {
  const began = performance.now();
  const waitMs = waitOf(options);
  const line = new StatusLine();
  const stopped = new AbortController();
  let forget: (() => void) | undefined;
  try {
    for (;;) {
      const seen = await poll();
      const closed = closedOf(seen);
      const leftMs = waitMs - (performance.now() - began);
      const soon = closed.some(({ opensInMs }) => opensInMs === null) ? SOON_MS - waitMs + leftMs : leftMs;
      if (Math.min(leftMs, soon) <= 0 || !opensWithin(closed, leftMs)) return seen;
      const stop = (): void => stopped.abort();
      forget ??= onStop(stop, stop);
      line.show(renderWait(closed, leftMs));
      await sleep(POLL_MS, undefined, { signal: stopped.signal }).catch(() => undefined);
      if (stopped.signal.aborted)
        throw new CliError('interrupted', 'Stopped waiting: nothing was changed', exitCode.interrupted);
    }
  } finally {
    line.end();
    forget?.();
  }
}

function renderWait(closed: readonly Gate[], leftMs: number): string {
  const gates = closed.map(({ name, opensInMs }) =>
    typeof opensInMs !== 'number' ? name : `${name} (${about(opensInMs)})`,
  );
  const times = closed.map(({ opensInMs }) => opensInMs);
  const last = Math.max(...times.map((ms) => ms ?? 0));
  // The end is shown as a time of the day, for a person who does something else meanwhile.
  const when =
    last > CLOCK_MS && times.every((ms) => typeof ms === 'number')
      ? `, expected ${new Date(Date.now() + last).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })}`
      : '';
  return `Waiting for ${gates.join(', ')}${when}; at most ${seconds(leftMs / 1_000)}, Ctrl-C stops`;
}
