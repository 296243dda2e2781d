/** The clients of a run: what they send, and what came of it. */
import { Histories } from '../check/histories.js';
import { wrongType } from '../check/reply-types.js';
import { Client, type Operation } from '../clients/client.js';
import { Commands } from '../clients/commands.js';
import { isError } from '../clients/replies.js';
import type { Scene } from './scene.js';

/** How long a command may run on after its client's connection has ended, beyond the longest silence. */
const GRACE_MS = 1_000;

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
  readonly #inFlight = new Map<string, number>();
  /** By key: until when a command of a closed connection may still be run. */
  readonly #uncertainUntil = new Map<string, number>();
  readonly #histories = new Histories();
  /** Followed keys that take no new commands. */
  readonly #retired = new Set<string>();
  /** Clients that are between MULTI and EXEC: replies of one connection come in order. */
  readonly #inTransaction = new Set<string>();

  constructor(private readonly scene: Scene) {
    const { world, profile, proxy } = scene;
    this.#commands = new Commands(world.random.fork(), profile.mix, profile.keys);
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

  stop(): void {
    for (const client of this.clients) client.stop();
  }

  /** Whether a command on the key is on its way, or may still be run although its client is cut off. */
  isUncertain(key: string): boolean {
    return this.#inFlight.has(key) || (this.#uncertainUntil.get(key) ?? 0) > this.scene.now;
  }

  /** Checks all histories: no command is on its way. */
  finishHistories(): void {
    for (const key of this.#histories.keys) {
      this.#commands.retire(key);
      this.#checkHistory(key);
    }
    this.#retired.clear();
  }

  #next(client: Client): ReturnType<Commands['next']> {
    const { scene } = this;
    if (scene.isQuiet) return [];
    const commands = [];
    for (let i = 1 + scene.random.below(scene.profile.pipeline); i > 0; i--) commands.push(...this.#commands.next());
    for (const { args, keys } of commands) {
      for (const key of keys) this.#inFlight.set(key, (this.#inFlight.get(key) ?? 0) + 1);
      scene.note(client.name, args);
    }
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
    const problem = wrongType(args, reply, this.#isQueued(operation));
    if (problem !== null) scene.fail(`${client}: ${problem}`, operation.keys);
  }

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
    const { scene } = this;
    this.lost++;
    this.#inTransaction.delete(operation.client);
    this.#follow(operation);
    this.#landed(operation);
    const { silenceMs = 0, pauseMs = 0 } = scene.profile.faults;
    const until = scene.now + GRACE_MS + Math.max(silenceMs, pauseMs);
    for (const key of operation.keys) this.#uncertainUntil.set(key, until);
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

  #checkHistory(key: string): void {
    const wrong = this.#histories.finish(key);
    if (wrong === null) return;
    const calls = wrong.map(
      ({ client, args, from, to, reply }) =>
        `${from.toFixed(3)} to ${to.toFixed(3)} ${client}: ${args.join(' ')} → ${JSON.stringify(reply)}`,
    );
    this.scene.fail(`the replies on ${key} are those of no order of its commands:\n  ${calls.join('\n  ')}`, [key]);
  }
}
