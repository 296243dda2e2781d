/** A proxy in front of each node of a pair, which rewrites every counter of the drill: regions a and b. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { launch, type Launched } from '../../shadow-proxy/src/shard/launch.js';
import { SIDES, type ActivePair, type Side } from '../../shadow-proxy/src/local/active-pair.js';
import { startRedis, type LocalServer } from '../../shadow-proxy/src/local/servers.js';
import { planFrom } from '../../shadow-proxy/src/plan/load.js';

export class Proxies {
  private constructor(
    readonly ports: Readonly<Record<Side, number>>,
    private readonly launched: readonly Launched[],
    private readonly source: LocalServer,
    private readonly directory: string,
  ) {}

  static async start(pair: ActivePair): Promise<Proxies> {
    const directory = await mkdtemp(join(tmpdir(), 'drill-proxies-'));
    // What a proxy is to leave; nothing is in it.
    const source = await startRedis();
    const launched: Launched[] = [];
    for (const side of SIDES) {
      const plan = planFrom(planOf(side, source, pair.nodes[side]), 'the drill', { directory, env: {} });
      launched.push(await launch(plan, plan.shards[0], pino({ level: 'silent' })));
    }
    return new Proxies({ a: launched[0].shard.port, b: launched[1].shard.port }, launched, source, directory);
  }

  async stop(): Promise<void> {
    for (const each of this.launched) await each.stop();
    await this.source.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}

const planOf = (side: Side, source: LocalServer, target: LocalServer): unknown => ({
  version: 1,
  name: 'drill',
  shards: [
    { name: `drill-${side}`, listen: 'redis://127.0.0.1:0', source: source.url, target: target.url, region: side },
  ],
  workloads: [
    { name: 'counters', keys: ['drill:*'], class: 'counter', counterLayout: 'per-region', stage: 'complete' },
  ],
  topology: { mode: 'active-active', regions: [...SIDES] },
  admin: { listen: '127.0.0.1:0' },
  state: `./state-${side}`,
});
