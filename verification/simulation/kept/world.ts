/** A small world for a program that once failed: a source, a target, a shard, and clients that send by hand. */
import { useWorld } from '../../../shadow-proxy/src/io/world.js';
import type { Stage } from '../../../shadow-proxy/src/route/stage.js';
import type { StageError, StageRequest } from '../../../shadow-proxy/src/stages/stage-change.js';
import { jobRequest, type JobRequest } from '../../../shadow-proxy/src/storage/job-file.js';
import { ReplyReader, type Reply } from '../clients/replies.js';
import { WORLD } from '../world/events.js';
import type { End } from '../world/network.js';
import { Proxy } from '../world/proxy.js';
import { ServerHost, type KeyName } from '../world/server-host.js';
import { SimulatedWorld } from '../world/world.js';

/** Long enough for whatever the program waits for. */
const LIMIT_MS = 60_000;

/** A change of the stage that was asked for. */
interface Change {
  /** `made`, or the code of its refusal; null while there is none. */
  readonly outcome: string | null;
}

export class KeptWorld {
  readonly world: SimulatedWorld;
  readonly source: ServerHost;
  readonly target: ServerHost;
  readonly proxy: Proxy;
  /** Waits for the end of the other one, with a folder of its own. It is not started. */
  readonly standby: Proxy;

  private constructor(seed: number, plan: Readonly<Record<string, unknown>>, others: number) {
    this.world = new SimulatedWorld(seed, { delayMs: [0.1, 0.1], lateShare: 0, lateMs: 0, splitShare: 0 });
    this.source = new ServerHost(this.world, 'redis', { host: '10.0.0.2', port: 6379 });
    this.target = new ServerHost(this.world, 'keydb', { host: '10.0.0.3', port: 6379 });
    const urls = { source: 'redis://10.0.0.2:6379', target: 'redis://10.0.0.3:6379' };
    this.proxy = new Proxy(this.world, this.world.newHost('10.0.0.1'), { ...urls, plan, others });
    this.standby = new Proxy(this.world, this.world.newHost('10.0.0.11'), { ...urls, plan, others, isStandby: true });
  }

  /**
   * Runs a program in a world whose shard serves.
   *
   * @param plan what its plan has beside the servers
   * @param prepare is called before the proxy starts
   * @param others how many other processes of the shard there are
   */
  static async run(
    program: (world: KeptWorld) => Promise<void>,
    plan: Readonly<Record<string, unknown>> = {},
    prepare: (kept: KeptWorld) => void = () => undefined,
    others = 0,
  ): Promise<void> {
    const kept = new KeptWorld(1, plan, others);
    useWorld(kept.world);
    try {
      prepare(kept);
      kept.proxy.start();
      await kept.until(() => kept.proxy.launched !== null, 'the shard serves');
      await program(kept);
    } finally {
      useWorld(null);
    }
  }

  /** Lets virtual time pass until it is so. */
  async until(isSo: () => boolean, what: string): Promise<void> {
    if (!(await this.world.events.run(isSo, LIMIT_MS))) throw new Error(`never: ${what}`);
  }

  async pass(ms: number): Promise<void> {
    await this.world.events.run(() => false, ms);
  }

  async client({ address } = this.proxy): Promise<KeptClient> {
    let connected = false;
    const end = this.world.network.connect(WORLD, '10.0.1.1', address, () => (connected = true));
    await this.until(() => connected, 'the client is connected');
    return new KeptClient(this, end);
  }

  /** The proxy's end of its connection to the server from that port. */
  endOf(server: ServerHost, port: number): End {
    for (const { near, far } of this.world.network.connections)
      if (far.local.host === server.address.host && near.local.port === port) return near;
    throw new Error(`the proxy has no connection from port ${port}`);
  }

  /**
   * Nothing that is sent to the server arrives there for so long.
   * @param port of the one connection of which this is so; absent: of all
   */
  holdCommands(server: ServerHost, ms: number, port: number | null = null): void {
    for (const { near, far } of this.world.network.connections)
      if (far.local.host === server.address.host && (port ?? near.local.port) === near.local.port) far.silence(ms);
  }

  /** The port of the connection on which the server ran such a command last, from now on; null before. */
  portOf(server: ServerHost, isSuch: (args: readonly string[]) => boolean): () => number | null {
    let port: number | null = null;
    server.onCommand = (address, args) => {
      if (isSuch(args)) port = Number(address.split(':')[1]);
    };
    return () => port;
  }

  /** Once the server runs such a command, none of its replies on that connection arrives for so long. */
  holdReplies(server: ServerHost, ms: number, isSuch: (args: readonly string[]) => boolean): void {
    server.onCommand = (address, args) => {
      if (!isSuch(args)) return;
      server.onCommand = () => undefined;
      this.endOf(server, Number(address.split(':')[1])).silence(ms);
    };
  }

  /** Writes a key to a server, bypassing the proxy. */
  write(server: ServerHost, key: string, value: string): void {
    this.bypass(server, `SET ${key} ${value}`);
  }

  /** Runs a command on a server, bypassing the proxy. */
  bypass({ model }: ServerHost, command: string): void {
    const client = model.connect(
      () => undefined,
      () => undefined,
      { host: '10.0.1.9', port: 40_000 },
    );
    client.receive(Buffer.from(`${command}\r\n`));
    client.end();
  }

  /** From now on: which server ran such a command, in their order. */
  ranBy(isSuch: (args: readonly string[]) => boolean): readonly ('source' | 'target')[] {
    const ran: ('source' | 'target')[] = [];
    for (const name of ['source', 'target'] as const)
      this[name].onCommand = (_address, args) => {
        if (isSuch(args)) ran.push(name);
      };
    return ran;
  }

  /** Starts a job on all keys; `request` says what is not as usual. */
  startJob(request: Pick<JobRequest, 'kind'> & Partial<JobRequest>): void {
    const usual = { workloads: ['default'], repair: false, dryRun: false, again: true, deletes: 0, sample: 100 };
    const whole = jobRequest.parse({ ...usual, limits: {}, automatic: false, ...request });
    this.proxy.within(({ shard }) => shard.startJob(whole));
  }

  /** Begins a change of the stage. @returns whether it is made */
  beginChange(stage: Stage): () => boolean {
    const change = this.tryChange(stage);
    return () => change.outcome === 'made';
  }

  /** Begins a change of the stage. @returns what has come of it */
  tryChange(stage: Stage, more: Pick<StageRequest, 'force' | 'consent'> = {}): Change {
    const change: { outcome: Change['outcome'] } = { outcome: null };
    this.proxy.within(({ shard }) => {
      shard.changeStage({ workload: 'default', stage, ...more }).then(
        () => (change.outcome = 'made'),
        ({ code, message }: StageError) => (change.outcome = code ?? message),
      );
    });
    return change;
  }

  /** The proxy's end of the connection on which a command comes to the server that begins so. */
  async endFor(server: ServerHost, command: string, send: () => Promise<unknown>): Promise<End> {
    const { onCommand } = server;
    let port: number | null = null;
    server.onCommand = (address, args) => {
      if (args.join(' ').startsWith(command)) port = Number(address.split(':')[1]);
      onCommand(address, args);
    };
    await send();
    await this.until(() => port !== null, `${command} comes to the server`);
    server.onCommand = onCommand;
    return this.endOf(server, port!);
  }

  async change(stage: Stage): Promise<void> {
    await this.until(this.beginChange(stage), `the stage is ${stage}`);
  }

  /** Both servers' values of a key. */
  values(key: KeyName): readonly unknown[] {
    return [this.source, this.target].map((server) => server.entry(key)?.value ?? null);
  }

  get isClean(): boolean {
    return this.proxy.condition()!.workloads.every(({ clean }) => clean);
  }
}

export class KeptClient {
  readonly replies: Reply[] = [];
  isCutOff = false;
  readonly #reader = new ReplyReader();

  constructor(
    private readonly kept: KeptWorld,
    private readonly end: End,
  ) {
    end.ended = end.closed = () => (this.isCutOff = true);
    end.received = (bytes) => {
      this.#reader.feed(bytes);
      for (let reply = this.#reader.next(); reply !== undefined; reply = this.#reader.next()) this.replies.push(reply);
    };
  }

  /** @param command its words, or a text without others than blanks between them */
  send(command: string | readonly string[]): void {
    const words = typeof command === 'string' ? command.split(' ') : command;
    const args = words.map((arg) => `$${arg.length}\r\n${arg}\r\n`);
    this.end.send(Buffer.from(`*${args.length}\r\n${args.join('')}`, 'latin1'));
  }

  /** @param reset the proxy learns at once that nothing can be sent to it any more */
  leave(reset = false): void {
    this.end.close(reset);
  }

  /** The reply to a command, where nothing else is on its way. */
  async ask(command: string | readonly string[]): Promise<Reply> {
    const count = this.replies.length;
    this.send(command);
    await this.kept.until(() => this.replies.length > count, `a reply to ${String(command)}`);
    return this.replies[count];
  }
}
