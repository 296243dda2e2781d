/**
 * The members: every writer of every region, found through the store, and which regions are out of sight.
 *
 * A view of the writers is used for at most `refreshMs`, and a new writer counts nothing for that time after it has
 * entered itself. So a reader at the same server knows every writer that may have counted.
 */
import type { Keys } from './layout.js';
import type { Command, Store } from './store.js';
import type { Time } from './time.js';

/** The writers at one time. A view is replaced, never changed. */
export interface View {
  /** All writers so far, without this one. */
  readonly ids: readonly string[];
  /** When the view was requested, in ms of `Time.monotonicMs`. */
  readonly at: number;
}

interface Heard {
  /** Unix ms by the writer's own clock, never less than before; negative after the writer has left. */
  readonly heartbeat: number;
  /** When the heartbeat last rose, in ms of `Time.monotonicMs`: other machines' clocks are not used. */
  readonly at: number;
}

export interface MembersOptions {
  readonly store: Store;
  readonly keys: Keys;
  readonly region: string;
  readonly id: string;
  readonly refreshMs: number;
  readonly blindAfterMs: number;
  /**
   * Called if a server may lack what this process wrote: regions were out of each other's sight, or the server was set
   * back.
   */
  readonly onGap: () => void;
  /** Unix ms. */
  readonly now: () => number;
  readonly time: Time;
}

/**
 * A writer has ended without announcing it if its last heartbeat is this much older than that of another writer of its
 * region, in ms.
 */
const ENDED_MS = 60_000;

export class Members {
  #view: View = { ids: [], at: -Infinity };
  readonly #regions = new Set<string>();
  readonly #heard = new Map<string, Heard>();
  /** When each known region was last heard, and whether any of its writers had not ended then. */
  readonly #sight = new Map<string, { readonly at: number; readonly present: boolean }>();
  /** The last gap that each region reported; absent until the region is heard for the first time. */
  readonly #gaps = new Map<string, string | null>();
  #refreshing: Promise<void> | null = null;
  #stopRefreshing: () => void = () => undefined;
  #heartbeat = 0;

  constructor(private readonly options: MembersOptions) {
    this.#regions.add(options.region);
  }

  /** Enters this writer, and waits until every other writer of the region must have seen it. */
  async join(): Promise<void> {
    const { time, refreshMs } = this.options;
    await this.refresh();
    await time.sleep(refreshMs);
    await this.refresh();
    // An error here occurs again, and is reported, when a view is needed.
    this.#stopRefreshing = time.every(refreshMs / 2, () => void this.refresh().catch(() => undefined));
  }

  /** Stops the heartbeats. */
  stop(): void {
    this.#stopRefreshing();
  }

  /** Announces that this writer has left, so that its silence is not taken for a broken link. */
  async leave(): Promise<void> {
    await this.#refreshing?.catch(() => undefined);
    const { store, keys, region, id } = this.options;
    await store.send(['HSET', keys.writers(region), id, String(-this.#beat())]);
  }

  /** Announces that a region has left, if it could not do so itself. If it is heard again, it is back. */
  async dismiss(region: string): Promise<void> {
    await this.refresh();
    const left = [...this.#heard]
      .filter(([id]) => regionOf(id) === region)
      .flatMap(([id, { heartbeat }]) => [id, String(-Math.abs(heartbeat) - 1)]);
    if (left.length > 0) await this.options.store.send(['HSET', this.options.keys.writers(region), ...left]);
    await this.refresh();
  }

  /**
   * A view that is young enough to be used; if the server takes longer than that to answer, the newest possible one.
   */
  async view(): Promise<View> {
    if (!this.fresh(this.#view)) await this.refresh();
    return this.#view;
  }

  /** The last view, whatever its age. */
  get last(): View {
    return this.#view;
  }

  fresh(view: View): boolean {
    return this.options.time.monotonicMs() - view.at <= this.options.refreshMs;
  }

  /** Writers that may have written within the last `ms`; writers that were silent for longer are left out. */
  recent(view: View, ms: number): View {
    const since = this.options.time.monotonicMs() - ms;
    return { at: view.at, ids: view.ids.filter((id) => (this.#heard.get(id)?.at ?? Infinity) >= since) };
  }

  /** Regions that have been silent for `blindAfterMs`, and did not announce that they left. */
  blind(): string[] {
    return this.#unseen().map(([region]) => region);
  }

  /** Since when one of these regions has been silent, in Unix ms; null if none is. */
  unseenSince(): number | null {
    const unseen = this.#unseen();
    return unseen.length === 0
      ? null
      : this.options.now() - this.options.time.monotonicMs() + Math.min(...unseen.map(([, { at }]) => at));
  }

  #unseen(): [string, { readonly at: number }][] {
    const since = this.options.time.monotonicMs() - this.options.blindAfterMs;
    return [...this.#sight].filter(
      ([region, { at, present }]) => region !== this.options.region && present && at < since,
    );
  }

  /** Announces this writer to the others, and reads who they are. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => (this.#refreshing = null));
    return this.#refreshing;
  }

  async #refresh(): Promise<void> {
    const { store, keys, region, id } = this.options;
    const at = this.options.time.monotonicMs();
    const entered = store.send(['HSET', keys.regions, region, '1']);
    await Promise.all([entered, store.send(['HSET', keys.writers(region), id, String(this.#beat())])]);
    const known = (await store.send(['HKEYS', keys.regions])) as string[];
    for (const name of known) this.#regions.add(name);
    for (const name of this.#regions) await this.#hear(name);
    this.#view = { ids: [...this.#heard.keys()].filter((each) => each !== id), at };
    await this.#remind(known);
  }

  async #hear(region: string): Promise<void> {
    const { store, keys } = this.options;
    const key = keys.writers(region);
    const [all, gap] = await Promise.all([
      store.send(['HGETALL', key]),
      store.send(['GET', keys.gap(region)]) as Promise<string | null>,
    ]);
    const listed = new Map(fields(all).map(([id, heartbeat]) => [id, Number(heartbeat)]));
    const at = this.options.time.monotonicMs();
    for (const [id, heartbeat] of listed) {
      if (Math.abs(heartbeat) > Math.abs(this.#heard.get(id)?.heartbeat ?? 0)) this.#heard.set(id, { heartbeat, at });
    }
    const before = this.#sight.get(region);
    const now = this.#look(region);
    if (region === this.options.region) return this.#restore(key, listed);
    // Within two intervals of its heartbeats and of ours, one must have come.
    if (before !== undefined && now.at - before.at > 2 * this.options.refreshMs) await this.#sawGap();
    if (this.#gaps.has(region) && this.#gaps.get(region) !== gap) this.options.onGap();
    this.#gaps.set(region, gap);
  }

  /** Records the present state of a region. */
  #look(region: string): { readonly at: number } {
    const heard = [...this.#heard].filter(([id]) => regionOf(id) === region).map(([, each]) => each);
    const latest = Math.max(...heard.map(({ heartbeat }) => Math.abs(heartbeat)));
    const sight = {
      at: Math.max(...heard.map(({ at }) => at)),
      present: heard.some(({ heartbeat }) => heartbeat > latest - ENDED_MS),
    };
    if (heard.length > 0) this.#sight.set(region, sight);
    return sight;
  }

  /** We missed something of that region: its writers write it again, and we write what it may have missed. */
  async #sawGap(): Promise<void> {
    const { store, keys, region, onGap } = this.options;
    onGap();
    await store.send(['SET', keys.gap(region), `g${this.#beat()}`]);
  }

  /**
   * A resync or restart has set our region's list back, and probably more: a writer that knows a newer state enters it
   * again.
   */
  async #restore(key: string, listed: ReadonlyMap<string, number>): Promise<void> {
    const older = this.#own().filter(([id, { heartbeat }]) => Math.abs(heartbeat) > Math.abs(listed.get(id) ?? 0));
    if (older.length > 0) this.options.onGap();
    await this.#enter(key, older);
  }

  /** Enters every writer of our region again, for the other regions' servers. */
  async restate(): Promise<void> {
    await this.#enter(this.options.keys.writers(this.options.region), this.#own());
  }

  #own(): [string, Heard][] {
    return [...this.#heard].filter(([id]) => regionOf(id) === this.options.region && id !== this.options.id);
  }

  async #enter(key: string, writers: readonly [string, Heard][]): Promise<void> {
    if (writers.length > 0)
      await this.options.store.send([
        'HSET',
        key,
        ...writers.flatMap(([id, { heartbeat }]) => [id, String(heartbeat)]),
      ]);
  }

  /** Adds regions again that the list of regions lacks. */
  async #remind(listed: readonly string[]): Promise<void> {
    const lost = [...this.#regions].filter((region) => !listed.includes(region));
    const command: Command = ['HSET', this.options.keys.regions, ...lost.flatMap((region) => [region, '1'])];
    if (lost.length > 0) await this.options.store.send(command);
  }

  #beat(): number {
    return (this.#heartbeat = Math.max(this.#heartbeat + 1, this.options.now()));
  }
}

const regionOf = (id: string): string => id.slice(0, id.indexOf('.'));

/** Fields and values of a hash: alternating (RESP2), or in the form that the client makes of RESP3. */
function fields(reply: unknown): [string, string][] {
  if (!Array.isArray(reply)) return reply instanceof Map ? [...reply] : Object.entries(reply as Record<string, string>);
  return Array.from({ length: reply.length / 2 }, (_, i) => [reply[2 * i], reply[2 * i + 1]]);
}
