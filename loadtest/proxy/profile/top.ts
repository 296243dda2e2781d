/**
 * Shows in which functions the time of a CPU profile was spent: `node dist/loadtest/proxy/profile/top.js
 * FILE.cpuprofile [rows]`. Source of the format: the Chrome DevTools protocol, `Profiler.Profile` (times in
 * microseconds).
 */
import { readFileSync } from 'node:fs';
import Table from 'cli-table3';

/** The part of a profile that is used: call tree nodes, and the node on top at each sample. */
export interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  /** The first line is 0. */
  readonly lineNumber: number;
}

export interface Entry {
  /** Function, file and line (from 1), or the engine's name: `(idle)`, `(garbage collector)`, `(program)`. */
  readonly where: string;
  /** Milliseconds in the function itself, without functions that it calls. */
  readonly self: number;
}

/** Functions by the time in themselves, the longest first. */
export function selfTimes({ nodes, samples, timeDeltas }: CpuProfile): Entry[] {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const times = new Map<string, number>();
  samples.forEach((id, i) => {
    // The time of a sample lasts until the next one.
    const name = names.get(id)!;
    times.set(name, (times.get(name) ?? 0) + (timeDeltas[i + 1] ?? 0) / 1000);
  });
  return [...times].map(([where, self]) => ({ where, self })).sort((a, b) => b.self - a.self);
}

function nameOf({ functionName, url, lineNumber }: CallFrame): string {
  const file = url
    .replace(/^file:\/\//, '')
    .split('/')
    .slice(-3)
    .join('/');
  return file ? `${functionName || '(anonymous)'} ${file}:${lineNumber + 1}` : functionName;
}

function main(file: string | undefined, rows: string | undefined): void {
  if (!file) {
    process.stderr.write('usage: top.js FILE.cpuprofile [rows]\n');
    process.exitCode = 2;
    return;
  }
  const entries = selfTimes(JSON.parse(readFileSync(file, 'utf8')) as CpuProfile);
  const busy = entries.filter(({ where }) => where !== '(idle)').reduce((sum, { self }) => sum + self, 0);
  const table = new Table({ head: ['self ms', 'of busy', 'where'], style: { head: [], border: [], compact: true } });
  for (const { where, self } of entries.slice(0, Number(rows ?? 30))) {
    table.push([self.toFixed(0), where === '(idle)' ? '' : `${((self / busy) * 100).toFixed(1)} %`, where]);
  }
  process.stdout.write(`${table.toString()}\n`);
}

if (process.argv[1] === import.meta.filename) main(process.argv[2], process.argv[3]);
