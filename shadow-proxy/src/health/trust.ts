/**
 * Rule 1: an authority that restarted or was replaced may not be right any more. Its data may be empty, old or from a
 * failover. Until an operator decides, nothing is copied from it, and nothing is deleted because it lacks the key. Rule
 * 21: the same holds for an authority that is or was a replica: it has another server's data under the same run ID.
 *
 *   restarted ─▶ frozen ─┬─▶ a stage change makes the other server the authority: its data is right
 *                        └─▶ the authority is accepted as it is: the mirror is made equal to it
 */
import type { Logger } from 'pino';
import type { WritesSinceRestart } from '../copy/repair/writes-since-restart.js';
import { fingerprint, isReplica } from '../upstream/identity.js';
import type { Authorities } from '../pipeline/authorities.js';
import type { SuspectWorkloads } from '../suspects/workloads.js';
import type { Server } from '../upstream/server.js';
import type { Plan } from '../plan/plan.js';
import type { HistoryEvent } from '../storage/state.js';
import type { Side } from '../route/stage.js';

export interface TrustContext {
  readonly servers: Readonly<Record<Side, Server>>;
  readonly onAuthorityChange: Plan['onAuthorityChange'];
  readonly authorities: Authorities;
  readonly suspectWorkloads: Pick<SuspectWorkloads, 'markAll'>;
  /** Saves which servers were seen, and the new run IDs of those that are trusted. */
  remember(event?: HistoryEvent): Promise<void>;
  /** From now on the authority is not trusted. Called before any command is sent to it. */
  distrusted(side: Side): void;
  /** Records from now on what is written to the authority's keys; null if some writes may have been missed. */
  watch(side: Side): WritesSinceRestart | null;
  readonly logger: Logger;
}

export type TrustErrorCode =
  /** Every authority is trusted. */
  | 'not-frozen'
  /** The server has restarted again since the operator looked at it. */
  | 'changed'
  /** The server is a replica: it refuses writes, and may lose its data. */
  | 'replica'
  /** The server does not answer. */
  | 'server-unreachable';

/** The authority was not accepted; the message says why and what to do. */
export class TrustError extends Error {
  override readonly name = 'TrustError';
  constructor(
    readonly code: TrustErrorCode,
    message: string,
  ) {
    super(message);
  }
}

export class Trust {
  #since: WritesSinceRestart | null = null;

  constructor(private readonly context: TrustContext) {}

  /** What was written since an authority restarted or was replaced; null if that is unknown, or none did. */
  get since(): WritesSinceRestart | null {
    return this.#since;
  }

  get #distrusted(): Set<Side> {
    return this.context.authorities.distrusted;
  }

  /** Called when the server may hold other data than what the proxy wrote. @param change as in "the source …" */
  replaced({ side }: Server, change: string): void {
    const { logger, onAuthorityChange, authorities, suspectWorkloads } = this.context;
    const lost = `the ${side} ${change}`;
    const accepts = onAuthorityChange === 'accept';
    logger.warn(
      { server: side, change },
      authorities.isFollowed(side) && accepts
        ? 'the server at this address may hold other data: accepted (onAuthorityChange: accept)'
        : 'the server at this address may hold other data than before',
    );
    if (authorities.isFollowed(side) && !accepts)
      this.#distrust(side, `${lost}, and is an authority: repairs would delete on the mirror what this server lost`);
    suspectWorkloads.markAll(
      lost,
      (workload) => accepts || workload.position.keylessRule.authority !== side || !workload.position.whole,
    );
    if (this.#distrusted.has(side)) this.context.distrusted(side);
    this.#rememberSoon();
  }

  /** Called when a server has become a replica: it refuses writes, and loses its data as soon as it synchronizes. */
  demoted({ side, identity }: Server): void {
    const { logger, onAuthorityChange, authorities } = this.context;
    const master = identity?.replicates ?? 'another server';
    logger.warn({ server: side, master }, `the ${side} is a replica of ${master}`);
    if (!authorities.isFollowed(side) || onAuthorityChange === 'accept') return;
    this.#distrust(
      side,
      `the ${side} is a replica of ${master}, and is an authority: repairs would delete on the mirror what the replica lost`,
    );
    this.context.distrusted(side);
  }

  #distrust(side: Side, reason: string): void {
    if (this.#distrusted.size === 0) this.#since = this.context.watch(side);
    // With two distrusted authorities nothing is counted.
    else if (!this.#distrusted.has(side)) this.#forget();
    this.#distrusted.add(side);
    this.context.authorities.freeze(reason);
  }

  /** Called after a stage change: a server that is not trusted may no longer be an authority. */
  moved(): void {
    const { authorities, suspectWorkloads } = this.context;
    const before = this.#distrusted.size;
    for (const side of this.#distrusted) {
      if (authorities.isFollowed(side)) continue;
      this.#distrusted.delete(side);
      suspectWorkloads.markAll(`the ${side} restarted or was replaced (run ID changed), and is no longer an authority`);
    }
    if (this.#distrusted.size < before) this.#unfreeze();
  }

  /**
   * Accepts every authority as it is. Data that it lost is lost; its mirror is verified and repaired from it.
   * @param runIds run IDs or fingerprints of the servers that the operator looked at; null if that does not matter
   * @throws {TrustError} with nothing changed
   */
  async accept(runIds: readonly string[] | null): Promise<Side[]> {
    const { servers, suspectWorkloads, remember } = this.context;
    const sides = [...this.#distrusted];
    if (sides.length === 0) throw new TrustError('not-frozen', 'repairs are not frozen: no authority has changed');
    for (const side of sides) {
      await servers[side].identify().catch((problem: Error) => {
        throw new TrustError('server-unreachable', `the ${side} does not answer (${problem.message}): start it first`);
      });
      const { runId, identity } = servers[side];
      if (identity !== null && isReplica(identity))
        throw new TrustError(
          'replica',
          `the ${side} is a replica of ${identity.replicates ?? 'another server'}: promote it first (REPLICAOF NO ONE)`,
        );
      const seen = [runId, fingerprint(servers[side])];
      if (runIds !== null && !seen.some((id) => runIds.includes(id)))
        throw new TrustError(
          'changed',
          `the run ID of the ${side} changed again since then: check again which keys it lacks`,
        );
    }
    for (const side of sides) {
      this.#distrusted.delete(side);
      suspectWorkloads.markAll(
        `the ${side} restarted or was replaced (run ID changed), and the operator accepted its data`,
        ({ position: { keylessRule, whole } }) => keylessRule.authority === side || !whole,
      );
    }
    try {
      await remember({ event: 'accept', servers: sides });
    } catch (problem) {
      for (const side of sides) this.#distrusted.add(side);
      throw problem;
    }
    this.#unfreeze();
    return sides;
  }

  #unfreeze(): void {
    if (this.#distrusted.size > 0) return;
    this.#forget();
    this.context.authorities.unfreeze();
    this.#rememberSoon();
  }

  #forget(): void {
    this.#since?.end();
    this.#since = null;
  }

  #rememberSoon(): void {
    const { logger, remember } = this.context;
    remember().catch((problem: Error) =>
      logger.error({ problem: problem.message }, 'the identities of the servers cannot be saved'),
    );
  }
}
