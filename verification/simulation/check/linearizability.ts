/**
 * Linearizability of a group of keys: whether the replies are those of some order of its commands, in which each
 * command takes effect once between its call and its reply (Wing and Gong's search, with Lowe's memo of
 * configurations). Commands of one pipeline are in its order; EXEC is one command. A command whose reply was lost may
 * take effect at any time after its call, or never.
 */
import { isUnpredictable, outcomes, type Asked, type Bounds } from './spec.js';
import { EMPTY } from './spec/space.js';

export interface Call extends Asked {
  /** Unix milliseconds. */
  readonly from: number;
  /** Infinity where the reply was lost. */
  readonly to: number;
  /** Where the reply was lost: when it has taken effect at the latest. */
  readonly until?: number;
}

const EXACT: Bounds = { slackMs: 3, mayAbort: false };

/** A search that has seen so many configurations is aborted. */
const MOST = 50_000;

/** A history in which more orders are possible than are searched. */
export class TooMany extends Error {}

/**
 * @returns the calls that fit into no order with those before them; null where all fit
 * @throws {TooMany}
 */
export function violation(calls: readonly Call[], bounds = EXACT): readonly Call[] | null {
  const sorted = known([...calls].sort((a, b) => a.from - b.from));
  let from = 0;
  let states = new Set([EMPTY]);
  // At a moment at which no call is open, the history falls into two: each part is searched by itself.
  while (from < sorted.length) {
    let end = sorted[from].to;
    let until = from + 1;
    while (until < sorted.length && sorted[until].from <= end) end = Math.max(end, sorted[until++].to);
    const part = sorted.slice(from, until);
    const next = new Set<string>();
    for (const state of states) for (const last of search(part, state, bounds)) next.add(last);
    if (next.size === 0) return part;
    states = next;
    from = until;
  }
  return null;
}

/** The calls up to the first whose effect nobody knows; what was open then may have taken effect or not. */
function known(calls: readonly Call[]): readonly Call[] {
  const unknown = calls.find((call) => call.to === Infinity && isUnpredictable(call));
  if (unknown === undefined) return calls;
  return calls
    .filter((call) => call.from < unknown.from)
    .map((call) => (call.to >= unknown.from ? { ...call, to: Infinity } : call));
}

/** What the keys may hold after the calls, from one state on; empty where no order fits. */
function search(calls: readonly Call[], first: string, bounds: Bounds): Set<string> {
  const found = new Set<string>();
  const seen = new Set<string>();
  const done = new Uint8Array(calls.length);
  const required = calls.filter(({ to }) => to !== Infinity).length;
  const before = calls.map((call, i) => precedingOf(calls, call, i));
  const visit = (state: string, left: number, began: number): void => {
    if (left === 0) found.add(state);
    const configuration = `${done.join('')} ${state}`;
    if (seen.has(configuration)) return;
    if (seen.add(configuration).size > MOST) throw new TooMany();
    let earliest = Infinity;
    for (let i = 0; i < calls.length; i++) if (done[i] === 0) earliest = Math.min(earliest, calls[i].to);
    for (let i = 0; i < calls.length && calls[i].from <= earliest; i++) {
      const call = calls[i];
      if (done[i] === 1 || (before[i] !== -1 && done[before[i]] === 0)) continue;
      const from = Math.max(began, call.from);
      if (call.until !== undefined && from > call.until) continue;
      done[i] = 1;
      for (const next of outcomes(state, call, { from, to: earliest }, bounds))
        visit(next, call.to === Infinity ? left : left - 1, from);
      done[i] = 0;
    }
  };
  visit(first, required, 0);
  return found;
}

/** The call that has to come before it: the one before it in its pipeline; -1 where there is none. */
function precedingOf(calls: readonly Call[], { client, from }: Call, at: number): number {
  for (let i = at - 1; i >= 0 && calls[i].from === from; i--)
    if (calls[i].client === client && calls[i].to !== Infinity) return i;
  return -1;
}
