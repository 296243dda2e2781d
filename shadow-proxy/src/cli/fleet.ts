/**
 * The proxies of a plan as one: all shards in one process, or a process for each. A read is sent to all at once, and
 * one proxy without an answer does not hide the others. A change of one workload is made on every shard or on none:
 * first all shards judge it, and it is taken back if a later shard refuses.
 */
import type { AutomationRequest, WaitNote } from '../admin/shard-control.js';
import { loadAdmins } from '../plan/load.js';
import { eachOnce, type AdminAddress } from '../plan/admins.js';
import { closedGates } from '../stages/gates.js';
import type { PromoteRequest, RollbackRequest } from '../stages/promotion.js';
import type { StagePoint } from '../route/stage.js';
import { adminOf } from '../plan/plan.js';
import { openPlan } from '../upstream/open-plan.js';
import {
  AdminClient,
  type AcceptedShard,
  type AdminClientOptions,
  type ChangeJobRequest,
  type FenceRequest,
  type StartJobRequest,
  type ProxyStatus,
  type ShardJob,
  type ShardFence,
  type ShardHistory,
  type ShardPromotion,
  type ShardRollback,
  type ToShards,
} from './admin-client.js';
import { CliError, exitCode } from './exit.js';
import { stderr } from './output.js';

/** A proxy that did not answer, or answered with an error. */
export interface UnansweredProxy {
  /** The admin address of the proxy. */
  readonly url: string;
  /** Its message says what to do. */
  readonly error: CliError;
}

export interface FleetStatus extends ProxyStatus {
  readonly silent: readonly UnansweredProxy[];
  /** Shards of the plan that no proxy serves. */
  readonly unserved: readonly string[];
}

/** A shard, and the proxy that serves it. */
interface ServedShard {
  readonly shard: string;
  readonly proxy: AdminClient;
}

export class Fleet {
  /** Proxies that did not answer the last question. */
  silent: readonly UnansweredProxy[] = [];

  /** @param planned names of the plan's shards; null if only the proxies know them */
  constructor(
    readonly proxies: readonly AdminClient[],
    private readonly planned: readonly string[] | null,
  ) {}

  /**
   * Opens the proxies of the plan; with `--admin`, or without a plan, the proxy at that address.
   * @throws {PlanError}
   * @throws {CliError} if a token or an address cannot be used
   */
  static async open(options: AdminClientOptions): Promise<Fleet> {
    const { admin, plan } = options;
    if (plan === undefined) return new Fleet([new AdminClient(options)], null);
    const { admins, shards, perShard } = loadAdmins(plan);
    if (admin !== undefined) return new Fleet([new AdminClient(options, admins[0])], null);
    const known = perShard ? await ofCluster(plan) : { admins, shards };
    return new Fleet(
      known.admins.map((each) => new AdminClient(options, each)),
      // The process at a plan's only address may serve one shard, and processes on other hosts the others.
      known.admins.length > 1 ? known.shards : null,
    );
  }

  /** The text for a line about a wait. */
  get awaited(): string {
    const [first, ...others] = this.proxies;
    return `Waiting for the ${others.length === 0 ? `proxy at ${first.url}` : `${this.proxies.length} proxies of the plan`}`;
  }

  /** @throws {CliError} if no proxy answers */
  async status(): Promise<FleetStatus> {
    const answers = await this.#ask((proxy) => proxy.status());
    const all = answers.map(({ answer }) => answer);
    const shards = all.flatMap((each) => each.shards);
    const starting = all.flatMap((each) => each.starting);
    const seen = new Set([...shards.map(({ name }) => name), ...starting.map(({ shard }) => shard)]);
    const unserved = (this.planned ?? []).filter((name) => !seen.has(name));
    return { migration: all[0].migration, shards, starting, silent: this.silent, unserved };
  }

  async history(): Promise<readonly ShardHistory[]> {
    return this.#each((proxy) => proxy.history());
  }

  /** Adds an entry to the history of every shard whose proxy answers. @throws {CliError} if none does */
  async noteWait(note: WaitNote): Promise<void> {
    await this.#ask((proxy) => proxy.noteWait(note));
  }

  /** Applies to every shard whose proxy answers. @throws {CliError} if none does */
  async automate(request: AutomationRequest): Promise<void> {
    await this.#ask((proxy) => proxy.automate(request));
  }

  async jobs(): Promise<readonly ShardJob[]> {
    return this.#each((proxy) => proxy.jobs());
  }

  /** Starts a job on every shard, or on the named one. */
  async startJob(request: StartJobRequest): Promise<readonly ShardJob[]> {
    if (request.shard !== undefined) return (await this.#serving(request.shard)).startJob(request);
    if (this.proxies.length === 1) return this.proxies[0].startJob(request);
    const [served, missing] = await this.#served();
    const { silent } = this;
    const jobs = await this.#each((proxy) => proxy.startJob(request), [...new Set(served.map(({ proxy }) => proxy))]);
    const refused = this.silent;
    if (refused.length > 0) throw refused[0].error;
    this.silent = silent;
    if (missing.length > 0) stderr.write(`Not begun on ${missing.join(', ')}: no proxy answers${this.#problems()}\n`);
    return jobs;
  }

  /** Changes the jobs that run, of every shard or of the one that is named. @throws {CliError} where none runs */
  async changeJobs(request: ChangeJobRequest): Promise<readonly ShardJob[]> {
    if (request.shard !== undefined) return (await this.#serving(request.shard)).changeJobs(request);
    if (this.proxies.length === 1) return this.proxies[0].changeJobs(request);
    const answers = await this.#ask((proxy) => proxy.jobs());
    const { silent } = this;
    const running = answers.filter(({ answer }) => answer.some(({ job }) => job?.state === 'running'));
    // One that has none refuses, and says so.
    const asked = running.length > 0 ? running : answers;
    const changed = await this.#each(
      (proxy) => proxy.changeJobs(request),
      asked.map(({ proxy }) => proxy),
    );
    this.silent = [...silent, ...this.silent];
    return changed;
  }

  /** Stops the jobs of every shard. */
  async stopJobs(): Promise<readonly ShardJob[]> {
    return this.#each((proxy) => proxy.stopJobs());
  }

  async fences(): Promise<readonly ShardFence[]> {
    return this.#each((proxy) => proxy.fences());
  }

  /** Raises or lifts the fence of every shard, or of the named one. */
  async fence(request: FenceRequest): Promise<readonly ShardFence[]> {
    if (request.shard !== undefined) return (await this.#serving(request.shard)).fence(request);
    return this.#each((proxy) => proxy.fence(request));
  }

  async accept(request: {
    readonly shard: string;
    readonly runIds: readonly string[];
  }): Promise<readonly AcceptedShard[]> {
    return (await this.#serving(request.shard)).accept(request);
  }

  /** @throws {CliError} with nothing changed, or with the changes that could not be taken back */
  async promote(request: PromoteRequest & ToShards): Promise<readonly ShardPromotion[]> {
    if (this.proxies.length === 1) return this.proxies[0].promote(request);
    if (request.shard !== undefined) return (await this.#serving(request.shard)).promote(request);
    const served = await this.#everyShard(request.workload);
    const judged = await Promise.all(
      served.map(({ shard, proxy }) => proxy.promote({ ...request, shard, dryRun: true })),
    );
    if (request.dryRun) return judged.flat();
    const closed = judged.flat().filter(({ gates }) => closedGates(gates, request).length > 0);
    if (closed.length > 0)
      throw new CliError(
        'gates-closed',
        `"${request.workload}" keeps its stage; closed gates: ${closed
          .map(
            ({ shard, gates }) =>
              `${shard} (${closedGates(gates, request)
                .map(({ name }) => name)
                .join(', ')})`,
          )
          .join('; ')}`,
        exitCode.fails,
      );
    return this.#allOrNone(served, request.workload, (proxy, shard) => proxy.promote({ ...request, shard }));
  }

  /** Without a workload: rolls back every workload that the target answers, on each shard whose proxy answers. */
  async rollback(request: Partial<RollbackRequest> & { readonly shard?: string }): Promise<readonly ShardRollback[]> {
    if (this.proxies.length === 1) return this.proxies[0].rollback(request);
    if (request.shard !== undefined) return (await this.#serving(request.shard)).rollback(request);
    const { workload } = request;
    if (workload === undefined) return this.#rollBackAll(request);
    const served = await this.#everyShard(workload);
    const judged = await Promise.all(
      served.map(({ shard, proxy }) => proxy.rollback({ ...request, shard, dryRun: true })),
    );
    if (request.dryRun) return judged.flat();
    return this.#allOrNone(served, workload, (proxy, shard) => proxy.rollback({ ...request, shard }));
  }

  /** Continues if one refuses. @throws {CliError} with the workloads that were rolled back, and those that were not */
  async #rollBackAll(request: Partial<RollbackRequest>): Promise<readonly ShardRollback[]> {
    const [served, missing] = await this.#served();
    const done: ShardRollback[] = [];
    const problems = missing.length === 0 ? [] : [`no proxy answers for ${missing.join(', ')}${this.#problems()}`];
    const changed: string[] = [];
    await Promise.all(
      [...new Set(served.map(({ proxy }) => proxy))].map(async (proxy) => {
        try {
          const all = await proxy.rollback(request);
          done.push(...all);
          changed.push(...all.map(({ shard, workload }) => `${shard}: ${workload} was rolled back`));
        } catch (error) {
          if (!(error instanceof CliError)) throw error;
          // The error already lists what was rolled back.
          problems.push(error.message);
        }
      }),
    );
    if (problems.length === 0) return done;
    throw new CliError('refused', [...problems, ...(request.dryRun ? [] : changed)].join('\n'), exitCode.fails, {
      rollbacks: done,
    });
  }

  /** Changes one shard after the other. If a later one refuses, the earlier changes are taken back. */
  async #allOrNone<T extends ShardPromotion | ShardRollback>(
    served: readonly ServedShard[],
    workload: string,
    change: (proxy: AdminClient, shard: string) => Promise<readonly T[]>,
  ): Promise<readonly T[]> {
    const done: T[] = [];
    for (const { shard, proxy } of served) {
      try {
        done.push(...(await change(proxy, shard)));
      } catch (error) {
        if (!(error instanceof CliError)) throw error;
        const back = await this.#takeBack(served, done, workload, `${shard} refused`);
        const unknown =
          error.code === 'unreachable' ? `; whether ${shard} was changed is unknown: see shadow-compare status` : '';
        throw new CliError(error.code, `${error.message}${unknown}${back}`, error.exit, error.details);
      }
    }
    return done;
  }

  /** @returns a sentence for the error's message */
  async #takeBack(
    served: readonly ServedShard[],
    done: readonly (ShardPromotion | ShardRollback)[],
    workload: string,
    why: string,
  ): Promise<string> {
    const stuck: string[] = [];
    for (const each of [...done].reverse()) {
      const { shard } = each;
      const { proxy } = served.find((one) => one.shard === shard)!;
      await proxy.takeBack({ shard, workload, from: fromOf(each), why }).catch((error: unknown) => {
        if (!(error instanceof CliError)) throw error;
        stuck.push(`${shard} was not moved back: ${error.message}`);
      });
    }
    if (stuck.length > 0) return `; ${stuck.join('; ')}`;
    return done.length === 0 ? '' : `; ${done.map(({ shard }) => shard).join(', ')} went back to the stage before`;
  }

  /** @throws {CliError} if a shard of the plan is not served; then nothing was changed */
  async #everyShard(workload: string): Promise<readonly ServedShard[]> {
    const [served, missing] = await this.#served();
    if (missing.length === 0) return served;
    throw new CliError(
      'unreachable',
      `"${workload}" keeps its stage on every shard: no proxy answers for ${missing.join(', ')}${this.#problems()}. Name a shard with --shard to change it alone`,
      exitCode.inconclusive,
    );
  }

  /** The shards that a proxy serves, and those that none serves: by name, or by the address that does not answer. */
  async #served(): Promise<[served: readonly ServedShard[], missing: readonly string[]]> {
    const answers = await this.#ask((proxy) => proxy.names());
    const served = answers.flatMap(({ proxy, answer }) => answer.map(({ name }) => ({ shard: name, proxy })));
    const missing =
      this.planned?.filter((name) => !served.some(({ shard }) => shard === name)) ?? this.silent.map(({ url }) => url);
    return [served, missing];
  }

  /** The proxy that serves the shard. @throws {CliError} */
  async #serving(shard: string): Promise<AdminClient> {
    if (this.proxies.length === 1) return this.proxies[0];
    const answers = await this.#ask((proxy) => proxy.names());
    const found = answers.find(({ answer }) => answer.some(({ name }) => name === shard));
    if (found !== undefined) return found.proxy;
    const names = this.planned ?? answers.flatMap(({ answer }) => answer.map(({ name }) => name));
    if (names.includes(shard))
      throw new CliError('unreachable', `no proxy serves ${shard}${this.#problems()}`, exitCode.inconclusive);
    throw new CliError('unknown-shard', `there is no shard ${shard}. The shards: ${names.join(', ')}`, exitCode.usage);
  }

  async #each<T>(
    ask: (proxy: AdminClient) => Promise<readonly T[]>,
    proxies: readonly AdminClient[] = this.proxies,
  ): Promise<readonly T[]> {
    return (await this.#ask(ask, proxies)).flatMap(({ answer }) => answer);
  }

  /** Asks all proxies at once. @throws {CliError} with the first problem, if none answers */
  async #ask<T>(
    ask: (proxy: AdminClient) => Promise<T>,
    proxies: readonly AdminClient[] = this.proxies,
  ): Promise<readonly { readonly proxy: AdminClient; readonly answer: T }[]> {
    const silent: UnansweredProxy[] = [];
    const answers = await Promise.all(
      proxies.map(async (proxy) => {
        try {
          return [{ proxy, answer: await ask(proxy) }];
        } catch (error) {
          if (!(error instanceof CliError)) throw error;
          silent.push({ url: proxy.url, error });
          return [];
        }
      }),
    );
    this.silent = silent;
    const found = answers.flat();
    if (found.length === 0 && silent.length > 0) throw silent[0].error;
    return found;
  }

  #problems(): string {
    return this.silent.length === 0 ? '' : ` (${this.silent.map(({ error }) => error.message).join('; ')})`;
  }
}

/** The stage before the change. */
const fromOf = (done: ShardPromotion | ShardRollback): StagePoint =>
  'changes' in done ? done.changes[0].from : done.from;

/** The proxies of a cluster's shards; the cluster's servers name the shards. */
async function ofCluster(file: string): Promise<{ admins: readonly AdminAddress[]; shards: readonly string[] }> {
  const plan = await openPlan(file);
  const shards = plan.shards.map(({ name }) => name);
  return { admins: eachOnce(shards.map((name) => ({ ...adminOf(plan, name), tokenProblem: null }))), shards };
}

/** Names the proxies that did not answer. @returns 3 if there are any, else 0 */
export function reportSilent({ silent }: Pick<Fleet, 'silent'>): number {
  for (const { error } of silent) stderr.write(`${error.message}\n`);
  return silent.length === 0 ? exitCode.holds : exitCode.inconclusive;
}
