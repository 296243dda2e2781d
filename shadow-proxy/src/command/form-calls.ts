/** The calls that `generate-forms.ts` sends, and the data of the keys that they name. */
import { callsOf, type Call, type CommandDoc, type DocArgument } from './docs-calls.js';

export type Command = readonly (string | Buffer)[];

/** The data of keys, by group of commands: `k` is a command's first key, `k2` its second. */
export const HOLDS: Readonly<Record<string, readonly string[]>> = {
  string: ['SET k 10 EX 100', 'SET k2 11'],
  bitmap: ['SET k abc', 'SET k2 abd'],
  generic: ['SET k 10 EX 100'],
  list: ['RPUSH k a b v', 'RPUSH k2 c'],
  hash: ['HSET k f 1 g 2'],
  set: ['SADD k a b v', 'SADD k2 b c'],
  'sorted-set': ['ZADD k 1 a 2 b 3 v', 'ZADD k2 1 b'],
  geo: ['GEOADD k 13.361389 38.115556 v 15.087269 37.502669 b'],
  hyperloglog: ['PFADD k a b', 'PFADD k2 c'],
  stream: [
    'XADD k 1-1 f v',
    'XADD k 2-1 f v',
    'XGROUP CREATE k g 0',
    'XREADGROUP GROUP g c COUNT 1 STREAMS k >',
    'XADD k2 1-1 f v',
    'XGROUP CREATE k2 g 0',
  ],
};
/** Data for commands whose group does not show the type of their keys. */
export const HOLDS_FOR: Readonly<Record<string, readonly string[]>> = {
  sort: ['RPUSH k 3 1 2'],
  sort_ro: ['RPUSH k 3 1 2'],
};

/** Data that FCALL and FUNCTION DELETE need. */
const LIBRARY =
  "#!lua name=lib\nredis.register_function{function_name='f',callback=function() return 1 end,flags={'no-writes'}}";
/** Exactly one library, whatever earlier calls have left: servers list their commands in random order. */
export const WITH_LIBRARY: readonly Command[] = [
  ['FUNCTION', 'FLUSH'],
  ['FUNCTION', 'LOAD', LIBRARY],
];
const OTHER_LIBRARY = "#!lua name=other\nredis.register_function('h',function() return 1 end)";

const VALUES: Readonly<Record<string, string>> = {
  'acl|cat categoryname': 'read',
  'acl|deluser username': 'nobody',
  'acl|dryrun command': 'get',
  'acl|dryrun arg': 'k',
  'acl|dryrun username': 'default',
  'acl|getuser username': 'default',
  'acl|setuser username': 'nobody',
  'acl|setuser rule': 'on',
  'acl|log count': '1',
  'auth password': 'x',
  'auth username': 'default',
  'hello password': 'x',
  'hello username': 'default',
  'bitfield encoding': 'u8',
  'bitfield_ro encoding': 'u8',
  'bitop operation': 'AND',
  'client|list client-id': '1',
  'client|unblock client-id': '999999',
  'command|list module-name': 'nothing',
  'command|list category': 'read',
  'config|get parameter': 'maxmemory',
  'config|set parameter': 'maxmemory',
  'config|set value': '0',
  'copy destination-db': '1',
  'move db': '1',
  'select index': '1',
  'swapdb index1': '0',
  'swapdb index2': '1',
  'eval script': 'return 1',
  'eval_ro script': 'return 1',
  'script|load script': 'return 1',
  'evalsha sha1': 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db',
  'evalsha_ro sha1': 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db',
  'script|exists sha1': 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db',
  'fcall function': 'f',
  'fcall_ro function': 'f',
  'function|delete library-name': 'lib',
  'function|load function-code': OTHER_LIBRARY,
  'hello protover': '2',
  'info section': 'server',
  'latency|graph event': 'command',
  'linsert pivot': 'v',
  'pfdebug subcommand': 'getreg',
  'psync offset': '0',
  'restore serialized-value': '@dump',
  'function|restore serialized-value': '@dump',
  'setbit value': '1',
  'xadd id': '5-1',
  'xadd threshold': '1',
  'xtrim threshold': '1',
  'xsetid last-id': '9-1',
  'xgroup|create id': '0',
  'xgroup|create groupname': 'h',
  'xgroup|createconsumer consumername': 'd',
  'xgroup|setid id': '0',
  'xread id': '0',
  'xreadgroup id': '>',
  'xautoclaim start': '0',
  'xpending start': '-',
  'xpending end': '+',
  'xrange start': '-',
  'xrange end': '+',
  'xrevrange start': '-',
  'xrevrange end': '+',
  'xsetid entries_added': '9',
  'xsetid max_deleted_entry_id': '1-1',
  'xclaim id': '1-1',
  'zlexcount min': '-',
  'zlexcount max': '+',
  'zrangebylex min': '-',
  'zrangebylex max': '+',
  'zremrangebylex min': '-',
  'zremrangebylex max': '+',
  'zrevrangebylex min': '-',
  'zrevrangebylex max': '+',
  'zrange start': '0',
  'zrange stop': '1',
  'zrangestore min': '0',
  'zrangestore max': '1',
  'latency|histogram command': 'get',
  'command|docs command-name': 'get',
  'command|info command-name': 'get',
  'memory|usage count': '1',
  'scan type': 'string',
  channel: 'c',
  consumer: 'c',
  consumername: 'c',
  cursor: '0',
  field: 'f',
  group: 'g',
  groupname: 'g',
  host: '127.0.0.1',
  id: '1-1',
  increment: '1',
  member1: 'v',
  member2: 'b',
  'min-idle-time': '0',
  numreplicas: '0',
  milliseconds: '1',
  offset: '0',
  pattern: '*',
  pivot: 'v',
  'unix-time-milliseconds': '4102444800000',
  'unix-time-seconds': '4102444800',
};
const OF_TYPE: Readonly<Record<string, string>> = {
  string: 'v',
  integer: '1',
  double: '1',
  pattern: '*',
  'unix-time': '4102444800',
};
/**
 * The timeout of BLPOP and similar commands, in seconds. KeyDB blocks without a limit if one millisecond is asked for.
 */
export const SHORT = '0.01';

/** Calls that `COMMAND DOCS` does not list: forms in the history only, containers, and what only KeyDB accepts. */
export const MORE: readonly (readonly [command: string, group: string, words: readonly string[], call: string])[] = [
  ['xadd', 'stream', ['ms-*'], 'XADD k 5-* f v'],
  ['command', 'server', [], 'COMMAND'],
  ['command|getkeys', 'server', [], 'COMMAND GETKEYS GET k'],
  ['command|getkeysandflags', 'server', [], 'COMMAND GETKEYSANDFLAGS GET k'],
  ['acl|dryrun', 'server', [], 'ACL DRYRUN default GET k'],
  ['bitop', 'bitmap', ['LSHIFT'], 'BITOP LSHIFT d k 1'],
  ['bitop', 'bitmap', ['RSHIFT'], 'BITOP RSHIFT d k 1'],
];

export interface Probe extends Call {
  readonly command: string;
  readonly group: string;
}

/** Marks a word that is sent in upper case; the calls otherwise use lower case. */
export const UPPER = ':upper';

/** Each call with its tokens in lower case; and for each token, the shortest call with that token in upper case. */
export function probesOf(doc: CommandDoc): Probe[] {
  const calls = callsOf(doc, (argument) => valueOf(doc.name, argument));
  const tokens = new Set(calls.flatMap(({ words }) => words.filter((word) => /^[A-Z]/.test(word))));
  const upper = [...tokens].map((token) =>
    inUpperCase(
      token,
      calls.find(({ words }) => words.includes(token))!,
    ),
  );
  return [...calls, ...upper].map((call) => ({
    ...call,
    args: withKeys(call.args),
    command: doc.name,
    group: doc.group,
  }));
}

const inUpperCase = (token: string, { args, words, cost }: Call): Call => ({
  args: args.map((arg) => (arg.toUpperCase() === token ? token : arg)),
  words: [...words, `${token}${UPPER}`],
  cost,
});

const KEY = '@key';
const NUMKEYS = '@numkeys';
export const DUMP = '@dump';

function valueOf(command: string, { name, type }: DocArgument): string {
  if (type === 'key') return KEY;
  if (name === 'numkeys') return NUMKEYS;
  if (name === 'timeout' && type === 'double') return SHORT;
  return VALUES[`${command} ${name}`] ?? VALUES[name] ?? OF_TYPE[type] ?? 'v';
}

/** Gives names to keys, and counts them if their number is an argument. */
function withKeys(args: readonly string[]): string[] {
  const names = ['k', 'k2', 'k3'];
  const counted = args.indexOf(NUMKEYS);
  return args.map((arg, i) => {
    if (arg === NUMKEYS) return String(args.slice(i).filter((each) => each === KEY).length);
    if (arg !== KEY) return arg;
    return i < counted ? 'd' : names.shift()!;
  });
}

/** Tokens after which any text is allowed, even one that is a token. */
export function* tokensOfStrings(args: readonly DocArgument[]): Generator<string> {
  for (const { token, type, arguments: inner } of args) {
    if (token !== null && type === 'string') yield token;
    yield* tokensOfStrings(inner);
  }
}
