/**
 * The stage that a workload is in, and whether a change of it is in progress. This is the only thing about a workload
 * that changes: `Router` changes it, everything else reads it. It belongs to no later room, because every command asks
 * for it.
 */
import { hashSlot, SLOTS } from './slot.js';
import { stageRule, type Stage, type StagePoint, type StageRule } from './stage.js';

export interface Position extends StagePoint {
  /** Whether a stage change or a failover holds the workload's new commands. */
  readonly held: boolean;
  /** Whether the workload's authority is changing: then nothing may be copied. */
  readonly moving: boolean;
  /** How many times the stage has changed. */
  readonly moves: number;
  /** Whether all keys have the same authority. */
  readonly whole: boolean;
  /** The rule of the stage for a command without keys, and for the workload's channels. */
  readonly keylessRule: StageRule;
  /** The rule of the stage for one of the workload's keys. */
  rule(key: Buffer, start: number, end: number): StageRule;
}

const SHADOW = stageRule('shadow');

/** The position as `Router` changes it. */
export class ChangingPosition implements Position {
  moving = false;
  moves = 0;
  #stage: Stage;
  #percent = 100;
  #rule: StageRule;
  /** Slots below this number follow `#rule`, the other slots the rule of `shadow`. */
  #liveSlots = SLOTS;
  readonly #holds = new Set<symbol>();

  constructor({ stage, percent }: StagePoint) {
    this.#stage = stage;
    this.#rule = stageRule(stage);
    this.move({ stage, percent });
  }

  get held(): boolean {
    return this.#holds.size > 0;
  }

  /** @returns a function that ends this hold */
  hold(): () => void {
    const hold = Symbol();
    this.#holds.add(hold);
    return () => void this.#holds.delete(hold);
  }

  get stage(): Stage {
    return this.#stage;
  }

  get percent(): number {
    return this.#percent;
  }

  get whole(): boolean {
    return this.#liveSlots === SLOTS;
  }

  get keylessRule(): StageRule {
    return this.#liveSlots === SLOTS ? this.#rule : SHADOW;
  }

  rule(key: Buffer, start: number, end: number): StageRule {
    if (this.#liveSlots === SLOTS || hashSlot(key, start, end) < this.#liveSlots) return this.#rule;
    return SHADOW;
  }

  /** @param percent of the keys that are `live`, by hash slot; 100 unless the stage is `live` */
  move({ stage, percent }: StagePoint): void {
    this.moves++;
    this.#stage = stage;
    this.#percent = stage === 'live' ? percent : 100;
    this.#rule = stageRule(stage);
    this.#liveSlots = Math.ceil((this.#percent * SLOTS) / 100);
  }
}
