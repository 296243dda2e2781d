/**
 * The operator's part: the kit's own `shadow-compare`, on the host of the proxy that serves, for all shards at a time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Gate } from '../../shadow-proxy/src/stages/gates.js';
import type { ShardSnapshot } from '../../shadow-proxy/src/telemetry/snapshot.js';
import type { Hosts } from './hosts/hosts.js';
import { CommandFailed, type Ran, type RunOptions } from './run.js';
import { LOAD, PORTS, PROXIES_OF, SHARDS, WORKLOADS } from './scene.js';

/** Exit codes of shadow-compare that say "not now": a closed gate, or one that is unknown. */
const NOT_YET = [1, 3];
const PATIENCE_MS = 150_000;
const TAKEOVER_MS = 30_000;
/** Prints the reason that each admin address gives for not being ready: `standby`, `away` where it does not answer. */
const REASONS = `
import json, sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    try:
        body = urllib.request.urlopen(url + '/readyz', timeout=1).read()
    except urllib.error.HTTPError as error:
        body = error.read()
    except OSError:
        body = b'{"reason":"away"}'
    print(json.loads(body).get('reason', ''))
`;

type Shard = (typeof SHARDS)[number];

export class Operator {
  constructor(
    private readonly hosts: Hosts,
    private readonly options: RunOptions,
  ) {}

  /** On every shard. @throws {CommandFailed} where one refuses */
  compare(command: string, accept: readonly number[] = [0]): Promise<Ran[]> {
    return Promise.all(SHARDS.map((shard) => this.#on(shard, command, accept)));
  }

  /** The proxy of each shard that serves it. @throws {Error} where none does for 30 s */
  serving(): Promise<string[]> {
    return Promise.all(SHARDS.map((shard) => this.#serving(shard)));
  }

  async status(): Promise<ShardSnapshot[]> {
    const printed = await this.compare('status --json');
    return printed.flatMap(({ stdout }) => JSON.parse(stdout) as ShardSnapshot[]);
  }

  /**
   * The next stage of each workload, as soon as its gates are open. @throws {Error} naming the gates that stay closed
   */
  async promote(
    stage: string,
    { percent, workloads = WORKLOADS }: { readonly percent?: number; readonly workloads?: readonly string[] } = {},
  ): Promise<void> {
    const how = [`--to ${stage}`, ...(percent === undefined ? [] : [`--percent ${percent}`])];
    await Promise.all(
      SHARDS.map(async (shard) => {
        for (const workload of workloads) {
          const confirmed = stage === 'complete' ? ' --point-of-no-return rehearsal' : '';
          await this.#patiently(shard, `promote ${workload} ${how.join(' ')}${confirmed}`);
        }
      }),
    );
  }

  /**
   * Starts the evidence of `shadow` again: what an outage left inconclusive speaks against a stage for as long as that
   * lasts.
   */
  async again(reason: string): Promise<void> {
    for (const workload of WORKLOADS) await this.compare(`rollback ${workload} --to dualwrite --reason '${reason}'`);
    await this.promote('shadow');
  }

  /** Rehearses the way back of each workload. */
  async drill(): Promise<void> {
    await Promise.all(
      SHARDS.map(async (shard) => {
        for (const workload of WORKLOADS) await this.#patiently(shard, `rollback ${workload} --drill`);
      }),
    );
  }

  /**
   * Until no key is suspect on any shard, and both servers are connected; what is in flight under load is not suspect.
   * @returns how long that took, seconds
   */
  async certain(): Promise<number> {
    const startedAt = Date.now();
    for (;;) {
      const shards = await this.status();
      const doubtful = shards.filter(
        ({ mirror, workloads, frozen }) =>
          !mirror.connected ||
          frozen !== null ||
          workloads.some(({ suspects, suspect }) => suspects > 0 || suspect !== null),
      );
      if (doubtful.length === 0) return Math.round((Date.now() - startedAt) / 1000);
      if (Date.now() - startedAt > PATIENCE_MS) {
        throw new Error(
          `after ${PATIENCE_MS / 1000} s keys are still suspect: ${doubtful.map(({ name, suspects, frozen }) => `${name}: ${suspects.total} ${JSON.stringify(suspects.byReason)} ${frozen ?? ''}`).join('; ')}`,
        );
      }
      await sleep(1_000);
    }
  }

  async #patiently(shard: Shard, command: string): Promise<void> {
    for (const deadline = Date.now() + PATIENCE_MS; ; await sleep(1_000)) {
      try {
        await this.#on(shard, command, [0]);
        return;
      } catch (error) {
        if (
          !(error instanceof CommandFailed) ||
          !NOT_YET.includes(error.code ?? -1) ||
          error.message.includes('is no promotion')
        )
          throw error;
        if (Date.now() > deadline)
          throw new Error(
            `${shard}: shadow-compare ${command} stays refused:\n${await this.#closed(shard, command, error)}`,
          );
      }
    }
  }

  /** The gates that are not open, in words. */
  async #closed(shard: Shard, command: string, error: CommandFailed): Promise<string> {
    if (!command.startsWith('promote')) return error.output;
    const { stdout } = await this.#on(shard, `${command} --dry-run --json`, [0, ...NOT_YET]);
    const judged = JSON.parse(stdout) as { readonly gates: readonly Gate[] }[];
    return judged
      .flatMap(({ gates }) =>
        gates
          .filter(({ answer }) => answer !== 'yes')
          .map(({ name, answer, evidence }) => `${name} (${answer}): ${evidence}`),
      )
      .join('\n');
  }

  async #on(shard: Shard, command: string, accept: readonly number[]): Promise<Ran> {
    const proxy = await this.#serving(shard);
    const admin = `--admin http://${this.hosts.host(proxy).address}:${PORTS.admin} --token-file /etc/shadow-proxy/secrets/admin-token`;
    return this.hosts.ssh(proxy, `shadow-compare ${command} ${admin}`, { ...this.options, accept });
  }

  async #serving(shard: Shard): Promise<string> {
    const proxies = PROXIES_OF[shard];
    const urls = proxies.map((proxy) => `http://${this.hosts.host(proxy).address}:${PORTS.admin}`);
    for (const deadline = Date.now() + TAKEOVER_MS; ; await sleep(500)) {
      const { stdout } = await this.hosts.ssh(LOAD, `python3 - ${urls.join(' ')}`, { input: REASONS });
      const reasons = stdout.split('\n');
      const serving = proxies.find((_, i) => reasons[i] !== 'standby' && reasons[i] !== 'away');
      if (serving !== undefined) return serving;
      if (Date.now() > deadline) throw new Error(`no proxy of ${shard} serves: ${reasons.join(', ')}`);
    }
  }
}
