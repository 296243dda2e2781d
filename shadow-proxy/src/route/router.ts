/**
 * Which workload a key belongs to, and what follows for a command on the key. The first matching pattern decides;
 * `default` takes the rest.
 *
 * Room: route: key → workload → stage → which server answers, which one is the mirror.
 * Called by: every room after it.
 * Calls: no room.
 */
import { compileGlob, type Matcher } from './glob.js';
import { ChangingPosition, type Position } from './position.js';
import type { Stage, StagePoint } from './stage.js';

export interface WorkloadDefinition {
  readonly name: string;
  readonly keys: readonly string[];
  readonly channels?: readonly string[];
  /** The only region that writes the workload; null or absent if each region may. */
  readonly writer?: string | null;
  /** With `per-region`, the target has one part of each key per region. */
  readonly counterLayout?: string;
  readonly stage: Stage;
  /**
   * Percent of the keys that are `live`, by hash slot; the other keys stay as in `shadow`. 100 unless the stage is
   * `live`.
   */
  readonly percent: number;
}

/** A workload as the plan describes it. Only its position changes. */
export class Workload {
  readonly name: string;
  /** Patterns of the workload's pub/sub channels. */
  readonly channels: readonly string[];
  /** Whether the workload's layout on the target is `per-region`. */
  readonly perRegion: boolean;
  readonly #keys: readonly string[];
  readonly #matchers: readonly Matcher[];
  readonly #channelMatchers: readonly Matcher[];

  /** @param writtenIn the region that writes the workload, if it is another region than the shard's; else null */
  constructor(
    readonly index: number,
    { name, keys, channels = [], counterLayout }: Omit<WorkloadDefinition, 'stage' | 'percent' | 'writer'>,
    readonly writtenIn: string | null,
    readonly position: Position,
  ) {
    this.name = name;
    this.channels = channels;
    this.perRegion = counterLayout === 'per-region';
    this.#keys = keys;
    this.#matchers = keys.map(compileGlob);
    this.#channelMatchers = channels.map(compileGlob);
  }

  /** Whether commands are rewritten to the `per-region` layout now. */
  get isRewritten(): boolean {
    return this.perRegion && this.position.keylessRule.authority === 'target';
  }

  /** The first of the workload's patterns that matches the key; null if none does, as for `default`. */
  patternOf(key: Buffer): string | null {
    return this.#keys[this.#matchers.findIndex((matches) => matches(key, 0, key.length))] ?? null;
  }

  owns(key: Buffer, start: number, end: number): boolean {
    for (const matches of this.#matchers) if (matches(key, start, end)) return true;
    return false;
  }

  ownsChannel(name: Buffer, start: number, end: number): boolean {
    for (const matches of this.#channelMatchers) if (matches(name, start, end)) return true;
    return false;
  }
}

export class Router {
  /** The workloads in the plan's order; the last one is `default`. */
  readonly workloads: readonly Workload[];
  readonly default: Workload;
  /** The positions of these workloads. */
  readonly positions: readonly Position[];
  /**
   * The workload of keys that are not this shard's, if several shards share a target. Only the source has these keys,
   * and the stage never changes.
   */
  readonly otherShards: Workload;
  /** Whether any workload may be written by another region only. */
  readonly pinsOtherRegion: boolean;
  /** Whether any workload has the layout `per-region`. */
  readonly rewrites: boolean;
  /** By the workload's index. */
  readonly #changing: ChangingPosition[] = [];

  /** @param ofOtherShards matches keys that are not this shard's; null if all keys are this shard's */
  constructor(
    definitions: readonly WorkloadDefinition[],
    rest: { stage: Stage; percent: number; writer?: string | null },
    private readonly ofOtherShards: Matcher | null = null,
    /** The region of this shard; null if the topology has no regions. */
    readonly region: string | null = null,
    /** What happens to a write to a workload that another region writes. */
    readonly secondWriter: 'refuse' | 'count' = 'refuse',
  ) {
    const made = ({ writer = null, ...definition }: WorkloadDefinition, index: number): Workload => {
      const position = new ChangingPosition(definition);
      this.#changing.push(position);
      return new Workload(index, definition, writer === this.region ? null : writer, position);
    };
    const workloads = definitions.map(made);
    this.default = made({ ...rest, name: 'default', keys: [] }, workloads.length);
    this.workloads = [...workloads, this.default];
    this.positions = this.workloads.map(({ position }) => position);
    this.rewrites = workloads.some(({ perRegion }) => perRegion);
    this.pinsOtherRegion = this.workloads.some(({ writtenIn }) => writtenIn !== null);
    const off = { name: 'other shards', keys: [], stage: 'off', percent: 100, writer: this.region } as const;
    this.otherShards = made(off, this.workloads.length);
  }

  // ── what changes ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Changes the stage at once. The flip is done around it. */
  move({ index }: Workload, to: StagePoint): void {
    this.#changing[index].move(to);
  }

  /**
   * Holds the workload's new commands. A stage change and a failover may hold them at the same time: they go on when
   * both have ended.
   * @returns a function that ends this hold; then the caller opens the waiting room
   */
  hold({ index }: Workload): () => void {
    return this.#changing[index].hold();
  }

  /** @param moving whether the workload's authority is changing: then nothing may be copied */
  setMoving({ index }: Workload, moving: boolean): void {
    this.#changing[index].moving = moving;
  }

  // ── what a key or a channel belongs to ──────────────────────────────────────────────────────────────────────────

  match(key: Buffer, start: number, end: number): Workload {
    if (this.ofOtherShards !== null && this.ofOtherShards(key, start, end)) return this.otherShards;
    const workloads = this.workloads;
    for (let i = 0; i < workloads.length - 1; i++) if (workloads[i].owns(key, start, end)) return workloads[i];
    return this.default;
  }

  /** The workload whose pattern matches the key, even if the key is another shard's. */
  byPattern(key: Buffer): Workload {
    return this.workloads.find((workload) => workload.owns(key, 0, key.length)) ?? this.default;
  }

  /** The workload of a pub/sub channel. */
  channel(name: Buffer, start: number, end: number): Workload {
    return this.workloads.find((workload) => workload.ownsChannel(name, start, end)) ?? this.default;
  }

  /** The workload of a pattern of channels: the one whose plan contains exactly this pattern. */
  channelPattern(pattern: string): Workload {
    return this.workloads.find(({ channels }) => channels.includes(pattern)) ?? this.default;
  }

  // ── what holds for all workloads ────────────────────────────────────────────────────────────────────────────────

  /** Whether every key has the same rule: then the keys of a command do not matter. */
  get uniform(): boolean {
    const rule = this.default.position.keylessRule;
    return this.positions.every((position) => position.whole && position.keylessRule === rule);
  }

  /** Whether all keys have the same authority. */
  get oneAuthority(): boolean {
    const { authority } = this.default.position.keylessRule;
    return this.positions.every(({ keylessRule, whole }) => keylessRule.authority === authority && whole);
  }

  /** Whether any key is written to both servers. */
  get mirrors(): boolean {
    return this.positions.some(({ keylessRule }) => keylessRule.mirrorsWrites);
  }

  named(name: string): Workload | undefined {
    return this.workloads.find((workload) => workload.name === name);
  }
}
