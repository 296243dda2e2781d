/** `npm run bullmq-suite`: BullMQ's own tests, directly and through the proxy. */
import { InvalidArgumentError } from 'commander';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ConformanceError } from './run/error.js';
import { commandLine, main, waysOf, words, type CommonOptions } from './run/main.js';
import { CONFIGS, filesOf, runVitest, type Client } from './suites/vitest.js';

interface Options extends CommonOptions {
  readonly bullmqSource: string;
  readonly clients: readonly Client[];
  readonly files?: readonly string[];
}

await main(() => {
  const options = commandLine('bullmq-suite', 'shadow,live')
    .description("Run BullMQ's own tests directly and through the shadow proxy, and compare.")
    .requiredOption('--bullmq-source <folder>', 'a source tree of BullMQ, with its packages and its generated scripts')
    .option(
      '--clients <list>',
      `which of ${Object.keys(CONFIGS).join(', ')}`,
      clientsOf,
      Object.keys(CONFIGS) as Client[],
    )
    .option('--files <list>', 'only test files whose path has one of these words', words)
    .parse(process.argv)
    .opts<Options>();
  const source = path.resolve(options.bullmqSource);
  const { version } = manifestOf(source);
  const wanted = (file: string): boolean =>
    options.files === undefined || options.files.some((word) => file.includes(word));
  const suite = {
    name: 'bullmq',
    units: options.clients.flatMap((client) =>
      filesOf(source, client)
        .filter(wanted)
        .map((file) => `${client} ${file}`),
    ),
    ways: waysOf(options),
    again: options.again,
    // As BullMQ asks of every server.
    redisConfig: { 'maxmemory-policy': 'noeviction' },
    // Some of its tests connect to a port that nobody can set.
    port: () => 6379,
    run: (unit: string, [port]: readonly number[], log: string) =>
      runVitest(unit, port, log, { source, limit: options.limit }),
  } as const;
  return { suite, tree: `${source}, BullMQ ${version}`, options };
});

function manifestOf(source: string): { version: string } {
  const file = path.join(source, 'package.json');
  if (!existsSync(file)) throw new ConformanceError('USAGE', `${source} has no package.json`);
  return JSON.parse(readFileSync(file, 'utf8')) as { version: string };
}

function clientsOf(text: string): Client[] {
  return words(text).map((word) => {
    if (!Object.hasOwn(CONFIGS, word))
      throw new InvalidArgumentError(`one of ${Object.keys(CONFIGS).join(', ')} is wanted`);
    return word as Client;
  });
}
