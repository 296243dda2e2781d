/**
 * Histories of keys, each checked in portions: after enough calls a key takes no new ones until those that wait have
 * ended, and is checked. Keys that only single commands use are followed; a key that lost too many replies is replaced.
 */
import { isError, type Reply } from '../clients/replies.js';
import type { KeyName } from '../world/server-host.js';
import { violation, type Call, type Spec } from './linearizability.js';
import { listSpec, stringSpec } from './spec.js';

/** A portion ends after so many calls. */
const PORTION = 200;
/** Each lost reply doubles the orders to search: the key is retired when it has so many. */
const LOST = 6;
/** Of a command that the server itself refuses, the error is a reply like another. */
const OF_SERVER = /^-(ERR (no such key|index out of range|value is not))/;

interface History {
  readonly spec: Spec;
  readonly calls: Call[];
  lost: number;
}

export class Histories {
  /** Calls that were checked. */
  checked = 0;
  readonly #histories = new Map<KeyName, History>();

  /** The spec of a key that is followed; null where it is not. Names: `ls…` strings, `lc…` counters, `ll…` lists. */
  static specOf(key: KeyName): Spec | null {
    switch (key.slice(key.indexOf(' ') + 1).slice(0, 2)) {
      case 'ls':
      case 'lc':
        return stringSpec;
      case 'll':
        return listSpec;
      default:
        return null;
    }
  }

  /** Adds a call; `to` is null where its reply was lost. @returns whether the key should take no new calls */
  add(key: KeyName, call: Omit<Call, 'to' | 'reply'>, to: number | null, reply: Reply | undefined): boolean {
    const spec = Histories.specOf(key);
    if (spec === null) return false;
    let history = this.#histories.get(key);
    if (history === undefined) this.#histories.set(key, (history = { spec, calls: [], lost: 0 }));
    const isLost = to === null || (isError(reply!) && !OF_SERVER.test(reply));
    history.calls.push({ ...call, to: isLost ? Infinity : to, reply: isLost ? undefined : reply });
    if (isLost) history.lost++;
    return history.calls.length >= PORTION || history.lost >= LOST;
  }

  /** Checks a key that no call waits for any more. */
  finish(key: KeyName): readonly Call[] | null {
    const history = this.#histories.get(key);
    if (history === undefined) return null;
    this.#histories.delete(key);
    this.checked += history.calls.length;
    return violation(history.calls, history.spec);
  }

  get keys(): readonly KeyName[] {
    return [...this.#histories.keys()];
  }
}
