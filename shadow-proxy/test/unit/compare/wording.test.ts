/** Error texts of Redis 7.0.15 and KeyDB 6.3.4: which mean the same, and what else a text shows. */
// cspell:ignore keydbes nogroups nosuch readonlys redises wrongtypes
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isAboutKey,
  isCondition,
  isRefusal,
  isScript,
  lacksMemory,
  meanTheSame,
  takesNoWrites,
} from '../../../src/compare/wording.js';

const named = (name: string): { name: string; args: Buffer[] } => ({ name, args: [] });
const [SHA, SHA2] = ['206396248e12c6e742fd7296250433c8d7343b74', '82903a0434f1503e152f89c03c9acd881a0e8150'];
const SCRIPTS = 'eval evalsha eval_ro evalsha_ro fcall fcall_ro';

/** Two texts after `ERR ` that only together say the same, the commands that they are for. */
interface Pair {
  readonly commands: string;
  /** The texts mean the same for these commands only. */
  readonly only?: boolean;
  readonly newer: string;
  readonly older: string;
  /** The server whose text may go on, with a subcommand or a reason. */
  readonly open?: 'newer' | 'both';
}

const PAIRS: readonly Pair[] = [
  {
    commands: 'object|nosuch get',
    newer: "unknown subcommand 'NOSUCH'. Try OBJECT HELP.",
    older: "Unknown subcommand or wrong number of arguments for 'nosuch'. Try object help.",
  },
  {
    commands: 'xinfo|stream get',
    newer: "wrong number of arguments for 'xinfo|stream' command",
    older: "Unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.",
  },
  {
    commands: 'config|get get',
    newer: "this user has no permissions to run the 'config|get' command",
    older: "this user has no permissions to run the 'config' command or its subcommand",
    open: 'newer',
  },
  {
    commands: 'get',
    newer: "this user has no permissions to run the 'get' command",
    older: "this user has no permissions to run the 'get' command or its subcommand",
  },
  {
    commands: 'client|list get',
    newer: "Can't execute 'client|list': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT",
    older: "Can't execute 'client': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT",
  },
  {
    commands: 'get',
    newer: "Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT",
    older: "Can't execute 'get': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT",
  },
  {
    commands: 'config|set',
    only: true,
    newer: "CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value",
    older: "Invalid argument 'abc' for CONFIG SET 'maxmemory' - argument must be a memory value",
  },
  {
    commands: 'config|set',
    only: true,
    newer: "CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters",
    older: "Invalid argument '900\n1' for CONFIG SET 'save' - Invalid save parameters",
  },
  {
    commands: 'config|set',
    only: true,
    newer: "Unknown option or number of arguments for CONFIG SET - 'nosuch'",
    older: 'Unsupported CONFIG parameter: nosuch',
  },
  ...['', 'p'].flatMap((p): Pair[] =>
    ['', 'at'].map((at) => ({
      commands: 'expire pexpire expireat pexpireat',
      only: true,
      newer: 'NX and XX, GT or LT options at the same time are not compatible',
      older: `wrong number of arguments for '${p}expire${at}' command`,
    })),
  ),
  {
    commands: 'expire',
    only: true,
    newer: 'GT and LT options at the same time are not compatible',
    older: "wrong number of arguments for 'expire' command",
  },
  {
    commands: 'expire',
    only: true,
    newer: 'Unsupported option FOO',
    older: "wrong number of arguments for 'expire' command",
    open: 'newer',
  },
  {
    commands: 'zpopmin zpopmax',
    only: true,
    newer: 'value is out of range, must be positive',
    older: 'value is not an integer or out of range',
  },
  {
    commands: 'lpos',
    only: true,
    newer:
      "RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end",
    older: "RANK can't be zero: use 1 to start from the first match, 2 from the second, ...",
    open: 'newer',
  },
  {
    commands: 'georadius georadiusbymember geosearchstore',
    only: true,
    newer: 'GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options',
    older: 'STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORDS options',
  },
  {
    commands: 'georadius',
    only: true,
    newer: 'STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options',
    older: 'STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORDS options',
  },
  {
    commands: `${SCRIPTS} script|load`,
    only: true,
    newer: "Error compiling script (new function): user_script:12: unexpected symbol near '<eof>'",
    older: "Error compiling script (new function): user_script:34: '=' expected near 'end'",
    open: 'both',
  },
  {
    commands: SCRIPTS,
    only: true,
    newer: 'Unknown Redis command called from script',
    older: 'Unknown Redis command called from Lua script',
  },
  {
    commands: 'zrank',
    only: true,
    newer: 'syntax error',
    older: "wrong number of arguments for 'zrank' command",
  },
  {
    commands: 'xread',
    only: true,
    newer: "Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified.",
    older: "Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
  },
  {
    commands: 'xread xreadgroup',
    only: true,
    newer: "Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified.",
    older: "Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
  },
  {
    commands: 'geosearch geosearchstore',
    only: true,
    newer: 'exactly one of BYRADIUS, BYBOX and BYPOLYGON can be specified for geosearch',
    older: 'exactly one of BYRADIUS and BYBOX can be specified for geosearch',
  },
  {
    commands: 'georadiusbymember georadiusbymember_ro geosearch geosearchstore',
    only: true,
    newer: 'member a\nb does not exist',
    older: 'could not decode requested zset member',
  },
  {
    commands: SCRIPTS,
    only: true,
    newer: 'Wrong number of args calling Redis command from script',
    older: 'Wrong number of args calling Redis command From Lua script',
  },
  {
    commands: SCRIPTS,
    only: true,
    newer: 'Please specify at least one argument for this redis lib call',
    older: 'Please specify at least one argument for redis.call()',
  },
  {
    commands: SCRIPTS,
    only: true,
    newer: 'Lua redis lib command arguments must be strings or integers',
    older: 'Lua redis() command arguments must be strings or integers',
  },
  {
    commands: SCRIPTS,
    only: true,
    newer: 'This Redis command is not allowed from script',
    older: 'This Redis command is not allowed from scripts',
  },
  {
    commands: SCRIPTS,
    only: true,
    newer: 'user_script:12: Attempt to modify a readonly table',
    older: "user_script:12: Script attempted to create global variable 'total'",
  },
];

test('each pair of texts means the same for its commands, whichever server is the authority', () => {
  for (const { commands, newer, older } of PAIRS) {
    for (const command of commands.split(' ')) {
      assert.equal(meanTheSame(`ERR ${newer}`, `ERR ${older}`, named(command)), true, `${command}: ${newer}`);
      assert.equal(meanTheSame(`ERR ${older}`, `ERR ${newer}`, named(command)), true, `${command}: ${older}`);
    }
  }
});

test('a pair says nothing for another command, nor another code, nor with more before or after its texts', () => {
  for (const { commands, only, newer, older, open } of PAIRS) {
    const differ = (a: string, b: string, name = commands.split(' ')[0]): void => {
      assert.equal(meanTheSame(a, b, named(name)), false, `${name}: ${a} / ${b}`);
      assert.equal(meanTheSame(b, a, named(name)), false, `${name}: ${b} / ${a}`);
    };
    if (only) differ(`ERR ${newer}`, `ERR ${older}`, 'get');
    differ(`ERR ${newer}`, `NOPERM ${older}`);
    differ(`ERR so ${newer}`, `ERR ${older}`);
    differ(`ERR ${newer}`, `ERR so ${older}`);
    if (open === undefined) differ(`ERR ${newer}, so`, `ERR ${older}`);
    if (open !== 'both') differ(`ERR ${newer}`, `ERR ${older}, so`);
  }
});

const failed7 = (text: string, sha = SHA, where = 'user_script:1'): string => `${text} script: ${sha}, on @${where}.`;
const failed6 = (text: string, where = 'user_script:1', sha = SHA): string =>
  `ERR Error running script (call to f_${sha}): @${where}: ${text}`;

type Same = readonly [name: string, command: string, a: string, b: string, same: boolean];

const SAME: readonly Same[] = [
  ['letters in another case', 'geodist', 'ERR use M, KM', 'ERR use m, km', true],
  ['a code in another case', 'get', 'ERR x', 'err x', false],
  ['another code', 'get', 'ERR x', 'WRONGTYPE x', false],
  ['another text', 'get', 'ERR x', 'ERR y', false],
  ['a code alone', 'get', 'MYX', 'MYX ', true],
  ['a code alone has no text', 'get', 'MYX', 'MY MYX', false],
  ['other codes alone', 'get', 'MYX', 'MYY', false],
  ['quotes of two kinds', 'get', "ERR no 'a' or 'b'", 'ERR no `a` or `b`', true],
  ['the names of the two servers', 'get', 'BUSY Redis, says Redis', 'BUSY KeyDB, says KeyDB', true],
  ['a name that only begins like the server', 'get', 'BUSY redises', 'BUSY keydbes', false],
  ['a command in quotes', 'setex', "ERR invalid time in 'setex' command", 'ERR invalid time in setex', true],
  ['two commands in quotes', 'get', "ERR for 'a' command, the 'b' command", 'ERR for a, the b', true],
  ['another word before the quotes', 'get', "ERR with 'get' command", 'ERR with get', false],
  ['another word after the quotes', 'get', "ERR in 'get' commands", 'ERR in gets', false],
  [
    'arguments in two ways of writing',
    'nosuch',
    "ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' ",
    'ERR Unknown command `NOSUCH`, with args beginning with: `a`, `b`, ',
    true,
  ],
  [
    'another unknown command',
    'nosuch',
    "ERR unknown command 'NOSUCH', with args beginning with: 'a' ",
    'ERR unknown command `OTHER`, with args beginning with: `a`, ',
    false,
  ],
  [
    'arguments over two lines',
    'nosuch',
    "ERR unknown command 'NO\nSUCH', with args beginning with: 'a\nb' ",
    'ERR unknown command `NO\nSUCH`, with args beginning with: `a`, `\n`, ',
    true,
  ],
  [
    'arguments after another text',
    'nosuch',
    "ERR an unknown command 'A', with args beginning with: 'a'",
    "ERR an unknown command 'A', with args beginning with: 'b'",
    false,
  ],
  [
    'another subcommand',
    'object|x',
    "ERR unknown subcommand 'NOSUCH'. Try OBJECT HELP.",
    "ERR Unknown subcommand or wrong number of arguments for 'OTHER'. Try OBJECT HELP.",
    false,
  ],
  [
    'the subcommand of another command',
    'object|x',
    "ERR unknown subcommand 'NOSUCH'. Try OBJECT HELP.",
    "ERR Unknown subcommand or wrong number of arguments for 'NOSUCH'. Try XINFO HELP.",
    false,
  ],
  [
    'too few arguments for another subcommand',
    'xinfo|stream',
    "ERR wrong number of arguments for 'xinfo|stream' command",
    "ERR Unknown subcommand or wrong number of arguments for 'GROUPS'. Try XINFO HELP.",
    false,
  ],
  [
    'too few arguments for a subcommand of another command',
    'xinfo|stream',
    "ERR wrong number of arguments for 'xinfo|stream' command",
    "ERR Unknown subcommand or wrong number of arguments for 'STREAM'. Try OBJECT HELP.",
    false,
  ],
  [
    'no permission for another command',
    'config|get',
    "NOPERM this user has no permissions to run the 'config|get' command",
    "NOPERM this user has no permissions to run the 'client' command or its subcommand",
    false,
  ],
  [
    'another command while subscribed',
    'get',
    "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING",
    "ERR Can't execute 'set': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING",
    false,
  ],
  [
    'other commands are allowed while subscribed',
    'get',
    "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING",
    "ERR Can't execute 'get': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / QUIT",
    false,
  ],
  [
    'another option of CONFIG SET',
    'config|set',
    "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - bad",
    "ERR Invalid argument 'abc' for CONFIG SET 'port' - bad",
    false,
  ],
  [
    'another reason of CONFIG SET',
    'config|set',
    "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - bad",
    "ERR Invalid argument 'abc' for CONFIG SET 'maxmemory' - worse",
    false,
  ],
  [
    'another unknown option of CONFIG SET',
    'config|set',
    "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'",
    'ERR Unsupported CONFIG parameter: other',
    false,
  ],
  [
    'a readonly table on another line',
    'eval',
    'ERR user_script:1: Attempt to modify a readonly table',
    "ERR user_script:2: Script attempted to create global variable 'x'",
    false,
  ],
  ['two texts of newer servers', 'zpopmin', 'ERR value is out of range, must be positive', 'ERR no', false],
  // Where a script failed.
  ['a script that failed', 'eval', failed7('ERR boom'), failed6('boom'), true],
  [
    'on a line of two digits',
    'eval',
    failed7('ERR boom', SHA, 'user_script:12'),
    failed6('boom', 'user_script:34'),
    true,
  ],
  ['a function of Lua names the line again', 'eval', failed7('ERR boom'), failed6('@user_script: 12: boom'), true],
  ['with the code of the inner error', 'eval', failed7('ERR boom'), failed6('@user_script: 1: ERR boom'), true],
  ['the older server, twice', 'eval', failed6('boom'), failed6('@user_script: 1: ERR boom'), true],
  ['another script, both by the older server', 'eval', failed6('boom'), failed6('boom', 'user_script:1', SHA2), false],
  ['another script, both by the newer server', 'eval', failed7('ERR boom'), failed7('ERR boom', SHA2), false],
  ['another script', 'evalsha', failed7('ERR boom'), failed6('boom', 'user_script:1', SHA2), false],
  ['only one server names the script', 'fcall', failed7('ERR boom'), 'ERR boom', true],
  ['only the other server names the script', 'fcall', 'ERR boom', failed6('boom'), true],
  ['another failure', 'eval', failed7('ERR boom'), failed6('bang'), false],
  ['another code of the failure', 'eval', failed7('WRONGTYPE no'), failed6('WRONGTYPE no'), false],
  ['the same of no script', 'get', failed7('ERR boom'), failed6('boom'), false],
  ['a place in the middle of the text', 'eval', `${failed7('ERR boom')} so`, 'ERR boom so', false],
  ['a place after another text', 'eval', failed6('boom').replace('ERR ', 'ERR so '), 'ERR so boom', false],
  ['a hash that is too short', 'eval', failed7('ERR boom', 'abc'), 'ERR boom', false],
];

test('which texts mean the same', () => {
  for (const [name, command, a, b, same] of SAME) {
    assert.equal(meanTheSame(a, b, named(command)), same, name);
    assert.equal(meanTheSame(b, a, named(command)), same, `${name}, with the sides exchanged`);
  }
});

test('the replies of scripts and functions are what their authors chose', () => {
  for (const name of SCRIPTS.split(' ')) assert.equal(isScript(named(name)), true, name);
  for (const name of ['get', 'script|load', 'function|load']) assert.equal(isScript(named(name)), false, name);
});

test('a refusal is about the command and its options', () => {
  for (const [error, refuses] of [
    ["ERR unknown command 'X'", true],
    ["ERR Unknown subcommand 'X'", true],
    ["ERR wrong number of arguments for 'get' command", true],
    ['ERR syntax error', true],
    ['ERR Unsupported option FOO', true],
    ['ERR no such key', false],
    ['ERR because of a syntax error', false],
    ['EXECABORT ERR syntax error', false],
    ['WRONGTYPE syntax error', false],
  ] as const) {
    assert.equal(isRefusal(error), refuses, error);
  }
});

test('a condition is about the server or the rights of the user, by the code alone', () => {
  const codes =
    'OOM LOADING BUSY MASTERDOWN READONLY NOAUTH WRONGPASS NOPERM MISCONF NOREPLICAS ' +
    'CLUSTERDOWN TRYAGAIN MOVED ASK NOSCRIPT NOTBUSY UNKILLABLE';
  for (const code of codes.split(' ')) {
    assert.equal(isCondition(`${code} is why`), true, code);
    assert.equal(isCondition(code), true, `${code} alone`);
    assert.equal(isCondition(`ERR ${code} is why`), false, `ERR ${code}`);
  }
  for (const error of ['WRONGTYPE x', 'ERR no', 'BUSYKEY x', 'oom x', ''])
    assert.equal(isCondition(error), false, error);
});

const OOM = "OOM command not allowed when used memory > 'maxmemory'.";
const READONLY = "READONLY You can't write against a read only replica.";

test('a server has no memory, or takes no writes: in its own reply, a script or a transaction', () => {
  for (const [name, command, error, full, readOnly] of [
    ['its own reply', 'set', OOM, true, false],
    ['a script', 'eval', `ERR Error running script: -${OOM}`, true, false],
    ['a script that says the code only', 'eval', 'ERR OOM', false, false],
    ['a command that only quotes it', 'set', `ERR -${OOM}`, false, false],
    ['the end of a transaction', 'exec', `EXECABORT Transaction discarded because of: ${OOM}`, true, false],
    [
      'a transaction with another error',
      'exec',
      'EXECABORT Transaction discarded because of previous errors.',
      false,
      false,
    ],
    ['a code that only begins like it', 'set', 'OOMS', false, false],
    ['its own reply as a replica', 'set', READONLY, false, true],
    ['a script on a replica', 'eval', `ERR Error running script: -${READONLY}`, false, true],
    ['a script that says the code of a replica', 'eval', 'ERR READONLY', false, false],
    ['a command that only quotes a replica', 'set', `ERR -${READONLY}`, false, false],
    ['a code that only begins like that of a replica', 'set', 'READONLYS', false, false],
    ['another error', 'eval', 'ERR boom', false, false],
  ] as const) {
    assert.equal(lacksMemory(error, named(command)), full, name);
    assert.equal(takesNoWrites(error, named(command)), readOnly, name);
  }
});

test('an error about what the key holds comes from a server that has the key', () => {
  for (const [command, error, about] of [
    ['get', 'WRONGTYPE Operation against a key holding the wrong kind of value', true],
    ['restore', 'BUSYKEY Target key name already exists.', true],
    ['xgroup|create', 'BUSYGROUP Consumer Group name already exists', true],
    ['pfcount', 'INVALIDOBJ Corrupted HLL object detected', true],
    ['geosearch', 'ERR could not decode requested zset member', true],
    ['geosearch', 'ERR member a\nb does not exist', true],
    ['get', 'ERR the member does not exist', false],
    ['object|idletime', 'ERR An LFU maxmemory policy is selected', true],
    ['sort', "ERR One or more scores can't be converted into double", true],
    ['get', 'ERR no such key', false],
    ['get', 'WRONGTYPES', false],
    ['get', 'ERR so WRONGTYPE Operation', false],
    ['xinfo|consumers', "NOGROUP No such consumer group 'g' for key name 'x'", true],
    ['xinfo|consumers', 'ERR NOGROUP No such consumer group', false],
    ['xinfo|consumers', 'NOGROUPS', false],
    ['xpending', "NOGROUP No such key 'x' or consumer group 'g'", false],
  ] as const) {
    assert.equal(isAboutKey(error, named(command)), about, `${command}: ${error}`);
  }
});
