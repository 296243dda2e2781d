/**
 * Histories of groups of keys, each checked in portions: after enough calls a group takes no new ones until those that
 * wait have ended, and is checked. Only commands on keys of one group use followed keys. A group that lost too many
 * replies is replaced.
 */
import type { Operation } from '../clients/client.js';
import { isError } from '../clients/replies.js';
import type { KeyName } from '../world/server-host.js';
import { blocksMs } from './answers.js';
import type { Bounds } from './spec.js';
import { TooMany, violation, type Call } from './linearizability.js';

/** A portion ends after so many calls. */
const PORTION = 200;
/** Each lost reply doubles the orders to search: the group is retired when it has so many. */
const LOST = 6;
/** Of a command that the server itself refuses, the error is a reply like another. */
const OF_SERVER =
  /^-(WRONGTYPE|NOGROUP|BUSYGROUP|ERR (no such key|index out of range|value is not|hash value is not|The ID specified|source and destination)) ?/;
/** An error before the command was run: it took no effect. */
const NOT_RUN = /^-(NOPERM|NOAUTH|LOADING|BUSY|MISCONF|READONLY|MASTERDOWN|OOM|EXECABORT|ERR shadow-proxy:) /;
/** Commands that the specification leaves out: they change nothing. */
const LEFT_OUT = new Set(['ZRANDMEMBER', 'ZSCAN', 'SSCAN', 'DISCARD']);

interface History {
  readonly calls: Call[];
  lost: number;
}

export class Histories {
  /** Calls that were checked. */
  checked = 0;
  /** Histories with too many possible orders. */
  unsearched = 0;
  readonly #histories = new Map<KeyName, History>();
  /** Clients whose UNWATCH was refused: the next EXEC may be aborted. */
  readonly #stillWatching = new Set<string>();

  /** @param unixMsAtZero Unix milliseconds when the run began */
  constructor(
    private readonly unixMsAtZero: number,
    private readonly bounds: Bounds,
  ) {}

  /** Adds a call that has ended. @returns whether the group should take no new calls */
  add(group: KeyName, operation: Operation): boolean {
    const { client, args, command, invokedAt, answeredAt, reply, leftAt } = operation;
    let history = this.#histories.get(group);
    if (history === undefined) this.#histories.set(group, (history = { calls: [], lost: 0 }));
    // A transaction is one call, with its EXEC.
    const isLeftOut =
      LEFT_OUT.has(args[0]) || reply === '+QUEUED' || (command.inTransaction === true && reply === undefined);
    const isNotRun = typeof reply === 'string' && NOT_RUN.test(reply);
    if (args[0] === 'UNWATCH' && isNotRun) this.#stillWatching.add(client);
    const mayBeAborted = args[0] === 'EXEC' && this.#stillWatching.delete(client) && reply === null;
    if (isLeftOut || isNotRun || mayBeAborted) return false;
    const isLost = answeredAt === null || reply === undefined || (isError(reply) && !OF_SERVER.test(reply));
    const zero = this.unixMsAtZero;
    const { leftMs } = this.bounds;
    const ends = leftAt !== undefined && leftMs !== undefined && blocksMs(args) > 0;
    const { queued, watches } = command;
    const call = { client, args, queued, watches, from: zero + invokedAt };
    if (!isLost) history.calls.push({ ...call, to: zero + answeredAt, reply });
    else
      history.calls.push({ ...call, to: Infinity, reply: undefined, ...(ends && { until: zero + leftAt + leftMs }) });
    if (isLost) history.lost++;
    return history.calls.length >= PORTION || history.lost >= LOST;
  }

  /** Checks a group that no call waits for any more. */
  finish(group: KeyName): readonly Call[] | null {
    const history = this.#histories.get(group);
    if (history === undefined) return null;
    this.#histories.delete(group);
    try {
      this.checked += history.calls.length;
      return violation(history.calls, this.bounds);
    } catch (problem) {
      if (!(problem instanceof TooMany)) throw problem;
      this.checked -= history.calls.length;
      this.unsearched++;
      return null;
    }
  }

  get groups(): readonly KeyName[] {
    return [...this.#histories.keys()];
  }
}
