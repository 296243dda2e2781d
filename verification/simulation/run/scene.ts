/** What a run is made of: a world with two servers and a proxy, the timeline, and what was found to be wrong. */
import type { Stage } from '../../../shadow-proxy/src/route/stage.js';
import type { Command } from '../clients/draw.js';
import { GUEST, GUEST_RULES } from '../clients/guest.js';
import { LONG, SCRIPTS } from '../clients/kinds/scripts.js';
import { KIT, KIT_RULES, LIMITED, LIMITED_RULES, OTHER, OTHER_RULES } from '../clients/kinds/sessions.js';
import type { Reply } from '../clients/replies.js';
import type { Pace } from '../check/job-pace.js';
import { isForbidden } from '../check/forbidden.js';
import { Timeline } from '../check/timeline.js';
import { USED_BYTES } from '../server/info.js';
import type { Random } from '../world/random.js';
import { WORLD } from '../world/events.js';
import { Proxy, PROXY_PORT } from '../world/proxy.js';
import type { NetworkOptions } from '../world/network.js';
import { Cluster, CLUSTER_MODE } from '../world/cluster.js';
import { Group } from '../world/group.js';
import { Sentinel } from '../world/sentinel.js';
import { ServerHost } from '../world/server-host.js';
import { SimulatedWorld } from '../world/world.js';
import type { Profile } from './profiles.js';
import { Recorder } from './program.js';

const SOURCE = { host: '10.0.0.2', port: 6379 };
const TARGET = { host: '10.0.0.3', port: 6379 };
const REPLICAS = { source: { host: '10.0.0.4', port: 6379 }, target: { host: '10.0.0.5', port: 6379 } };
const SENTINELS = ['10.0.0.21', '10.0.0.22', '10.0.0.23'];
const NEIGHBOURS = { source: { host: '10.0.0.6', port: 6379 }, target: { host: '10.0.0.7', port: 6379 } };
/** Within so long each Sentinel, or each node, knows of a failover. */
const LEARNED_MS = 800;

/** Faults that clients do not notice: they leave by themselves, and no client depends on the mirror. */
const HARMLESS: ReadonlySet<string> = new Set(['leave', 'outage']);

/** What is over for so long has no consequences for a lease. */
const TROUBLE_MS = 2_000;

const NO_UNBLOCK = "NOPERM this user has no permissions to run the 'client|unblock' command";

/** Within so long the proxy has looked at the clock of each server. */
const CLOCK_KNOWN_MS = 2_500;
/** The mismatches that commands show on keys which one server lacks, or has for another time. */
export const OF_DIFFERING_KEYS = ['missing-on-authority', 'missing-on-mirror', 'value', 'type', 'length', 'error'];

export class Finding extends Error {
  constructor(
    message: string,
    /** Words of the lines of the timeline that belong to it. */
    readonly words: readonly string[] = [],
  ) {
    super(message);
  }
}

/** Watches what becomes of keys that an authority has lost. */
export interface LossWatch {
  /** From the end of the authority until it is trusted again, or left. */
  readonly isLost: boolean;
  /** The authority ends, and starts without its keys. */
  begin(): void;
  /** A client sends the command. */
  sent(command: Command): void;
  /** It is answered. @param reply absent if the connection was lost before */
  ended(args: readonly string[], reply?: Reply): void;
  /** The operator has restored what the mirror has. */
  restored(): void;
  /** The operator is about to accept what the authority has. */
  accepting(): void;
  /** The authority is trusted again, or another is the authority. */
  end(): void;
}

export class Scene {
  readonly world: SimulatedWorld;
  readonly random: Random;
  readonly source: ServerHost;
  readonly target: ServerHost;
  /** Both servers with their replicas; empty where they have none. */
  readonly groups: readonly Group[];
  readonly #sentinels: readonly Sentinel[];
  readonly clusters: readonly Cluster[];
  /** Those that may serve the shard: the first, and its standbys. */
  readonly seats: readonly Proxy[];
  /** Clients connect to whichever serves. */
  readonly address: { readonly host: string; readonly port: number };
  /** Called as soon as one of them serves. */
  onServe: (seat: Proxy) => void = () => undefined;
  /** Called as soon as one has ended by itself. */
  onEnd: (seat: Proxy, problem: Error) => void = () => undefined;
  /** Called when the one that serves has ended by what was done to it. */
  onVacant: (seat: Proxy, mayLastMs: number) => void = () => undefined;
  #troubleUntil = 0;
  #clockSetAt = -Infinity;
  readonly #troubledUntil = new Map<Proxy, number>();
  #serving: Proxy;
  readonly timeline = new Timeline();
  /** No faults strike, and clients send no new commands. */
  isQuiet = false;
  /** Kinds of mismatches that exist: commands that only one server has, and what faults have made. */
  readonly trueMismatches: Set<string>;
  readonly recorder = new Recorder();
  /** What has happened to the proxy's disk, or to its machine, since the last process began; null where nothing has. */
  damage: string | null = null;
  /** When the operator last asked that a paused job goes on. */
  resumedAt = -Infinity;
  /** What the operator allows the last job that was started. */
  pace: Pace = {};
  /** Whether the operator has raised the fence by hand; `unknown` until an answer comes. */
  handFence: 'applied' | 'unknown' | null = null;
  #tightSince: number | null = null;
  /** How often its disk has refused something, or was damaged. */
  damages = 0;
  /** The first. */
  finding: Finding | null = null;
  /** Null where no authority loses keys. */
  emptied: LossWatch | null = null;
  /** Until then a call of the disk may take longer than a repair may. */
  slowDiskUntil = -Infinity;

  constructor(
    seed: number,
    readonly profile: Profile,
    readonly network: NetworkOptions,
    logLevel?: string,
  ) {
    this.trueMismatches = new Set(profile.mix.ofRedisOnly === undefined ? [] : ['unsupported']);
    this.world = new SimulatedWorld(seed, network);
    this.random = this.world.random.fork();
    // Clients whose users may not use every key are not moved by themselves.
    const users = {
      ...(profile.faults.hang === undefined && { [LIMITED.name]: LIMITED_RULES }),
      [OTHER.name]: OTHER_RULES,
      ...(profile.fenced === true && { [GUEST.name]: GUEST_RULES }),
    };
    const ofSource = { ...users, ...(profile.fenced === true && { [KIT.name]: KIT_RULES }) };
    const config = profile.topology === 'clusters' ? CLUSTER_MODE : {};
    this.source = new ServerHost(this.world, 'redis', SOURCE, { users: ofSource, config });
    this.target = new ServerHost(this.world, 'keydb', TARGET, { users, config });
    this.groups =
      profile.topology === undefined
        ? []
        : [
            new Group(this.world, 'source', this.source, REPLICAS.source, { users: ofSource, config }),
            new Group(this.world, 'target', this.target, REPLICAS.target, { users, config }),
          ];
    this.#sentinels = profile.topology === 'sentinels' ? SENTINELS.map((host) => new Sentinel(this.world, host)) : [];
    for (const { name, master } of this.groups)
      for (const { masters } of this.#sentinels) masters.set(name, master.address);
    this.clusters =
      profile.topology === 'clusters'
        ? this.groups.map((group) => new Cluster(this.world, group, NEIGHBOURS[group.name], (what) => this.say(what)))
        : [];
    const servers = [this.source, this.target, ...this.groups.map(({ replica }) => replica)];
    for (const { model } of servers)
      for (const [text, script] of Object.entries(SCRIPTS)) model.addScript(text, script);
    if (profile.endsAtLeave === true && this.random.chance(0.5))
      for (const { model } of [this.source, this.target])
        model.refuse((_, name) => (name === 'client|unblock' ? NO_UNBLOCK : null));
    // Less than after which a server says that it is BUSY.
    if (profile.mix.longScripts !== undefined)
      for (const server of [this.source, this.target])
        server.worksOn = (bytes) => (bytes.includes(LONG) ? this.random.between(500, 4_000) : 0);
    for (const { model } of servers) model.memoryFactor = profile.memoryFactor ?? 1;
    if (profile.bounded === true) {
      this.setRoom(false);
      this.target.model.evicted = 3;
    }
    const plan = { default: { stage: profile.stage }, ...profile.plan };
    const login = profile.fenced === true ? `${KIT.name}:${KIT.password}@` : '';
    const byName = this.#sentinels.map(({ label }) => label).join(',');
    const urls =
      this.#sentinels.length > 0
        ? { source: `redis+sentinel://${login}${byName}/source`, target: `redis+sentinel://${byName}/target` }
        : { source: `redis://${login}${SOURCE.host}:6379`, target: `redis://${TARGET.host}:6379` };
    this.seats = Array.from({ length: 1 + profile.standbys }, (_, i) => {
      const host = this.world.newHost(i === 0 ? '10.0.0.1' : `10.0.0.${10 + i}`);
      const { standbys: others, announced: isSentinel } = profile;
      const seat = new Proxy(this.world, host, { ...urls, plan, isStandby: i > 0, others, isSentinel }, logLevel);
      seat.onServe = () => {
        this.#serving = seat;
        this.onServe(seat);
      };
      return seat;
    });
    [this.#serving] = this.seats;
    const { clocksOffMs } = profile;
    if (clocksOffMs > 0)
      for (const machine of this.machines) machine.clockAheadMs = this.random.between(-clocksOffMs, clocksOffMs);
    const serving = (): Proxy => this.#serving;
    this.address = {
      get host() {
        return serving().address.host;
      },
      port: PROXY_PORT,
    };
    for (const [name, server] of [['source', this.source] as const, ['target', this.target] as const])
      server.onCommand = (address, args) => {
        this.note(`${name} ← ${address}`, args);
        if (args[0].toLowerCase() === 'get') this.gets[name]++;
        if (isForbidden(args)) this.fail(`the ${name} was sent ${args.join(' ')}`);
      };
    for (const { name, replica } of this.groups)
      replica.onCommand = (address, args) => this.note(`replica of the ${name} ← ${address}`, args);
  }

  /** How many times each server was sent GET. */
  readonly gets = { source: 0, target: 0 };

  /** The one that serves, or was the last that did. */
  get proxy(): Proxy {
    return this.#serving;
  }

  /** That of the workload `default`; null where the proxy does not run. */
  get stage(): Stage | null {
    return this.proxy.parts?.router.default.position.stage ?? null;
  }

  /** Whether nothing strikes but what clients do themselves. */
  get isFaultless(): boolean {
    return Object.keys(this.profile.faults).every((fault) => HARMLESS.has(fault));
  }

  /** Whether all keys of a workload are suspects. */
  get isSuspect(): boolean {
    return (this.proxy.parts?.suspects.workloads.count ?? 0) > 0;
  }

  /** The server that clients do not depend on; null where both have a share of the keys, or the proxy does not run. */
  get mirror(): { readonly name: string; readonly server: ServerHost } | null {
    const { stage } = this;
    if (stage === 'dualwrite' || stage === 'shadow') return { name: 'target', server: this.target };
    const isWhole = stage === 'live' && this.proxy.parts?.router.default.position.percent === 100;
    return stage === 'rampdown' || isWhole ? { name: 'source', server: this.source } : null;
  }

  /** The server whose mirror `mirror` is; null where that is. */
  get authority(): { readonly name: string; readonly server: ServerHost } | null {
    const { mirror, source, target } = this;
    if (mirror === null) return null;
    return mirror.server === target ? { name: 'source', server: source } : { name: 'target', server: target };
  }

  /** For how long the target has had no room for all keys; 0 where it has. */
  get tightMs(): number {
    return this.#tightSince === null ? 0 : Math.max(Number.MIN_VALUE, this.now - this.#tightSince);
  }

  get now(): number {
    return this.world.events.now;
  }

  /** All that have a clock of their own. */
  get machines(): readonly { clockAheadMs: number }[] {
    return [this.source, this.target, ...this.seats.map(({ host }) => host)];
  }

  /** The target has room for all keys, or not quite: what it uses is within its bound, but what a copy needs is not. */
  setRoom(isTight: boolean): void {
    this.#tightSince = isTight ? this.now : null;
    this.target.model.config.set('maxmemory', String(USED_BYTES * (isTight ? 1.01 : 1.1)));
  }

  /** A clock was set: TTLs end at other moments, and the proxy has yet to find that out. */
  clockWasSet(): void {
    this.#clockSetAt = this.now;
    for (const kind of OF_DIFFERING_KEYS) this.trueMismatches.add(kind);
  }

  /** Whether the proxy may not know yet that a clock was set. */
  get isClockUnknown(): boolean {
    return this.now < this.#clockSetAt + CLOCK_KNOWN_MS;
  }

  nameOf(seat: Proxy): string {
    return this.seats.length === 1 ? 'the proxy' : `proxy ${this.seats.indexOf(seat) + 1}`;
  }

  /** Two troubles at once may be too much for a lease: whether another may begin that lasts so long. */
  mayTrouble(ms: number): boolean {
    if (!this.profile.holderStays) return true;
    if (this.#troubleUntil > this.now) return false;
    this.#troubleUntil = this.now + ms + TROUBLE_MS;
    return true;
  }

  /** Something is wrong with it for so long. */
  troubled(seat: Proxy, ms: number): void {
    this.#troubledUntil.set(seat, Math.max(this.troubledUntil(seat), this.now + ms));
  }

  troubledUntil(seat: Proxy): number {
    return this.#troubledUntil.get(seat) ?? 0;
  }

  /** The group has another master: others learn it one after the other, and never of an older one. */
  failedOver(group: Group): void {
    this.say(`the ${group.name} is at ${group.master.address.host}`);
    for (const { masters } of this.#sentinels)
      this.later(this.random.between(0, LEARNED_MS), () => masters.set(group.name, group.master.address));
    this.clusters.find((cluster) => cluster.group === group)?.changed(this.random.between(0, LEARNED_MS));
  }

  /** It has found that it had lost its lease: the one that has it may serve for a while by then. */
  ended(seat: Proxy): void {
    if (seat === this.#serving) this.#serving = this.seats.find(({ launched, answers }) => launched && answers) ?? seat;
  }

  /** As a supervisor does. */
  startLater(seat: Proxy): void {
    this.later(this.random.between(1, this.profile.restartMs), () => {
      // A process that starts then would have shards without a slot that has left: another process would serve it.
      for (const cluster of this.clusters) cluster.settle();
      if (seat.process === null) seat.start();
      this.say(`${this.nameOf(seat)} starts`);
    });
  }

  /** Runs it after so many milliseconds. */
  later(ms: number, run: () => void): void {
    this.world.events.after(ms, WORLD, run);
  }

  note(who: string, what: Parameters<Timeline['add']>[2]): void {
    this.timeline.add(this.now, who, what);
  }

  /** A line of the timeline that is none of a client's or a server's. */
  say(what: string): void {
    this.note('!', [what]);
  }

  fail(message: string, words: readonly string[] = []): void {
    if (this.finding !== null) return;
    this.say(message);
    this.finding = new Finding(message, words);
  }
}
