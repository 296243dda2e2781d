/**
 * Linearizability of one key: whether the replies are those of some order of its commands, in which each command takes
 * effect once between its call and its reply (Wing and Gong's search, with Lowe's memo of configurations). A command
 * whose reply was lost may take effect at any time after its call, or never.
 */
import type { Reply } from '../clients/replies.js';

export interface Call {
  readonly client: string;
  readonly args: readonly string[];
  readonly from: number;
  /** Infinity where the reply was lost. */
  readonly to: number;
  readonly reply: Reply | undefined;
}

/** What a key holds; null: nothing. A string, or a list as `L` and its elements. */
export type Value = string | null;

export interface Step {
  readonly value: Value;
  readonly reply: Reply;
}

/** Runs a command on what a key holds; the models of `spec.ts`. */
export type Spec = (value: Value, args: readonly string[]) => Step;

/** @returns the calls that fit into no order with those before them; null where all fit */
export function violation(calls: readonly Call[], spec: Spec, first: Value = null): readonly Call[] | null {
  const sorted = [...calls].sort((a, b) => a.from - b.from);
  let from = 0;
  let values = new Set<Value>([first]);
  // At a moment at which no call is open, the history falls into two: each part is searched by itself.
  while (from < sorted.length) {
    let end = sorted[from].to;
    let until = from + 1;
    while (until < sorted.length && sorted[until].from <= end) end = Math.max(end, sorted[until++].to);
    const part = sorted.slice(from, until);
    const next = new Set<Value>();
    for (const value of values) for (const last of search(part, spec, value)) next.add(last);
    if (next.size === 0) return part;
    values = next;
    from = until;
  }
  return null;
}

/** What the key may hold after the calls, from one value on; empty where no order fits. */
function search(calls: readonly Call[], spec: Spec, first: Value): Set<Value> {
  const found = new Set<Value>();
  const seen = new Set<string>();
  const done = new Uint8Array(calls.length);
  const required = calls.filter(({ to }) => to !== Infinity).length;
  const visit = (value: Value, left: number): void => {
    if (left === 0) found.add(value);
    const configuration = `${done.join('')} ${value}`;
    if (seen.has(configuration)) return;
    seen.add(configuration);
    let earliest = Infinity;
    for (let i = 0; i < calls.length; i++) if (done[i] === 0) earliest = Math.min(earliest, calls[i].to);
    for (let i = 0; i < calls.length && calls[i].from <= earliest; i++) {
      if (done[i] === 1) continue;
      const { args, reply, to } = calls[i];
      const step = spec(value, args);
      if (reply !== undefined && !isSame(step.reply, reply)) continue;
      done[i] = 1;
      visit(step.value, to === Infinity ? left : left - 1);
      done[i] = 0;
    }
  };
  visit(first, required);
  return found;
}

function isSame(a: Reply, b: Reply): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((each, i) => isSame(each, b[i]));
  return a === b;
}
