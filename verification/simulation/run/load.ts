/** The clients of a run: what they send, and what came of it. */
import { blocksMs, redirectedTo, wrongAnswer } from '../check/answers.js';
import { crossingProblem, namesOther } from '../check/crossing.js';
import { Histories } from '../check/histories.js';
import { MirroredMessages } from '../check/mirrored-messages.js';
import { secondWriterProblem } from '../check/second-writer.js';
import { Messages } from '../check/messages.js';
import { OwnEntries } from '../check/own-entries.js';
import { Transactions } from '../check/transactions.js';
import { Client, type Operation, type Session } from '../clients/client.js';
import { Commands } from '../clients/commands.js';
import type { Command } from '../clients/draw.js';
import { LIMITED, OTHER } from '../clients/kinds/sessions.js';
import { isError } from '../clients/replies.js';
import { Passerby } from '../clients/passerby.js';
import { Scanner } from '../clients/scanner.js';
import { Subscriber } from '../clients/subscriber.js';
import type { KeyName } from '../world/server-host.js';
import { partsOf } from '../world/key-name.js';
import type { Profile } from './profiles.js';
import { Replayed, type Sent } from './program.js';
import type { Scene } from './scene.js';

/** By how much the time at which a key expires may differ: on the other server it expires up to 50 ms later. */
const SLACK_MS = 3;
const MOVED_SLACK_MS = 150;
/** When a client has left, the proxy knows of it after so long at most, where connections are not silent. */
const LEFT_MS = 60;
/** Share of transactions of which a client sends a part first, and the rest when that is answered. */
const THINKING_SHARE = 0.1;
/** The client that queues more than all clients may together. */
const HOARDER = 'client 1';

/** Tags of the shard's keys in a cluster: of two slots, one of which has most keys. */
export const OWN_TAGS = ['{b}', '{b}', '{c}', '{b}'];
/** Those that clients use: some keys are another shard's. */
const TAGS = [...OWN_TAGS, '{d}'];

export class Load {
  readonly clients: Client[] = [];
  readonly subscribers: Subscriber[] = [];
  /** Replies that were errors, by code. */
  readonly errors = new Map<string, number>();
  /** How often each command was answered without an error. */
  readonly commands = new Map<string, number>();
  operations = 0;
  answered = 0;
  /** Commands whose connection ended before their reply. */
  lost = 0;
  readonly #commands: Commands;
  /** By followed group: commands that wait for their reply. */
  readonly #inFlight = new Map<KeyName, number>();
  #replayed: Replayed | null = null;
  #restsUntil = 0;
  readonly #scanner: Scanner | null = null;
  readonly #passerby: Passerby | null = null;
  readonly #histories: Histories;
  readonly #messages = new Messages();
  readonly #mirroredMessages = new MirroredMessages();
  /** By client: when it got its last reply on its connection. */
  readonly #lastAnswer = new Map<string, number>();
  /** Clients that have closed their side behind what they sent last. */
  readonly #finished = new Set<string>();
  /** Followed groups that take no new commands. */
  readonly #retired = new Set<KeyName>();
  readonly #transactions = new Transactions();
  readonly #ownEntries = new OwnEntries();
  /** By client: the number of the connection that it has sent on. */
  readonly #connections = new Map<string, number>();
  /** By client: what it sends next, on the same connection. */
  readonly #rests = new Map<string, { readonly connection: number; readonly commands: readonly Command[] }>();

  constructor(private readonly scene: Scene) {
    const { world, profile } = scene;
    const mayMove = profile.faults.stageChange !== undefined;
    this.#histories = new Histories(scene.source.unixMs - scene.now, {
      slackMs: mayMove ? MOVED_SLACK_MS : SLACK_MS,
      mayAbort: Object.keys(profile.faults).length > 0,
      leftMs: profile.endsAtLeave === true ? LEFT_MS : undefined,
    });
    const tags = profile.topology === 'clusters' ? TAGS : [];
    this.#commands = new Commands(world.random.fork(), profile.mix, profile.keys, () => scene.source.unixMs, tags);
    for (let i = 1; i <= profile.clients; i++) {
      const client = new Client(
        `client ${i}`,
        world.network,
        scene.address,
        world.random.fork(),
        profile.thinkMs,
        sessionOf(i, profile),
        {
          next: (each) => this.#next(each),
          sends: (each, commands) => this.#sends(each, commands),
          answered: (operation) => this.#answer(operation),
          lost: (operation) => this.#lose(operation),
          cutOff: (each) => this.#cutOff(each),
          broken: (each, problem) => scene.fail(`${each.name}: ${problem}`),
        },
        () => this.operations++,
      );
      this.clients.push(client);
    }
    this.#subscribe('subscriber 1', ['HELLO 3', 'SUBSCRIBE ch0', 'SUBSCRIBE ch1']);
    this.#subscribe('subscriber 2', ['PSUBSCRIBE ch*']);
    const { network } = world;
    if (profile.mix.publish !== undefined && profile.standbys === 0)
      this.#passerby = new Passerby(network, scene.address, world.random.fork());
    if (profile.scans === true)
      this.#scanner = new Scanner(
        network,
        scene.address,
        world.random.fork(),
        (problem) => scene.fail(problem),
        !mayMove && profile.isOfOtherShard === undefined,
      );
  }

  /** Calls whose history was checked. */
  get linearized(): number {
    return this.#histories.checked;
  }

  /** Histories with more possible orders than are searched. */
  get unsearched(): number {
    return this.#histories.unsearched;
  }

  get waiting(): readonly Operation[] {
    return this.clients.flatMap((client) => client.waiting);
  }

  start(): void {
    if (this.operations === 0) for (const subscriber of this.subscribers) subscriber.start();
    for (const client of this.clients) client.start();
    this.#scanner?.start();
    this.#passerby?.start();
  }

  /** Sends this, each at its time, or as soon as what came before it is answered. */
  replay(sent: readonly Sent[]): void {
    this.#replayed = new Replayed(sent, this.scene.now);
    for (const { at, client } of sent)
      this.scene.later(at, () => this.clients.find(({ name }) => name === client)?.go());
  }

  /** Whether all that is replayed was sent. */
  get isReplayed(): boolean {
    return this.#replayed?.isEmpty !== false;
  }

  /** Nothing is sent for so long. */
  rest(ms: number): void {
    this.#restsUntil = Math.max(this.#restsUntil, this.scene.now + ms);
    this.scene.later(ms, () => this.clients.forEach((client) => client.go()));
  }

  stop(): void {
    for (const client of this.clients) client.stop();
    this.#scanner?.stop();
    this.#passerby?.stop();
  }

  /** Messages that subscribers have got. */
  get messages(): number {
    return this.#messages.received;
  }

  /** A message that a subscriber should have got by now; null where there is none. */
  get missedMessage(): string | null {
    const unmirrored = this.scene.stage === 'off' ? null : this.#mirroredMessages.missed();
    if (unmirrored !== null) return `the mirror never got ${unmirrored}`;
    return this.#messages.missed('ch0', 'ch1');
  }

  /** A mirror was sent a message. */
  mirrored(text: string): void {
    this.#mirroredMessages.mirrored(text);
  }

  /** The mirror has ended. */
  mirrorEnded(): void {
    this.#mirroredMessages.ended();
  }

  /** Checks all histories: no command is on its way. */
  finishHistories(): void {
    for (const group of this.#histories.groups) {
      this.#commands.retire(group);
      this.#checkHistory(group);
    }
    this.#retired.clear();
  }

  #next(client: Client): readonly Command[] {
    const { scene } = this;
    if (scene.isQuiet || scene.now < this.#restsUntil) return [];
    const commands = this.#replayed === null ? this.#drawn(client) : this.#replayed.next(client.name, scene.now);
    if (commands.length > 0) scene.recorder.sent(scene.now, client.name, commands);
    this.#sends(client, commands);
    return commands;
  }

  #sends(client: Client, commands: readonly Command[]): void {
    const { scene } = this;
    // It may have left between two pipelines.
    if (this.#connections.get(client.name) !== client.connections) this.#transactions.forget(client.name);
    this.#connections.set(client.name, client.connections);
    this.#lastAnswer.delete(client.name);
    if (commands.at(-1)?.finishes === true) this.#finished.add(client.name);
    else this.#finished.delete(client.name);
    for (const command of commands) {
      const { args, keys } = command;
      for (const group of groupsOf(keys)) this.#inFlight.set(group, (this.#inFlight.get(group) ?? 0) + 1);
      this.#ownEntries.sent(client.name, client.connections, args);
      scene.emptied?.sent(command);
      if (args[0] === 'PUBLISH') this.#messages.sent(args[1], args[2], scene.now);
      scene.note(client.name, args);
    }
  }

  #subscribe(name: string, commands: readonly string[]): void {
    const { scene } = this;
    const { world } = scene;
    const messages = this.#messages;
    const subscriber = new Subscriber(name, world.network, scene.address, world.random.fork(), commands, {
      subscribed: () => messages.subscribed(name, scene.now),
      message: (channel, text) => {
        scene.note(`${name} got`, [text, 'on', channel]);
        const problem = messages.receive(name, channel, text);
        if (problem !== null) scene.fail(problem, [text]);
      },
      cutOff: () => {
        messages.cutOff(name);
        if (scene.isFaultless && !scene.isQuiet) scene.fail(`${name} was cut off`);
      },
      broken: (problem) => scene.fail(`${name}: ${problem}`),
    });
    this.subscribers.push(subscriber);
  }

  #drawn(client: Client): readonly Command[] {
    const { random, profile } = this.scene;
    const rest = this.#rests.get(client.name);
    this.#rests.delete(client.name);
    if (rest?.connection === client.connections) return rest.commands;
    this.#commands.draw.database = client.database;
    if (profile.hoards === true && client.name === HOARDER)
      return [this.#commands.hoard(this.#transactions.queuedBy(HOARDER))];
    if (random.chance(profile.sessionShare)) return this.#commands.session();
    const commands: Command[] = [];
    for (let i = 1 + random.below(profile.pipeline); i > 0 && commands.at(-1)?.finishes !== true; i--)
      commands.push(...this.#commands.next());
    return this.#firstOf(client, commands);
  }

  /** A client may think between MULTI and EXEC: what it sends first. */
  #firstOf(client: Client, commands: readonly Command[]): readonly Command[] {
    const { random } = this.scene;
    const begins = commands.findIndex(({ args }) => args[0] === 'MULTI');
    if (begins === -1 || !random.chance(THINKING_SHARE)) return commands;
    // A group of followed keys may be replaced meanwhile.
    if (commands.some(({ keys }) => groupsOf(keys).length > 0)) return commands;
    const ends = commands.findIndex(({ args }, i) => i > begins && (args[0] === 'EXEC' || args[0] === 'DISCARD'));
    const at = begins + 1 + random.below(ends - begins);
    this.#rests.set(client.name, { connection: client.connections, commands: commands.slice(at) });
    return commands.slice(0, at);
  }

  #answer(operation: Operation): void {
    const { scene } = this;
    this.answered++;
    this.#follow(operation);
    this.#landed(operation);
    const { client, args } = operation;
    const reply = operation.reply!;
    scene.emptied?.ended(args, reply);
    scene.note(`${client} got`, () => [JSON.stringify(reply), 'for', ...args]);
    if (isError(reply)) {
      const code = reply.slice(1).split(' ', 1)[0];
      this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
      if (code === 'NOPERM' && scene.profile.fenced === true)
        scene.fail(`${client}, which uses the proxy, was fenced out: ${reply}`, namesOf(operation.keys));
      const named = redirectedTo(reply);
      if (named !== null && named !== scene.address.host)
        scene.fail(`${client} was sent to a server: ${reply}`, namesOf(operation.keys));
    } else this.commands.set(args[0], (this.commands.get(args[0]) ?? 0) + 1);
    if (args[0] === 'DUMP') this.#commands.draw.dumped(reply);
    if (args[0] === 'CLIENT' && args[1] === 'ID') this.#commands.draw.identified(reply);
    if (args[0] === 'PUBLISH' && typeof reply === 'number') this.#messages.answered(args[2], scene.now);
    this.#notePublished(operation);
    const problem = this.#transactions.problem(client, args, reply) ?? this.#waitedWrongly(operation);
    if (problem !== null) scene.fail(`${client}: ${problem}`, namesOf(operation.keys));
  }

  /** Messages that the mirror is to get, too. */
  #notePublished({ args, reply, command: { queued = [] } }: Operation): void {
    for (const [at, each] of [args, ...queued].entries()) {
      const own = at === 0 ? reply : Array.isArray(reply) ? (reply as readonly unknown[])[at - 1] : null;
      if (each[0] === 'PUBLISH' && typeof own === 'number') this.#mirroredMessages.published(each[2]);
    }
  }

  /** Neither shorter than it asked for, nor longer than the profile's bound. */
  #waitedWrongly({ client, args, keys, command, invokedAt, answeredAt, reply = null }: Operation): string | null {
    const { profile } = this.scene;
    const last = this.#lastAnswer.get(client);
    const waitedMs = answeredAt! - (last ?? invokedAt);
    this.#lastAnswer.set(client, answeredAt!);
    if (command.inTransaction === true) return null;
    const { boundMs = Infinity, sessionShare } = profile;
    if (waitedMs > blocksMs(args) + boundMs)
      return `${args.join(' ')} got its reply after ${waitedMs.toFixed(0)} ms: ${JSON.stringify(reply)}`;
    const own = this.#ownEntries.problem(client, args, reply);
    if (own !== null) return own;
    if (profile.isApart !== undefined) {
      const problem = crossingProblem(args, keys, reply, profile.isApart);
      if (problem !== null) return problem;
    }
    const other = profile.isOfOtherShard === undefined ? null : namesOther(args, reply, profile.isOfOtherShard);
    if (other !== null) return `${args.join(' ')} named ${other}, a key of another shard`;
    if (profile.mix.secondWriter !== undefined) {
      const problem = secondWriterProblem(args, reply);
      if (problem !== null) return problem;
    }
    // CLIENT UNBLOCK is sent with a share of sessions only.
    return wrongAnswer(args, reply, sessionShare > 0 ? Infinity : waitedMs + (last === undefined ? 0 : this.#lateMs));
  }

  /** Behind another command, it began to wait when the reply to that was sent: so much before it arrived, at most. */
  get #lateMs(): number {
    const { faults, network } = this.scene.profile;
    if (faults.slowReader !== undefined || faults.silence !== undefined) return Infinity;
    return 2 * network.delayMs[1] + network.lateMs;
  }

  /** Where nothing strikes, the proxy ends no connection, but for its client with the most memory. */
  #cutOff({ name, waiting: [first] }: Client): void {
    this.#transactions.forget(name);
    const { isFaultless, isQuiet, profile } = this.scene;
    if (!isFaultless || isQuiet || profile.sessionShare > 0 || this.#finished.has(name)) return;
    if (profile.hoards === true && name === HOARDER) return;
    const from = first === undefined ? '' : ` from ${first.args.join(' ').slice(0, 80)}`;
    this.scene.fail(`${name} was cut off${from}`, [name, ...namesOf(first?.keys ?? [])]);
  }

  #lose(operation: Operation): void {
    const { scene } = this;
    scene.emptied?.ended(operation.args);
    if (operation.command.silent !== true) this.lost++;
    this.#transactions.forget(operation.client);
    this.#follow(operation);
    this.#landed(operation);
    scene.note(operation.client, [
      operation.command.silent === true ? 'gets no reply to' : 'was cut off from',
      ...operation.args,
    ]);
  }

  #landed({ keys }: Operation): void {
    for (const group of groupsOf(keys)) {
      const count = this.#inFlight.get(group)! - 1;
      if (count > 0) this.#inFlight.set(group, count);
      else {
        this.#inFlight.delete(group);
        if (this.#retired.delete(group)) this.#checkHistory(group);
      }
    }
  }

  #follow(operation: Operation): void {
    for (const group of groupsOf(operation.keys)) {
      if (!this.#histories.add(group, operation)) continue;
      this.#retired.add(group);
      this.#commands.retire(group);
    }
  }

  #checkHistory(group: KeyName): void {
    const wrong = this.#histories.finish(group);
    if (wrong === null) return;
    const calls = wrong.map(
      ({ client, args, queued = [], from, to, reply }) =>
        `${ms(from)} to ${ms(to)} ${client}: ${[args, ...queued].map((each) => each.join(' ')).join('; ')} → ${JSON.stringify(reply)}`,
    );
    const words = new Set(wrong.flatMap(({ args, queued = [] }) => [...args.slice(1), ...queued.flat()]));
    this.scene.fail(
      `the replies on ${group} are those of no order of its commands:\n  ${calls.join('\n  ')}`,
      [...words].filter((word) => word.includes(':')),
    );
  }
}

const namesOf = (keys: readonly KeyName[]): string[] => keys.map((key) => partsOf(key).name);

/** The followed groups of the keys. */
function groupsOf(keys: readonly KeyName[]): readonly KeyName[] {
  if (keys.length === 0) return keys;
  const first = partsOf(keys[0]).group;
  // All keys of a command on followed keys are of one group.
  return first === null ? [] : [first];
}

const ms = (at: number): string => (at % 1e8).toFixed(3);

const PLAIN: Session = { protocol: 2, database: 0, user: null };

/** Some of the clients use RESP3, another database, or a user that may not use every command. */
const sessionOf = (at: number, { clients, databases, oneLane, certain, faults, fenced }: Profile): Session =>
  oneLane === true
    ? PLAIN
    : {
        protocol: at % 3 === 0 ? 3 : 2,
        database:
          databases !== undefined ? databases[at % databases.length] : at === clients ? 2 : at === clients - 1 ? 1 : 0,
        user: at !== 2 ? null : certain === true || faults.hang !== undefined || fenced === true ? OTHER : LIMITED,
      };
