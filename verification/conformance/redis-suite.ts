/** `npm run redis-suite`: Redis's own tests, directly and through the proxy. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { LEFT_OUT } from './exceptions.js';
import { ConformanceError } from './run/error.js';
import { commandLine, main, positive, waysOf, words, type CommonOptions } from './run/main.js';
import { runTcl } from './suites/tcl.js';

/** What clients of a Redis do with their data. */
const UNITS = [
  ...['string', 'incr', 'list', 'list-2', 'list-3', 'set', 'zset', 'hash', 'stream', 'stream-cgroups'].map(
    (type) => `unit/type/${type}`,
  ),
  ...['expire', 'multi', 'scripting', 'pubsub', 'scan', 'sort', 'bitops', 'bitfield', 'geo', 'hyperloglog', 'dump'].map(
    (unit) => `unit/${unit}`,
  ),
];

/** What the tests expect of a server that they did not start themselves. */
const CONFIG = { 'enable-debug-command': 'yes', 'enable-protected-configs': 'yes' };

interface Options extends CommonOptions {
  readonly redisSource: string;
  readonly units: readonly string[];
  readonly stall: number;
  readonly cluster?: boolean;
}

await main(() => {
  const options = commandLine('redis-suite', 'shadow')
    .description("Run Redis's own tests directly and through the shadow proxy, and compare. Needs tclsh.")
    .requiredOption('--redis-source <folder>', 'a source tree of Redis, such as that of the tag 7.0.15')
    .option('--units <list>', 'units of the suite, such as unit/type/hash,unit/multi', words, UNITS)
    .option('--stall <seconds>', 'a test without a sign of progress for so long counts as hung', positive, 90)
    .option(
      '--cluster',
      'source and target are clusters of one node each, as in the tests that Redis runs of a cluster',
    )
    .parse(process.argv)
    .opts<Options>();
  const source = path.resolve(options.redisSource);
  for (const file of ['runtest', ...options.units.map((unit) => `tests/${unit}.tcl`)]) {
    if (!existsSync(path.join(source, file))) throw new ConformanceError('USAGE', `${source} has no ${file}`);
  }
  for (const { test, reason } of LEFT_OUT) process.stderr.write(`left out: "${test}": ${reason}\n`);
  const suite = {
    name: 'redis',
    units: options.units,
    ways: waysOf(options),
    again: options.again,
    redisConfig: CONFIG,
    ...(options.cluster && { cluster: { masters: 1 } }),
    run: (unit: string, [port]: readonly number[], log: string, authority: number) =>
      runTcl(
        unit,
        port,
        log,
        { source, stall: options.stall, limit: options.limit, cluster: options.cluster === true },
        authority,
      ),
  } as const;
  return { suite, tree: `${source}, Redis ${versionOf(source)}`, options };
});

function versionOf(source: string): string {
  const file = path.join(source, 'src', 'version.h');
  return (existsSync(file) && /REDIS_VERSION "(.*)"/.exec(readFileSync(file, 'utf8'))?.[1]) || 'of an unknown version';
}
