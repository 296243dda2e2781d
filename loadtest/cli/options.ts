/** The options of `npm run loadtest`, and the checks of their values. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import { LoadtestError } from '../rig/errors.js';
import type { GivenOptions } from '../sides/given.js';
import { ROLES, type Role } from '../sides/side.js';

/** How the servers are found, and which hosts may be loaded. */
export interface PlaceOptions extends Omit<GivenOptions, 'roles'> {
  readonly against: readonly Role[];
  readonly tls?: boolean;
}

export interface RunCliOptions extends PlaceOptions {
  readonly profile: string;
  readonly driver: 'memtier' | 'redis-benchmark';
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUp: number;
  readonly clients?: readonly number[];
  readonly pipeline?: readonly number[];
  readonly serverThreads: readonly number[];
  readonly rate?: number;
  readonly prefix?: string;
  readonly startAt?: number;
  readonly out?: string;
  readonly json: boolean;
}

export function addPlaceOptions(command: Command): Command {
  return command
    .option('--against <sides>', `which of ${ROLES.join(',')}; several are measured in turns, in one run`, roles, [
      'source',
      'target',
    ])
    .option('--source <url>', 'the Redis; without any URL or plan, all servers are started on loopback')
    .option('--target <url>', 'the KeyDB')
    .option('--proxy <url>', 'the shadow proxy; ${NAME} in a URL is an environment variable')
    .option(
      '--admin <url>',
      'its admin HTTP, for its CPU and for when the mirror has everything (token: LOADTEST_ADMIN_TOKEN)',
    )
    .option('--plan <file>', 'take source, target and proxy from a migration plan')
    .option('--shard <name>', 'the shard of the plan, where it has several')
    .option('--ca <file>', 'PEM: who signed the certificates of rediss://')
    .option('--cert <file>', 'PEM: the certificate that is shown to servers that ask for one')
    .option('--key <file>', 'PEM: its key')
    .option('--no-tls', 'in the clear although the profile says TLS')
    .option('--confirm <host>', 'this host may be loaded although it is not loopback; once for each', collect, []);
}

export function addRunOptions(command: Command): Command {
  return addPlaceOptions(command.requiredOption('--profile <name>', 'a profile of the kit, or the path of a YAML file'))
    .option('--rounds <n>', 'rounds; in each, every side is measured once', whole, 11)
    .option('--seconds <n>', 'length of one measurement', whole, 10)
    .option('--warm-up <n>', 'length of each measurement of a first round that does not count; 0 for none', whole, 5)
    .option('--clients <n,…>', "connections; several make a sweep (default: the profile's)", wholes)
    .option(
      '--pipeline <n,…>',
      "commands in flight on a connection; several make a sweep (default: the profile's)",
      wholes,
    )
    .option('--server-threads <n,…>', 'of the KeyDB that is started here; several make a sweep', wholes, [2])
    .option(
      '--rate <n>',
      'commands a second of all connections, instead of as many as are answered: for latency',
      whole,
    )
    .option('--prefix <text>', 'of all keys, such as that of a workload of the plan (default: loadtest:<random>:)')
    .addOption(
      new Option('--driver <name>', 'what makes the load').choices(['memtier', 'redis-benchmark']).default('memtier'),
    )
    .option('--start-at <time>', 'ISO 8601 time of the first measurement: the same on several load hosts', moment)
    .option('--out <folder>', 'where results.json, report.html and report.md go (default: dist/load/<profile>-<time>)')
    .option('--json', 'print the summary as JSON', false);
}

const collect = (text: string, before: readonly string[]): string[] => [...before, text];

export function whole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('A whole number is allowed.');
  return Number(text);
}

export function wholes(text: string): number[] {
  const numbers = text.split(',').map(whole);
  if (numbers.some((number) => number < 1))
    throw new InvalidArgumentError('Whole numbers above 0 are allowed, such as 1,2,4.');
  return [...new Set(numbers)];
}

export function roles(text: string): Role[] {
  const names = text.split(',');
  const unknown = names.find((name) => !ROLES.some((role) => role === name));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`"${unknown}" is none of ${ROLES.join(', ')}; separate several by commas.`);
  return ROLES.filter((role) => names.includes(role));
}

export function moment(text: string): number {
  const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(at)) throw new InvalidArgumentError('A time of ISO 8601 is allowed, such as 2026-01-31T12:00:00Z.');
  return at;
}

/** @throws {LoadtestError} for a problem that concerns several options */
export function checkRun({ rounds, seconds, startAt, prefix }: RunCliOptions): void {
  if (rounds < 1 || seconds < 1) throw new LoadtestError('USAGE', '--rounds and --seconds must be at least 1');
  if (startAt !== undefined && startAt < Date.now())
    throw new LoadtestError('USAGE', '--start-at is over: give a time at least half a minute ahead');
  if (prefix !== undefined && !/^[\w:.{}-]{1,100}$/.test(prefix))
    throw new LoadtestError('USAGE', '--prefix: letters, digits and _ : . { } - are allowed');
}
