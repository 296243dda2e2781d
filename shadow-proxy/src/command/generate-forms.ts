/**
 * Writes `forms.generated.ts` from what two running servers answer:
 *
 *   node dist/shadow-proxy/src/command/generate-forms.js redis://127.0.0.1:6379 redis://127.0.0.1:6390 \
 *     shadow-proxy/src/command/forms.generated.ts
 *
 * The first is a Redis 7, whose `COMMAND DOCS` lists commands, options and alternatives; the second is a KeyDB. **All
 * keys, scripts and functions of both are deleted.** Each call is sent to both, with keys that hold something and with
 * keys that do not exist. What one accepts and the other refuses, or answers with a reply built otherwise, is a form
 * that the other does not support. The same two servers always give the same file.
 */
import { writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { pathToFileURL } from 'node:url';
import { decodeReply, isError, text, type Reply } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import { FrameScanner } from '../resp/scan.js';
import { callsOf, commandDocs, type Call, type CommandDoc, type DocArgument } from './docs-calls.js';
import type { GeneratedForm } from './generated-form.js';

/** What both servers said. */
export interface Probed {
  readonly forms: readonly GeneratedForm[];
  /** Calls that were sent to each server, with keys and without. */
  readonly calls: number;
  /** Commands of which no call was accepted by either server: nothing is known of them. */
  readonly silent: readonly string[];
  readonly versions: readonly [source: string, target: string];
}

/**
 * Not probed: they end or reconfigure a server, take over a connection, or need a cluster or a second server. The proxy
 * refuses them or answers them itself (policy.ts).
 */
const NOT_PROBED = new RegExp(
  `^(${[
    'cluster\\|.*|module\\|.*|shutdown|debug|monitor|sync|psync|replconf|replicaof|slaveof|failover|migrate|quit|reset',
    'save|bgsave|bgrewriteaof|pfselftest|readonly|readwrite|asking|restore-asking|client\\|(kill|pause|unpause|reply)|acl\\|(load|save)|config\\|rewrite|.*\\|help',
  ].join('|')})$`,
);

/** What the keys hold, by group of commands: `k` is a command's first key, `k2` its second. */
const HOLDS: Readonly<Record<string, readonly string[]>> = {
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
/** Where the group does not tell. */
const HOLDS_FOR: Readonly<Record<string, readonly string[]>> = { sort: ['RPUSH k 3 1 2'], sort_ro: ['RPUSH k 3 1 2'] };

/** What FCALL and FUNCTION DELETE need. */
const LIBRARY =
  "#!lua name=lib\nredis.register_function{function_name='f',callback=function() return 1 end,flags={'no-writes'}}";
/** One library, whatever calls before have left: servers give their commands in an order of chance. */
const WITH_LIBRARY: readonly Command[] = [
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
/** Of BLPOP and its like. KeyDB blocks for ever for a millisecond. */
const SHORT = '0.01';

/** Calls that `COMMAND DOCS` does not list: what its history tells only, containers, and what only KeyDB accepts. */
const MORE: readonly (readonly [command: string, group: string, words: readonly string[], call: string])[] = [
  ['xadd', 'stream', ['ms-*'], 'XADD k 5-* f v'],
  ['command', 'server', [], 'COMMAND'],
  ['command|getkeys', 'server', [], 'COMMAND GETKEYS GET k'],
  ['command|getkeysandflags', 'server', [], 'COMMAND GETKEYSANDFLAGS GET k'],
  ['acl|dryrun', 'server', [], 'ACL DRYRUN default GET k'],
  ['bitop', 'bitmap', ['LSHIFT'], 'BITOP LSHIFT d k 1'],
  ['bitop', 'bitmap', ['RSHIFT'], 'BITOP RSHIFT d k 1'],
];

/** Sends each form of each command to both servers, whose data is deleted by it. */
export async function probeForms(sourceUrl: string, targetUrl: string): Promise<Probed> {
  const [source, target] = [new Prober(sourceUrl), new Prober(targetUrl)];
  try {
    const [docsReply] = await source.ask([['COMMAND', 'DOCS']]);
    const docs = commandDocs(docsReply).filter(({ name }) => !NOT_PROBED.test(name));
    const more = MORE.map(([command, group, words, call]): Probe => ({
      command,
      group,
      words,
      args: call.split(' '),
      cost: 0,
    }));
    const probes = [...docs.flatMap(probesOf), ...more];
    const seen = new Map<string, Seen[]>();
    for (const command of new Set(probes.map((probe) => probe.command))) {
      const own = probes.filter((probe) => probe.command === command);
      const [ofSource, ofTarget] = await Promise.all([source.answers(own), target.answers(own)]);
      seen.set(
        command,
        own.map((probe, i) => ({ probe, source: ofSource[i], target: ofTarget[i] })),
      );
    }
    const strings = new Map(docs.map((doc) => [doc.name, [...tokensOfStrings(doc.arguments)]]));
    const names = [await namesOf(source), await namesOf(target)];
    const onlyTarget = [...names[1]].filter((name) => !names[0].has(name) && !HTTP.has(name));
    const forms = [...seen].flatMap(([command, calls]) => formsOf(command, calls, strings.get(command) ?? []));
    for (const name of onlyTarget)
      forms.push([name, 'source', 'refused', '', 0, name.toUpperCase(), 'unknown command']);
    const silent = [...seen].filter(([, calls]) =>
      calls.every((each) => each.source.every(isError) && each.target.every(isError)),
    );
    return {
      forms: forms.sort(byName),
      calls: probes.length,
      silent: silent.map(([command]) => command).sort(),
      versions: [await versionOf(source), await versionOf(target)],
    };
  } finally {
    source.close();
    target.close();
  }
}

/** KeyDB lists what both servers have: words of HTTP, on which they close the connection. */
const HTTP = new Set(['post', 'host:']);

const byName = (a: GeneratedForm, b: GeneratedForm): number =>
  `${a[0]} ${a[3]} ${a[1]}` < `${b[0]} ${b[3]} ${b[1]}` ? -1 : 1;

async function namesOf(server: Prober): Promise<Set<string>> {
  const [reply] = await server.ask([['COMMAND']]);
  return new Set(reply.items!.map(({ items }) => text(items![0]).toLowerCase()));
}

async function versionOf(server: Prober): Promise<string> {
  const [reply] = await server.ask([['INFO', 'server']]);
  return /^redis_version:(\S+)/m.exec(text(reply))![1];
}

// ── which calls ─────────────────────────────────────────────────────────────────────────────────────────────────

interface Probe extends Call {
  readonly command: string;
  readonly group: string;
}

/** Marks a word that is written in upper case, where the calls have it in lower case otherwise. */
const UPPER = ':upper';

/** Each call with its tokens in lower case; and, for each token, the shortest call with that one in upper case. */
function probesOf(doc: CommandDoc): Probe[] {
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
const DUMP = '@dump';

function valueOf(command: string, { name, type }: DocArgument): string {
  if (type === 'key') return KEY;
  if (name === 'numkeys') return NUMKEYS;
  if (name === 'timeout' && type === 'double') return SHORT;
  return VALUES[`${command} ${name}`] ?? VALUES[name] ?? OF_TYPE[type] ?? 'v';
}

/** Keys get names, and are counted where their number is an argument. */
function withKeys(args: readonly string[]): string[] {
  const names = ['k', 'k2', 'k3'];
  const counted = args.indexOf(NUMKEYS);
  return args.map((arg, i) => {
    if (arg === NUMKEYS) return String(args.slice(i).filter((each) => each === KEY).length);
    if (arg !== KEY) return arg;
    return i < counted ? 'd' : names.shift()!;
  });
}

/** Tokens behind which any text may stand, a token's among them. */
function* tokensOfStrings(args: readonly DocArgument[]): Generator<string> {
  for (const { token, type, arguments: inner } of args) {
    if (token !== null && type === 'string') yield token;
    yield* tokensOfStrings(inner);
  }
}

// ── what it means ───────────────────────────────────────────────────────────────────────────────────────────────

/** One call and what both servers said, with keys and without. */
interface Seen {
  readonly probe: Probe;
  readonly source: readonly Reply[];
  readonly target: readonly Reply[];
}

/** Of one call, as far as one side is concerned. */
interface Outcome {
  readonly probe: Probe;
  /** Null where there is none, or nothing can be said. */
  readonly problem: string | null;
  /** The server supports it. */
  readonly isFine: boolean;
}

function formsOf(command: string, calls: readonly Seen[], strings: readonly string[]): GeneratedForm[] {
  const row = (lacks: 'source' | 'target', how: 'refused' | 'reply', outcomes: readonly Outcome[]): GeneratedForm[] =>
    smallest(outcomes).map(({ words, probe, problem }): GeneratedForm => {
      const from = probe.args.findIndex((arg) => probe.words.includes(arg.toUpperCase()));
      const skip = words.some((word) => /^[A-Z]/.test(word)) ? strings : [];
      const example = probe.args.map((arg) => (/[\s']/.test(arg) || arg === DUMP ? '…' : arg)).join(' ');
      return [command, lacks, how, words.join(' '), from === -1 ? probe.args.length : from, example, problem!, ...skip];
    });
  const target = calls.map(({ probe, source: other, target: own }) => outcome(probe, own, refusalIn(own, other)));
  const source = calls.map(({ probe, source: own, target: other }) => outcome(probe, own, refusalIn(own, other)));
  const reply = calls.map((each) => outcome(each.probe, each.target, otherReply(each)));
  const refused = [...row('target', 'refused', target), ...row('source', 'refused', source)];
  // What is refused has no reply to look at.
  return refused.some(([, , , words]) => words === '') ? refused : [...refused, ...row('target', 'reply', reply)];
}

const outcome = (probe: Probe, own: readonly Reply[], problem: string | null): Outcome => ({
  probe,
  problem,
  isFine: problem === null && own.some((reply) => !isError(reply)),
});

/** What one server says where the other accepts the call. */
function refusalIn(own: readonly Reply[], other: readonly Reply[]): string | null {
  const at = own.findIndex((reply, i) => isError(reply) && !isError(other[i]));
  return at === -1
    ? null
    : text(own[at]).replace(/^ERR |(, with args beginning with|\. (Try|please)| for '| specified as| `).*$/g, '');
}

/** Their replies tell what a server has done. */
const OF_THE_SERVER = /^(slowlog|latency)\|/;

function otherReply({ probe, source, target }: Seen): string | null {
  if (OF_THE_SERVER.test(probe.command)) return null;
  const at = source.findIndex(
    (reply, i) => !isError(reply) && !isError(target[i]) && shapeOf(reply) !== shapeOf(target[i]),
  );
  return at === -1 ? null : 'other elements';
}

/** How a reply is built: arrays of one kind of element are alike, however many there are. */
function shapeOf({ items, data, type }: Reply): string {
  if (items === null) return data === null ? 'null' : type === ':' ? 'number' : 'text';
  const each = items.map(shapeOf);
  return new Set(each).size === 1 ? `[${each[0]}...]` : `[${each.join(' ')}]`;
}

/** The fewest words that make the difference: no call that has them all is without a problem. */
function smallest(outcomes: readonly Outcome[]): { words: readonly string[]; probe: Probe; problem: string | null }[] {
  const fine = outcomes.filter(({ isFine }) => isFine).map(({ probe }) => new Set(probe.words));
  const makes = (words: readonly string[]): boolean => !fine.some((has) => words.every((word) => has.has(word)));
  const found: { words: readonly string[]; probe: Probe; problem: string | null }[] = [];
  for (const { probe, problem } of outcomes.filter((each) => each.problem !== null)) {
    for (const words of subsets(probe.words)) {
      if (found.some((known) => known.words.every((word) => words.includes(word) || words.includes(`${word}${UPPER}`))))
        continue;
      if (makes(words)) found.push({ words, probe, problem });
    }
  }
  return found;
}

/** None, each one, each two. */
const subsets = (words: readonly string[]): string[][] => [
  [],
  ...words.map((word) => [word]),
  ...words.flatMap((a, i) => words.slice(i + 1).map((b) => [a, b])),
];

// ── asking ──────────────────────────────────────────────────────────────────────────────────────────────────────

type Command = readonly (string | Buffer)[];

/** For all calls of a command. */
const ANSWER_MS = 10_000;

/** One server, asked over a connection that is opened anew after what may change it. */
class Prober {
  readonly #url: URL;
  #socket: Socket;
  #bytes = Buffer.alloc(0);
  #wanted = 0;
  #done: (replies: Reply[]) => void = () => undefined;
  #failed: (problem: Error) => void = () => undefined;

  constructor(url: string) {
    this.#url = new URL(url);
    this.#socket = this.#open();
  }

  #open(): Socket {
    const socket = connect(Number(this.#url.port), this.#url.hostname);
    socket.on('data', (chunk) => socket === this.#socket && this.#data(chunk));
    socket.on('error', (problem) => this.#failed(problem));
    socket.on(
      'close',
      () => socket === this.#socket && this.#failed(new Error(`${this.#url.host} closed the connection`)),
    );
    return socket;
  }

  #data(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    const replies: Reply[] = [];
    for (let at = 0; replies.length < this.#wanted;) {
      const end = new FrameScanner().scan(this.#bytes, at, this.#bytes.length);
      if (end === -1) return;
      replies.push(decodeReply(this.#bytes, at).reply);
      at = end;
    }
    this.#bytes = Buffer.alloc(0);
    this.#done(replies);
  }

  ask(commands: readonly Command[]): Promise<Reply[]> {
    return new Promise((resolve, reject) => {
      const late = (): void =>
        reject(new Error(`${this.#url.host} does not answer to ${commands.map(String).join('; ').slice(0, 2_000)}`));
      const timer = setTimeout(late, ANSWER_MS);
      this.#done = (replies) => (clearTimeout(timer), resolve(replies));
      this.#failed = (problem) => (clearTimeout(timer), reject(problem));
      this.#wanted = commands.length;
      this.#socket.write(Buffer.concat(commands.map((command) => encodeCommand(command))));
    });
  }

  /** To each call of one command: with keys that hold something, and with keys that do not exist. */
  async answers(probes: readonly Probe[]): Promise<Reply[][]> {
    const [{ command, group }] = probes;
    const holds = (HOLDS_FOR[command] ?? HOLDS[group] ?? []).map((line) => line.split(' '));
    const functions = group === 'scripting' ? WITH_LIBRARY : [];
    const before: readonly Command[] = [['FLUSHALL'], ['SCRIPT', 'LOAD', 'return 1'], ...functions];
    const calls: Command[][] = [];
    for (const { args } of probes) {
      const call = args.includes(DUMP) ? await this.#withDump(command, args) : args;
      // What would block is asked with keys only.
      calls.push([...before, ...holds, call], [...before, ...(args.includes(SHORT) ? holds : []), call]);
    }
    const replies: Reply[] = [];
    // KeyDB reads on behind a command that blocked, or KEYS, only when more bytes come.
    if (DATA.has(group) && !probes.some(({ args }) => args.includes('block'))) {
      const all = await this.ask(calls.flat());
      for (let i = 0, at = -1; i < calls.length; i++) replies.push(all[(at += calls[i].length)]);
    } else {
      for (const call of calls) {
        replies.push((await this.ask(call)).at(-1)!);
        this.#reopen();
      }
    }
    return probes.map((_, i) => [replies[2 * i], replies[2 * i + 1]]);
  }

  /** Payloads of one server are no other's. */
  async #withDump(command: string, args: readonly string[]): Promise<Command> {
    const made: readonly Command[] =
      command === 'restore'
        ? [
            ['SET', 'dumped', 'v'],
            ['DUMP', 'dumped'],
          ]
        : [...WITH_LIBRARY, ['FUNCTION', 'DUMP']];
    const dumped = (await this.ask(made)).at(-1)!;
    return args.map((arg) => (arg === DUMP ? (dumped.data ?? '') : arg));
  }

  #reopen(): void {
    const old = this.#socket;
    this.#socket = this.#open();
    this.#bytes = Buffer.alloc(0);
    old.destroy();
  }

  close(): void {
    this.#failed = () => undefined;
    this.#socket.destroy();
  }
}

/** Groups whose commands change nothing of their connection. */
const DATA = new Set([...Object.keys(HOLDS).filter((group) => group !== 'generic'), 'scripting']);

// ── the file ────────────────────────────────────────────────────────────────────────────────────────────────────

/** The text of the generated file. */
export function renderForms({ forms, versions: [source, target] }: Probed): string {
  const quoted = (value: string | number): string =>
    typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "\\'")}'`;
  const rows = forms.map((form) => `  [${form.map(quoted).join(', ')}],`);
  return `/**
 * Generated by generate-forms.ts from what Redis ${source} (the source) and KeyDB ${target} (the target) answer. Do not
 * edit.
 *
 * A row: command, who lacks it, how (\`refused\`, or a \`reply\` that is built otherwise), the words that make the form
 * (none: the command as such), the argument from which they may stand, the call that was sent, what the server said,
 * and the words behind which any text may stand.
 */
import type { GeneratedForm } from './generated-form.js';

export const FORMS: readonly GeneratedForm[] = [
${rows.join('\n')}
];
`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [sourceUrl, targetUrl, file] = process.argv.slice(2);
  const probed = await probeForms(sourceUrl, targetUrl);
  writeFileSync(file, renderForms(probed));
  process.stdout.write(
    `${probed.forms.length} forms of ${probed.calls} calls; no call accepted by either server: ${probed.silent.join(', ')}\n`,
  );
}
