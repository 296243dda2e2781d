/**
 * Two active-active KeyDB nodes with a link each way that can be delayed and cut, restored in every way, and restarted.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import getPort from 'get-port';
import { Redis } from 'ioredis';
import { Relay } from './relay.js';
import { startKeydb, type LocalServer, type ServerConfig } from './servers.js';

export type Side = 'a' | 'b';
export const SIDES = ['a', 'b'] as const;
export const otherSide = (side: Side): Side => (side === 'a' ? 'b' : 'a');

/** What a node was restarted from: a dump saved just before, its append-only file, or nothing. */
export type RestartFrom = 'rdb' | 'aof' | 'empty';

/** How each side got what it had missed. */
export type Heal = Readonly<Record<Side, 'partial' | 'full'>>;

export const HEALS: Readonly<Record<'partial' | 'full' | 'asymmetric', Heal>> = {
  partial: { a: 'partial', b: 'partial' },
  full: { a: 'full', b: 'full' },
  asymmetric: { a: 'partial', b: 'full' },
};

export interface PairOptions {
  /** Bytes that a node keeps for a partial resync; 16,384 is KeyDB's least. Default 1 MiB, KeyDB's own. */
  readonly backlogBytes?: number;
  readonly appendonly?: boolean;
  /** For both nodes. */
  readonly config?: ServerConfig;
}

const SLOW_BYTES_PER_SECOND = 256 * 1024;
const DEADLINE_MS = 60_000;
const FILLER = 'active-pair:filler';
const MARKER = 'active-pair:marker';

export class ActivePair {
  /** Connections to the nodes themselves. */
  readonly clients: Readonly<Record<Side, Redis>>;

  private constructor(
    readonly nodes: Readonly<Record<Side, LocalServer>>,
    /** The way to a node, which the other replicates from. */
    readonly ways: Readonly<Record<Side, Relay>>,
    private readonly backlogBytes: number,
    private readonly appendonly: boolean,
  ) {
    this.clients = { a: client(nodes.a), b: client(nodes.b) };
  }

  /** Starts both, linked. @throws {ServerMissing} where there is no KeyDB */
  static async start({
    backlogBytes = 1 << 20,
    appendonly = false,
    config = {},
  }: PairOptions = {}): Promise<ActivePair> {
    const ports = {
      a: await getPort({ host: '127.0.0.1', reserve: true }),
      b: await getPort({ host: '127.0.0.1', reserve: true }),
    };
    const ways = { a: await Relay.start({ port: ports.a }), b: await Relay.start({ port: ports.b }) };
    const own = (side: Side): ServerConfig => ({
      'active-replica': 'yes',
      'multi-master': 'yes',
      'repl-backlog-size': backlogBytes,
      'repl-diskless-sync': 'yes',
      'repl-diskless-sync-delay': 0,
      appendonly: appendonly ? 'yes' : 'no',
      appendfsync: 'always',
      ...config,
      replicaof: `127.0.0.1 ${ways[otherSide(side)].port}`,
    });
    const started: LocalServer[] = [];
    try {
      for (const side of SIDES) started.push(await startKeydb({ port: ports[side], config: own(side) }));
      const pair = new ActivePair({ a: started[0], b: started[1] }, ways, backlogBytes, appendonly);
      await pair.settle();
      return pair;
    } catch (error) {
      await Promise.all([...started.map((server) => server.stop()), ...SIDES.map((side) => ways[side].close())]);
      throw error;
    }
  }

  /** Delays what is replicated, each way. */
  delay(ms: number): void {
    for (const side of SIDES) this.ways[side].delayMs = ms;
  }

  /** Cuts both ways, and resolves when both nodes know. */
  async cut(): Promise<void> {
    for (const side of SIDES) this.ways[side].down();
    for (const side of SIDES) await this.#until(`${side} has lost its link`, async () => !(await this.#linked(side)));
  }

  /**
   * Lets the nodes find each other again, and waits until each has what the other had.
   * @param wanted what must be full is made so: the other node writes until its backlog no longer reaches back
   * Where one is full and the other partial, the full one begins in the midst of the partial one: the worst that can
   * happen.
   * @returns what it was; more may be full than was wanted, where more was written than the backlogs hold
   */
  async heal(wanted: Heal = HEALS.partial): Promise<Heal> {
    for (const side of SIDES) if (wanted[side] === 'full') await this.#outgrow(otherSide(side));
    const before = { a: await this.#fullSyncsOf('a'), b: await this.#fullSyncsOf('b') };
    await this.#reconnect(wanted);
    await this.settle();
    // A full resync of `a` is served by `b`.
    const kind = async (side: Side): Promise<'partial' | 'full'> =>
      (await this.#fullSyncsOf(otherSide(side))) > before[otherSide(side)] ? 'full' : 'partial';
    return { a: await kind('a'), b: await kind('b') };
  }

  /** Waits until both links are up, and what was written on each node is on the other. */
  async settle(): Promise<void> {
    for (const side of SIDES) await this.#until(`${side} has its link`, () => this.#linked(side));
    for (const side of SIDES) {
      const key = `${MARKER}:${side}`;
      const value = `${Date.now()}-${Math.random()}`;
      await this.clients[side].set(key, value);
      await this.#until(
        `the other node has the writes of ${side}`,
        async () => (await this.clients[otherSide(side)].get(key)) === value,
      );
    }
  }

  /** Kills a node and starts it again. @throws where it should come from an append-only file and the pair has none */
  async restart(side: Side, from: RestartFrom): Promise<void> {
    if (from === 'aof' && !this.appendonly)
      throw new Error('a restart from the append-only file needs a pair with appendonly');
    const node = this.nodes[side];
    if (from === 'rdb') await this.clients[side].save();
    await node.kill('SIGKILL');
    const gone = { rdb: ['appendonly.aof'], aof: ['dump.rdb'], empty: ['dump.rdb', 'appendonly.aof'] }[from];
    for (const file of gone) await rm(join(node.dir, file), { force: true });
    // With an append-only file to keep, a node never looks at its dump.
    if (this.appendonly) await configure(node, 'appendonly', from === 'aof' ? 'yes' : 'no');
    await node.start();
    await this.#until(`${side} has loaded`, async () =>
      /^loading:0/m.test(await this.clients[side].info('persistence')),
    );
    if (this.appendonly && from !== 'aof') await this.#appendAgain(side);
  }

  async stop(): Promise<void> {
    for (const side of SIDES) this.clients[side].disconnect();
    await Promise.all(SIDES.flatMap((side) => [this.nodes[side].stop(), this.ways[side].close()]));
  }

  async #appendAgain(side: Side): Promise<void> {
    await this.clients[side].config('SET', 'appendonly', 'yes');
    const done = /^aof_enabled:1[^]*^aof_rewrite_in_progress:0/m;
    await this.#until(`${side} has its append-only file`, async () =>
      done.test(await this.clients[side].info('persistence')),
    );
  }

  async #reconnect(wanted: Heal): Promise<void> {
    const slow = SIDES.find((side) => wanted[side] === 'partial' && wanted[otherSide(side)] === 'full');
    if (slow !== undefined) {
      const way = this.ways[otherSide(slow)];
      way.bytesPerSecond = SLOW_BYTES_PER_SECOND;
      way.up();
      await this.#until(`${slow} has its link`, () => this.#linked(slow));
    }
    for (const side of SIDES) this.ways[side].up();
    for (const side of SIDES) await this.#until(`${side} has its link`, () => this.#linked(side));
    for (const side of SIDES) this.ways[side].bytesPerSecond = Infinity;
  }

  /** Writes until nothing that was there before is in the backlog. */
  async #outgrow(side: Side): Promise<void> {
    const filler = 'x'.repeat(16_384);
    for (let bytes = 0; bytes < 1.5 * this.backlogBytes + 32_768; bytes += filler.length)
      await this.clients[side].set(FILLER, filler + bytes);
    await this.clients[side].set(FILLER, '');
  }

  async #linked(side: Side): Promise<boolean> {
    return /^master_link_status:up/m.test(await this.clients[side].info('replication'));
  }

  async #fullSyncsOf(side: Side): Promise<number> {
    return Number(/^sync_full:(\d+)/m.exec(await this.clients[side].info('stats'))?.[1]);
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + DEADLINE_MS;
    while (!(await holds().catch(() => false))) {
      if (Date.now() > deadline)
        throw new Error(`the KeyDB pair timed out after ${DEADLINE_MS / 1000} s; expected: ${what}`);
      await sleep(20);
    }
  }
}

async function configure(node: LocalServer, name: string, value: string): Promise<void> {
  const file = join(node.dir, 'server.conf');
  const lines = await readFile(file, 'utf8');
  await writeFile(file, lines.replace(new RegExp(`^${name} .*$`, 'm'), `${name} ${value}`));
}

function client({ port }: LocalServer): Redis {
  const redis = new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: null, retryStrategy: () => 50 });
  return redis.on('error', () => undefined);
}
