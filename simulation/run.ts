/** One run: a seed and a profile make a world with two servers, a shard, clients, faults and an operator. */
import { useWorld } from '../shadow-proxy/src/io/world.js';
import { STAGES } from '../shadow-proxy/src/route/stage.js';
import { Equality } from './check/equality.js';
import { Histories } from './check/histories.js';
import { wrongType } from './check/reply-types.js';
import { Timeline } from './check/timeline.js';
import { Client, type Operation } from './clients/client.js';
import { Commands } from './clients/commands.js';
import { isError } from './clients/replies.js';
import type { Fault, Profile } from './profiles.js';
import { WORLD } from './world/events.js';
import type { Connection } from './world/network.js';
import { Proxy } from './world/proxy.js';
import { ServerHost, type KeyName } from './world/server-host.js';
import { SimulatedWorld } from './world/world.js';

export interface RunOptions {
  readonly seed: number;
  readonly profile: Profile;
  /** Of clients. */
  readonly operations: number;
  readonly logLevel?: string;
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
  /** Commands that the models lack. */
  readonly lacking: readonly string[];
}

const SOURCE = { host: '10.0.0.2', port: 6379 };
const TARGET = { host: '10.0.0.3', port: 6379 };
const START_MS = 60_000;
/** The clients send a command at least each so many milliseconds. */
const STEP_MS = 100;
/** What the last fault has begun is over after so long. */
const SETTLE_MS = 180_000;
/** How long a command may run on after its client's connection has ended, beyond the longest silence. */
const GRACE_MS = 1_000;
/** At most once in so long. */
const LOOK_EACH_MS = 1;
/** A key that has differed for so long is a reason to look at the status. */
const LOOK_AFTER_MS = 3;
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

class Finding extends Error {
  constructor(
    message: string,
    readonly words: readonly string[] = [],
  ) {
    super(message);
  }
}

class Run {
  readonly #profile: Profile;
  readonly #world: SimulatedWorld;
  readonly #random;
  readonly #source: ServerHost;
  readonly #target: ServerHost;
  readonly #proxy: Proxy;
  readonly #equality: Equality;
  readonly #timeline = new Timeline();
  readonly #commands: Commands;
  readonly #clients: Client[] = [];
  readonly #struck = new Map<Fault, number>();
  readonly #stages = new Map<string, number>();
  readonly #errors = new Map<string, number>();
  /** By key: commands that wait for their reply. */
  readonly #inFlight = new Map<string, number>();
  /** By key: until when a command of a closed connection may still be run. */
  readonly #uncertainUntil = new Map<string, number>();
  readonly #histories = new Histories();
  /** Followed keys that take no new commands. */
  readonly #retired = new Set<string>();
  #finding: Finding | null = null;
  #operations = 0;
  #answered = 0;
  #lost = 0;
  #cleanChecks = 0;
  #isQuiet = false;
  #nextLook = 0;
  #stage: string;

  constructor(private readonly options: RunOptions) {
    const { seed, profile, logLevel } = options;
    this.#profile = profile;
    this.#world = new SimulatedWorld(seed, profile.network);
    this.#random = this.#world.random.fork();
    this.#source = new ServerHost(this.#world, 'redis', SOURCE);
    this.#target = new ServerHost(this.#world, 'keydb', TARGET);
    this.#equality = new Equality(this.#source, this.#target);
    this.#stage = profile.stage;
    const plan = { default: { stage: profile.stage }, ...profile.plan };
    const urls = { source: `redis://${SOURCE.host}:6379`, target: `redis://${TARGET.host}:6379` };
    this.#proxy = new Proxy(this.#world, this.#world.newHost('10.0.0.1'), { ...urls, plan }, logLevel);
    this.#proxy.onEnd = (problem) => {
      this.#note('!', [`the proxy ends: ${problem.message}`]);
      this.#restartProxy();
    };
    this.#commands = new Commands(this.#world.random.fork(), profile.mix, profile.keys);
    for (const [name, server] of [['source', this.#source] as const, ['target', this.#target] as const])
      server.onCommand = (address, args) => this.#note(`${name} ← ${address}`, args);
  }

  async run(): Promise<Result> {
    useWorld(this.#world);
    const { events } = this.#world;
    events.afterEach = () => this.#afterEvent();
    try {
      await this.#run();
    } catch (problem) {
      this.#finding ??= problem instanceof Finding ? problem : new Finding((problem as Error).stack!);
    }
    const finding = this.#finding;
    return {
      finding: finding?.message ?? null,
      timeline: this.#timeline.about(finding?.words ?? ['!'], 80),
      operations: this.#operations,
      answered: this.#answered,
      lost: this.#lost,
      errors: this.#errors,
      events: events.count,
      virtualMs: events.now,
      trace: events.trace,
      struck: this.#struck,
      stages: this.#stages,
      cleanChecks: this.#cleanChecks,
      linearized: this.#histories.checked,
      lacking: [...new Set([...this.#source.model.lacking, ...this.#target.model.lacking])],
    };
  }

  async #run(): Promise<void> {
    const { events } = this.#world;
    const { clients, thinkMs } = this.#profile;
    this.#proxy.start();
    if (!(await events.run(() => this.#proxy.launched !== null, START_MS)))
      throw new Finding(`the shard does not start: ${this.#proxy.problem?.message ?? 'nothing is left to happen'}`);
    this.#enter(this.#stage);
    for (let i = 1; i <= clients; i++) {
      const client = new Client(
        `client ${i}`,
        this.#world.network,
        this.#proxy.address,
        this.#world.random.fork(),
        thinkMs,
        {
          next: (each) => this.#next(each),
          answered: (operation) => this.#answer(operation),
          lost: (operation) => this.#lose(operation),
          broken: (each, problem) => this.#fail(`${each.name}: ${problem}`),
        },
        () => this.#operations++,
      );
      this.#clients.push(client);
      client.start();
    }
    this.#beginFaults();
    this.#acceptAuthorities();
    const { operations } = this.options;
    for (let round = 1; this.#finding === null; round++) {
      const until = Math.min(operations, round * ROUND);
      const isOver = (): boolean => this.#finding !== null || this.#operations >= until;
      if (!(await events.run(isOver, ROUND * STEP_MS)))
        throw new Finding(`after ${(ROUND * STEP_MS) / 1000} s, only ${this.#operations} commands were sent`);
      if (this.#finding === null) await this.#settle();
      if (until === operations) return;
      this.#isQuiet = false;
      this.#note('!', ['clients and faults go on']);
      for (const client of this.#clients) client.start();
    }
  }

  /** No faults, no new commands: everything must come to rest, and both servers hold the same. */
  async #settle(): Promise<void> {
    const { events } = this.#world;
    this.#isQuiet = true;
    this.#note('!', ['no more faults']);
    for (const client of this.#clients) client.stop();
    for (const server of [this.#source, this.#target]) server.start(true);
    if (this.#proxy.process === null) this.#proxy.start();
    const from = events.now + 1_000;
    const waits = (): readonly Operation[] => this.#clients.flatMap((client) => client.waiting);
    const isCalm = (): boolean => events.now > from && waits().length === 0 && this.#isClean();
    const isOver = await events.run(() => this.#finding !== null || isCalm(), SETTLE_MS);
    if (this.#finding !== null) return;
    if (!isOver) {
      const [first] = waits();
      if (first !== undefined)
        throw new Finding(
          `${waits().length} commands have waited for a reply for ${SETTLE_MS / 1000} s: ${first.client}: ${first.args.join(' ')}`,
          first.keys,
        );
      throw new Finding(`the shard is not clean ${SETTLE_MS / 1000} s after the last fault: ${this.#status()}`);
    }
    this.#equality.compareAll(events.now);
    for (const key of this.#equality.differing.keys()) this.#differs(key, 'at the end');
    for (const key of this.#histories.keys) {
      this.#commands.retire(key);
      this.#checkHistory(key);
    }
    this.#retired.clear();
    this.#noMismatch();
    this.#cleanChecks++;
  }

  // ── clients ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #next(client: Client): ReturnType<Commands['next']> {
    if (this.#isQuiet) return [];
    const commands = [];
    for (let i = 1 + this.#random.below(this.#profile.pipeline); i > 0; i--) commands.push(...this.#commands.next());
    for (const { args, keys } of commands) {
      for (const key of keys) this.#inFlight.set(key, (this.#inFlight.get(key) ?? 0) + 1);
      this.#note(client.name, args);
    }
    return commands;
  }

  #answer(operation: Operation): void {
    this.#answered++;
    this.#follow(operation);
    this.#landed(operation);
    const { client, args } = operation;
    const reply = operation.reply!;
    this.#note(`${client} got`, [JSON.stringify(reply), 'for', ...args]);
    if (isError(reply)) {
      const code = reply.slice(1).split(' ', 1)[0];
      this.#errors.set(code, (this.#errors.get(code) ?? 0) + 1);
    }
    const queued = this.#isQueued(operation);
    const problem = wrongType(args, reply, queued);
    if (problem !== null) this.#fail(`${client}: ${problem}`, operation.keys);
  }

  /** Replies of one connection come in order: what was answered last was MULTI, or a command behind it. */
  readonly #inTransaction = new Set<string>();

  #isQueued({ client, args, reply }: Operation): boolean {
    const open = this.#inTransaction;
    if (args[0] === 'MULTI') {
      if (!isError(reply!)) open.add(client);
      return false;
    }
    if (args[0] === 'EXEC' || args[0] === 'DISCARD') {
      open.delete(client);
      return false;
    }
    return open.has(client);
  }

  #lose(operation: Operation): void {
    this.#lost++;
    this.#inTransaction.delete(operation.client);
    this.#follow(operation);
    this.#landed(operation);
    const { silenceMs = 0, pauseMs = 0 } = this.#profile.faults;
    const until = this.#world.events.now + GRACE_MS + Math.max(silenceMs, pauseMs);
    for (const key of operation.keys) this.#uncertainUntil.set(key, until);
    this.#note(operation.client, ['was cut off from', ...operation.args]);
  }

  #landed({ keys }: Operation): void {
    for (const key of keys) {
      const count = this.#inFlight.get(key)! - 1;
      if (count > 0) this.#inFlight.set(key, count);
      else {
        this.#inFlight.delete(key);
        if (this.#retired.delete(key)) this.#checkHistory(key);
      }
    }
  }

  #follow(operation: Operation): void {
    const [key] = operation.keys;
    if (operation.keys.length !== 1) return;
    const { client, args, invokedAt: from, answeredAt, reply } = operation;
    if (!this.#histories.add(key, { client, args, from }, answeredAt, reply)) return;
    this.#retired.add(key);
    this.#commands.retire(key);
  }

  #checkHistory(key: string): void {
    const wrong = this.#histories.finish(key);
    if (wrong === null) return;
    const calls = wrong.map(
      ({ client, args, from, to, reply }) =>
        `${from.toFixed(3)} to ${to.toFixed(3)} ${client}: ${args.join(' ')} → ${JSON.stringify(reply)}`,
    );
    this.#fail(`the replies on ${key} are those of no order of its commands:\n  ${calls.join('\n  ')}`, [key]);
  }

  // ── checks ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #afterEvent(): void {
    const { now } = this.#world.events;
    this.#equality.update(now);
    if (now < this.#nextLook) return;
    for (const [key, since] of this.#equality.differing) {
      if (now - since < LOOK_AFTER_MS || this.#isUncertain(key)) continue;
      this.#look();
      return;
    }
  }

  /** A key differs, and no client's command may be the reason: the status must say that something is left to do. */
  #look(): void {
    this.#nextLook = this.#world.events.now + LOOK_EACH_MS;
    this.#noMismatch();
    if (!this.#isClean()) return;
    for (const key of this.#equality.differing.keys()) this.#differs(key, 'while the status is clean');
  }

  #noMismatch(): void {
    const snapshot = this.#proxy.snapshot();
    if (snapshot === null || Object.keys(snapshot.mismatches).length === 0) return;
    const latest = JSON.stringify(this.#proxy.launched!.ledger.latest().slice(-2));
    this.#fail(`a mismatch is reported that does not exist: ${latest}`);
  }

  #differs(key: KeyName, when: string): void {
    if (this.#isUncertain(key) || this.#equality.compare(key, this.#world.events.now)) return;
    this.#fail(`a key differs ${when}: ${this.#equality.show(key)}`, [nameOf(key)]);
  }

  /** Whether a command on the key is on its way, or may still be run although its client is cut off. */
  #isUncertain(key: KeyName): boolean {
    const name = nameOf(key);
    return this.#inFlight.has(name) || (this.#uncertainUntil.get(name) ?? 0) > this.#world.events.now;
  }

  #isClean(): boolean {
    const snapshot = this.#proxy.snapshot();
    if (snapshot === null) return false;
    const { workloads, suspects, mirror, undecided } = snapshot;
    return (
      suspects.total === 0 && undecided === 0 && mirror.queuedEffects === 0 && workloads.every(({ clean }) => clean)
    );
  }

  #status(): string {
    const snapshot = this.#proxy.snapshot();
    if (snapshot === null) return `the proxy does not run: ${this.#proxy.problem?.message}`;
    const { workloads, suspects, mirror, undecided, frozen, source, target } = snapshot;
    return JSON.stringify({
      suspects,
      mirror,
      undecided,
      frozen,
      source: source.problem,
      target: target.problem,
      workloads: workloads.map(({ clean, suspect, stage }) => ({ clean, suspect, stage })),
    });
  }

  #fail(message: string, words: readonly string[] = []): void {
    if (this.#finding !== null) return;
    this.#note('!', [message]);
    this.#finding = new Finding(message, words);
  }

  #note(who: string, what: readonly string[]): void {
    this.#timeline.add(this.#world.events.now, who, what);
  }

  // ── faults and operator ───────────────────────────────────────────────────────────────────────────────────────────

  #beginFaults(): void {
    const { faults } = this.#profile;
    const strikes: Readonly<Record<Fault, () => string | null>> = {
      cut: () => this.#cut(),
      silence: () => this.#silence(),
      leave: () => this.#leave(),
      slowReader: () => this.#readSlowly(),
      pause: () => this.#pause(),
      serverRestart: () => this.#restartServer(),
      proxyKill: () => this.#killProxy(),
      stageChange: () => this.#changeStage(),
      verify: () => this.#verify(),
    };
    for (const [fault, strike] of Object.entries(strikes) as [Fault, () => string | null][]) {
      const meanMs = faults[fault];
      if (meanMs !== undefined) this.#repeat(fault, meanMs, strike);
    }
  }

  #repeat(fault: Fault, meanMs: number, strike: () => string | null): void {
    this.#world.events.after(-Math.log(1 - this.#random.share()) * meanMs, WORLD, () => {
      const what = this.#isQuiet ? null : strike();
      if (what !== null) {
        this.#struck.set(fault, (this.#struck.get(fault) ?? 0) + 1);
        this.#note('!', [what]);
      }
      this.#repeat(fault, meanMs, strike);
    });
  }

  /** While the proxy starts, few connections are struck: nothing else would ever happen. */
  #pickConnection(): { readonly name: string; readonly connection: Connection } | null {
    const { connections } = this.#world.network;
    if (connections.size === 0 || (this.#proxy.launched === null && this.#random.chance(0.9))) return null;
    const connection = this.#random.pick([...connections]);
    const { from, to } = connection;
    return { connection, name: `${from.host}:${from.port} → ${to.host}:${to.port}` };
  }

  #cut(): string | null {
    const found = this.#pickConnection();
    found?.connection.cut();
    return found && `cut ${found.name}`;
  }

  #silence(): string | null {
    const found = this.#pickConnection();
    if (found === null) return null;
    const ms = this.#random.between(1, this.#profile.faults.silenceMs ?? 100);
    const end = this.#random.pick([found.connection.near, found.connection.far]);
    end.silence(ms);
    return `nothing arrives at ${end.local.host}:${end.local.port} of ${found.name} for ${ms.toFixed(0)} ms`;
  }

  #leave(): string {
    const client = this.#random.pick(this.#clients);
    client.leave(this.#random.chance(0.5));
    return `${client.name} closes its connection`;
  }

  #readSlowly(): string {
    const client = this.#random.pick(this.#clients);
    client.readLate(this.#random.between(10, 500));
    return `${client.name} does not read`;
  }

  #pickServer(): { readonly name: string; readonly server: ServerHost } {
    return this.#random.chance(0.5)
      ? { name: 'source', server: this.#source }
      : { name: 'target', server: this.#target };
  }

  #pause(): string {
    const { name, server } = this.#pickServer();
    const ms = this.#random.between(1, this.#profile.faults.pauseMs ?? 100);
    server.pause(ms);
    return `the ${name} is stopped for ${ms.toFixed(0)} ms`;
  }

  #restartServer(): string | null {
    const { name, server } = this.#pickServer();
    if (!server.isUp) return null;
    server.stop();
    this.#world.events.after(this.#random.between(1, 1_500), WORLD, () => {
      if (server.isUp) return;
      server.start(true);
      this.#note('!', [`the ${name} has started`]);
    });
    return `the ${name} ends`;
  }

  #killProxy(): string | null {
    if (this.#proxy.launched === null) return null;
    this.#proxy.kill();
    this.#restartProxy();
    return 'the proxy is killed';
  }

  /** As a supervisor does. */
  #restartProxy(): void {
    this.#world.events.after(this.#random.between(1, 300), WORLD, () => {
      if (this.#proxy.process === null) this.#proxy.start();
      this.#note('!', ['the proxy starts']);
    });
  }

  #changeStage(): string | null {
    const at = STAGES.indexOf(this.#stage as (typeof STAGES)[number]);
    const stage = STAGES[this.#random.chance(0.5) ? at + 1 : at - 1];
    if (stage === 'off' || stage === 'complete') return null;
    this.#proxy.within(({ shard }) => {
      shard.changeStage({ workload: 'default', stage }).then(
        () => this.#enter(stage),
        (problem: Error) => this.#note('!', [`${stage} is refused: ${problem.message}`]),
      );
    });
    return `the operator asks for ${stage}`;
  }

  #verify(): string {
    this.#proxy.within(({ shard }) => {
      try {
        shard.startJob({ kind: 'verify', workloads: ['default'], repair: false } as Parameters<
          typeof shard.startJob
        >[0]);
      } catch (problem) {
        this.#note('!', [`the verification is refused: ${(problem as Error).message}`]);
      }
    });
    return 'the operator asks for a verification';
  }

  /** The operator accepts an authority that has started again: it has its data. */
  #acceptAuthorities(): void {
    this.#world.events.after(this.#random.between(100, 2_000), WORLD, () => {
      if (this.#proxy.snapshot()?.frozen)
        this.#proxy.within(({ shard }) => {
          shard.acceptAuthority(null).then(
            (sides) => this.#note('!', [`the operator accepts ${sides.join(', ')}`]),
            (problem: Error) => this.#note('!', [`the operator may not accept the authority: ${problem.message}`]),
          );
        });
      this.#acceptAuthorities();
    });
  }

  #enter(stage: string): void {
    this.#stage = stage;
    this.#stages.set(stage, (this.#stages.get(stage) ?? 0) + 1);
    this.#note('!', [`the stage is ${stage}`]);
  }
}

const nameOf = (key: KeyName): string => key.slice(key.indexOf(' ') + 1);
