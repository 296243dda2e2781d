/** The options of `shadow-proxy`, the daemon. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { LOG_LEVELS, type LogLevel } from '../telemetry/log.js';
import { withManual } from './manual.js';

export interface ProxyOptions {
  readonly plan: string;
  readonly shard?: string;
  readonly standby?: boolean;
  readonly peer?: readonly string[];
  readonly firstStart?: boolean;
  readonly check?: boolean;
  readonly logLevel: LogLevel;
}

/** The program without its action. */
export function proxyProgram(): Command {
  const program = new Command('shadow-proxy')
    .description(
      'Forwards the commands of Redis clients to one server, replays each write on another, and compares the replies.',
    )
    .requiredOption('--plan <file>', 'the migration plan, in YAML')
    .option('--shard <name>', 'run this shard only (default: all shards of the plan)')
    .option('--standby', 'wait until the process that serves the shards ends, then take over')
    .addOption(
      new Option(
        '--peer <url...>',
        'with --standby and a state folder of its own: copy the stages from the proxy whose admin HTTP is there',
      ).argParser(peerOf),
    )
    .option(
      '--first-start',
      'confirm that no proxy has served the shards before, although their target holds keys: begin in the stages of the plan',
    )
    .option('--check', 'only check the plan, and its limits against the memory of this process')
    .addOption(new Option('--log-level <level>', 'lowest level that is logged').choices(LOG_LEVELS).default('info'));
  return withManual(program, 'shadow-proxy --plan migration.yaml', {
    0: 'stopped, and every write was confirmed; with --check: the plan is valid',
    1: 'stopped with unconfirmed writes, or another proxy serves a shard',
    3: 'a server does not answer at the start',
  });
}

function peerOf(text: string, before: readonly string[] = []): readonly string[] {
  const url = URL.parse(text);
  if (url?.protocol !== 'http:' || url.pathname !== '/' || url.search !== '' || url.username !== '')
    throw new InvalidArgumentError('write the admin address of the other proxy, such as http://10.0.2.31:9400');
  return [...before, url.origin];
}
