/** The daemon: runs the shards of a plan in this process, with their admin HTTP, reload and drain. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { SharedState } from '../admin/routes.js';
import { Admin, AdminError } from '../admin/admin-server.js';
import { after, sleep } from '../io/timers.js';
import type { Shard } from './contract.js';
import { HandshakeRefused } from '../upstream/handshake.js';
import { launch, LaunchError, type LaunchedShard } from './launch.js';
import type { Otel } from '../otel/otel.js';
import { Notifier } from '../notify/notifier.js';
import { formatAddress } from '../plan/endpoint.js';
import { PlanError } from '../plan/errors.js';
import { adminOf, type Plan, type ShardPlan } from '../plan/plan.js';
import { Sentinel, SentinelError } from '../sentinel/sentinel.js';
import type { Scrape } from '../telemetry/metrics.js';
import { readState } from '../storage/state.js';

/** How often a standby tries an address again that the process before may still have, in ms. */
const ADDRESS_RETRY_MS = 250;
const RETRY_MS = 1_000;

export interface DaemonOptions {
  readonly standby?: boolean;
  readonly peers?: readonly string[];
  readonly firstStart?: boolean;
  readonly reread?: (plan: Plan) => Promise<Plan>;
}

export class Daemon {
  /** Resolves when another process has taken over a shard, and nothing is served any more. */
  readonly lost: Promise<LaunchError>;
  #launched: readonly LaunchedShard[] = [];
  #admins: Admin[] = [];
  #waiting = false;
  /** Why a shard is not started yet, by its name. */
  readonly #problems = new Map<string, string>();
  #stopped: Promise<boolean> | null = null;
  /** Nothing is opened once this is set: an admin address opened late would keep the process running. */
  #isClosed = false;
  #lose: (reason: LaunchError) => void = () => undefined;
  readonly #notifier: Notifier;
  #otel: Otel | null = null;
  readonly #sentinel: Sentinel | null;

  private constructor(
    private plan: Plan,
    private readonly only: string | null,
    private readonly logger: Logger,
    private readonly firstStart: boolean,
    private readonly reread: (plan: Plan) => Promise<Plan>,
  ) {
    this.lost = new Promise((resolve) => (this.#lose = resolve));
    const { sentinel } = plan;
    this.#sentinel = sentinel && new Sentinel(sentinel, plan.limits, plan.name);
    this.#notifier = new Notifier(plan, { scrape: () => this.#shards().map((shard) => shard.scrape()), logger });
  }

  /**
   * Opens the admin HTTP, then the shards. `/readyz` answers 503 until all of them are up.
   * @param only name of the one shard that this process runs; null: all
   * @param standby wait until the process that has the shards ends
   * @param peers admin addresses of the proxies whose stages are copied as a standby
   * @param firstStart as for `launch`
   * @param reread returns the plan with the passwords that the files have now; called before a shard is tried again
   * @throws {PlanError} {StateError} {LaunchError} {AdminError} {SentinelError} with nothing left running
   */
  static async start(
    plan: Plan,
    only: string | null,
    logger: Logger,
    { standby = false, peers = [], firstStart = false, reread = (same) => Promise.resolve(same) }: DaemonOptions = {},
  ): Promise<Daemon> {
    const daemon = new Daemon(plan, only, logger, firstStart, reread);
    try {
      daemon.#waiting = standby;
      await daemon.#openOtel();
      await daemon.#openAdmins(standby);
      await daemon.#openAddress(() => daemon.#openSentinel(), standby);
      if (standby) await daemon.#takeOver(peers);
      else await daemon.#launch();
      daemon.#waiting = false;
    } catch (error) {
      await daemon.#close();
      throw error;
    }
    for (const { shard } of daemon.#launched) logger.info({ shard: shard.name, port: shard.port }, 'listening');
    return daemon;
  }

  /** OpenTelemetry's packages are optional, and loaded only here. @throws {PlanError} if they are not installed */
  async #openOtel(): Promise<void> {
    const { opentelemetry: otlp } = this.plan;
    if (otlp === null) return;
    const { startOtel } = await import('../otel/otel.js').catch((error: Error) => {
      const message = `needs packages that are not installed (${error.message}): install without --omit=optional`;
      throw new PlanError('the plan', [{ path: ['opentelemetry'], message }]);
    });
    this.#otel = startOtel({
      otlp,
      plan: () => this.plan,
      scrape: () => this.#scrape(),
      logger: this.logger,
    });
  }

  #scrape(): Scrape {
    return {
      shards: this.#shards().map((shard) => shard.scrape()),
      waiting: this.#waiting ? this.#wanted.map(({ name }) => name) : [],
      receivers: this.#notifier.receivers,
    };
  }

  async #launch(): Promise<void> {
    for (const { name } of this.#wanted) this.#add(await this.#launchOne(name));
  }

  /** A server may refuse the proxy for a while (a password, loading of data): the shard is tried again. */
  async #launchOne(name: string): Promise<LaunchedShard> {
    const observer = this.#otel?.observer(name);
    for (;;) {
      try {
        return await launch(this.plan, shardsOf(this.plan, name)[0], this.logger, {
          firstStart: this.firstStart,
          masters: this.#sentinel?.masters,
          shards: this.#shards,
          shardCount: this.#wanted.length,
          observer,
          recorded: (event) => this.#notifier.recorded(name, event),
        });
      } catch (error) {
        if (!(error instanceof LaunchError) || !(error.cause instanceof HandshakeRefused)) throw error;
        if (this.#problems.get(name) !== error.message)
          this.logger.error({ shard: name, problem: error.message }, 'the shard cannot start: retrying every second');
        this.#problems.set(name, error.message);
        await sleep(RETRY_MS);
        this.plan = await this.reread(this.plan);
      }
    }
  }

  /** Takes over all shards at once, because the process that has them ends with all of them. */
  async #takeOver(peers: readonly string[]): Promise<void> {
    const launches = this.#wanted.map(async (shard) =>
      this.#add(
        await launch(this.plan, shard, this.logger, {
          standby: true,
          peers,
          firstStart: this.firstStart,
          masters: this.#sentinel?.masters,
          shards: this.#shards,
          shardCount: this.#wanted.length,
          observer: this.#otel?.observer(shard.name),
          recorded: (event) => this.#notifier.recorded(shard.name, event),
        }),
      ),
    );
    const failed = (await Promise.allSettled(launches)).find((launched) => launched.status === 'rejected');
    if (failed) throw failed.reason as Error;
  }

  /** The shards as in the present plan. */
  get #wanted(): readonly ShardPlan[] {
    return shardsOf(this.plan, this.only);
  }

  readonly #shards = (): readonly Shard[] => this.#launched.map(({ shard }) => shard);

  #add(launched: LaunchedShard): void {
    this.#problems.delete(launched.shard.name);
    this.#launched = [...this.#launched, launched];
    void launched.lost.then(async (reason) => {
      await this.#close();
      this.#lose(reason);
    });
  }

  /** Takes over a changed plan in all shards, or in none. */
  async reload(next: Plan): Promise<void> {
    const problems = new Set(this.#launched.flatMap((launched) => launched.checkReload(next)));
    if (problems.size > 0) {
      for (const problem of problems)
        this.logger.error({ problem }, 'the plan is not reloaded: the old plan stays in use');
      return;
    }
    for (const launched of this.#launched) await launched.reload(next);
    this.#notifier.reload(next);
    if (next.sentinel !== null) this.#sentinel?.reload(next, next.sentinel);
    this.plan = next;
    this.logger.info({ plan: next.name }, 'the plan was reloaded');
  }

  /** Answers the commands in flight, waits for the mirrors, and closes. False if time ran out first. */
  stop(): Promise<boolean> {
    this.#stopped ??= this.#drain();
    return this.#stopped;
  }

  async #drain(): Promise<boolean> {
    const drained = await Promise.all(
      this.#launched.map(async ({ shard }) => {
        const clean = await shard.drain(this.plan.limits.drainMs);
        if (clean) this.logger.info({ shard: shard.name }, 'drained');
        else
          this.logger.warn(
            { shard: shard.name, drainMs: this.plan.limits.drainMs },
            'not all writes were confirmed in time: the next start verifies their keys',
          );
        return clean;
      }),
    );
    await this.#close();
    return drained.every(Boolean);
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#launched.map((launched) => launched.stop()));
    await Promise.all(this.#admins.map((admin) => admin.stop()));
    await Promise.all([this.#notifier.close(), this.#otel?.close(), this.#sentinel?.stop()]);
  }

  /**
   * Opens one server for each address; a shard without its own address uses the plan's.
   * @param persist try again later if an address is in use: on the same machine the other process may still have it
   */
  async #openAdmins(persist: boolean): Promise<void> {
    const byAddress = new Map<string, string[]>();
    for (const shard of this.#wanted) {
      const address = formatAddress(adminOf(this.plan, shard.name));
      byAddress.set(address, [...(byAddress.get(address) ?? []), shard.name]);
    }
    for (const names of byAddress.values()) await this.#openAddress(() => this.#openAdmin(names), persist);
  }

  async #openAdmin(names: readonly string[]): Promise<void> {
    const { host, port } = adminOf(this.plan, names[0]);
    const admin = await Admin.start({
      host,
      port,
      token: () => adminOf(this.plan, names[0]).token,
      migration: () => this.plan.name,
      shards: () => this.#shards().filter((shard) => names.includes(shard.name)),
      waiting: () => (this.#waiting ? names : []),
      starting: () =>
        names.flatMap((shard) => (this.#problems.has(shard) ? [{ shard, problem: this.#problems.get(shard)! }] : [])),
      states: () => this.#states(names),
      receivers: () => this.#notifier.receivers,
      // Only who opens the page needs what draws it.
      page: async (path) => (await import('../page/files.js')).pageFile(path),
    });
    if (this.#isClosed) return admin.stop();
    this.#admins.push(admin);
    this.logger.info({ admin: formatAddress({ host, port: admin.port }), shards: names }, 'admin HTTP is open');
  }

  /** The states on the disk. A state that cannot be read is left out: the start of its shard reports the problem. */
  async #states(names: readonly string[]): Promise<readonly SharedState[]> {
    const serves = (name: string): boolean => this.#shards().some((shard) => shard.name === name);
    const states = names.map(async (name) => {
      const state = await readState(join(this.plan.state, name), name).catch(() => null);
      return state === null ? [] : [{ serves: serves(name), state }];
    });
    return (await Promise.all(states)).flat();
  }

  async #openSentinel(): Promise<void> {
    const { sentinel } = this.plan;
    if (this.#sentinel === null || sentinel === null) return;
    await this.#sentinel.open();
    if (this.#isClosed) return this.#sentinel.stop();
    const { port } = this.#sentinel;
    this.logger.info({ sentinel: formatAddress({ ...sentinel.listen, port }) }, 'the Sentinel is open');
  }

  /** @param persist tries again while the process before may still have the address */
  async #openAddress(open: () => Promise<void>, persist: boolean): Promise<void> {
    await open().catch((error: unknown) => {
      if (!persist || !isTaken(error)) throw error;
      const timer = after(ADDRESS_RETRY_MS, () => {
        if (this.#stopped === null && !this.#isClosed) void this.#openAddress(open, true);
      });
      timer.unref();
    });
  }
}

const isTaken = (error: unknown): boolean =>
  error instanceof SentinelError || (error instanceof AdminError && error.code === 'listen');

function shardsOf(plan: Plan, only: string | null): readonly ShardPlan[] {
  if (only === null) return plan.shards;
  const shards = plan.shards.filter(({ name }) => name === only);
  if (shards.length > 0) return shards;
  const names = plan.shards.map(({ name }) => name).join(', ');
  throw new PlanError('--shard', [
    { path: [], message: `there is no shard ${only} in the plan. The shards: ${names}` },
  ]);
}
