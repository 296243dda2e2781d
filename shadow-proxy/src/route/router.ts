/**
 * Which workload a key belongs to, and what that means for a command on it: first matching pattern wins,
 * `default` takes the rest.
 *
 * Room: route: key → workload → stage → which server answers, which one is the mirror.
 * Called by: every room after it.
 * Calls: no room.
 */
import { compileGlob, type Matcher } from './glob.js';
import { hashSlot, SLOTS } from './slot.js';
import { stageRule, type Side, type Stage, type StageRule } from './stage.js';

export interface WorkloadDefinition {
  readonly name: string;
  readonly class: string;
  readonly keys: readonly string[];
  readonly channels?: readonly string[];
  /** The one region that writes it; null, or absent, where each may. */
  readonly writer?: string | null;
  /** `per-region`: on the target it has one part per region. */
  readonly counterLayout?: string;
  readonly stage: Stage;
  /**
   * Percent of the keys that are `live`, by hash slot; the others stay as in `shadow`. 100 unless the stage is `live`.
   */
  readonly percent: number;
}

/** The numbers the hot path counts for a workload; plain fields, read by the snapshot. */
export class WorkloadCounters {
  reads = 0;
  writes = 0;
  /** Replies of the target to clients, and how many of them are errors. */
  answeredByTarget = 0;
  errorsOfTarget = 0;
  compared = 0;
  matched = 0;
  /** Writes that the authority refused, which are not repeated. */
  refused = 0;
  /** Commands that spanned slots or hid their keys: while there are any, percent is not offered. */
  spanning = 0;
  /** By form (`lmpop`, `expire GT`): calls of what only one of the two servers supports. */
  readonly unsupported = new Map<string, UnsupportedCalls>();
  /** By command or form: errors that clients got and the other server would not have given. */
  readonly newErrors = new Map<string, number>();
  readonly allowed = new Map<string, number>();
  readonly mismatches = new Map<string, number>();
  readonly inconclusive = new Map<string, number>();
  /** By script: inconclusive pairs on keys that it has changed. */
  readonly inconclusiveByScript = new Map<string, number>();
}

/** Calls of a form that only one of the two servers supports. */
export interface UnsupportedCalls {
  readonly lacks: Side;
  calls: number;
}

/** Forms of one workload that are distinguished. */
const MAX_FORMS = 500;
/** Scripts of one workload that are distinguished. */
const MAX_SCRIPTS = 50;

/** Counts inconclusive pairs on a key that the script has changed. */
export function countInconclusive({ inconclusiveByScript }: WorkloadCounters, script: string, pairs: number): void {
  const isRoom = inconclusiveByScript.has(script) || inconclusiveByScript.size < MAX_SCRIPTS;
  increment(inconclusiveByScript, isRoom ? script : 'other scripts', pairs);
}

/**
 * Counts a call of a form that the server `lacks` does not support.
 * @param isAnsweredThere whether that is the server which answers the client: with an error that the other would not
 * give
 */
export function countUnsupported(
  { unsupported, newErrors }: WorkloadCounters,
  form: string,
  lacks: Side,
  isAnsweredThere: boolean,
): void {
  const known = unsupported.get(form);
  if (known !== undefined) known.calls++;
  else if (unsupported.size < MAX_FORMS) unsupported.set(form, { lacks, calls: 1 });
  else return;
  if (isAnsweredThere) increment(newErrors, form);
}

export const increment = (counts: Map<string, number>, name: string, by = 1): void => {
  counts.set(name, (counts.get(name) ?? 0) + by);
};

export class Workload {
  readonly counters = new WorkloadCounters();
  /** Set while a flip holds the workload's new commands. */
  held = false;
  /** Set while its authority changes: nothing may be copied. */
  moving = false;
  #suspect: string | null = null;
  readonly #matchers: Matcher[];
  readonly #channels: Matcher[];
  #stage: Stage;
  #percent: number;
  #rule: StageRule;
  /** Slots below this one follow `#rule`, the others the rule of `shadow`. */
  #liveSlots = SLOTS;

  constructor(
    readonly index: number,
    readonly name: string,
    public workloadClass: string,
    private readonly keys: readonly string[],
    /** Patterns of its pub/sub channels. */
    readonly channels: readonly string[],
    stage: Stage,
    percent: number,
    /** How many workloads of the router are suspect as a whole. */
    private readonly suspicions: { workloads: number },
  ) {
    this.#matchers = keys.map(compileGlob);
    this.#channels = channels.map(compileGlob);
    this.#stage = stage;
    this.#percent = percent;
    this.#rule = stageRule(stage);
    this.move(stage, percent);
  }

  /** The region that writes it, where that is another one than this shard's. */
  writtenIn: string | null = null;
  /** Writes that came here all the same; of one that is rewritten, looks that found a plain key on the target. */
  secondWriterWrites = 0;

  /**
   * How many keys that only its mirror has may be deleted without asking: Infinity where the kit wrote all that is
   * there, else as many as an operator confirmed.
   */
  deletable = 0;
  /** Whether its mirror may hold keys that the kit did not write, and a copy would overwrite. */
  mayOverwrite = true;

  /** Whether the kit wrote every key that its mirror has. */
  get isOurs(): boolean {
    return this.deletable === Infinity;
  }

  /** Whether its layout on the target is `per-region`. */
  perRegion = false;

  /** Whether its commands are rewritten to that layout now. */
  get isRewritten(): boolean {
    return this.perRegion && this.#rule.authority === 'target';
  }

  /** The first of its patterns that has the key; null where none has, as of `default`. */
  patternOf(key: Buffer): string | null {
    return this.keys[this.#matchers.findIndex((matches) => matches(key, 0, key.length))] ?? null;
  }

  /** How often its stage has changed. */
  moves = 0;

  /** Why every key of it is suspect, when no list of keys says it. */
  get suspect(): string | null {
    return this.#suspect;
  }
  set suspect(why: string | null) {
    if (this.#suspect === null && why !== null) this.suspicions.workloads++;
    if (this.#suspect !== null && why === null) this.suspicions.workloads--;
    this.#suspect = why;
  }
  /**
   * How often it became suspect as a whole: a verification that began before the last time cannot end the suspicion.
   */
  timesSuspect = 0;
  /** Why it was made suspect last, which may be over; null where it never was. */
  suspectedLast: string | null = null;

  /** Makes every key of it suspect; the first reason stays until the suspicion ends. */
  markSuspect(why: string): void {
    this.timesSuspect++;
    this.suspectedLast = why;
    this.suspect ??= why;
  }

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

  /** Changes the stage at once; the flip around it is the sequencer's. */
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

  /** What the stage means for one of the workload's keys. */
  rule(key: Buffer, start: number, end: number): StageRule {
    if (this.#liveSlots === SLOTS || hashSlot(key, start, end) < this.#liveSlots) return this.#rule;
    return SHADOW;
  }

  /** What the stage means for a command without keys, and for the workload's channels. */
  get keylessRule(): StageRule {
    return this.whole ? this.#rule : SHADOW;
  }
}

const SHADOW = stageRule('shadow');

export class Router {
  /** How many workloads are suspect as a whole. */
  readonly suspicions = { workloads: 0 };
  /** In the plan's order; the last one is `default`. */
  readonly workloads: readonly Workload[];
  readonly default: Workload;
  /**
   * Has the keys that are not this shard's, where several share a target: the source alone has them. It never moves.
   */
  readonly otherShards: Workload;
  /** Whether any workload's one writer is another region. */
  readonly pinsOtherRegion: boolean;
  /** Whether any workload's layout is `per-region`. */
  readonly rewrites: boolean;

  /** @param ofOtherShards whether a key is not this shard's; null where all are */
  constructor(
    definitions: readonly WorkloadDefinition[],
    rest: { stage: Stage; percent: number; writer?: string | null },
    private readonly ofOtherShards: Matcher | null = null,
    /** The region of this shard; null where the topology has none. */
    readonly region: string | null = null,
    /** What becomes of a write on a workload that another region writes. */
    readonly secondWriter: 'refuse' | 'count' = 'refuse',
  ) {
    const workloads = definitions.map(
      (w, i) => new Workload(i, w.name, w.class, w.keys, w.channels ?? [], w.stage, w.percent, this.suspicions),
    );
    this.default = new Workload(
      workloads.length,
      'default',
      'general',
      [],
      [],
      rest.stage,
      rest.percent,
      this.suspicions,
    );
    this.workloads = [...workloads, this.default];
    definitions.forEach(({ writer = null }, i) => (workloads[i].writtenIn = writer === this.region ? null : writer));
    definitions.forEach(({ counterLayout }, i) => (workloads[i].perRegion = counterLayout === 'per-region'));
    this.rewrites = workloads.some(({ perRegion }) => perRegion);
    this.default.writtenIn = rest.writer === undefined || rest.writer === this.region ? null : rest.writer;
    this.pinsOtherRegion = this.workloads.some(({ writtenIn }) => writtenIn !== null);
    this.otherShards = new Workload(this.workloads.length, 'other shards', 'general', [], [], 'off', 100, {
      workloads: 0,
    });
  }

  match(key: Buffer, start: number, end: number): Workload {
    if (this.ofOtherShards !== null && this.ofOtherShards(key, start, end)) return this.otherShards;
    const workloads = this.workloads;
    for (let i = 0; i < workloads.length - 1; i++) if (workloads[i].owns(key, start, end)) return workloads[i];
    return this.default;
  }

  /** The workload whose pattern the key has, whichever shard's it is. */
  byPattern(key: Buffer): Workload {
    return this.workloads.find((workload) => workload.owns(key, 0, key.length)) ?? this.default;
  }

  /** The workload of a pub/sub channel. */
  channel(name: Buffer, start: number, end: number): Workload {
    return this.workloads.find((workload) => workload.ownsChannel(name, start, end)) ?? this.default;
  }

  /** The workload of a pattern of channels: the one whose plan has that very pattern. */
  channelPattern(pattern: string): Workload {
    return this.workloads.find(({ channels }) => channels.includes(pattern)) ?? this.default;
  }

  /** A command hid its keys: they may be anybody's. */
  hid(): void {
    for (const { counters } of this.workloads) counters.spanning++;
  }

  /** Whether every key has the same rule: then it does not matter which keys a command has. */
  get uniform(): boolean {
    const rule = this.default.keylessRule;
    return this.workloads.every((workload) => workload.whole && workload.keylessRule === rule);
  }

  /** Whether all keys have the same authority. */
  get oneAuthority(): boolean {
    const { authority } = this.default.keylessRule;
    return this.workloads.every((workload) => workload.keylessRule.authority === authority && workload.whole);
  }

  /** Whether commands reach the target, and it may have keys that the kit did not write. */
  get mayHoldForeignKeys(): boolean {
    const reached = this.workloads.some(
      ({ keylessRule, whole }) => keylessRule.mirrorsWrites || keylessRule.authority === 'target' || !whole,
    );
    return reached && !this.workloads.every((workload) => workload.isOurs);
  }

  /** Whether any key is written twice. */
  get mirrors(): boolean {
    return this.workloads.some((workload) => workload.keylessRule.mirrorsWrites);
  }

  named(name: string): Workload | undefined {
    return this.workloads.find((workload) => workload.name === name);
  }
}
