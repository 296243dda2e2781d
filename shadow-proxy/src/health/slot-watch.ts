/**
 * Checks that the shard's slots are still with its masters. A slot that is moving or has moved to another node is
 * frozen, because two proxies could order its keys differently. Its commands are refused until the slot returns, or the
 * proxies are restarted and derive their shards from the new slots.
 */
import type { Logger } from 'pino';
import { clearTimer, every, type Timer } from '../io/timers.js';
import { commonSlots, formatSlots, masterOf, rangesOf } from '../plan/cluster-shards.js';
import { isError, text } from '../resp/decode.js';
import type { SlotRange } from '../route/owner.js';
import { SIDES, type Side } from '../route/stage.js';
import type { ClusterFace } from '../session/cluster-face.js';
import type { Authorities } from '../pipeline/authorities.js';
import type { SuspectWorkloads } from '../suspects/workloads.js';
import type { Server } from '../upstream/server.js';
import { nodesOf, type ListedNode } from '../upstream/slots.js';

const POLL_MS = 250;

export interface SlotWatchContext {
  readonly servers: Readonly<Record<Side, Server>>;
  readonly authorities: Pick<Authorities, 'isFollowed'>;
  readonly suspectWorkloads: Pick<SuspectWorkloads, 'markAll'>;
  /** Null if the source is no cluster. */
  readonly face: ClusterFace | null;
  readonly logger: Logger;
}

/** Which of the shard's slots have moved on one side; slots in neither list are in place. */
export interface MovedSlots {
  /** Slots that are moving to another node. */
  readonly leaving: readonly number[];
  /** Slots that another node has. */
  readonly moved: readonly SlotRange[];
}

/** @returns null if the reply does not show it: no master has any of the slots */
export function movedSlots(nodes: readonly ListedNode[], slots: readonly SlotRange[]): MovedSlots | null {
  const master = masterOf(
    nodes.filter(({ isMaster }) => isMaster),
    slots,
  );
  if (master === undefined) return null;
  const has = (slot: number): boolean => slots.some(([first, last]) => first <= slot && slot <= last);
  return {
    leaving: master.isAsked ? master.leaving.filter(has) : [],
    moved: nodes.filter((node) => node.isMaster && node !== master).flatMap((node) => commonSlots(node.slots, slots)),
  };
}

export class SlotWatch {
  readonly #moved: Record<Side, MovedSlots> = { source: STILL, target: STILL };
  #shown = '';
  #timer: Timer | undefined;
  #checking: Promise<boolean> | null = null;

  constructor(private readonly context: SlotWatchContext) {}

  watch(): void {
    if (this.context.face !== null) this.#timer = every(POLL_MS, () => void this.check()).unref();
  }

  stop(): void {
    clearTimer(this.#timer);
  }

  /** Asks both servers once. @returns whether every server that is part of a cluster has answered */
  check(): Promise<boolean> {
    return (this.#checking ??= this.#check().finally(() => (this.#checking = null)));
  }

  /**
   * Asks both servers once more. Had slots been away until now, every workload is a suspect again.
   * @returns why a scan may have missed keys; null if every slot is in place
   */
  async checkAway(): Promise<string | null> {
    if (this.context.face === null) return null;
    // What is being asked now may be answered already.
    await this.#checking;
    const isKnown = await this.check();
    if (this.context.face.frozen.size > 0) return this.describe();
    return isKnown ? null : 'a server does not answer where its slots are';
  }

  async #check(): Promise<boolean> {
    const { servers, face, authorities } = this.context;
    if (face === null) return true;
    let isKnown = true;
    for (const side of SIDES) {
      const server = servers[side];
      if (server.identity?.mode !== 'cluster') continue;
      const reply = await server.ask('CLUSTER', 'NODES').catch(() => null);
      const moved = reply === null || isError(reply) ? null : movedSlots(nodesOf(text(reply)), face.own.slots);
      isKnown &&= moved !== null || !authorities.isFollowed(side);
      this.#moved[side] = moved ?? this.#moved[side];
    }
    this.#apply(face);
    return isKnown;
  }

  #apply(face: ClusterFace): void {
    const { authorities, suspectWorkloads, logger } = this.context;
    const frozen = new Map<number, string>();
    for (const side of SIDES.filter((each) => authorities.isFollowed(each))) {
      const { leaving, moved } = this.#moved[side];
      for (const slot of leaving) frozen.set(slot, `is moving to another node of the ${side}`);
      for (const [first, last] of moved)
        for (let slot = first; slot <= last; slot++)
          frozen.set(slot, `has moved to another node of the ${side}; restart the proxies when all slots have moved`);
    }
    const back = [...face.frozen.keys()].filter((slot) => !frozen.has(slot));
    if (back.length > 0) suspectWorkloads.markAll('slots were away from their master, and are back', () => true);
    face.freeze(frozen);
    const now = this.describe();
    if (now === this.#shown) return;
    this.#shown = now;
    if (now === '') logger.warn('all slots of the shard are with their masters again');
    else logger.error({ slots: now }, 'slots of the shard move: their commands are refused (TRYAGAIN)');
  }

  /** A description for people; empty if every slot is in place. */
  describe(): string {
    return SIDES.flatMap((side) => {
      const { leaving, moved } = this.#moved[side];
      return [
        ...(leaving.length === 0
          ? []
          : [`slots ${formatSlots(rangesOf(leaving))} are moving to another node of the ${side}`]),
        ...(moved.length === 0 ? [] : [`slots ${formatSlots(moved)} have moved to another node of the ${side}`]),
      ];
    }).join('; ');
  }
}

const STILL: MovedSlots = { leaving: [], moved: [] };
