/** What Linux says about a process: CPU time and memory. Source of the formats: proc(5). */
import { readFileSync, writeFileSync } from 'node:fs';

/** Clock ticks a second in /proc: USER_HZ, 100 on every Linux that Node runs on. */
const USER_HZ = 100;

/** Seconds of CPU (user and system, all threads) that the process has used so far. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The second field is the program's name in brackets, which may hold spaces: count from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [utime, stime] = [fields[11], fields[12]];
  return (Number(utime) + Number(stime)) / USER_HZ;
}

/** Processor time of the whole machine since its start, in ticks: all of it, and what the hypervisor gave to others. */
export interface Ticks {
  readonly all: number;
  readonly stolen: number;
}

/** Null where the system does not tell. */
export function machineTicks(): Ticks | null {
  try {
    const [line] = readFileSync('/proc/stat', 'latin1').split('\n', 1);
    // user nice system idle iowait irq softirq steal; guest time is in user and nice already.
    const ticks = line.split(/\s+/).slice(1, 9).map(Number);
    return { all: ticks.reduce((a, b) => a + b, 0), stolen: ticks[7] ?? 0 };
  } catch {
    return null;
  }
}

/** What the kernel's scheduler gave the main thread of a process so far, in ms. */
export interface Scheduled {
  /** It had a core. What passes on this clock, others' load on the machine leaves out. */
  readonly ran: number;
  /** It could have run, and had none. */
  readonly waited: number;
}

export function scheduled(pid: number): Scheduled {
  const [ran, waited] = readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ', 2);
  return { ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 };
}

/** Resident memory in bytes: now, and the highest since the start or the last `resetPeak`. */
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

/**
 * Makes the highest resident memory start again from now; without the right to do so it stays that of the whole life.
 */
export function resetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Another user's process, or a kernel without it: the peak is then an upper bound.
  }
}
