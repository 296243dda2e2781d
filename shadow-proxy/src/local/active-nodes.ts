/**
 * Active-active KeyDB nodes in a full mesh: each replicates from all others, over links that can be delayed and cut
 * separately. Cut links can be restored in several ways, and nodes can be restarted.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './port.js';
import { Redis } from 'ioredis';
import { Relay } from './relay.js';
import { startKeydb, type LocalServer, type ServerConfig } from './servers.js';

/** What a node is restarted from: a dump saved just before, its append-only file, or nothing. */
export type RestartFrom = 'rdb' | 'aof' | 'empty';

/** How a node got what it had missed: `full` if any of its links had a full resync. */
export type Resync = 'partial' | 'full';
export type Resyncs<Name extends string> = Readonly<Record<Name, Resync>>;

/** The link over which one node replicates from another. */
export interface MeshLink<Name extends string> {
  readonly of: Name;
  readonly from: Name;
  readonly relay: Relay;
}

export interface MeshOptions {
  /** Size of the replication backlog; KeyDB's minimum is 16,384. Default 1 MiB, as in KeyDB. */
  readonly backlogBytes?: number;
  readonly appendonly?: boolean;
  /** Settings for all nodes. */
  readonly config?: ServerConfig;
}

const SLOW_BYTES_PER_SECOND = 256 * 1024;
const DEADLINE_MS = 60_000;
const FILLER = 'active-nodes:filler';
const MARKER = 'active-nodes:marker';

/** The result of `value` for each node. */
export const ofEach = <Name extends string, Value>(
  names: readonly Name[],
  value: (name: Name) => Value,
): Readonly<Record<Name, Value>> =>
  Object.fromEntries(names.map((name) => [name, value(name)])) as Readonly<Record<Name, Value>>;

export class ActiveNodes<Name extends string> {
  /** Connections to the nodes, not over a link. */
  readonly clients: Readonly<Record<Name, Redis>>;
  /** The links that were cut last; all links if none was cut. */
  #cut: readonly MeshLink<Name>[];

  private constructor(
    readonly names: readonly Name[],
    readonly nodes: Readonly<Record<Name, LocalServer>>,
    readonly links: readonly MeshLink<Name>[],
    private readonly backlogBytes: number,
    private readonly appendonly: boolean,
  ) {
    this.clients = ofEach(names, (name) => client(nodes[name]));
    this.#cut = links;
  }

  /** Starts all nodes, linked to each other. @throws {ServerMissing} if there is no KeyDB */
  static async start<Name extends string>(
    names: readonly Name[],
    { backlogBytes = 1 << 20, appendonly = false, config = {} }: MeshOptions = {},
  ): Promise<ActiveNodes<Name>> {
    const found = await Promise.all(names.map(() => freePort()));
    const ports = ofEach(names, (name) => found[names.indexOf(name)]);
    const links: MeshLink<Name>[] = [];
    for (const of of names)
      for (const from of names)
        if (from !== of) links.push({ of, from, relay: await Relay.start({ port: ports[from] }) });
    const own = (name: Name): ServerConfig => ({
      'active-replica': 'yes',
      'multi-master': 'yes',
      'repl-backlog-size': backlogBytes,
      'repl-diskless-sync': 'yes',
      'repl-diskless-sync-delay': 0,
      appendonly: appendonly ? 'yes' : 'no',
      appendfsync: 'always',
      ...config,
      replicaof: links.filter(({ of }) => of === name).map(({ relay }) => `127.0.0.1 ${relay.port}`),
    });
    const started: LocalServer[] = [];
    try {
      for (const name of names) started.push(await startKeydb({ port: ports[name], config: own(name) }));
      const nodes = ofEach(names, (name) => started[names.indexOf(name)]);
      const mesh = new ActiveNodes(names, nodes, links, backlogBytes, appendonly);
      await mesh.settle();
      return mesh;
    } catch (error) {
      await Promise.all([...started.map((server) => server.stop()), ...links.map(({ relay }) => relay.close())]);
      throw error;
    }
  }

  /** Delays replication in each direction. */
  delay(ms: number): void {
    for (const { relay } of this.links) relay.delayMs = ms;
  }

  /**
   * Cuts links in both directions, and resolves when both nodes of each link have noticed.
   * @param between selects the links; all if absent
   */
  async cut(between: (one: Name, other: Name) => boolean = () => true): Promise<void> {
    this.#cut = this.links.filter(({ of, from }) => between(of, from) || between(from, of));
    for (const { relay } of this.#cut) relay.down();
    for (const name of this.names)
      await this.#until(
        `${name} has lost its links`,
        async () => (await this.#linksDown(name)) === this.#cutOf(name).length,
      );
  }

  /**
   * Restores the links, and waits until each node has what the others had.
   * @param wanted the kind of resync for each node. For a full one, the nodes from which it was cut write until their
   * backlogs no longer reach back. If one node is full and the other partial, the full one begins during the partial
   * one: the worst case.
   * @returns the actual kinds; more may be full than wanted, if more was written than the backlogs hold
   */
  async rejoin(wanted: Resyncs<Name> = this.#all('partial')): Promise<Resyncs<Name>> {
    const outgrown = this.names.filter((name) =>
      this.#cut.some(({ of, from }) => from === name && wanted[of] === 'full'),
    );
    for (const name of outgrown) await this.#outgrow(name);
    const before = await this.#fullSyncs();
    await this.#reconnect(wanted);
    await this.settle();
    const after = await this.#fullSyncs();
    // A full resync of one node is counted by the node that serves it.
    const was = (name: Name): Resync =>
      this.#cutOf(name).some(({ from }) => after[from] > before[from]) ? 'full' : 'partial';
    const resyncs = ofEach(this.names, was);
    this.#cut = this.links;
    return resyncs;
  }

  /** Waits until all links are up, and each node has all writes. */
  async settle(): Promise<void> {
    for (const name of this.names) await this.#linked(name);
    for (const name of this.names) {
      const key = `${MARKER}:${name}`;
      const value = `${Date.now()}-${Math.random()}`;
      await this.clients[name].set(key, value);
      for (const other of this.names)
        await this.#until(
          `${other} has the writes of ${name}`,
          async () => (await this.clients[other].get(key)) === value,
        );
    }
  }

  /** Kills a node and starts it again. @throws if it should start from an append-only file and there is none */
  async restart(name: Name, from: RestartFrom): Promise<void> {
    if (from === 'aof' && !this.appendonly)
      throw new Error('a restart from the append-only file needs nodes with appendonly');
    const node = this.nodes[name];
    if (from === 'rdb') await this.clients[name].save();
    await node.kill('SIGKILL');
    const removed = { rdb: ['appendonly.aof'], aof: ['dump.rdb'], empty: ['dump.rdb', 'appendonly.aof'] }[from];
    for (const file of removed) await rm(join(node.dir, file), { force: true });
    // A node with an append-only file ignores its dump.
    if (this.appendonly) await configure(node, 'appendonly', from === 'aof' ? 'yes' : 'no');
    await node.start();
    await this.#until(`${name} has loaded`, async () =>
      /^loading:0/m.test(await this.clients[name].info('persistence')),
    );
    if (this.appendonly && from !== 'aof') await this.#appendAgain(name);
  }

  async stop(): Promise<void> {
    for (const name of this.names) this.clients[name].disconnect();
    await Promise.all([
      ...this.names.map((name) => this.nodes[name].stop()),
      ...this.links.map(({ relay }) => relay.close()),
    ]);
  }

  async #appendAgain(name: Name): Promise<void> {
    await this.clients[name].config('SET', 'appendonly', 'yes');
    const done = /^aof_enabled:1[^]*^aof_rewrite_in_progress:0/m;
    await this.#until(`${name} has its append-only file`, async () =>
      done.test(await this.clients[name].info('persistence')),
    );
  }

  async #reconnect(wanted: Resyncs<Name>): Promise<void> {
    const slow = this.#cut.filter(({ of, from }) => wanted[of] === 'partial' && wanted[from] === 'full');
    for (const { of, relay } of slow) {
      relay.bytesPerSecond = SLOW_BYTES_PER_SECOND;
      relay.up();
      await this.#linked(of, this.#cutOf(of).length - 1);
    }
    for (const { relay } of this.#cut) relay.up();
    for (const name of this.names) await this.#linked(name);
    for (const { relay } of slow) relay.bytesPerSecond = Infinity;
  }

  /** Writes until the backlog contains nothing from before. */
  async #outgrow(name: Name): Promise<void> {
    const filler = 'x'.repeat(16_384);
    for (let bytes = 0; bytes < 1.5 * this.backlogBytes + 32_768; bytes += filler.length)
      await this.clients[name].set(FILLER, filler + bytes);
    await this.clients[name].set(FILLER, '');
  }

  #all(kind: Resync): Resyncs<Name> {
    return ofEach(this.names, () => kind);
  }

  #cutOf(name: Name): MeshLink<Name>[] {
    return this.#cut.filter(({ of }) => of === name);
  }

  #linked(name: Name, butFor = 0): Promise<void> {
    return this.#until(`${name} has its links`, async () => (await this.#linksDown(name)) <= butFor);
  }

  async #linksDown(name: Name): Promise<number> {
    const info = await this.clients[name].info('replication');
    const statuses = [...info.matchAll(/^master(?:_\d+)?_link_status:(\w+)/gm)].map(([, status]) => status);
    if (statuses.length !== this.names.length - 1) throw new Error(`${name} knows ${statuses.length} of its links`);
    return statuses.filter((status) => status !== 'up').length;
  }

  async #fullSyncs(): Promise<Readonly<Record<Name, number>>> {
    const stats = await Promise.all(this.names.map((name) => this.clients[name].info('stats')));
    return ofEach(this.names, (name) => Number(/^sync_full:(\d+)/m.exec(stats[this.names.indexOf(name)])?.[1]));
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + DEADLINE_MS;
    while (!(await holds().catch(() => false))) {
      if (Date.now() > deadline)
        throw new Error(`the KeyDB nodes timed out after ${DEADLINE_MS / 1000} s; expected: ${what}`);
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
