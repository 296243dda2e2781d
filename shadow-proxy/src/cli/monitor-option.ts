/** `--monitor`: a short run of MONITOR, which costs the source throughput. */
import { InvalidArgumentError } from 'commander';
import { count } from '../text/figures.js';
import { duration } from './exit.js';
import { stderr } from './output.js';

const MAX_MONITOR_MS = 60_000;

/** Parses the time; returns milliseconds. */
export function monitorTime(text: string): number {
  const ms = duration(text);
  if (ms > MAX_MONITOR_MS) throw new InvalidArgumentError('At most 60s: MONITOR costs the server throughput.');
  return ms;
}

/** Explains the effect of MONITOR before it runs. */
export const announceMonitor = (sources: number, ms: number): void =>
  void stderr.write(
    `Running MONITOR on ${count(sources, 'source')} for ${ms / 1000} s. It lowers throughput and shows this tool every command with its arguments; only counts are kept.\n`,
  );
