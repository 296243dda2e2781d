/** `npm run client-suites`: the cluster tests of clients, directly and through the proxies of three shards. */
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConformanceError } from './run/error.js';
import { commandLine, main, waysOf, words, type CommonOptions } from './run/main.js';
import type { ClusterLayout } from './run/nodes.js';
import type { Outcome } from './run/result.js';
import { buildGinkgo, runGinkgo } from './suites/ginkgo.js';
import { runMocha } from './suites/mocha.js';
import { NODE_PORTS } from './suites/nodes.js';

const PRELOADED = fileURLToPath(new URL('./suites/given-cluster.js', import.meta.url));
/** What the tests expect of their servers. */
const CONFIG = { 'enable-debug-command': 'yes' };

interface Run {
  readonly source: string;
  readonly ports: readonly number[];
  readonly log: string;
  /** Seconds. */
  readonly limit: number;
}

interface Unit {
  /** The option that names the source tree. */
  readonly client: 'ioredis' | 'nodeRedis' | 'goRedis';
  /** Where its tests look for the first node; anywhere where absent. */
  readonly port?: number;
  run(given: Run): Promise<Outcome>;
}

const nodeRedis = ({ source, ports, log, limit }: Run, files: string): Promise<Outcome> =>
  runMocha({
    source,
    cwd: path.join(source, 'packages', 'client'),
    args: ['--require', 'tsx', '--require', PRELOADED, '--redis-version=7.0', files],
    env: { [NODE_PORTS]: ports.join(',') },
    log,
    limit,
  });

let ginkgo: string | undefined;

const UNITS: Readonly<Record<string, Unit>> = {
  ioredis: {
    client: 'ioredis',
    port: 3000,
    run: ({ source, log, limit }) =>
      runMocha({
        source,
        cwd: source,
        args: ['test/cluster/**/*.ts'],
        env: { TS_NODE_TRANSPILE_ONLY: 'true', NODE_ENV: 'test' },
        log,
        limit,
      }),
  },
  'node-redis cluster': { client: 'nodeRedis', run: (given) => nodeRedis(given, './lib/cluster/*.spec.ts') },
  'node-redis commands': { client: 'nodeRedis', run: (given) => nodeRedis(given, './lib/commands/*.spec.ts') },
  'go-redis': {
    client: 'goRedis',
    // One test wants this port in a reply.
    port: 16600,
    run: ({ source, ports, log, limit }) => {
      ginkgo ??= buildGinkgo(source, path.dirname(log));
      return runGinkgo({ program: ginkgo, source, ports, log, limit });
    },
  },
};

interface Options extends CommonOptions {
  readonly ioredis?: string;
  readonly nodeRedis?: string;
  readonly goRedis?: string;
  readonly units: readonly string[];
}

/** As Redis's own tool lays them out; each master has a replica where the tests talk to the servers themselves. */
const LAYOUT = {
  masters: 3,
  replicas: 1,
  ranges: [[[0, 5460]], [[5461, 10922]], [[10923, 16383]]],
} as const satisfies ClusterLayout;

await main(() => {
  const options = commandLine('client-suites', 'shadow,live')
    .description('Run the cluster tests of clients directly and through the proxies of three shards, and compare.')
    .option('--ioredis <folder>', 'a source tree of ioredis 6, with its packages')
    .option('--node-redis <folder>', 'a source tree of node-redis 6, with its packages')
    .option('--go-redis <folder>', 'a source tree of go-redis 9; needs go')
    .option('--units <list>', `which of ${Object.keys(UNITS).join(', ')}`, words, Object.keys(UNITS))
    .parse(process.argv)
    .opts<Options>();
  const sourceOf = (unit: string): string | undefined => {
    const { client } = UNITS[unit];
    return options[client] === undefined ? undefined : path.resolve(options[client]);
  };
  const unknown = options.units.find((unit) => !Object.hasOwn(UNITS, unit));
  if (unknown !== undefined)
    throw new ConformanceError('USAGE', `--units: "${unknown}" is none of ${Object.keys(UNITS).join(', ')}`);
  const units = options.units.filter((unit) => sourceOf(unit) !== undefined);
  if (units.length === 0)
    throw new ConformanceError('USAGE', 'name a source tree: --ioredis, --node-redis or --go-redis');
  for (const unit of units)
    if (!existsSync(sourceOf(unit)!)) throw new ConformanceError('USAGE', `there is no ${sourceOf(unit)}`);
  mkdirSync(options.out, { recursive: true });
  const suite = {
    name: 'clients',
    units,
    ways: waysOf(options),
    again: options.again,
    redisConfig: CONFIG,
    cluster: LAYOUT,
    port: (unit: string) => UNITS[unit].port,
    run: (unit: string, ports: readonly number[], log: string) =>
      UNITS[unit].run({ source: sourceOf(unit)!, ports, log, limit: options.limit }),
  } as const;
  return { suite, tree: [...new Set(units.map((unit) => sourceOf(unit)))].join(', '), options };
});
