/** The daemon of a test, as a process of its own. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { freePort } from '../../../src/local/port.js';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import type { ShardSnapshot } from '../../../src/telemetry/snapshot.js';
import { scratch, type PlanObject } from '../../support/plans.js';
import type { Pair } from '../../support/servers.js';
import { Program } from './process.js';

export interface Running {
  readonly daemon: Program;
  readonly port: number;
  readonly admin: string;
  readonly file: string;
  readonly directory: string;
  /** Writes the changed plan and sends SIGHUP. */
  reload(change: (plan: PlanObject) => void): void;
  connect(): Redis;
}

/** A plan with one shard between the two, and free ports. */
export async function planFor(
  { source, target }: Readonly<Record<keyof Pair, { readonly url: string }>>,
  change: (plan: PlanObject) => void = () => undefined,
): Promise<PlanObject> {
  const plan = {
    version: 1,
    name: 'test',
    shards: [{ name: 'a', listen: `redis://127.0.0.1:${await freePort()}`, source: source.url, target: target.url }],
    workloads: [{ name: 'sessions', keys: ['session:*'] }],
    admin: { listen: `127.0.0.1:${await freePort()}` },
  };
  change(plan);
  return plan;
}

/** The daemon, serving by that plan. */
export async function start(
  t: TestContext,
  plan: PlanObject,
  directory = scratch(t),
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<Running> {
  const file = join(directory, 'plan.yaml');
  writeFileSync(file, stringify(plan));
  const daemon = new Program(t, 'shadow-proxy', ['--plan', file, ...args], env);
  const admin = `http://${plan.admin.listen}`;
  await daemon.prints(/"listening"/);
  const [, port] = await daemon.prints(/"port":(\d+),"msg":"listening"/);
  return {
    daemon,
    port: Number(port),
    admin,
    file,
    directory,
    reload(change) {
      change(plan);
      writeFileSync(file, stringify(plan));
      daemon.signal('SIGHUP');
    },
    connect() {
      const client = new Redis({ host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: 0, retryStrategy: null });
      client.on('error', () => undefined);
      t.after(() => client.disconnect());
      return client;
    },
  };
}

/** What it says of its shards. */
export const status = async (admin: string): Promise<ShardSnapshot[]> =>
  ((await (await fetch(`${admin}/api/status`)).json()) as { shards: ShardSnapshot[] }).shards;
