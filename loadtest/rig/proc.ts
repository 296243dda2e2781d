/** Linux's figures about a process: CPU time and memory. Source of the formats: proc(5). */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** Clock ticks per second in /proc: USER_HZ, 100 on every Linux on which Node runs. */
const USER_HZ = 100;

/** Fields of a stat file after the program's name, which is in brackets and may contain blanks. */
const fieldsOf = (stat: string): string[] => stat.slice(stat.lastIndexOf(')') + 2).split(' ');

const secondsOf = (ticks: readonly string[]): number => ticks.reduce((sum, each) => sum + Number(each), 0) / USER_HZ;

/** CPU seconds (user and system, all threads, including ended ones) that the process has used so far. */
export const cpuSeconds = (pid: number): number =>
  secondsOf(fieldsOf(readFileSync(`/proc/${pid}/stat`, 'latin1')).slice(11, 13));

/** CPU seconds of all child processes that have ended. */
export const cpuSecondsOfEnded = (): number =>
  secondsOf(fieldsOf(readFileSync('/proc/self/stat', 'latin1')).slice(13, 15));

/** One thread of a process. */
export interface Thread {
  /** The thread's ID; the main thread has that of the process. */
  readonly tid: number;
  /** At most 15 characters. */
  readonly name: string;
  /** CPU seconds so far. */
  readonly cpu: number;
}

/**
 * @param stat the thread's stat file
 * @param schedstat the thread's schedstat file, in nanoseconds; if it is empty or zero, the kernel does not count, and
 * the ticks of `stat` are used
 */
export function threadOf(stat: string, schedstat: string): Thread {
  const ran = Number(schedstat.split(' ', 1)[0]);
  return {
    tid: Number.parseInt(stat, 10),
    name: stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')')),
    cpu: ran > 0 ? ran / 1e9 : secondsOf(fieldsOf(stat).slice(11, 13)),
  };
}

/** Every thread of the process that has not ended. */
export function threadsOf(pid: number): Thread[] {
  const folder = `/proc/${pid}/task`;
  const read = (tid: string, file: string): string => {
    try {
      return readFileSync(`${folder}/${tid}/${file}`, 'latin1');
    } catch {
      return ''; // the thread has ended meanwhile, or the kernel has no schedstat
    }
  };
  return readdirSync(folder)
    .map((tid) => [read(tid, 'stat'), read(tid, 'schedstat')])
    .filter(([stat]) => stat !== '')
    .map(([stat, schedstat]) => threadOf(stat, schedstat));
}

/** Number of threads of the process; 0 if it has ended. */
export function threadCount(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length;
  } catch {
    return 0;
  }
}

/** CPU time of the whole machine since its start, in ticks: all of it, and what the hypervisor gave to others. */
export interface Ticks {
  readonly all: number;
  readonly stolen: number;
}

/** Null if the system does not show it. */
export function machineTicks(): Ticks | null {
  try {
    const [line] = readFileSync('/proc/stat', 'latin1').split('\n', 1);
    // user nice system idle iowait irq softirq steal; guest time is included in user and nice.
    const ticks = line.split(/\s+/).slice(1, 9).map(Number);
    return { all: ticks.reduce((a, b) => a + b, 0), stolen: ticks[7] ?? 0 };
  } catch {
    return null;
  }
}

/** The time that the kernel's scheduler gave the main thread of a process so far, in ms. */
export interface Scheduled {
  /** How long the thread had a core. This clock leaves out the time of other programs. */
  readonly ran: number;
  /** How long the thread was ready, but had no core. */
  readonly waited: number;
}

export function scheduled(pid: number): Scheduled {
  const [ran, waited] = readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ', 2);
  return { ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 };
}

/** Resident memory in bytes: now, and the maximum since the start or the last `resetPeak`. */
export interface Memory {
  readonly rss: number;
  readonly peak: number;
}

export function memory(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const bytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? NaN) * 1024;
  return { rss: bytes('VmRSS'), peak: bytes('VmHWM') };
}

/** Starts the maximum of resident memory again; without the right to do so, it stays the maximum since the start. */
export function resetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // The process belongs to another user, or the kernel lacks this: then the peak is an upper bound.
  }
}
