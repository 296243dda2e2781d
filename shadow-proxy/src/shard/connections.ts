/** A shard's connections to its two servers: when they are opened and closed, and when they must not be used. */
import type { Logger } from 'pino';
import type { SharedTargetContext } from '../copy/foreign/shared-target.js';
import { clearTimer, every, type Timer } from '../io/timers.js';
import type { Authorities } from '../pipeline/authorities.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import { otherSide, SIDES, type Side } from '../route/stage.js';
import type { Clients } from '../session/clients.js';
import type { Admitted } from '../stages/admitted.js';
import type { Adjudicator } from '../suspects/adjudicator.js';
import { isReplica, oneServer } from '../upstream/identity.js';
import type { Server } from '../upstream/server.js';

const POLL_MS = 500;

/**
 * Why a server with this run ID must not be used: both addresses lead to one server, and every write would run twice.
 * Null if it may be used.
 */
export function twinRefusal(servers: Readonly<Record<Side, Server>>, side: Side, runId: string): string | null {
  const other = servers[otherSide(side)];
  return runId !== '' && other.identity?.runId === runId ? oneServer(side, runId) : null;
}

/** Connects to the mirrors that the stages need. */
export function startMirrors({ router, mirrors }: Sequencer): void {
  for (const workload of router.workloads) {
    if (!workload.position.keylessRule.mirrorsWrites) continue;
    mirrors[otherSide(workload.position.keylessRule.authority)].start();
    if (!workload.position.whole) mirrors.source.start();
  }
}

export interface ConnectionsContext {
  readonly sequencer: Sequencer;
  readonly clients: Pick<Clients, 'subscribers'>;
  readonly sharing: Pick<SharedTargetContext, 'readers'>;
}

/** Closes every connection to the server: what it has not answered is lost. */
export function abandon({ sequencer, clients, sharing }: ConnectionsContext, side: Side): void {
  const lanes = sequencer.lanes[side];
  void sequencer.servers[side].close();
  sharing.readers[side].close();
  for (const lane of [...lanes.all(), ...lanes.private()]) lane.close();
  sequencer.mirrors[side].reconnect();
  clients.subscribers.leave(side);
}

export interface HindranceContext {
  readonly sequencer: Sequencer;
  readonly adjudicator: Pick<Adjudicator, 'allClosed'>;
  readonly authorities: Pick<Authorities, 'frozen'>;
  readonly admitted: Pick<Admitted, 'isRecognising'>;
}

/** Why no key may be copied or compared now; null if nothing forbids it. */
export function hindrance(
  { sequencer, adjudicator, authorities, admitted }: HindranceContext,
  copies: boolean,
): string | null {
  if (copies && authorities.frozen !== null) return authorities.frozen;
  if (sequencer.blocked) return 'a command that needs the shard to itself is running';
  if (sequencer.swaps.underWay) return 'the mirror has not confirmed SWAPDB yet';
  if (!adjudicator.allClosed()) return 'a lost connection may still run commands on the server';
  if (copies && admitted.isRecognising)
    return 'checking whether the target still holds the keys that were written to it';
  for (const {
    position: { keylessRule, whole, moving },
  } of sequencer.router.workloads) {
    if (moving) return 'a stage change is in progress';
    for (const side of whole ? [otherSide(keylessRule.authority)] : SIDES) {
      if ((keylessRule.mirrorsWrites || !whole) && !sequencer.mirrors[side].connected)
        return `the ${side} is disconnected`;
    }
  }
  return null;
}

/**
 * Follows a failover while the old master still answers: Sentinel has chosen another master, or the name in the
 * endpoint leads to another server than the old master, which is a replica now.
 */
export class FailoverWatch {
  #timer: Timer | undefined;
  #isFollowing = false;

  constructor(private readonly context: ConnectionsContext & { readonly logger: Logger }) {}

  watch(): void {
    this.#timer = every(POLL_MS, () => void this.#followAddresses());
  }

  stop(): void {
    clearTimer(this.#timer);
  }

  async #followAddresses(): Promise<void> {
    if (this.#isFollowing) return;
    this.#isFollowing = true;
    for (const side of SIDES) {
      const server = this.context.sequencer.servers[side];
      if (server.connections.address === undefined) continue;
      await (server.endpoint.followsMaster ? this.#followMaster(server) : this.#followName(server));
    }
    this.#isFollowing = false;
  }

  async #followMaster(server: Server): Promise<void> {
    const { endpoint, connections, side } = server;
    const now = await endpoint.resolve().catch(() => null);
    if (now === null || (now.host === connections.address?.host && now.port === connections.address.port)) return;
    this.context.logger.warn({ server: side, from: connections.address, to: now }, 'following a failover');
    connections.follow(now);
    abandon(this.context, side);
  }

  /** If the name leads to a replica, there was no failover to follow. */
  async #followName(server: Server): Promise<void> {
    const { identity, endpoint, side } = server;
    if (identity === null || !isReplica(identity) || !(await server.hasMoved().catch(() => false))) return;
    this.context.logger.warn(
      { server: side, endpoint: endpoint.label },
      'following a failover: the name leads to another server',
    );
    server.leave();
    abandon(this.context, side);
  }
}
