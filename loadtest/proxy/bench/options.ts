/** The bench's command line. */
import { Command, InvalidArgumentError } from 'commander';
import { LoadtestError } from '../../rig/errors.js';
import { DEFAULT_PROXY_COMMAND } from '../../rig/proxy.js';
import { DEFAULT_REQUIREMENTS, parseRequirement, type Requirement } from './figures.js';
import { PEER_NAMES, type PeerName } from './peers.js';

export interface Options {
  readonly rounds: number;
  /** Of one measurement, and of one measurement of the warm-up round (0: none). */
  readonly seconds: number;
  readonly warmUp: number;
  readonly peers: readonly PeerName[];
  readonly pipelines: readonly number[];
  readonly connections: number;
  readonly valueBytes: number;
  readonly keys: number;
  readonly proxyCommand: string;
  /** Folder of the results. */
  readonly out: string;
  /** docs/figures.json, or a file like it; absent: none. */
  readonly record?: string;
  readonly json: boolean;
  /** What the exit code depends on, and what is judged in the report. */
  readonly requirements: readonly Requirement[];
  readonly shown: readonly Requirement[];
}

/** Ends the process with 2 on wrong usage. */
export function parseOptions(argv: readonly string[]): Options {
  const command = new Command('bench')
    .description('Measure the shadow proxy beside other proxies, interleaved in one run. Needs Linux.')
    .option('--rounds <n>', 'rounds; the figures are their medians', whole, 5)
    .option('--seconds <n>', 'length of one measurement', whole, 8)
    .option('--warm-up <n>', 'length of each measurement of a first round that does not count; 0 for none', whole, 2)
    .option('--peers <names>', `which of ${PEER_NAMES.join(',')}`, peerNames, [...PEER_NAMES])
    .option('--pipelines <depths>', 'commands in flight on a connection', depths, [1, 16])
    .option('--connections <n>', 'connections of the load', whole, 50)
    .option('--value-bytes <n>', 'length of a value', whole, 64)
    .option('--keys <n>', 'how many keys there are', whole, 100_000)
    .option('--proxy-command <command>', 'how to run the shadow proxy; --plan FILE is added', DEFAULT_PROXY_COMMAND)
    .option('--require [rules...]', `fail unless these hold (without a rule: ${DEFAULT_REQUIREMENTS.join(' ')})`)
    .option('--out <folder>', 'where bench-results.json and .md go', 'dist/bench')
    .option('--record <file>', 'also replace the figures of the bench in this file, such as docs/figures.json')
    .option('--json', 'print the JSON instead of the tables', false)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));
  const given = command.parse(argv).opts();
  const defaults = DEFAULT_REQUIREMENTS.map(parseRequirement);
  const rules = given.require as string[] | true | undefined;
  const requirements = rules === undefined ? [] : rules === true ? defaults : rules.map(parseRequirement);
  const options = {
    ...given,
    requirements,
    shown: requirements.length > 0 ? requirements : defaults,
  } as unknown as Options;
  check(options);
  return options;
}

function check({ requirements, peers, pipelines, rounds, seconds }: Options): void {
  if (rounds < 1 || seconds < 1) throw new LoadtestError('USAGE', '--rounds and --seconds must be at least 1');
  for (const { peer, pipeline } of requirements) {
    if (!peers.includes(peer) || !peers.includes('shadow') || !pipelines.includes(pipeline)) {
      const needed = `shadow and ${peer} in --peers and ${pipeline} in --pipelines`;
      throw new LoadtestError('USAGE', `--require ${peer}@${pipeline} needs ${needed}`);
    }
  }
}

function whole(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('a whole number is wanted');
  return Number(text);
}

const depths = (text: string): number[] => text.split(',').map(whole);

function peerNames(text: string): PeerName[] {
  const names = text.split(',');
  for (const name of names) {
    if (!PEER_NAMES.some((known) => known === name))
      throw new InvalidArgumentError(`"${name}" is none of ${PEER_NAMES.join(', ')}`);
  }
  return names as PeerName[];
}
