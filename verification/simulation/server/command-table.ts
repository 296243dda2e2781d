/** The commands of a server: the facts of the generated table, with what runs each. */
import { COMMANDS } from '../../../shadow-proxy/src/command/table.generated.js';
import type { Command, Engine, Run } from './state.js';
import type { Ruled } from './users.js';

/** All commands of an engine, by name in lower case and in upper case. */
export function commandTable(engine: Engine, runOf: (name: string) => Run): Map<string, Command> {
  const subcommands = new Map<string, Map<string, Command>>();
  const found = new Map<string, Command>();
  for (const [name, sourceArity, targetArity, flagText, ...keySpecs] of COMMANDS) {
    const arity = engine === 'redis' ? sourceArity : targetArity;
    if (arity === 0) continue;
    const [container, subcommand] = name.split('|');
    const flags = flagsOf(engine, container, flagText.split(' '));
    const command: Command & Ruled = {
      name,
      arity,
      flags,
      isWrite: flags.has('write'),
      deniesOom: flags.has('denyoom'),
      keySpecs,
      subcommands: null,
      run: runOf(name),
      categories: categoriesOf(container, flags),
    };
    if (subcommand === undefined) {
      found.set(name, command);
      continue;
    }
    const siblings = subcommands.get(container) ?? new Map<string, Command>();
    subcommands.set(container, siblings.set(subcommand, command));
  }
  for (const [name, command] of [...found]) {
    const complete = { ...command, subcommands: subcommands.get(name) ?? null };
    found.set(name, complete);
    found.set(name.toUpperCase(), complete);
  }
  return found;
}

/** Where the flags of KeyDB differ from those of Redis in the table: for a command with all subcommands. */
const KEYDB_WHILE_STALE = {
  also: /^(acl|client|cluster|config|latency|ping|pubsub|slowlog)$/,
  not: /^(echo|eval|evalsha|readonly|readwrite)$/,
};

function flagsOf(engine: Engine, name: string, given: readonly string[]): ReadonlySet<string> {
  const flags = new Set(given);
  if (engine === 'redis') return flags;
  for (const flag of ['stale', 'loading']) {
    if (KEYDB_WHILE_STALE.also.test(name)) flags.add(flag);
    if (KEYDB_WHILE_STALE.not.test(name)) flags.delete(flag);
  }
  if (name === 'cluster') flags.delete('loading');
  if (name === 'reset') flags.delete('no_auth');
  return flags;
}

/** Families of commands by what their names look like, the first that fits. */
const FAMILIES: readonly (readonly [RegExp, string])[] = [
  [/^(multi|exec|discard|watch|unwatch)$/, 'transaction'],
  [/^(p?subscribe|p?unsubscribe|s(un)?subscribe|s?publish|pubsub)$/, 'pubsub'],
  [/^(eval|fcall|script|function)/, 'scripting'],
  [/^(auth|client|echo|hello|ping|quit|reset|select|asking|readonly|readwrite)$/, 'connection'],
  [/^(geo)/, 'geo'],
  [/^(pf)/, 'hyperloglog'],
  [/^(bit|setbit|getbit)/, 'bitmap'],
  [/^x/, 'stream'],
  [/^(z|bz)/, 'sortedset'],
  [/^h/, 'hash'],
  [/^(s(add|card|diff|inter|ismember|members|mismember|move|pop|randmember|rem|scan|union))/, 'set'],
  [/^(l(index|insert|len|move|mpop|pop|pos|push|range|rem|set|trim)|r(pop|push)|bl|br)/, 'list'],
  [/^(get|set|append|incr|decr|mget|mset|strlen|substr|psetex|lcs)/, 'string'],
  [
    /^(del|unlink|exists|touch|type|p?expire|p?ttl|persist|rename|move|copy|dump|restore|scan|keys|randomkey|dbsize|flush|swapdb|object|migrate|sort|wait)/,
    'keyspace',
  ],
];

/** Dangerous beside the administrative ones. */
const DANGEROUS = /^(keys|flushall|flushdb|sort|sort_ro|info|role|swapdb|restore|migrate|restore-asking)$/;

/** An approximation of ACL CAT: what a rule with a category means. */
function categoriesOf(name: string, flags: ReadonlySet<string>): readonly string[] {
  const family = FAMILIES.find(([pattern]) => pattern.test(name))?.[1];
  const admin = flags.has('admin');
  return [
    ...(flags.has('write') ? ['write'] : []),
    ...(flags.has('readonly') && family !== 'scripting' ? ['read'] : []),
    ...(family === undefined ? [] : [family]),
    ...(admin ? ['admin'] : []),
    ...(admin || DANGEROUS.test(name) ? ['dangerous'] : []),
    ...(flags.has('blocking') ? ['blocking'] : []),
    flags.has('fast') ? 'fast' : 'slow',
  ];
}

/** A key among a command's arguments. */
export interface KeyAt {
  readonly index: number;
  readonly reads: boolean;
  readonly writes: boolean;
}

/** A specification of keys, taken apart. */
interface Spec extends Pick<KeyAt, 'reads' | 'writes'> {
  readonly find: (args: readonly string[]) => readonly number[];
}

const specs = new Map<string, Spec>();

function specOf(text: string): Spec {
  const known = specs.get(text);
  if (known !== undefined) return known;
  const space = text.indexOf(' ');
  const flags = text.slice(0, space).split(',');
  const reads = flags.includes('access') || flags[0] === 'RO';
  const spec = { reads, writes: flags[0] !== 'RO', find: finderOf(text.slice(space + 1)) };
  specs.set(text, spec);
  return spec;
}

/** Where the keys of a command are, as its specifications say. */
export function keysOf({ keySpecs }: Command, args: readonly string[]): readonly KeyAt[] {
  const found: KeyAt[] = [];
  for (const text of keySpecs) {
    const { reads, writes, find } = specOf(text);
    for (const index of find(args)) found.push({ index, reads, writes });
  }
  return found;
}

/** `1`, `1 -2/1/0`, `STREAMS@4 -1/1/2`, `2 #0/1/1`. */
function finderOf(place: string): (args: readonly string[]) => readonly number[] {
  const [begin, find = '0/1/0'] = place.split(' ');
  const startOf = beginOf(begin);
  const [a, b, c] = find.replace('#', '').split('/').map(Number);
  return (args) => {
    const start = startOf(args);
    if (start <= 0 || start >= args.length) return [];
    const indexes: number[] = [];
    if (find.startsWith('#')) {
      const count = Number(args[start + a]);
      for (let i = 0; i < count; i++) indexes.push(start + b + i * c);
    } else {
      // A limit of 2 says that keys are the first half of what is left.
      const left = args.length - start;
      const last = a >= 0 ? start + a : c > 1 ? start + Math.floor(left / c) - 1 : args.length + a;
      for (let at = start; at <= last; at += b) indexes.push(at);
    }
    return indexes.filter((at) => at < args.length);
  };
}

function beginOf(text: string): (args: readonly string[]) => number {
  if (/^\d+$/.test(text)) return () => Number(text);
  const [, keyword, from] = /^(.+)@(-?\d+)$/.exec(text) ?? [];
  if (keyword === undefined) return () => 0;
  const first = Number(from);
  return (args) => {
    if (first < 0) {
      const at = args.findLastIndex((each) => each.toUpperCase() === keyword);
      return at < 0 ? 0 : at + 1;
    }
    const at = args.findIndex((each, i) => i >= first && each.toUpperCase() === keyword);
    return at < 0 ? 0 : at + 1;
  };
}
