/**
 * Names the connections of shared lanes after their clients, if the plan asks for it: then the server's own CLIENT LIST
 * shows which clients a lane serves. The kit's part of the name stays in front, because the next process finds the
 * connections by it.
 *
 *   shadow-proxy:<shard>:<process>:cart@10.0.0.7,10.0.0.8,+12
 */
import { every, clearTimer, type Timer } from '../io/timers.js';
import type { Lane } from '../pipeline/lane.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import type { ConnectedClient } from './clients.js';

const EVERY_MS = 5_000;
/** How many clients a name has; of the rest it has the number. */
const MOST = 5;
/** A longer name of a client is cut, so that CLIENT LIST stays readable. */
const MAX_NAME = 64;

export class LaneNames {
  /** What follows the kit's part of the name now. */
  readonly #given = new WeakMap<Lane, string>();
  /** Lanes whose users may not name their connections. */
  readonly #refused = new WeakSet<Lane>();
  readonly #timer: Timer;

  constructor(
    private readonly sessions: ReadonlyMap<number, Pick<ConnectedClient, 'client' | 'usedLanes'>>,
    private readonly lanes: Sequencer['lanes'],
    /** Whether the present plan asks for it. */
    private readonly isAsked: () => boolean,
  ) {
    this.#timer = every(EVERY_MS, () => this.update()).unref();
  }

  close(): void {
    clearTimer(this.#timer);
  }

  /** Names each lane whose clients have changed. */
  update(): void {
    const served = this.isAsked() ? this.#served() : new Map<Lane, Set<string>>();
    for (const lanes of [this.lanes.source, this.lanes.target])
      for (const lane of lanes.all()) {
        const name = nameOf(served.get(lane) ?? new Set());
        if (name === (this.#given.get(lane) ?? '') || lane.closed || this.#refused.has(lane)) continue;
        this.#given.set(lane, name);
        lanes.rename(lane, `${lane.server.name}${name}`, () => this.#refused.add(lane));
      }
  }

  #served(): Map<Lane, Set<string>> {
    const served = new Map<Lane, Set<string>>();
    for (const { client, usedLanes } of this.sessions.values()) {
      const who = client.name === '' ? client.host : `${client.name.slice(0, MAX_NAME)}@${client.host}`;
      for (const lane of usedLanes) {
        if (lane === null) continue;
        const clients = served.get(lane);
        if (clients === undefined) served.set(lane, new Set([who]));
        else clients.add(who);
      }
    }
    return served;
  }
}

/** What follows the kit's part of a lane's name; empty without clients. */
function nameOf(clients: ReadonlySet<string>): string {
  if (clients.size === 0) return '';
  const named = [...clients].sort().slice(0, MOST);
  return `:${named.join(',')}${clients.size > MOST ? `,+${clients.size - MOST}` : ''}`;
}
