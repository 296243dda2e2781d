/** The clients of a run: what they send, and what came of it. */
import { Histories } from '../check/histories.js';
import { wrongType, wrongTypesOfExec } from '../check/reply-types.js';
import { Client, type Operation } from '../clients/client.js';
import { Commands } from '../clients/commands.js';
import type { Command } from '../clients/draw.js';
import { isError } from '../clients/replies.js';
import type { KeyName } from '../world/server-host.js';
import { WORLD } from '../world/events.js';
import { Replayed, type Sent } from './program.js';
import type { Scene } from './scene.js';

export class Load {
  readonly clients: Client[] = [];
  /** Replies that were errors, by code. */
  readonly errors = new Map<string, number>();
  operations = 0;
  answered = 0;
  /** Commands whose connection ended before their reply. */
  lost = 0;
  readonly #commands: Commands;
  /** By key: commands that wait for their reply. */
  readonly #inFlight = new Map<KeyName, number>();
  #replayed: Replayed | null = null;
  readonly #histories = new Histories();
  /** Followed keys that take no new commands. */
  readonly #retired = new Set<KeyName>();
  /** By client between MULTI and EXEC: what was queued. Replies of one connection come in order. */
  readonly #queued = new Map<string, (readonly string[])[]>();

  constructor(private readonly scene: Scene) {
    const { world, profile, proxy } = scene;
    this.#commands = new Commands(world.random.fork(), profile.mix, profile.keys, () => scene.source.unixMs);
    for (let i = 1; i <= profile.clients; i++) {
      const client = new Client(
        `client ${i}`,
        world.network,
        proxy.address,
        world.random.fork(),
        profile.thinkMs,
        {
          next: (each) => this.#next(each),
          answered: (operation) => this.#answer(operation),
          lost: (operation) => this.#lose(operation),
          broken: (each, problem) => scene.fail(`${each.name}: ${problem}`),
        },
        () => this.operations++,
      );
      this.clients.push(client);
    }
  }

  /** Calls whose history was checked. */
  get linearized(): number {
    return this.#histories.checked;
  }

  get waiting(): readonly Operation[] {
    return this.clients.flatMap((client) => client.waiting);
  }

  start(): void {
    for (const client of this.clients) client.start();
  }

  /** Sends this, each at its time, or as soon as what came before it is answered. */
  replay(sent: readonly Sent[]): void {
    const { world } = this.scene;
    this.#replayed = new Replayed(sent, this.scene.now);
    for (const { at, client } of sent)
      world.events.after(at, WORLD, () => this.clients.find(({ name }) => name === client)?.go());
  }

  /** Whether all that is replayed was sent. */
  get isReplayed(): boolean {
    return this.#replayed?.isEmpty !== false;
  }

  stop(): void {
    for (const client of this.clients) client.stop();
  }

  /** Checks all histories: no command is on its way. */
  finishHistories(): void {
    for (const key of this.#histories.keys) {
      this.#commands.retire(key);
      this.#checkHistory(key);
    }
    this.#retired.clear();
  }

  #next(client: Client): readonly Command[] {
    const { scene } = this;
    if (scene.isQuiet) return [];
    const commands = this.#replayed === null ? this.#drawn() : this.#replayed.next(client.name, scene.now);
    if (commands.length > 0) scene.recorder.sent(scene.now, client.name, commands);
    for (const { args, keys } of commands) {
      for (const key of keys) this.#inFlight.set(key, (this.#inFlight.get(key) ?? 0) + 1);
      scene.note(client.name, args);
    }
    return commands;
  }

  #drawn(): readonly Command[] {
    const { random, profile } = this.scene;
    const commands: Command[] = [];
    for (let i = 1 + random.below(profile.pipeline); i > 0; i--) commands.push(...this.#commands.next());
    return commands;
  }

  #answer(operation: Operation): void {
    const { scene } = this;
    this.answered++;
    this.#follow(operation);
    this.#landed(operation);
    const { client, args } = operation;
    const reply = operation.reply!;
    scene.note(`${client} got`, [JSON.stringify(reply), 'for', ...args]);
    if (isError(reply)) {
      const code = reply.slice(1).split(' ', 1)[0];
      this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
    }
    if (args[0] === 'DUMP') this.#commands.draw.dumped(reply);
    const problem = this.#wrongReply(operation);
    if (problem !== null) scene.fail(`${client}: ${problem}`, namesOf(operation.keys));
  }

  #wrongReply({ client, args, reply = null }: Operation): string | null {
    const [name] = args;
    const queued = this.#queued.get(client);
    if (name === 'MULTI' && !isError(reply)) this.#queued.set(client, []);
    if (queued === undefined || name === 'MULTI') return wrongType(args, reply);
    if (name === 'EXEC' || name === 'DISCARD') {
      this.#queued.delete(client);
      return wrongType(args, reply) ?? wrongTypesOfExec(queued, reply);
    }
    if (reply === '+QUEUED') {
      queued.push(args);
      return null;
    }
    return isError(reply) ? null : `${args.join(' ')} in a transaction got ${JSON.stringify(reply)}`;
  }

  #lose(operation: Operation): void {
    const { scene } = this;
    this.lost++;
    this.#queued.delete(operation.client);
    this.#follow(operation);
    this.#landed(operation);
    scene.note(operation.client, ['was cut off from', ...operation.args]);
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

  #checkHistory(key: KeyName): void {
    const wrong = this.#histories.finish(key);
    if (wrong === null) return;
    const calls = wrong.map(
      ({ client, args, from, to, reply }) =>
        `${from.toFixed(3)} to ${to.toFixed(3)} ${client}: ${args.join(' ')} → ${JSON.stringify(reply)}`,
    );
    this.scene.fail(
      `the replies on ${key} are those of no order of its commands:\n  ${calls.join('\n  ')}`,
      namesOf([key]),
    );
  }
}

const namesOf = (keys: readonly KeyName[]): string[] => keys.map((key) => key.slice(key.indexOf(' ') + 1));
