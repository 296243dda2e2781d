/** The bench's command line. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { LoadtestError } from '../../rig/errors.js';
import { proxyCommandOf } from '../../rig/proxy.js';
import { parseRequirement, pointOf, REQUIREMENTS, ruleOf, type Requirement } from '../requirements.js';
import { COMPARISONS } from './figures.js';
import { DEFAULT_PEERS, isPeer, OTHER_PEERS, type PeerName } from './peers.js';
import { CLIENTS, pointsOf, type Point } from './point.js';

export interface Options {
  readonly rounds: number;
  /** Seconds of one measurement, and of one in the warm-up round (0: no warm-up). */
  readonly seconds: number;
  readonly warmUp: number;
  readonly peers: readonly PeerName[];
  /** The loads: pipeline depths combined with numbers of clients, and the load at a fixed rate. */
  readonly points: readonly Point[];
  readonly valueBytes: number;
  readonly keys: number;
  readonly proxyCommand: string;
  /** Folder of the results. */
  readonly out: string;
  /** docs/figures.json, or a similar file; absent: nothing is recorded. */
  readonly record?: string;
  readonly json: boolean;
  /** The requirements that decide the exit code, and are judged in the report. */
  readonly requirements: readonly Requirement[];
  readonly shown: readonly Requirement[];
}

/** Exits with code 2 on wrong usage. */
export function parseOptions(argv: readonly string[]): Options {
  const command = new Command('bench')
    .description('Measure the shadow proxy beside other proxies, interleaved in one run. Needs Linux.')
    .option('--rounds <n>', 'rounds; the figures are their medians', whole, 5)
    .option('--seconds <n>', 'length of one measurement', whole, 8)
    .option('--warm-up <n>', 'length of each measurement of a first round that does not count; 0 for none', whole, 2)
    .option(
      '--peers <names>',
      `which of ${OTHER_PEERS.join(',')},shadow,shadow-N: the shadow proxy with the plan's defaults, and with N front threads`,
      peerNames,
      [...DEFAULT_PEERS],
    )
    .option('--pipelines <depths>', 'commands in flight on a connection', wholes, [1, 16])
    .option('--clients <numbers>', 'connections of the load', wholes, [CLIENTS, 1000])
    .option(
      '--rate <n>',
      `commands a second of the measurement of latency, with ${CLIENTS} clients; 0 for none`,
      whole,
      15_000,
    )
    .option('--value-bytes <n>', 'length of a value', whole, 64)
    .option('--keys <n>', 'how many keys there are', whole, 100_000)
    .addOption(
      new Option('--node <path>', 'the Node that runs the shadow proxy')
        .env('SHADOW_PROXY_NODE')
        .default(process.execPath, 'this one'),
    )
    .addOption(
      new Option('--proxy-command <command>', 'how to run the shadow proxy; --plan FILE is added').conflicts('node'),
    )
    .option('--require [rules...]', `fail unless these hold (without a rule: ${REQUIREMENTS.map(ruleOf).join(' ')})`)
    .option('--out <folder>', 'where bench-results.json and .md go', 'dist/bench')
    .option(
      '--record <file>',
      'also replace the figures of the bench in this file, and fill the pages that quote docs/figures.json',
    )
    .option('--json', 'print the JSON instead of the tables', false)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));
  const given = command.parse(argv).opts();
  const rules = given.require as string[] | true | undefined;
  const requirements = rules === undefined ? [] : rules === true ? REQUIREMENTS : rules.map(parseRequirement);
  const options = {
    ...given,
    proxyCommand: (given.proxyCommand as string | undefined) ?? proxyCommandOf(given.node as string),
    points: pointsOf(given.pipelines as number[], given.clients as number[], given.rate as number),
    requirements,
    shown: requirements.length > 0 ? requirements : REQUIREMENTS,
  } as unknown as Options;
  check(options);
  return options;
}

function check({ requirements, peers, points, rounds, seconds }: Options): void {
  if (rounds < 1 || seconds < 1) throw new LoadtestError('USAGE', '--rounds and --seconds must be at least 1');
  for (const { rate, clients } of points)
    if ((rate ?? 0) % clients !== 0)
      throw new LoadtestError('USAGE', `--rate ${rate}: write a multiple of the ${clients} clients`);
  for (const requirement of requirements) {
    const { to } = COMPARISONS[requirement.ratio];
    if (!peers.includes(to) || !peers.includes(requirement.peer) || pointOf(requirement, points) === undefined) {
      const { pipeline, clients } = requirement;
      const needed = `${requirement.peer} and ${to} in --peers, ${pipeline} in --pipelines, and ${clients} in --clients; p99 needs --rate`;
      throw new LoadtestError('USAGE', `--require ${ruleOf(requirement)} needs ${needed}`);
    }
  }
}

function whole(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('a whole number is wanted');
  return Number(text);
}

const wholes = (text: string): number[] => text.split(',').map(whole);

function peerNames(text: string): PeerName[] {
  const names = text.split(',');
  const unknown = names.find((name) => !isPeer(name));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`"${unknown}" is none of ${OTHER_PEERS.join(', ')}, shadow, shadow-0 to shadow-9`);
  return names as PeerName[];
}
