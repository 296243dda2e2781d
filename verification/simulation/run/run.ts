/** One run: a seed and a profile make a world with two servers, a shard, clients, faults and an operator. */
import { useWorld } from '../../../shadow-proxy/src/io/world.js';
import { partsOf } from '../world/key-name.js';
import type { ServerHost } from '../world/server-host.js';
import { Announced } from './announced.js';
import { BypassAlarms } from './bypass-alarms.js';
import { Bypassing } from './bypassing.js';
import { Checks, TEMPORARY } from './checks.js';
import { Emptied } from './emptied.js';
import { Faults } from './faults/faults.js';
import { FenceCheck } from './fence.js';
import { ForeignKeys } from './foreign-keys.js';
import { Figures } from './figures.js';
import { Load } from './load.js';
import { isSent, isStrike, type Program } from './program.js';
import { OtherShard } from './other-shard.js';
import { Operator } from './operator.js';
import type { Fault, Profile } from './profiles.js';
import { Finding, Scene } from './scene.js';
import { Starts } from './starts.js';
import { Tenures } from './tenures.js';

export interface RunOptions {
  readonly seed: number;
  readonly profile: Profile;
  /** Of clients. */
  readonly operations: number;
  readonly logLevel?: string;
  /** Replayed in the place of what would be drawn. */
  readonly program?: Program;
}

export interface Result {
  /** What is wrong, with the last events around it; null where nothing is. */
  readonly finding: string | null;
  readonly timeline: readonly string[];
  readonly operations: number;
  readonly answered: number;
  /** Commands whose connection ended before their reply. */
  readonly lost: number;
  /** Replies that were errors. */
  readonly errors: ReadonlyMap<string, number>;
  readonly events: number;
  readonly virtualMs: number;
  /** The same for two runs with the same events. */
  readonly trace: number;
  /** How often each fault struck. */
  readonly struck: ReadonlyMap<Fault, number>;
  /** How often each stage was entered. */
  readonly stages: ReadonlyMap<string, number>;
  /** How often everything came to rest, and both servers were compared. */
  readonly cleanChecks: number;
  /** Calls whose history was checked. */
  readonly linearized: number;
  /** What was sent and what struck. */
  readonly program: Program;
  /** Histories with more possible orders than are searched. */
  readonly unsearched: number;
  /** Messages that subscribers have got. */
  readonly messages: number;
  /** How often each command was answered without an error. */
  readonly commands: ReadonlyMap<string, number>;
  /** How many times each server was sent GET. */
  readonly gets: { readonly source: number; readonly target: number };
  /** How often each write was tried that bypasses the proxy, or what else the profile must show happened. */
  readonly bypassing: ReadonlyMap<string, number>;
  /** Keys that took their place on the target after they were copied in chunks. */
  readonly keysInChunks: number;
  /** Messages of servers about keys that have changed. */
  readonly changesReported: number;
  /** Commands that the models lack. */
  readonly lacking: readonly string[];
}

const START_MS = 60_000;
/** The clients send a command at least each so many milliseconds. */
const STEP_MS = 300;
/** How often the status is asked while everything comes to rest. */
const CHECK_MS = 10;
/** What the last fault has begun is over after so long. */
const SETTLE_MS = 180_000;
/** After so many commands the faults and the clients pause, and everything must come to rest. */
const ROUND = 1_500;

export async function simulate(options: RunOptions): Promise<Result> {
  const run = new Run(options);
  try {
    return await run.run();
  } finally {
    useWorld(null);
  }
}

class Run {
  readonly #scene: Scene;
  readonly #load: Load;
  readonly #checks: Checks;
  readonly #operator: Operator;
  readonly #faults: Faults;
  readonly #figures: Figures;
  readonly #tenures: Tenures;
  readonly #bypassing: Bypassing | null;
  #keysInChunks = 0;
  readonly #announced: Announced | null;
  readonly #foreignKeys: ForeignKeys | null;
  readonly #fence: FenceCheck | null;
  readonly #emptied: Emptied | null;
  readonly #otherShard: OtherShard | null;
  #cleanChecks = 0;

  constructor(private readonly options: RunOptions) {
    const { seed, profile, logLevel, program } = options;
    this.#scene = new Scene(seed, profile, program?.network ?? profile.network, logLevel);
    this.#load = new Load(this.#scene);
    this.#checks = new Checks(this.#scene, this.#load);
    this.#figures = new Figures(this.#scene, this.#checks, this.#load);
    new Starts(this.#scene, this.#checks);
    this.#tenures = new Tenures(this.#scene);
    this.#bypassing = profile.bypassed === true ? new Bypassing(this.#scene) : null;
    const losesKeys = profile.faults.authorityLoss !== undefined;
    this.#emptied = losesKeys ? new Emptied(this.#scene, this.#load, this.#checks) : null;
    this.#scene.emptied = this.#emptied;
    this.#fence = profile.fenced === true ? new FenceCheck(this.#scene) : null;
    this.#announced = profile.announced === true ? new Announced(this.#scene) : null;
    this.#foreignKeys = profile.foreign === true ? new ForeignKeys(this.#scene) : null;
    const { isOfOtherShard } = profile;
    this.#otherShard = isOfOtherShard === undefined ? null : new OtherShard(this.#scene, isOfOtherShard);
    this.#operator = new Operator(this.#scene);
    this.#faults = new Faults(this.#scene, this.#load, this.#operator);
  }

  async run(): Promise<Result> {
    const scene = this.#scene;
    const { world, source, target, timeline } = scene;
    useWorld(world);
    world.events.afterEach = () => {
      this.#checks.afterEvent();
      this.#operator.afterEvent();
    };
    this.#hearMirror(target);
    try {
      await this.#run();
    } catch (problem) {
      scene.finding ??= problem instanceof Finding ? problem : new Finding((problem as Error).stack!);
    }
    const load = this.#load;
    return {
      finding: scene.finding?.message ?? null,
      timeline: timeline.about(scene.finding?.words ?? ['!'], 80),
      operations: load.operations,
      answered: load.answered,
      lost: load.lost,
      errors: load.errors,
      events: world.events.count,
      virtualMs: world.events.now,
      trace: world.events.trace,
      struck: this.#faults.struck,
      stages: this.#operator.stages,
      cleanChecks: this.#cleanChecks,
      linearized: load.linearized,
      program: { seed: this.options.seed, network: scene.network, rounds: scene.recorder.rounds },
      unsearched: load.unsearched,
      messages: load.messages,
      commands: load.commands,
      gets: scene.gets,
      keysInChunks: this.#keysInChunks,
      changesReported: scene.source.model.tracking.sent + scene.target.model.tracking.sent,
      bypassing:
        (this.#bypassing ?? this.#fence ?? this.#announced ?? this.#emptied)?.tried ?? new Map<string, number>(),
      lacking: [...new Set([...source.model.lacking, ...target.model.lacking])],
    };
  }

  async #run(): Promise<void> {
    const scene = this.#scene;
    const { proxy, world } = scene;
    const load = this.#load;
    proxy.start();
    if (!(await world.events.run(() => proxy.launched !== null, START_MS)))
      throw new Finding(`the shard does not start: ${proxy.problem?.message ?? 'nothing is left to happen'}`);
    for (const seat of scene.seats.slice(1)) seat.start();
    load.start();
    this.#operator.start();
    this.#figures.start();
    this.#bypassing?.start();
    this.#fence?.start();
    this.#announced?.start();
    this.#tenures.start();
    if (this.options.profile.fenced !== true) new BypassAlarms(this.#scene).start();
    const { operations, program } = this.options;
    if (program !== undefined) return this.#replay(program);
    for (let round = 1; scene.finding === null; round++) {
      this.#faults.start();
      scene.recorder.begin(scene.now);
      const until = Math.min(operations, round * ROUND);
      const isOver = (): boolean => scene.finding !== null || load.operations >= until;
      if (!(await world.events.run(isOver, ROUND * STEP_MS)))
        throw new Finding(`after ${(ROUND * STEP_MS) / 1000} s, only ${load.operations} commands were sent`);
      if (scene.finding === null) await this.#settle();
      if (until === operations) return;
      scene.isQuiet = false;
      scene.say('clients and faults go on');
      load.start();
    }
  }

  async #replay({ rounds }: Program): Promise<void> {
    const scene = this.#scene;
    const load = this.#load;
    for (const [i, round] of rounds.entries()) {
      if (i > 0) load.start();
      scene.isQuiet = false;
      scene.recorder.begin(scene.now);
      load.replay(round.filter(isSent));
      this.#faults.replay(round.filter(isStrike));
      const endsAt = scene.now + (round.at(-1)?.at ?? 0);
      const isOver = (): boolean => scene.finding !== null || (scene.now >= endsAt && load.isReplayed);
      await scene.world.events.run(isOver, endsAt - scene.now + STEP_MS);
      if (scene.finding === null) await this.#settle();
      if (scene.finding !== null) return;
    }
  }

  /** What the target runs in stages in which it is the mirror. */
  #hearMirror(target: ServerHost): void {
    const { onCommand } = target;
    target.onStop = () => this.#load.mirrorEnded();
    target.onCommand = (address, args) => {
      if (args[0] === 'PUBLISH') this.#load.mirrored(args[2]);
      if (args[0] === 'RENAME' && args[1].startsWith(TEMPORARY)) this.#keysInChunks++;
      onCommand(address, args);
    };
  }

  get #fenceProblem(): string | null {
    return this.#fence?.problem ?? null;
  }

  /** No faults, no new commands: everything must come to rest, and both servers hold the same. */
  async #settle(): Promise<void> {
    const scene = this.#scene;
    const load = this.#load;
    const checks = this.#checks;
    scene.isQuiet = true;
    scene.say('no more faults');
    load.stop();
    this.#faults.end();
    let checkAt = scene.now + 1_000;
    const isWell = (): boolean => scene.seats.every((seat) => scene.troubledUntil(seat) < scene.now - 1_000);
    const isCalm = (): boolean => {
      if (scene.now <= checkAt || load.waiting.length > 0 || scene.isClockUnknown || !isWell()) return false;
      checkAt = scene.now + CHECK_MS;
      return checks.isClean && this.#fenceProblem === null && !scene.world.network.isSilent;
    };
    const isOver = await scene.world.events.run(() => scene.finding !== null || isCalm(), SETTLE_MS);
    if (scene.finding !== null) return;
    if (!isOver) {
      const [first] = load.waiting;
      if (first !== undefined)
        throw new Finding(
          `${load.waiting.length} commands have waited for a reply for ${SETTLE_MS / 1000} s: ${first.client}: ${first.args.join(' ')}`,
          first.keys.map((key) => partsOf(key).name),
        );
      if (this.#fenceProblem !== null) throw new Finding(`the fence is not lifted: ${this.#fenceProblem}`);
      throw new Finding(`the shard is not clean ${SETTLE_MS / 1000} s after the last fault: ${checks.status}`);
    }
    checks.atRest();
    this.#foreignKeys?.check();
    this.#otherShard?.check();
    const missed = scene.isFaultless ? load.missedMessage : null;
    if (missed !== null) throw new Finding(missed, [missed.split(' ').at(-1)!]);
    this.#cleanChecks++;
  }
}
