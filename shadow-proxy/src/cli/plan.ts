/** `shadow-compare plan init`: writes a first draft of the plan, from what a live source shows. */
import { existsSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';
import { parse } from 'yaml';
import { asking } from '../upstream/asker.js';
import type { Endpoint } from '../plan/endpoint.js';
import { planFrom } from '../plan/load.js';
import { number } from '../text/figures.js';
import { CliError, exitCode, listenAddress } from './exit.js';
import { withManual } from './manual.js';
import { monitorTime } from './monitor-option.js';
import { draftOf } from './plan/draft.js';
import { observe } from './plan/observe.js';
import { summaryOf } from './plan/summary.js';
import { findSources, seedsOf } from './sources.js';
import { stdout } from './output.js';

interface InitOptions {
  readonly from: string;
  readonly target?: string;
  readonly listen?: string;
  readonly name: string;
  readonly out: string;
  readonly sample?: number;
  readonly monitor?: number;
  readonly ca?: string;
  readonly force?: boolean;
}

/** Number of keys that are sampled without `--sample`. */
const SAMPLE = 10_000;

export function addPlan(program: Command): void {
  const plan = program.command('plan').description('Write a migration plan');
  const init = plan
    .command('init')
    .description('Read a live source, and write a first draft of the plan: workloads, with the reason of each')
    .requiredOption('--from <url>', 'URL of the source Redis, or of one node of a Redis Cluster')
    .option('--target <url>', 'URL of the target KeyDB (default: a name to replace)')
    .option(
      '--listen <address>',
      'where the proxy is to listen (default: 127.0.0.1:6400; of a cluster 127.0.0.1:7000)',
      listenAddress,
    )
    .option('--name <name>', 'name of the migration', 'migration')
    .option('--out <file>', 'the file to write', 'migration.yaml')
    .option(
      '--sample <number>',
      `how many keys to sample: the source gets a few small questions about each (default: ${number(SAMPLE)})`,
      keysOf,
    )
    .option(
      '--monitor <duration>',
      'run MONITOR for this long (at most 60s), to see what is done to the keys; slows the source down',
      monitorTime,
    )
    .option('--ca <file>', 'CA certificate for rediss:// servers')
    .option('--force', 'overwrite the file')
    .action(writePlan);
  withManual(init, 'shadow-compare plan init --from redis://10.0.0.11:6379 --monitor 10s', {
    0: 'the plan is written, and valid',
    1: 'the file exists: nothing was written',
    3: 'the source does not answer',
  });
}

async function writePlan(options: InitOptions): Promise<void> {
  const { from, target: targetUrl, out, ca, force = false } = options;
  if (existsSync(out) && !force)
    throw new CliError(
      'exists',
      `${out} exists: give another file with --out, or --force to overwrite it`,
      exitCode.fails,
    );
  const source = await findSources([seedsOf('--from', from, ca)]);
  const target = targetUrl === undefined ? null : await findSources([seedsOf('--target', targetUrl, ca)]);
  const keys = await keysAt(source.endpoints);
  const sample = options.sample ?? SAMPLE;
  const seen = await observe(source, target, { keys, sample, monitorMs: options.monitor ?? null });
  const { text, env } = draftOf(seen, options);
  // A draft that is no valid plan is a defect of this program: then no file is written.
  planFrom(parse(text), out, { directory: dirname(resolve(out)), env: { ...process.env, ...env } });
  write(out, text, force);
  stdout.write(`${summaryOf(seen, out)}\n`);
}

function write(out: string, text: string, force: boolean): void {
  try {
    writeFileSync(out, text, { flag: force ? 'w' : 'wx' });
  } catch (error) {
    throw new CliError(
      'option',
      `--out ${out} cannot be written (${(error as NodeJS.ErrnoException).code})`,
      exitCode.usage,
    );
  }
}

/** The number of keys of each server, in all of its databases. */
const keysAt = (endpoints: readonly Endpoint[]): Promise<number[]> =>
  Promise.all(
    endpoints.map(async (endpoint) => {
      const keyspace = await asking(endpoint, (asker) => asker.info('keyspace'));
      return sum([...keyspace.values()].map((value) => Number(/^keys=(\d+)/.exec(value)?.[1] ?? 0)));
    }),
  );

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

function keysOf(text: string): number {
  const keys = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
  if (!(keys > 0)) throw new InvalidArgumentError('Give a whole number of keys, from 1 on.');
  return keys;
}
