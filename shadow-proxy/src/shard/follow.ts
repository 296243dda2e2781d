/**
 * A standby with a state folder of its own: while another proxy serves the shard, it copies that proxy's state. After a
 * takeover it begins in the same stages.
 */
import { join } from 'node:path';
import type { Logger } from 'pino';
import { request } from '../io/http.js';
import { sleep, timeoutSignal } from '../io/timers.js';
import { adminOf, type Plan, type ShardPlan } from '../plan/plan.js';
import { asState, copyState, isCopy, readState, type ShardState } from '../storage/state.js';

const EVERY_MS = 500;
const TIMEOUT_MS = 2_000;

export class StateFollower {
  readonly #stopped = new AbortController();
  readonly #done: Promise<unknown>;
  /** Ends the pause before the next copy, by peer. */
  readonly #resting = new Map<string, () => void>();
  /** The problem of each peer that was logged last. */
  readonly #problems = new Map<string, string>();
  #queue: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly plan: Plan,
    private readonly shard: ShardPlan,
    private readonly peers: readonly string[],
    private readonly logger: Logger,
  ) {
    this.#done = Promise.all(peers.map((peer) => this.#follow(peer)));
  }

  get follows(): boolean {
    return this.peers.length > 0;
  }

  /** Resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.hurry();
    await this.#done;
  }

  /** Calls `run` while nothing is being copied: half a copy would be read as a missing or old state. */
  between<T>(run: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(run);
    this.#queue = done.catch(() => undefined);
    return done;
  }

  /** Starts the next copy now: the state of the serving proxy has changed. */
  hurry(): void {
    for (const wake of this.#resting.values()) wake();
  }

  async #follow(peer: string): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#copy(peer).then(
        () => this.#problems.delete(peer),
        (error: Error) => this.#report(peer, error),
      );
      if (signal.aborted) return;
      // A signal of its own: otherwise a pause that ends early would leave its timer, and a listener on the long-lived
      // signal.
      const rest = new AbortController();
      this.#resting.set(peer, () => rest.abort());
      await sleep(EVERY_MS, undefined, { signal: rest.signal }).catch(() => undefined);
      this.#resting.delete(peer);
    }
  }

  async #copy(peer: string): Promise<void> {
    const { name } = this.shard;
    const { token } = adminOf(this.plan, name);
    const response = await request(`${peer}/api/state`, {
      headers: token === null ? {} : { authorization: `Bearer ${token}` },
      signal: AbortSignal.any([this.#stopped.signal, timeoutSignal(TIMEOUT_MS)]),
    });
    if (!response.ok) throw new Error(`it answers ${response.status}`);
    const { states } = (await response.json()) as { states: readonly { serves: boolean; state: unknown }[] };
    for (const { serves, state } of states) {
      const theirs = asState(state);
      if (theirs === null) throw new Error('its state has another form: is it another release?');
      if (theirs.shard === name) await this.between(() => this.#take(peer, theirs, serves));
    }
  }

  async #take(peer: string, theirs: ShardState, serves: boolean): Promise<void> {
    const { name } = this.shard;
    // A state that cannot be read is replaced, too.
    const ours = await readState(join(this.plan.state, name), name).catch(() => null);
    if (this.#stopped.signal.aborted || !isNewer(theirs, ours, serves)) return;
    await copyState(this.plan.state, theirs, peer);
    this.logger.info({ shard: name, peer, revision: theirs.revision }, 'the state was copied');
  }

  #report(peer: string, { message, cause }: Error): void {
    if (this.#stopped.signal.aborted) return;
    const problem = (cause as Error | undefined)?.message || message;
    if (this.#problems.get(peer) !== problem)
      this.logger.warn({ shard: this.shard.name, peer, problem }, 'the state cannot be copied from the peer: retrying');
    this.#problems.set(peer, problem);
  }
}

/** The state of the proxy that serves the shard wins; between two waiting proxies, the later copy. */
function isNewer(theirs: ShardState, ours: ShardState | null, serves: boolean): boolean {
  if (ours === null) return true;
  if (serves) return !isCopy(ours) || ours.revision !== theirs.revision;
  return isCopy(ours) && theirs.revision > ours.revision;
}
