/** The soak's command line. */
import { Command, InvalidArgumentError } from 'commander';
import { DEFAULT_PROXY_COMMAND } from '../../rig/proxy.js';

export interface Options {
  readonly minutes: number;
  readonly clients: number;
  /** Commands a second, over all clients. */
  readonly rate: number;
  /** Bytes of the longest value. */
  readonly maxValue: number;
  /** Clients a second that hang up and come back. */
  readonly churn: number;
  /** Processes that the clients live in. */
  readonly processes: number;
  readonly sampleSeconds: number;
  readonly limitMib: number;
  readonly proxyCommand: string;
  /** Folder of the results. */
  readonly out: string;
  readonly json: boolean;
}

/** Ends the process with 2 on wrong usage. */
export function parseOptions(argv: readonly string[]): Options {
  return new Command('soak')
    .description("Watch the shadow proxy's memory under many clients and large values. Needs Linux.")
    .option('--minutes <n>', 'length of the run', positive, 10)
    .option('--clients <n>', 'connected clients', positive, 1000)
    .option('--rate <n>', 'commands a second, over all clients', positive, 3000)
    .option('--max-value <bytes>', 'longest value', positive, 65_536)
    .option('--churn <n>', 'clients a second that hang up and come back', positive, 2)
    .option('--processes <n>', 'processes that the clients live in', positive, 2)
    .option('--sample-seconds <n>', 'time between two looks at the memory', positive, 5)
    .option('--limit-mib <n>', 'the memory must stay under this', positive, 200)
    .option('--proxy-command <command>', 'how to run the shadow proxy; --plan FILE is added', DEFAULT_PROXY_COMMAND)
    .option('--out <folder>', 'where soak-results.json goes', 'dist/soak')
    .option('--json', 'print the JSON instead of the table', false)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(argv)
    .opts<Options>();
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('a number above 0 is wanted');
  return value;
}
