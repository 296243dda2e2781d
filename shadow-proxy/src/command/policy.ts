/**
 * What the proxy does with each command. This is written by hand, because no server lists it. A command with keys and
 * without a rule is `keyed`; if any other command has no rule, the table does not load.
 */
import { wordOf } from '../resp/decode.js';
import { isWord } from './keys.js';

/**
 * - `keyed`: an ordinary read or write, routed by its keys.
 * - `local`: the proxy itself answers.
 * - `authority`: no keys; the authority of the default workload answers; neither mirrored nor compared.
 * - `script`: a script, routed by its declared keys.
 * - `broadcast`: no keys; sent to the authority of the default workload and its mirror.
 * - `exclusive`: touches keys that it does not name; waits for everything else.
 * - `subscribe`: sent on a connection of the client's own to the authority of its channels.
 * - `publish`: sent to the mirror like a write, though it writes no key.
 * - `refused`: not supported yet, or never; `refusal` says why.
 */
export type Handling =
  'keyed' | 'local' | 'authority' | 'script' | 'broadcast' | 'exclusive' | 'subscribe' | 'publish' | 'refused';

type Rule = readonly [handling: Handling, reason: string, names: string];

/** Names are as in the table; `container|*` stands for the subcommands that no other rule names. */
const RULES: readonly Rule[] = [
  [
    'local',
    "the connection's own state, which clients of one lane do not share",
    'auth hello select quit reset multi exec discard watch unwatch',
  ],
  ['local', 'an HTTP request, as a web page may be tricked to send: the connection is closed', 'post host:'],
  [
    'local',
    "clients are the proxy's, not the server's",
    'client|id client|info client|list client|kill client|getname client|setname client|setinfo client|capa',
  ],
  ['local', "clients are the proxy's, not the server's", 'client|reply client|no-evict client|no-touch client|unblock'],

  ['authority', 'the server answers whether the client may, and that it is reachable', 'ping echo'],
  [
    'authority',
    'about the server',
    'info role time lastsave lolwut config|get config|resetstat command|* latency|* slowlog|* commandlog|* hotkeys|* cluster|slot-stats memory|* module|list',
  ],
  [
    'authority',
    "each server saves its own data; nothing of it depends on the other's",
    'save bgsave bgrewriteaof pfselftest',
  ],
  [
    'authority',
    "by its subcommand: refused where it harms a server, or changes data without the proxy's knowledge",
    'debug',
  ],
  ['authority', 'never so: tracking is refused', 'client|getredir client|trackinginfo'],
  [
    'authority',
    'about users; changes to them are refused',
    'acl|whoami acl|cat acl|list acl|users acl|getuser acl|genpass acl|dryrun acl|log',
  ],
  ['authority', 'on a connection of its own, behind all that the client has written', 'wait waitaof'],
  ['authority', 'about all keys of a server', 'dbsize scan keys randomkey'],
  [
    'authority',
    'about the scripts, functions and channels of a server',
    'script|show script|exists function|list function|dump function|stats pubsub|*',
  ],
  [
    'local',
    'the lane waits for the script that is to be killed: on a connection of its own',
    'script|kill function|kill',
  ],

  ['keyed', 'of the few subcommands with a key', 'memory|usage'],
  ['keyed', 'may store the same value in another way, which the mirror must do, too', 'pfdebug'],
  ['script', 'its keys are those that it declares', 'eval evalsha eval_ro evalsha_ro'],
  ['script', 'its keys are those that it declares', 'fcall fcall_ro'],
  ['broadcast', 'both servers must know the same scripts', 'script|load'],
  ['broadcast', 'clients choose their keyspace events; most other parameters are refused, by name', 'config|set'],
  ['exclusive', 'touches keys that it does not name, or another database', 'flushall flushdb swapdb move'],
  [
    'exclusive',
    'changes what scripts can be run',
    'script|flush function|load function|delete function|restore function|flush',
  ],

  [
    'subscribe',
    'messages come over a connection',
    'subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe',
  ],
  ['publish', 'subscribers may be at either server', 'publish spublish'],

  ['refused', 'the proxy keeps no tracking table: switch client-side caching off', 'client|tracking client|caching'],
  [
    'refused',
    "it would stop the commands of all clients, because the proxy's connections are shared; a stage change pauses clients by itself",
    'client|pause client|unpause',
  ],
  [
    'refused',
    "the debugger takes over the connection, and the proxy's are shared: connect directly to a server of your own",
    'script|debug',
  ],
  [
    'refused',
    "it would show the commands of all clients under the proxy's address: connect directly to the server that you mean",
    'monitor',
  ],
  [
    'refused',
    'the other server would not have it: load it in the configuration of both',
    'module|load module|loadex module|unload',
  ],
  [
    'refused',
    'change the users on each server, and on both in the same way: connect directly to them',
    'acl|setuser acl|deluser acl|load acl|save',
  ],
  [
    'refused',
    'it would write the settings of one server to its disk: connect directly to the server that you mean',
    'config|rewrite',
  ],
  ['refused', 'stop the server on its own host: through the proxy, all clients would lose it', 'shutdown'],
  [
    'refused',
    'replication is between servers: connect directly to the one that you mean, and not while a migration runs',
    'replicaof slaveof failover sync psync replconf',
  ],
  ['refused', 'it would move keys where the proxy does not see them: use DUMP here and RESTORE there', 'migrate'],
  [
    'local',
    'clients see the proxies of the shards as the nodes of the cluster',
    'cluster|slots cluster|shards cluster|nodes cluster|info cluster|myid cluster|keyslot cluster|countkeysinslot cluster|getkeysinslot cluster|links cluster|replicas cluster|slaves cluster|count-failure-reports asking readonly readwrite',
  ],
  [
    'refused',
    'it changes the cluster itself, whose slots must not move while a migration runs: connect directly to one of its nodes',
    'cluster|* clusterscan restore-asking',
  ],
  ['refused', 'only KeyDB has it: Redis could not follow', 'expdel expiremember expirememberat pexpirememberat lfence'],
  [
    'refused',
    'only KeyDB has it: Redis could not follow',
    'keydb.cron keydb.hrename keydb.mexists keydb.nhget keydb.nhset',
  ],
  [
    'refused',
    'it removes the keys of slots where the proxy does not see it: connect directly to the node',
    'trimslots',
  ],
  ['refused', "its field sets belong to one connection, and the proxy's are shared by clients: use HSET", 'himport|*'],
  ['refused', 'it may block, and no server was there to try it: use BLMOVE, or LMOVEM without blocking', 'blmovem'],
  [
    'refused',
    "it would mark a connection of the proxy's, which clients share: connect directly to the server",
    'client|import-source',
  ],
  ['refused', "it belongs to KeyDB's own replication", 'keydb.mvccrestore rreplay replping'],
  ['refused', 'Redis 7 no longer has it: use LCS', 'stralgo'],
];

const handlings = new Map<string, Rule>();
for (const rule of RULES) for (const name of rule[2].split(' ')) handlings.set(name, rule);

/** The rule for a command; undefined if it is keyed by default, or unknown. */
function ruleOf(name: string): Rule | undefined {
  const [container, subcommand] = name.split('|');
  if (subcommand === 'help') return HELP;
  return handlings.get(name) ?? (subcommand === undefined ? undefined : handlings.get(`${container}|*`));
}

const HELP: Rule = ['authority', 'about the server', ''];

/**
 * What the proxy does with a command.
 * @param hasKeys whether the table lists keys for it
 * @param isContainer whether it only holds subcommands: without one of them, the server answers with an explanation
 * @throws {Error} for a command without keys that no rule names
 */
export function handlingOf(name: string, hasKeys: boolean, isContainer: boolean): Handling {
  const rule = ruleOf(name);
  if (rule !== undefined) return rule[0];
  if (isContainer) return 'authority';
  if (!hasKeys) throw new Error(`policy.ts has no rule for ${name}, which has no keys: add it to RULES`);
  return 'keyed';
}

/** How a command may block. */
export interface Blocking {
  /** The position of the timeout: the last argument, the value of the option BLOCK, or this index. */
  readonly timeout: 'last' | 'option' | number;
  /** The unit of the timeout, in ms. */
  readonly unit: 1 | 1000;
}

/** Subcommands of DEBUG that only read, wait, or change how one server works; the table has none of them. */
const HARMLESS_DEBUG: ReadonlySet<string> = new Set(
  (
    'help object sleep jmap stringmatch-len digest digest-value htstats htstats-key listpack ziplist ziplist-raw set-active-expire quicklist quicklist-packed-threshold ' +
    'set-disable-deny-scripts replybuffer error log structsize client-eviction client-enforce-reply-list protocol pause-cron mallctl mallctl-str ' +
    'replicate-getkeys stringmatch getkeys sdslen'
  ).split(' '),
);

/**
 * Parameters that clients may set: the events that they get, the log for them, and the encoding of values. All others
 * concern memory, persistence, users, networking or replication of one server, which the other server must not copy.
 */
const SETTABLE =
  /^(notify-keyspace-events|slowlog-(log-slower-than|max-len)|latency-(monitor-threshold|tracking(-info-percentiles)?)|(hash|set|zset|list)-max-(intset|listpack|ziplist)-(entries|value|size)|list-compress-depth|stream-node-max-(bytes|entries)|hll-sparse-max-bytes)$/;

/** Whether `refusal` may refuse a command. */
export const mayRefuse = (name: string, handling: Handling): boolean =>
  handling === 'refused' || name === 'debug' || name === 'config|set' || name === 'set';

/**
 * The error text with which the proxy refuses a command, without the leading `-`; null if it does not. Only for
 * commands that the table marks as `refusable`.
 */
export function refusal(
  spec: { readonly name: string; readonly handling: Handling },
  frame: Buffer,
  argStart: readonly number[],
  argEnd: readonly number[],
  argc: number,
): string | null {
  const title = spec.name.replace('|', ' ').toUpperCase();
  if (spec.handling === 'refused') return `ERR shadow-proxy: ${title} is not supported yet: ${ruleOf(spec.name)![1]}`;
  if (spec.name === 'set')
    return argc >= LEAST_WITH_DIGEST && hasTwoReplies(frame, argStart, argEnd, argc) ? TWO_REPLIES : null;
  if (spec.name === 'config|set') {
    for (let i = 2; i < argc; i += 2) {
      const parameter = frame
        .toString('latin1', argStart[i], Math.min(argEnd[i], argStart[i] + MAX_PARAMETER))
        .toLowerCase();
      if (!SETTABLE.test(parameter)) return refusedParameter(parameter);
    }
  }
  if (spec.name === 'debug')
    return refusedDebug(
      argc < 2 ? 'help' : frame.toString('latin1', argStart[1], Math.min(argEnd[1], argStart[1] + MAX_SHOWN)),
    );
  return null;
}

/** Number of arguments of SET key value IFDEQ digest GET. */
const LEAST_WITH_DIGEST = 6;
/** Number of digits that DIGEST returns. */
const DIGITS = 16;
const TWO_REPLIES = `ERR shadow-proxy: a digest of SET with GET must have exactly ${DIGITS} hexadecimal characters: Redis 8.6 would give two replies`;

/**
 * Whether the command is a SET with GET and a digest of a wrong length. To that, Redis 8.6 answers with both the value
 * and an error: each later reply on the lane would go to the wrong client.
 */
function hasTwoReplies(frame: Buffer, argStart: readonly number[], argEnd: readonly number[], argc: number): boolean {
  let gets = false;
  let isOff = false;
  for (let i = 3; i < argc; i++) {
    const is = (word: string): boolean => isWord(frame, argStart[i], argEnd[i], word);
    if (is('get')) gets = true;
    else if (is('ifdeq') || is('ifdne')) {
      i++;
      if (i < argc && argEnd[i] - argStart[i] !== DIGITS) isOff = true;
    } else if (WITH_VALUE.some(is)) i++;
  }
  return gets && isOff;
}

/** Other options of SET that have a value. */
const WITH_VALUE = ['ex', 'px', 'exat', 'pxat', 'ifeq', 'ifne'];

/** Maximum length of an argument that an error repeats. */
const MAX_SHOWN = 32;
/** No parameter of a server has a longer name. */
const MAX_PARAMETER = 64;
/** An argument in a form that is allowed in an error. */
const shownAs = (argument: string): string => argument.replace(/[^!-~]/g, '?');

const refusedParameter = (parameter: string): string =>
  `ERR shadow-proxy: CONFIG SET ${shownAs(parameter)} is not supported: the other server would not follow. Connect directly to each server, and set it on both`;

function refusedDebug(subcommand: string): string | null {
  if (HARMLESS_DEBUG.has(subcommand.toLowerCase())) return null;
  const shown = shownAs(subcommand.toUpperCase());
  return `ERR shadow-proxy: DEBUG ${shown} is not supported: it may stop a server, or change data without the proxy's knowledge: connect directly to the server that you mean`;
}

/** Options of XREAD and XREADGROUP with a value: CLAIM since Redis 8.4, the limits of a reply since 8.10. */
const VALUED = /^(COUNT|CLAIM|MAXCOUNT|MAXSIZE)$/;

/** The index of BLOCK among the options of XREAD or XREADGROUP, which end with STREAMS; -1 if it is not there. */
export function blockOption(args: readonly Buffer[]): number {
  for (let i = 1; i < args.length; i++) {
    const option = wordOf(args[i]).toUpperCase();
    if (option === 'BLOCK') return i;
    if (VALUED.test(option)) i++;
    else if (option === 'GROUP') i += 2;
    else if (option !== 'NOACK') return -1;
  }
  return -1;
}

/** Every name that the rules mention, without the `container|*` ones: all must be in the table. */
export const namesInRules = (): readonly string[] => [...handlings.keys()].filter((name) => !name.endsWith('|*'));
