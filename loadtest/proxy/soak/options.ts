/** The soak's command line. */
import { Command, InvalidArgumentError } from 'commander';
import { ATTACKS } from '../hostile/attacks.js';
import { MEMORY_REQUIREMENT } from '../requirements.js';
import { DEFAULT_PROXY_COMMAND } from '../../rig/proxy.js';

export interface Options {
  readonly minutes: number;
  readonly clients: number;
  /** Commands per second, over all clients. */
  readonly rate: number;
  /** Bytes of the longest value. */
  readonly maxValue: number;
  /** Clients per second that disconnect and reconnect. */
  readonly churn: number;
  /** Number of processes that run the clients. */
  readonly processes: number;
  readonly sampleSeconds: number;
  readonly limitMib: number;
  readonly proxyCommand: string;
  /** Folder of the results. */
  readonly out: string;
  readonly json: boolean;
  /** Hostile clients instead of well-behaved ones. */
  readonly hostile: boolean;
  /** Seconds of each attack; by default the minutes are divided among the attacks. */
  readonly seconds?: number;
  /** Names of attacks. */
  readonly attacks: readonly string[];
  readonly direct: boolean;
}

const ALL = ATTACKS.map(({ name }) => name);
/** Options that only one of the two kinds of run accepts. */
const HOSTILE_ONLY = ['seconds', 'attacks', 'direct'];
const MEMORY_ONLY = ['clients', 'rate', 'maxValue', 'churn', 'processes', 'sampleSeconds', 'limitMib'];

/** Exits with code 2 on wrong usage. */
export function parseOptions(argv: readonly string[]): Options {
  const command = new Command('soak');
  command
    .description(
      "Watch the shadow proxy's memory under many clients and large values, or what hostile clients do to others. Needs Linux.",
    )
    .option('--minutes <n>', 'length of the run', positive, 10)
    .option('--clients <n>', 'connected clients', positive, 1000)
    .option('--rate <n>', 'commands a second, over all clients', positive, 3000)
    .option('--max-value <bytes>', 'longest value', positive, 65_536)
    .option('--churn <n>', 'clients a second that hang up and come back', positive, 2)
    .option('--processes <n>', 'processes that the clients live in', positive, 2)
    .option('--sample-seconds <n>', 'time between two looks at the memory', positive, 5)
    .option('--limit-mib <n>', 'the memory must stay under this', positive, MEMORY_REQUIREMENT.maxRssMib)
    .option('--proxy-command <command>', 'how to run the shadow proxy; --plan FILE is added', DEFAULT_PROXY_COMMAND)
    .option('--out <folder>', 'where soak-results.json goes', 'dist/soak')
    .option('--json', 'print the JSON instead of the table', false)
    .option('--hostile', 'attack the proxy beside well-behaved clients, one attack after the other', false)
    .option(
      '--seconds <n>',
      'with --hostile: length of each attack (default: --minutes, divided by the attacks)',
      positive,
    )
    .option(
      '--attacks <names>',
      `with --hostile: which attacks, separated by commas, of ${ALL.join(', ')} (default: all)`,
      attackNames,
      ALL,
    )
    .option('--direct', 'with --hostile: attack Redis itself, to compare the proxy with it', false)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(argv);
  const options = command.opts<Options>();
  const foreign = command.options.filter((option) => {
    const name = option.attributeName();
    return (
      command.getOptionValueSource(name) === 'cli' && (options.hostile ? MEMORY_ONLY : HOSTILE_ONLY).includes(name)
    );
  });
  for (const { long } of foreign)
    command.error(
      `error: ${long} is ${options.hostile ? 'not allowed with' : 'allowed with'} --hostile${options.hostile ? '' : ' only'}`,
    );
  return options;
}

function attackNames(text: string): string[] {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !ALL.includes(name));
  if (unknown !== undefined) throw new InvalidArgumentError(`"${unknown}" is no attack. Allowed: ${ALL.join(', ')}`);
  return names;
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('a number above 0 is wanted');
  return value;
}
