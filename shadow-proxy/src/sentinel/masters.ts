/**
 * What this Sentinel knows of its masters: which proxy has each shard, whether that proxy is down, and which other
 * processes answer as Sentinels. A change is published as an event, in the words of Redis's Sentinel.
 *
 * A master is known from the first look that shows its address. From then on the last address is the answer, whatever
 * becomes of the proxy that has it: clients try again until there is another one.
 */
import { createHash } from 'node:crypto';
import { monotonicMs } from '../io/clock.js';
import type { Sight } from '../lease/ownership.js';
import { formatAddress, parseAddress, type Address } from '../plan/endpoint.js';
import type { SentinelPlan } from '../plan/plan.js';

/** How many Sentinels must agree. Each one reads the lease at the servers, and needs no other one for that. */
export const QUORUM = 1;
/** How often to look which other Sentinels there are, in ms: the list of a server's connections takes it some time. */
export const LOOK_MS = 10_000;
/** How old the last look may be, in ms, before this Sentinel no longer claims to see the lease. */
const BLIND_MS = 2.5 * LOOK_MS;

/** Another process that answers as a Sentinel. */
export interface OtherSentinel {
  /** 40 hex digits. */
  readonly id: string;
  readonly address: Address;
}

/** A master that is known. Times are in ms of the monotonic clock. */
export interface Master {
  readonly name: string;
  readonly address: Address;
  /** The ID of the process: 40 hex digits. */
  readonly id: string;
  /** Since when the process has the shard, as far as this Sentinel saw. */
  readonly since: number;
  /** When the process was seen last. */
  readonly seenAt: number;
  /** Since when the process is down; null if it is not. */
  readonly downSince: number | null;
  /** How often another process has taken over, as far as this Sentinel saw. */
  readonly epoch: number;
  readonly others: readonly OtherSentinel[];
}

/** Called with each event. */
export type Publish = (channel: string, message: string) => void;

/** The ID of the Sentinel at that address: the same after a restart, and known to the others. */
export const idOf = (migration: string, sentinel: Address): string =>
  sha1(`${migration}\nsentinel\n${formatAddress(sentinel)}`);

const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex');

export class Masters {
  /** The ID of this Sentinel. */
  readonly id: string;
  /** Known masters, by name, in the order in which they became known. */
  readonly #known = new Map<string, Master>();
  /** Other Sentinels by shard. */
  readonly #others = new Map<string, readonly OtherSentinel[]>();
  /** When a server last said which process has the shard, by shard. */
  readonly #lookedAt = new Map<string, number>();

  constructor(
    private readonly migration: string,
    private readonly plan: Pick<SentinelPlan, 'announce' | 'masters'>,
    private readonly publish: Publish,
  ) {
    this.id = idOf(migration, plan.announce);
  }

  get all(): readonly Master[] {
    return [...this.#known.values()];
  }

  /** Undefined if there is no such name, or its master was not seen yet. */
  byName(name: string): Master | undefined {
    return this.#known.get(name);
  }

  /** Whether this Sentinel still sees which process has the shard. */
  sees({ name }: Master): boolean {
    return monotonicMs() - (this.#lookedAt.get(this.#shardOf(name)) ?? -Infinity) < BLIND_MS;
  }

  /** Takes in what a look at the lease of the shard showed. */
  looked(shard: string, { holder, isDown }: Sight): void {
    const now = monotonicMs();
    this.#lookedAt.set(shard, now);
    const name = this.plan.masters.find((each) => each.shard === shard)?.name;
    if (name === undefined) return;
    const address = holder && addressIn(holder.places.service);
    if (holder !== null && address !== null) this.#holds(name, sha1(holder.process), address, now);
    const master = this.#known.get(name);
    if (master === undefined) return;
    // A process that has just taken the lease announces its address as soon as it accepts clients.
    if (holder !== null && address === null) return;
    if (isDown && master.downSince === null) {
      this.#set({ ...master, downSince: now });
      this.publish('+sdown', describe(master));
      this.publish('+odown', `${describe(master)} #quorum ${QUORUM}/${QUORUM}`);
    }
    if (isDown) return;
    if (holder !== null) this.#set({ ...this.#known.get(name)!, seenAt: now });
    if (holder === null || master.downSince === null) return;
    this.#set({ ...this.#known.get(name)!, downSince: null });
    this.publish('-sdown', describe(master));
    this.publish('-odown', describe(master));
  }

  #holds(name: string, id: string, address: Address, now: number): void {
    const before = this.#known.get(name);
    if (before?.id === id && same(before.address, address)) return;
    const others = this.#others.get(this.#shardOf(name)) ?? [];
    const fresh = { name, address, id, since: now, seenAt: now, others };
    if (before === undefined) {
      const master = { ...fresh, downSince: null, epoch: 0 };
      this.#set(master);
      this.publish('+monitor', `${describe(master)} quorum ${QUORUM}`);
      for (const other of others) this.publish('+sentinel', describeOther(other, master));
      return;
    }
    const epoch = before.epoch + 1;
    if (same(before.address, address)) {
      this.#set({ ...fresh, downSince: before.downSince, epoch });
      return this.publish('+reboot', describe(before));
    }
    this.#set({ ...fresh, downSince: null, epoch });
    this.publish('+switch-master', `${name} ${words(before.address)} ${words(address)}`);
  }

  /** Takes in where other processes of the shard answer as Sentinels, `host:port` each. */
  discovered(shard: string, sentinels: readonly string[]): void {
    const addresses = new Map(sentinels.map((each) => [each, addressIn(each)]));
    const now: OtherSentinel[] = [];
    for (const address of addresses.values())
      if (address !== null && !same(address, this.plan.announce))
        now.push({ id: idOf(this.migration, address), address });
    const before = this.#others.get(shard) ?? [];
    this.#others.set(shard, now);
    const master = this.all.find(({ name }) => this.#shardOf(name) === shard);
    if (master === undefined) return;
    this.#set({ ...master, others: now });
    for (const other of without(now, before)) this.publish('+sentinel', describeOther(other, master));
    for (const other of without(before, now)) this.publish('+sdown', describeOther(other, master));
  }

  #set(master: Master): void {
    this.#known.set(master.name, master);
  }

  #shardOf(name: string): string {
    return this.plan.masters.find((each) => each.name === name)!.shard;
  }
}

/** Null if the text names no address: any client of a server may choose such a name. */
function addressIn(text: string): Address | null {
  try {
    return text === '' ? null : parseAddress(text);
  } catch {
    return null;
  }
}

const same = (a: Address, b: Address): boolean => a.host === b.host && a.port === b.port;
const without = (all: readonly OtherSentinel[], those: readonly OtherSentinel[]): readonly OtherSentinel[] =>
  all.filter(({ id }) => !those.some((each) => each.id === id));
/** Redis writes an address as two words, also of IPv6. */
const words = ({ host, port }: Address): string => `${host} ${port}`;
const describe = ({ name, address }: Pick<Master, 'name' | 'address'>): string => `master ${name} ${words(address)}`;
const describeOther = ({ id, address }: OtherSentinel, master: Master): string =>
  `sentinel ${id} ${words(address)} @ ${master.name} ${words(master.address)}`;
