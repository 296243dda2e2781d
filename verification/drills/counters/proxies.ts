/** A proxy in front of each node, which rewrites every counter of the drill; each node is a region. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { launch, type LaunchedShard } from '../../../shadow-proxy/src/shard/launch.js';
import { ofEach } from '../../../shadow-proxy/src/local/active-nodes.js';
import { startRedis, type LocalServer } from '../../../shadow-proxy/src/local/servers.js';
import { planFrom } from '../../../shadow-proxy/src/plan/load.js';
import type { Mesh, Name } from './mesh.js';

export class Proxies {
  private constructor(
    readonly ports: Readonly<Record<Name, number>>,
    private readonly launched: readonly LaunchedShard[],
    private readonly source: LocalServer,
    private readonly directory: string,
  ) {}

  static async start({ names, nodes }: Mesh): Promise<Proxies> {
    const directory = await mkdtemp(join(tmpdir(), 'drill-proxies-'));
    // What a proxy is to leave; nothing is in it.
    const source = await startRedis();
    const launched: LaunchedShard[] = [];
    for (const name of names) {
      const plan = planFrom(planOf(names, name, source, nodes[name]), 'the drill', { directory, env: {} });
      launched.push(await launch(plan, plan.shards[0], pino({ level: 'silent' }), { firstStart: true }));
    }
    const ports = ofEach(names, (name) => launched[names.indexOf(name)].shard.port);
    return new Proxies(ports, launched, source, directory);
  }

  async stop(): Promise<void> {
    for (const each of this.launched) await each.stop();
    await this.source.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}

const planOf = (names: readonly Name[], name: Name, source: LocalServer, target: LocalServer): unknown => ({
  version: 1,
  name: 'drill',
  shards: [
    { name: `drill-${name}`, listen: 'redis://127.0.0.1:0', source: source.url, target: target.url, region: name },
  ],
  workloads: [
    { name: 'counters', keys: ['drill:*'], class: 'counter', counterLayout: 'per-region', stage: 'complete' },
  ],
  topology: { mode: 'active-active', regions: names },
  admin: { listen: '127.0.0.1:0' },
  state: `./state-${name}`,
});
