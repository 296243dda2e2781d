/** What one running server says of itself, for the list of what is unknown. **Its data is deleted.** */
import type { Redis } from 'ioredis';
import { commandDocs, type CommandDoc } from '../../../shadow-proxy/src/command/docs-calls.js';
import {
  HOLDS,
  HOLDS_FOR,
  probesOf,
  SHORT,
  type Command,
  type Probe,
} from '../../../shadow-proxy/src/command/form-calls.js';
import { type Prober } from '../../../shadow-proxy/src/command/form-prober.js';
import { NOT_PROBED } from '../../../shadow-proxy/src/command/generate-forms.js';
import { CommandTable } from '../../../shadow-proxy/src/command/table.js';
import { decodeDump, TranscodeError } from '../../../shadow-proxy/src/copy/rdb/transcode.js';
import { REFUSED } from '../../../shadow-proxy/src/copy/rdb/types.js';
import { isError, text, type Reply } from '../../../shadow-proxy/src/resp/decode.js';

/** What a server has that may be new: each list is sorted. */
export interface Facts {
  /** Names of `INFO`; digits in them are N. */
  readonly info: readonly string[];
  /** Names of `CONFIG GET *`. */
  readonly settings: readonly string[];
  /** What a setting may be, where the server lists it: `maxmemory-policy noeviction`. */
  readonly choices: readonly string[];
  /** Texts of errors, without what they quote. */
  readonly errors: readonly string[];
}

/** Names of `INFO` that come and go with databases, replicas and calls. */
const PASSING = /^(db|slave|cmdstat_|errorstat_|latency_percentiles_|module|allocator_|thread_|io_thread_)/;

export const infoFields = (info: string): string[] =>
  unique(
    [...info.matchAll(/^(\w+):/gm)].map(([, name]) => name.replace(/\d+/g, 'N')).filter((name) => !PASSING.test(name)),
  );

/** A setting whose value is a word may have a list of words. */
const WORD = /^[a-z][a-z-]*$/;

/** Settings, and what the server lists that each may be. */
export async function settingsOf(client: Redis): Promise<Pick<Facts, 'settings' | 'choices'>> {
  const pairs = (await client.call('CONFIG', 'GET', '*')) as readonly unknown[];
  const settings = new Map<string, string>();
  for (let i = 0; i + 1 < pairs.length; i += 2)
    if (typeof pairs[i] === 'string') settings.set(pairs[i] as string, String(pairs[i + 1]));
  const choices: string[] = [];
  for (const [name, value] of settings) {
    if (!WORD.test(value) || value === 'yes' || value === 'no') continue;
    const said = await client.call('CONFIG', 'SET', name, NO_SUCH).then(
      () => '',
      (problem: Error) => problem.message,
    );
    const listed = /one of the following: (.*)$/.exec(said)?.[1] ?? '';
    choices.push(
      ...listed
        .split(/, /)
        .filter(Boolean)
        .map((choice) => `${name} ${choice}`),
    );
  }
  return { settings: unique([...settings.keys()]), choices: unique(choices) };
}

const NO_SUCH = 'nosuch';

/** The commands of a server that lists them (`COMMAND DOCS`), by name, without those that change what it is. */
export async function docsOf(server: Prober): Promise<CommandDoc[]> {
  const [reply] = await server.ask([['COMMAND', 'DOCS']]);
  const docs = commandDocs(reply).filter(({ name }) => !NOT_PROBED.test(name));
  return docs.sort((a, b) => (a.name < b.name ? -1 : 1));
}

// ── errors ──────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * The texts of errors that each command gives: without arguments, with one too many, with a word for each argument, and
 * on a key of another type. Each has a call that shows it.
 */
export async function errorsOf(server: Prober, docs: readonly CommandDoc[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const doc of docs.filter(({ name }) => !LOGINS.has(name))) {
    for (const probes of faultyCalls(doc)) {
      const replies = await server.answers(probes);
      for (const [i, { args }] of probes.entries())
        for (const reply of replies[i].filter(isError)) {
          const shape = shapeOf(text(reply), args);
          if (!found.has(shape)) found.set(shape, args.join(' '));
        }
    }
  }
  return found;
}

/** Since Redis 7.2 a login that fails behind other commands of its pipeline may get no reply. */
const LOGINS = new Set(['auth', 'hello']);

/** On a key of that group a command of another one fails. */
const otherGroup = (group: string): string => (group === 'list' ? 'string' : 'list');

/** Calls on keys of the command's own group, and on keys of another one. */
function faultyCalls(doc: CommandDoc): Probe[][] {
  const [shortest] = probesOf(doc);
  const own = doc.name.split('|').length;
  const { args } = shortest;
  // On a key that is not there it would block, and KeyDB reads on behind it only when more bytes come.
  const kept = args.includes(SHORT) ? KEYS : [];
  const variants = [
    args.slice(0, own),
    [...args, NO_SUCH],
    ...args.flatMap((arg, i) => (i < own || kept.includes(arg) ? [] : [args.with(i, NO_SUCH)])),
  ];
  const onOthers =
    doc.group in HOLDS && doc.group !== 'generic' ? [[{ ...shortest, group: otherGroup(doc.group) }]] : [];
  return [variants.map((each): Probe => ({ ...shortest, args: each })), ...onOthers];
}

/** The text without what it quotes of the call, and without numbers. */
export function shapeOf(said: string, args: readonly string[]): string {
  const words = new Set(args.flatMap((arg) => [arg, arg.toLowerCase()]).filter((arg) => arg.length > 1));
  return said
    .split('\n')[0]
    .trim()
    .replace(/'[^']*'|"[^"]*"|`[^`]*`/g, '…')
    .replace(/\b[0-9a-f]{40}\b/g, '…')
    .replace(/[\w|.-]+/g, (word) => (words.has(word) ? '…' : word))
    .replace(/…(,? ?…)+,?/g, '…')
    .replace(/-?\d+(\.\d+)?/g, 'N');
}

// ── payloads ────────────────────────────────────────────────────────────────────────────────────────────────────

/** What the calls of a command may write to. */
const KEYS = ['k', 'k2', 'd'];
/** Values that servers store in another form than small ones. */
const LARGE: readonly Command[] = [
  ['SET', 'k', 'v'.repeat(20_000)],
  ['RPUSH', 'k', ...many((i) => [`${'v'.repeat(200)}${i}`])],
  ['SADD', 'k', ...many((i) => [`m${i}`])],
  ['SADD', 'k', ...many((i) => [String(i)])],
  ['ZADD', 'k', ...many((i) => [String(i / 3), `m${i}`])],
  ['HSET', 'k', ...many((i) => [`f${i}`, 'v'])],
];

function many(each: (i: number) => readonly string[]): string[] {
  return Array.from({ length: 600 }, (_, i) => each(i)).flat();
}

/** A call, and what the keys hold before it. */
interface Cooked {
  readonly holds: readonly Command[];
  readonly call: Command;
}

export interface Payloads {
  /** Those that the kit can neither read nor refuse by name: what it says of each, and a call that makes one. */
  readonly unread: ReadonlyMap<string, string>;
  /** Calls that have more replies than one, or none. */
  readonly unordered: readonly string[];
  /** RDB version of the newest. */
  readonly version: number;
}

const MARK = 'behind the call';

/** What is in keys behind each call that writes. */
export async function payloadsOf(server: Prober, docs: readonly CommandDoc[]): Promise<Payloads> {
  const unread = new Map<string, string>();
  const unordered: string[] = [];
  let version = 0;
  const look = (reply: Reply, call: Command): void => {
    if (isError(reply) || reply.data === null) return;
    version = Math.max(version, reply.data.readUInt16LE(reply.data.length - 10));
    const problem = problemOf(reply.data);
    if (problem !== null && !unread.has(problem)) unread.set(problem, call.map(String).join(' ').slice(0, 100));
  };
  const dumps: readonly Command[] = KEYS.map((key) => ['DUMP', key]);
  const cook = async (calls: readonly Cooked[]): Promise<void> => {
    const commands = calls.map(({ holds, call }): readonly Command[] => [
      ['FLUSHALL'],
      ...holds,
      call,
      ['ECHO', MARK],
      ...dumps,
    ]);
    if (commands.length === 0) return;
    const replies = await server.ask(commands.flat());
    let at = 0;
    for (const [i, { call }] of calls.entries()) {
      const mark = replies[at + commands[i].length - 1 - dumps.length];
      at += commands[i].length;
      if (text(mark) !== MARK) {
        unordered.push(call.map(String).join(' '));
        server.reopen();
        // What came behind it is out of step: the rest is asked again.
        return cook(calls.slice(i + 1));
      }
      for (const reply of replies.slice(at - dumps.length, at)) look(reply, call);
    }
  };
  await cook(LARGE.map((call) => ({ holds: [], call })));
  const table = new CommandTable();
  const mayWrite = ({ name, group }: CommandDoc): boolean =>
    !OF_CONNECTIONS.has(group) && table.byName(name)?.write !== false;
  for (const doc of docs.filter(mayWrite)) {
    const holds = (HOLDS_FOR[doc.name] ?? HOLDS[doc.group] ?? []).map((line) => line.split(' '));
    const calls = [...probesOf(doc), ...faultyCalls(doc)[0]].filter(
      ({ args }) => !args.some((arg) => arg === 'block' || arg.startsWith('@')),
    );
    await cook(calls.map(({ args }) => ({ holds, call: args })));
    server.reopen();
  }
  return { unread, unordered, version };
}

/** Commands of these groups write no keys. */
const OF_CONNECTIONS = new Set(['connection', 'server', 'pubsub', 'cluster', 'transactions', 'scripting', 'sentinel']);

function problemOf(payload: Buffer): string | null {
  try {
    decodeDump(payload);
    return null;
  } catch (problem) {
    if (!(problem instanceof TranscodeError)) throw problem;
    return problem.code === 'MODULE' || REFUSED.has(payload[0]) ? null : problem.message;
  }
}

export const unique = (names: readonly string[]): string[] => [...new Set(names)].sort();
