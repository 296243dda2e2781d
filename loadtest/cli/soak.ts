/** `npm run loadtest -- soak`: runs one profile on one side for minutes, with a restart in the middle. */
import { Option, type Command } from 'commander';
import { exitCodeOf } from '../figures/summary.js';
import { LoadtestError } from '../rig/errors.js';
import { Rig } from '../rig/rig.js';
import { runSoak } from '../rounds/soak.js';
import { isGiven } from '../sides/given.js';
import { startLocal } from '../sides/local.js';
import type { Side } from '../sides/side.js';
import { loadProfile } from '../workload/load.js';
import { leave } from './leave.js';
import { addPlaceOptions, whole, type PlaceOptions } from './options.js';
import { checkRate, driverOf, hostLine, newPrefix, onLoopback, pointsOf, sidesOf } from './setup.js';
import type { Profile } from '../workload/profile.js';
import type { SoakOptions } from '../rounds/soak.js';

interface SoakCliOptions extends PlaceOptions {
  readonly profile: string;
  readonly minutes: number;
  readonly slice: number;
  readonly restart: 'source' | 'target' | 'none';
  readonly rate?: number;
  readonly out?: string;
  readonly json: boolean;
}

export function addSoak(program: Command): void {
  const command = program
    .command('soak')
    .description('Load one side for minutes, restart a server in the middle, and account for every increment')
    .requiredOption('--profile <name>', 'a profile of the kit, or the path of a YAML file')
    .option('--minutes <n>', 'length of the load', minutes, 10)
    .option('--slice <seconds>', 'the load generator runs so long at a time', whole, 10)
    .option('--rate <n>', 'commands a second of all connections, instead of as many as are answered', whole)
    .addOption(
      new Option('--restart <server>', 'what is restarted in mid-run, of the servers started here')
        .choices(['source', 'target', 'none'])
        .default('target'),
    )
    .option('--out <folder>', 'where results.json, report.html and report.md go (default: dist/load/<profile>-<time>)')
    .option('--json', 'print the summary as JSON', false);
  addPlaceOptions(command).action(async (options: SoakCliOptions) => {
    process.exitCode = await soak(options);
  });
}

async function soak(options: SoakCliOptions): Promise<number> {
  if (options.against.length !== 1)
    throw new LoadtestError('USAGE', '--against: a soak loads one side; name source, target or proxy');
  const profile = loadProfile(options.profile);
  const driver = driverOf('memtier', profile);
  const [point] = pointsOf({}, profile);
  checkRate(options.rate ?? null, [point]);
  const rig = new Rig();
  try {
    const { side, restart } = await place(rig, options, profile);
    const { slice, rate = null } = options;
    const run: SoakOptions = {
      profile,
      side,
      restart,
      point,
      rate,
      slice,
      driver,
      seconds: options.minutes * 60,
      prefix: newPrefix(),
      loopback: onLoopback([side]),
      host: hostLine(),
    };
    const results = await runSoak(rig, run, (line) => void process.stderr.write(`${line}\n`));
    leave(results, options);
    return exitCodeOf(results);
  } finally {
    await rig.close();
  }
}

async function place(
  rig: Rig,
  options: SoakCliOptions,
  profile: Profile,
): Promise<{ side: Side; restart: SoakOptions['restart'] }> {
  if (isGiven({ ...options, roles: options.against })) {
    if (options.restart !== 'none')
      throw new LoadtestError(
        'USAGE',
        '--restart is for servers that are started here. For yours give --restart none, and restart them yourself: interruptions are noticed',
      );
    return { side: (await sidesOf(rig, options, profile, []))[0], restart: null };
  }
  const {
    against: [role],
    restart: name,
  } = options;
  if (name !== 'none' && role !== 'proxy' && role !== name)
    throw new LoadtestError(
      'USAGE',
      `--restart ${name} does not touch --against ${role}: give --restart ${role} or none`,
    );
  const local = await startLocal(rig, {
    roles: [role],
    serverThreads: [2],
    tls: profile.tls && options.tls !== false,
    durable: true,
  });
  return { side: local.sides[0], restart: name === 'none' ? null : { name, server: local[name] } };
}

function minutes(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new LoadtestError('USAGE', '--minutes: a number above 0 is allowed');
  return value;
}
