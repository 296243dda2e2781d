/** The daemon: every shard of a plan that this process has, their admin HTTP, reload and drain. */
import type { Logger } from 'pino';
import { Admin } from './control/admin.js';
import { launch, type Launched } from './launch.js';
import { formatAddress } from './plan/endpoint.js';
import { PlanError } from './plan/errors.js';
import type { AdminPlan, Plan, ShardPlan } from './plan/plan.js';

export class Daemon {
  #launched: readonly Launched[] = [];
  #admins: Admin[] = [];
  #stopped: Promise<boolean> | null = null;

  private constructor(
    private plan: Plan,
    private readonly only: string | null,
    private readonly logger: Logger,
  ) {}

  /**
   * Opens the admin HTTP, then the shards; `/readyz` answers 503 until all of them are up.
   * @param only name of the one shard that this process has; null takes all
   * @throws {PlanError} {StateError} {AdminError} with nothing left running
   */
  static async start(plan: Plan, only: string | null, logger: Logger): Promise<Daemon> {
    const daemon = new Daemon(plan, only, logger);
    try {
      await daemon.#openAdmins();
      const launched: Launched[] = [];
      try {
        for (const shard of shardsOf(plan, only)) launched.push(await launch(plan, shard, logger));
      } finally {
        daemon.#launched = launched;
      }
    } catch (error) {
      await daemon.#close();
      throw error;
    }
    for (const { shard } of daemon.#launched) logger.info({ shard: shard.name, port: shard.port }, 'listening');
    return daemon;
  }

  /** Takes over a changed plan in all shards, or in none. */
  async reload(next: Plan): Promise<void> {
    const problems = new Set(this.#launched.flatMap((launched) => launched.checkReload(next)));
    if (problems.size > 0) {
      for (const problem of problems) this.logger.error({ problem }, 'the plan was not reloaded');
      return;
    }
    for (const launched of this.#launched) await launched.reload(next);
    this.plan = next;
    this.logger.info({ plan: next.name }, 'the plan was reloaded');
  }

  /** Answers what is in flight, waits for the mirrors, closes. False where time ran out first. */
  stop(): Promise<boolean> {
    this.#stopped ??= this.#drain();
    return this.#stopped;
  }

  async #drain(): Promise<boolean> {
    const drained = await Promise.all(
      this.#launched.map(async ({ shard }) => {
        const clean = await shard.drain(this.plan.limits.drainMs);
        if (clean) this.logger.info({ shard: shard.name }, 'drained');
        else this.logger.warn({ shard: shard.name, drainMs: this.plan.limits.drainMs }, 'not everything was confirmed in time: the next start re-checks it');
        return clean;
      }),
    );
    await this.#close();
    return drained.every(Boolean);
  }

  async #close(): Promise<void> {
    await Promise.all(this.#launched.map((launched) => launched.stop()));
    await Promise.all(this.#admins.map((admin) => admin.stop()));
  }

  /** One server for each address; a shard without its own is on the plan's. */
  async #openAdmins(): Promise<void> {
    const byAddress = new Map<string, string[]>();
    for (const shard of shardsOf(this.plan, this.only)) {
      const address = formatAddress(adminOf(this.plan, shard.name));
      byAddress.set(address, [...(byAddress.get(address) ?? []), shard.name]);
    }
    for (const names of byAddress.values()) {
      const { host, port } = adminOf(this.plan, names[0]);
      const admin = await Admin.start({
        host,
        port,
        token: () => adminOf(this.plan, names[0]).token,
        shards: () => this.#launched.map(({ shard }) => shard).filter((shard) => names.includes(shard.name)),
      });
      this.#admins.push(admin);
      this.logger.info({ admin: formatAddress({ host, port: admin.port }), shards: names }, 'admin HTTP is open');
    }
  }
}

function shardsOf(plan: Plan, only: string | null): readonly ShardPlan[] {
  if (only === null) return plan.shards;
  const shards = plan.shards.filter(({ name }) => name === only);
  if (shards.length > 0) return shards;
  const names = plan.shards.map(({ name }) => name).join(', ');
  throw new PlanError('--shard', [{ path: [], message: `there is no shard ${only} in the plan: ${names}` }]);
}

const adminOf = (plan: Plan, shard: string): AdminPlan => plan.shards.find(({ name }) => name === shard)?.admin ?? plan.admin;
