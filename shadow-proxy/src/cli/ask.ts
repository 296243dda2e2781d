/**
 * `shadow-compare ask`: sends a question to the plan's servers, with their address, login and certificates from the
 * plan. The output is that of `redis-cli` without a terminal.
 *
 * Commands on keys are refused: a write would bypass the proxy, and KeyDB 6.3.4 miscounts its keys after some scans.
 */
import { existsSync } from 'node:fs';
import { Argument, InvalidArgumentError, type Command } from 'commander';
import { formatAddress, parseAddress, type Address, type Endpoint } from '../plan/endpoint.js';
import type { Plan } from '../plan/plan.js';
import { errorText, isError, isNull, type Reply } from '../resp/decode.js';
import { AskError, asking } from '../upstream/asker.js';
import { openPlan } from '../upstream/open-plan.js';
import { confirmYes } from './confirm.js';
import { CliError, exitCode } from './exit.js';
import { withManual } from './manual.js';
import { stderr, stdout } from './output.js';

interface AskOptions {
  readonly plan?: string;
  readonly shard?: string;
  readonly node?: Address;
  readonly yes?: boolean;
}

type Side = 'source' | 'target';

/** A server, and the shards that use it. */
interface SharedServer {
  readonly shards: readonly string[];
  readonly endpoint: Endpoint;
}

const DEFAULT_PLAN = 'migration.yaml';

/** Commands that change nothing; with subcommands if only some of them do not. */
const QUESTIONS: Readonly<Record<string, readonly string[] | null>> = {
  acl: ['cat', 'getuser', 'list', 'log', 'users', 'whoami'],
  client: ['list'],
  cluster: ['info', 'keyslot', 'myid', 'nodes', 'slots'],
  config: ['get'],
  dbsize: null,
  info: null,
  lastsave: null,
  latency: ['doctor', 'history', 'latest'],
  memory: ['doctor', 'malloc-stats', 'stats'],
  ping: null,
  role: null,
  slowlog: ['get', 'len'],
  time: null,
};

/** Subcommands that change the server, but no key. */
const CHANGES: Readonly<Record<string, readonly string[] | null>> = {
  bgsave: null,
  cluster: ['failover'],
  config: ['resetstat', 'rewrite', 'set'],
  failover: null,
  latency: ['reset'],
  replicaof: null,
  script: ['kill'],
  shutdown: null,
  slowlog: ['reset'],
};

export function addAsk(program: Command): void {
  const command = program
    .command('ask')
    .description('Ask the servers of the plan, with its addresses, logins and certificates; each once')
    .addArgument(new Argument('<side>', 'which servers').choices(['source', 'target']))
    .argument('<command...>', 'such as info memory, or config get maxmemory; none that reads or writes keys')
    .option('--plan <file>', `the migration plan (default: ${DEFAULT_PLAN})`)
    .option('--shard <name>', 'only the server of this shard (default: those of all shards)')
    .option('--node <host:port>', 'another node of that server, such as a replica, with the same login', node)
    .option('--yes', 'do not ask before a command that changes the server');
  withManual(command, 'shadow-compare ask target info memory --plan migration.yaml', {
    0: 'every server answered',
    1: 'a server refused the command, or a change was not confirmed',
    3: 'a server could not be reached, or refused the login',
  });
  command.action(async (side: Side, words: readonly string[], options: AskOptions) => {
    process.exitCode = await ask(side, words, options);
  });
}

function node(text: string): Address {
  if (/:\d{1,5}$/.test(text)) return parseAddress(text);
  throw new InvalidArgumentError('Give the address of a node, such as 10.0.1.22:6390.');
}

async function ask(side: Side, words: readonly string[], options: AskOptions): Promise<number> {
  const changes = kindOf(words) === 'change';
  const servers = chosen(serversOf(await openPlan(planFile(options)), side), side, options);
  if (changes && !options.yes)
    await confirmYes(
      { what: `${words.join(' ')} changes ${servers.map(({ endpoint }) => endpoint.label).join(', ')}` },
      'Run it?',
      '--yes',
    );
  // Changes are made one after the other: if a server refuses, the next ones are not asked.
  const codes: number[] = [];
  if (changes)
    for (const server of servers) {
      codes.push(await put(server, words, servers.length > 1));
      if (codes.at(-1) !== exitCode.holds) break;
    }
  else codes.push(...(await Promise.all(servers.map((server) => put(server, words, servers.length > 1)))));
  return codes.includes(exitCode.fails) ? exitCode.fails : Math.max(...codes);
}

function planFile({ plan }: AskOptions): string {
  if (plan !== undefined) return plan;
  if (existsSync(DEFAULT_PLAN)) return DEFAULT_PLAN;
  throw new CliError('option', `--plan is missing, and there is no ${DEFAULT_PLAN} in this directory`, exitCode.usage);
}

/** @throws {CliError} if the command is neither a question nor a change */
function kindOf(words: readonly string[]): 'question' | 'change' {
  const [name, sub = ''] = words.map((word) => word.toLowerCase());
  const has = (table: typeof QUESTIONS): boolean =>
    Object.hasOwn(table, name) && (table[name] === null || table[name].includes(sub));
  if (has(QUESTIONS)) return 'question';
  if (has(CHANGES)) return 'change';
  const known = [QUESTIONS, CHANGES].flatMap((table) =>
    Object.entries(table).flatMap(([each, subs]) => subs?.map((one) => `${each} ${one}`) ?? [each]),
  );
  throw new CliError(
    'option',
    `ask does not take ${name}${sub === '' ? '' : ` ${sub}`}. It takes ${known.toSorted().join(', ')}. Read keys through the proxy`,
    exitCode.usage,
  );
}

/** Each server once, even if several shards use it. */
function serversOf({ shards }: Plan, side: Side): readonly SharedServer[] {
  const found = new Map<string, { endpoint: Endpoint; shards: string[] }>();
  for (const shard of shards) {
    const { [side]: endpoint } = shard;
    const same = found.get(endpoint.label);
    if (same === undefined) found.set(endpoint.label, { endpoint, shards: [shard.name] });
    else same.shards.push(shard.name);
  }
  return [...found.values()];
}

/** @throws {CliError} if the options select no server, or several */
function chosen(
  servers: readonly SharedServer[],
  side: Side,
  { shard, node: address }: AskOptions,
): readonly SharedServer[] {
  const all = servers.flatMap(({ shards }) => shards);
  const own = shard === undefined ? servers : servers.filter(({ shards }) => shards.includes(shard));
  if (own.length === 0)
    throw new CliError(
      'unknown-shard',
      `--shard ${shard}: there is no such shard. The shards: ${all.join(', ')}`,
      exitCode.usage,
    );
  if (address === undefined) return own;
  if (own.length > 1)
    throw new CliError(
      'option',
      `--node names a node of one ${side}, and the plan has ${own.length}: add --shard, one of ${all.join(', ')}`,
      exitCode.usage,
    );
  const [{ shards, endpoint }] = own;
  const { tls, username, password } = endpoint;
  const label = `${tls === null ? 'redis' : 'rediss'}://${formatAddress(address)}`;
  return [{ shards, endpoint: { kind: 'server', label, tls, username, password, db: 0, ...address } }];
}

/** Asks one server and prints its answer. @returns the exit code */
async function put({ shards, endpoint }: SharedServer, words: readonly string[], several: boolean): Promise<number> {
  const before = several ? `${shards.join(',')}  ` : '';
  try {
    const reply = await asking(endpoint, async (asker) => (await asker.all([words]))[0]);
    if (isError(reply)) {
      stderr.write(`${before}${endpoint.label} refuses ${words.join(' ')}: ${errorText(reply)}\n`);
      return exitCode.fails;
    }
    stdout.write(
      linesOf(
        reply,
        words.map((word) => word.toLowerCase()),
      )
        .map((line) => `${before}${line}\n`)
        .join(''),
    );
    return exitCode.holds;
  } catch (error) {
    if (!(error instanceof AskError)) throw error;
    // A server that shuts down closes the connection without an answer.
    if (words[0].toLowerCase() === 'shutdown' && /clos|ended|ECONNRESET/i.test(error.message)) {
      stdout.write(`${before}${endpoint.label} has shut down\n`);
      return exitCode.holds;
    }
    stderr.write(`${before}${error.message}\n`);
    return exitCode.inconclusive;
  }
}

/** Settings that hold a password. */
const SECRET = /pass|auth/;

/** Questions whose answer has several lines. In other answers, line breaks could only be forged. */
const TEXTS: ReadonlySet<string> = new Set([
  ...['client list', 'cluster info', 'cluster nodes', 'info', 'latency doctor', 'memory doctor', 'memory malloc-stats'],
]);

/** One line for each element; settings with their names. */
function linesOf(reply: Reply, [name, sub = '']: readonly string[]): readonly string[] {
  const { items } = reply;
  if (items?.length === 0) return ['(empty)'];
  if (items === null && (TEXTS.has(name) || TEXTS.has(`${name} ${sub}`)))
    return (reply.data?.toString() ?? '').trimEnd().split(/\r?\n/);
  if (items === null) return [leaf(reply)];
  if (name !== 'config' || sub !== 'get') return items.map(flat);
  return items.flatMap((item, i) => {
    if (i % 2 === 1) return [];
    const value = leaf(items[i + 1]);
    return [`${leaf(item)} ${SECRET.test(leaf(item)) && value !== '' ? '***' : value}`];
  });
}

const flat = (reply: Reply): string => reply.items?.map(flat).join(' ') ?? leaf(reply);
const leaf = (reply: Reply): string =>
  isNull(reply) ? '(nil)' : (reply.data?.toString() ?? '').trim().replaceAll(/\s*[\r\n]+\s*/g, ' ');
