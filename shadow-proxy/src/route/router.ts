/**
 * Which workload a key belongs to, and what follows for a command on the key. The first matching pattern decides;
 * `default` takes the rest.
 *
 * Room: route: key → workload → stage → which server answers, which one is the mirror.
 * Called by: every room after it.
 * Calls: no room.
 */
import { compileGlob, type Matcher } from './glob.js';
import { hashSlot, SLOTS } from './slot.js';
import { stageRule, type Stage, type StageRule } from './stage.js';

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

export class Workload {
  /** Whether a flip holds the workload's new commands. */
  held = false;
  /** Whether the workload's authority is changing: then nothing may be copied. */
  moving = false;
  readonly #matchers: Matcher[];
  readonly #channels: Matcher[];
  #stage: Stage;
  #percent: number;
  #rule: StageRule;
  /** Slots below this number follow `#rule`, the other slots the rule of `shadow`. */
  #liveSlots = SLOTS;

  constructor(
    readonly index: number,
    readonly name: string,
    private readonly keys: readonly string[],
    /** Patterns of the workload's pub/sub channels. */
    readonly channels: readonly string[],
    /** The region that writes the workload, if it is another region than the shard's; else null. */
    readonly writtenIn: string | null,
    /** Whether the workload's layout on the target is `per-region`. */
    readonly perRegion: boolean,
    stage: Stage,
    percent: number,
  ) {
    this.#matchers = keys.map(compileGlob);
    this.#channels = channels.map(compileGlob);
    this.#stage = stage;
    this.#percent = percent;
    this.#rule = stageRule(stage);
    this.move(stage, percent);
  }

  /** Whether commands are rewritten to the `per-region` layout now. */
  get isRewritten(): boolean {
    return this.perRegion && this.#rule.authority === 'target';
  }

  /** The first of the workload's patterns that matches the key; null if none does, as for `default`. */
  patternOf(key: Buffer): string | null {
    return this.keys[this.#matchers.findIndex((matches) => matches(key, 0, key.length))] ?? null;
  }

  /** How many times the stage has changed. */
  moves = 0;

  get stage(): Stage {
    return this.#stage;
  }
  get percent(): number {
    return this.#percent;
  }
  /** Whether all keys have the same authority. */
  get whole(): boolean {
    return this.#liveSlots === SLOTS;
  }

  /** Changes the stage at once. The sequencer does the flip around it. */
  move(stage: Stage, percent: number): void {
    this.moves++;
    this.#stage = stage;
    this.#percent = stage === 'live' ? percent : 100;
    this.#rule = stageRule(stage);
    this.#liveSlots = Math.ceil((this.#percent * SLOTS) / 100);
  }

  owns(key: Buffer, start: number, end: number): boolean {
    for (const matches of this.#matchers) if (matches(key, start, end)) return true;
    return false;
  }

  ownsChannel(name: Buffer, start: number, end: number): boolean {
    for (const matches of this.#channels) if (matches(name, start, end)) return true;
    return false;
  }

  /** The rule of the stage for one of the workload's keys. */
  rule(key: Buffer, start: number, end: number): StageRule {
    if (this.#liveSlots === SLOTS || hashSlot(key, start, end) < this.#liveSlots) return this.#rule;
    return SHADOW;
  }

  /** The rule of the stage for a command without keys, and for the workload's channels. */
  get keylessRule(): StageRule {
    return this.whole ? this.#rule : SHADOW;
  }
}

const SHADOW = stageRule('shadow');

export class Router {
  /** The workloads in the plan's order; the last one is `default`. */
  readonly workloads: readonly Workload[];
  readonly default: Workload;
  /**
   * The workload of keys that are not this shard's, if several shards share a target. Only the source has these keys,
   * and the stage never changes.
   */
  readonly otherShards: Workload;
  /** Whether any workload may be written by another region only. */
  readonly pinsOtherRegion: boolean;
  /** Whether any workload has the layout `per-region`. */
  readonly rewrites: boolean;

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
    const writtenIn = (writer: string | null = null): string | null => (writer === this.region ? null : writer);
    const workloads = definitions.map(
      ({ name, keys, channels = [], writer, counterLayout, stage, percent }, i) =>
        new Workload(
          ...([i, name, keys, channels, writtenIn(writer), counterLayout === 'per-region'] as const),
          ...([stage, percent] as const),
        ),
    );
    this.default = new Workload(
      ...([workloads.length, 'default', [], [], writtenIn(rest.writer), false] as const),
      ...([rest.stage, rest.percent] as const),
    );
    this.workloads = [...workloads, this.default];
    this.rewrites = workloads.some(({ perRegion }) => perRegion);
    this.pinsOtherRegion = this.workloads.some(({ writtenIn }) => writtenIn !== null);
    this.otherShards = new Workload(
      ...([this.workloads.length, 'other shards', [], [], null, false, 'off', 100] as const),
    );
  }

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

  /** Whether every key has the same rule: then the keys of a command do not matter. */
  get uniform(): boolean {
    const rule = this.default.keylessRule;
    return this.workloads.every((workload) => workload.whole && workload.keylessRule === rule);
  }

  /** Whether all keys have the same authority. */
  get oneAuthority(): boolean {
    const { authority } = this.default.keylessRule;
    return this.workloads.every((workload) => workload.keylessRule.authority === authority && workload.whole);
  }

  /** Whether any key is written to both servers. */
  get mirrors(): boolean {
    return this.workloads.some((workload) => workload.keylessRule.mirrorsWrites);
  }

  named(name: string): Workload | undefined {
    return this.workloads.find((workload) => workload.name === name);
  }
}
