/**
 * The comparison for the gate `users`: the same users may log in at both servers, with the same passwords and the same
 * rights, and no other users. Pure: it reads both servers' `ACL LIST`, in the syntax of Redis 6 and 7 and of KeyDB.
 * Passwords are SHA-256 digests there: they are compared, and never shown. ElastiCache lists its users without digests.
 */
import { createHash } from 'node:crypto';
import { WIDER_COMMANDS, type WiderRight } from '../plan/plan.js';
import { allowsMore, WIDER_RIGHTS } from './rights.js';

/** A server's users. */
export interface UserFacts {
  /** Lines of `ACL LIST`; null if the server does not show them. */
  readonly lines: readonly string[] | null;
  /** Whether the server lists users without the digests of their passwords. */
  readonly hidesDigests?: boolean;
  /** Lower-case names of its commands and subcommands, such as `get` or `config|get`. */
  readonly commands: ReadonlySet<string>;
  /** The categories, such as `read`, of the commands and subcommands that it lists. */
  readonly categories: ReadonlyMap<string, ReadonlySet<string>>;
  /** The server's version and software. */
  readonly release: { readonly version: string; readonly isKeydb: boolean };
}

/** Users who may do more on the target than on the source, with the same rules. */
export interface WiderUsers {
  readonly right: WiderRight;
  readonly users: readonly string[];
}

/** Maximum number of users that a sentence names. */
const NAMED = 5;

export const describeWider = ({ right, users }: WiderUsers): string =>
  `${right.toUpperCase()} ${WIDER_RIGHTS[right]} (${users.slice(0, NAMED).join(', ')}${users.length > NAMED ? ` and ${users.length - NAMED} more` : ''})`;

export interface UserComparison {
  /** The differences, one user each; `default` is a client without a login. */
  readonly differences: readonly string[];
  /** Why the result is unknown; null if it is known. */
  readonly unknown: string | null;
  /** Number of users of the source that the target has, too, with the same rules. */
  readonly same: number;
  /** Those of them whose passwords a server does not show: only a login shows whether they are the same. */
  readonly unproven: readonly string[];
  /** Rights that the servers enforce differently, for users with key patterns. */
  readonly wider: readonly WiderUsers[];
  /** Users that only the target has, all with a password. */
  readonly onlyTarget: readonly string[];
}

/**
 * The lines of `ACL LIST`, read by a user who has logged in with a password. If this user's line has no digest, the
 * server hides digests; the user's own digest is known.
 */
export function usersSeenBy(
  lines: readonly string[],
  login: { readonly name: string; readonly password: string | null },
): Pick<UserFacts, 'lines' | 'hidesDigests'> {
  const own = lines.findIndex((line) => parseUser(line).name === login.name);
  if (login.password === null || own === -1) return { lines };
  const { on, nopass, passwords } = parseUser(lines[own]);
  if (!on || nopass || passwords !== '') return { lines };
  return {
    lines: lines.map((line, i) => (i === own ? `${line} ${digestOf(login.password!)}` : line)),
    hidesDigests: true,
  };
}

export const digestOf = (password: string): string => `#${createHash('sha256').update(password).digest('hex')}`;

/** Whether a line of `ACL LIST` is that user's, with `+@all ~* &*`; Redis 6.0 has no rules for channels. */
export function mayDoEverything(line: string, name: string): boolean {
  const user = parseUser(line);
  const channels = user.channels === '' && !wordsOf(line).includes('resetchannels') ? '&*' : user.channels;
  return user.name === name && user.keys === '~*' && channels === '&*' && user.commands.join(' ') === '+@all';
}

/** Whether a line of `ACL LIST` is that user's, without key patterns. */
export function mayUseAllKeys(line: string, name: string): boolean {
  const user = parseUser(line);
  return user.name === name && user.keys === '~*';
}

/** A user's rules in a line of `ACL LIST`, in words that `ACL SETUSER` accepts. */
export interface UserRules {
  readonly name: string;
  /** Key and channel patterns, and flags other than those of passwords. */
  readonly patterns: readonly string[];
  /** Rules such as `+@all -@admin`. */
  readonly commands: readonly string[];
  /** Selectors, which only Redis 7 has: each is one text in parentheses. */
  readonly selectors: readonly string[];
}

/** The rules in a line of `ACL LIST`. */
export function rulesIn(line: string): UserRules {
  const [, name, ...words] = wordsOf(line);
  const isCommand = (word: string): boolean => /^[+-]/.test(word) || WHOLE[word] !== undefined;
  return {
    name,
    patterns: words.filter((word) => !isCommand(word) && !/^\(|^#|^(on|off|nopass)$/.test(word)),
    commands: words.filter(isCommand),
    selectors: words.filter((word) => word.startsWith('(')),
  };
}

/** The line of `ACL LIST` with other commands and selectors. */
export function withRules(line: string, { commands, selectors }: Pick<UserRules, 'commands' | 'selectors'>): string {
  const other = rulesIn(line);
  const kept = wordsOf(line).filter((word) => !other.commands.includes(word) && !word.startsWith('('));
  return [...kept, ...commands, ...selectors].join(' ');
}

/** Whether the rules, or one of the selectors, allow one of these commands at a server. */
export function allowsAny(
  { commands, selectors }: Pick<UserRules, 'commands' | 'selectors'>,
  names: readonly string[],
  categories: UserFacts['categories'],
): boolean {
  const sets = [commands, ...selectors.map((selector) => wordsOf(selector.slice(1, -1)))];
  return sets.some((words) => {
    const may = mayRun(rulesOf(words).commands, { categories });
    return names.some(may);
  });
}

interface User {
  readonly name: string;
  readonly on: boolean;
  readonly nopass: boolean;
  readonly passwords: string;
  readonly keys: string;
  readonly channels: string;
  readonly commands: readonly string[];
  /** Selectors, which only Redis 7 has. */
  readonly selectors: string;
}

/**
 * @param known users of the servers themselves, such as the kit's own, exporters and replicas; they are not compared
 */
export function compareUsers(source: UserFacts, target: UserFacts, known: ReadonlySet<string>): UserComparison {
  const silent = [
    ['source', source],
    ['target', target],
  ].flatMap(([side, facts]) => ((facts as UserFacts).lines === null ? [side as string] : []));
  if (silent.length > 0)
    return {
      differences: [],
      unknown: `the ${silent.join(' and the ')} did not list ${silent.length === 1 ? 'its' : 'their'} users: allow ACL LIST to the kit's user`,
      same: 0,
      unproven: [],
      wider: [],
      onlyTarget: [],
    };
  const [from, to] = [usersOf(source), usersOf(target)];
  const differences: string[] = [];
  const unproven: string[] = [];
  let same = 0;
  for (const user of from.values()) {
    if (known.has(user.name)) continue;
    const twin = to.get(user.name);
    const difference = differenceOf(user, twin, source, target);
    if (difference !== null) {
      differences.push(`${user.name} ${difference}`);
      continue;
    }
    same++;
    if (isHidden(user) || (twin !== undefined && mayLogIn(user) && isHidden(twin))) unproven.push(user.name);
  }
  const more = [...to.values()].filter((user) => !from.has(user.name) && !known.has(user.name) && mayLogIn(user));
  for (const { name } of more.filter(({ nopass }) => nopass))
    differences.push(`${name} needs no password on the target, and does not exist on the source`);
  const locked = more.filter(({ nopass }) => !nopass).map(({ name }) => name);
  const compared = [...from.values()].filter((user) => !known.has(user.name) && mayLogIn(user));
  const wider = allowsMore(source.release, target.release)
    ? widerUsers(compared.flatMap(({ name }) => to.get(name) ?? []).filter(mayLogIn), target)
    : [];
  return { differences, unknown: null, same, unproven, wider, onlyTarget: locked };
}

/** @param users as the target lists them */
function widerUsers(users: readonly User[], target: UserFacts): WiderUsers[] {
  const restricted = users
    .filter(({ keys }) => keys !== '~*')
    .map(({ name, keys, commands }) => ({ name, keys, may: mayRun(commands, target) }));
  return WIDER_COMMANDS.filter((right) => target.commands.has(right)).flatMap((right) => {
    // DEBUG needs no key.
    const may = restricted.filter((user) => user.may(right) && (user.keys !== '' || right === 'debug'));
    return may.length === 0 ? [] : [{ right, users: may.map(({ name }) => name) }];
  });
}

/** A password that the server does not show; a user without a password cannot log in. */
const HIDDEN = 'hidden';
const isHidden = ({ on, passwords }: User): boolean => on && passwords === HIDDEN;
const mayLogIn = ({ on, nopass, passwords }: User): boolean => on && (nopass || passwords !== '');

/** The parts that are compared for two users who may both log in, and their names in a difference. */
const PARTS: readonly (readonly [part: 'passwords' | 'keys' | 'channels' | 'selectors', description: string])[] = [
  ['passwords', 'has other passwords on the target'],
  ['keys', 'has other key patterns on the target'],
  ['channels', 'has other channel patterns on the target'],
  ['selectors', 'has other selectors on the target'],
];

/** Null if the same clients may log in as this user, with the same rights. */
function differenceOf(source: User, target: User | undefined, atSource: UserFacts, atTarget: UserFacts): string | null {
  if (!mayLogIn(source)) {
    if (target === undefined || !mayLogIn(target)) return null;
    return target.nopass
      ? 'needs no password on the target, and may not log in on the source'
      : 'may log in on the target, and not on the source';
  }
  if (target === undefined) return 'is missing on the target';
  if (!mayLogIn(target))
    return source.nopass
      ? 'needs no password on the source, and is refused by the target'
      : 'may not log in on the target';
  if (source.nopass !== target.nopass)
    return source.nopass
      ? 'needs a password on the target only'
      : 'needs a password on the source only: any client may log in on the target';
  const incomparable = source.nopass || isHidden(source) || isHidden(target);
  const found = PARTS.filter(([part]) => !(part === 'passwords' && incomparable) && source[part] !== target[part]).map(
    ([, description]) => description,
  );
  const commands =
    rewordings(source.commands, atTarget) === rewordings(target.commands, atSource)
      ? null
      : differentCommands(source, target, atSource, atTarget);
  if (commands !== null) found.push(commands);
  return found.length === 0 ? null : found.join(', ');
}

function usersOf({ lines, hidesDigests = false }: UserFacts): Map<string, User> {
  const users = (lines ?? []).map(parseUser);
  const seen = users.map((user) =>
    hidesDigests && !user.nopass && user.passwords === '' ? { ...user, passwords: HIDDEN } : user,
  );
  return new Map(seen.map((user) => [user.name, user]));
}

/** Splits into words; a selector in parentheses is one word. */
const wordsOf = (rules: string): string[] => rules.match(/\([^)]*\)|\S+/g) ?? [];
const sorted = (words: readonly string[]): string => [...new Set(words)].sort().join(' ');

/** A line of ACL LIST: `user NAME on #digest ~keys &channels +@all -command`. */
function parseUser(line: string): User {
  const [, name, ...words] = wordsOf(line);
  const selectors = words
    .filter((word) => word.startsWith('('))
    .map((word) => {
      const { keys, channels, commands } = rulesOf(wordsOf(word.slice(1, -1)));
      return `(${keys}|${channels}|${commands.join(' ')})`;
    });
  return {
    name,
    on: words.includes('on'),
    nopass: words.includes('nopass'),
    passwords: sorted(words.filter((word) => word.startsWith('#'))),
    ...rulesOf(words),
    selectors: sorted(selectors),
  };
}

function rulesOf(words: readonly string[]): Pick<User, 'keys' | 'channels' | 'commands'> {
  const keys = words
    .filter((word) => word === 'allkeys' || /^(~|%)/.test(word))
    .map((word) => (word === 'allkeys' ? '~*' : word.replace(/^%(RW|WR)~/, '~')));
  const channels = words
    .filter((word) => word === 'allchannels' || word.startsWith('&'))
    .map((word) => (word === 'allchannels' ? '&*' : word));
  const commands = words
    .filter((word) => /^[+-]/.test(word) || WHOLE[word] !== undefined)
    .map((word) => (WHOLE[word] ?? word).toLowerCase());
  return {
    keys: keys.includes('~*') ? '~*' : sorted(keys),
    channels: channels.includes('&*') ? '&*' : sorted(channels),
    commands,
  };
}

const WHOLE: Readonly<Record<string, string | undefined>> = { allcommands: '+@all', nocommands: '-@all' };

/**
 * Rules without those for commands that the other server lacks. The order of neighbours with the same sign does not
 * matter.
 */
function rewordings(rules: readonly string[], other: UserFacts): string {
  const runs: string[][] = [];
  for (const rule of rules) {
    const command = rule.slice(1);
    if (!command.startsWith('@') && !other.commands.has(command.split('|', 1)[0])) continue;
    if (runs.at(-1)?.[0][0] !== rule[0]) runs.push([]);
    runs.at(-1)!.push(rule);
  }
  return runs.map(sorted).join(' ');
}

/** Maximum number of commands that a difference names. */
const MAX_COMMANDS = 5;

/** Servers word the same rules differently, so each command that both have is compared. */
function differentCommands(source: User, target: User, atSource: UserFacts, atTarget: UserFacts): string | null {
  const [from, to] = [mayRun(source.commands, atSource), mayRun(target.commands, atTarget)];
  const isContainer = (name: string): boolean => [...atSource.commands].some((other) => other.startsWith(`${name}|`));
  const both = [...atSource.commands].filter(
    (name) => atTarget.commands.has(name) && (name.includes('|') || !isContainer(name)),
  );
  const [lost, won] = [both.filter((name) => from(name) && !to(name)), both.filter((name) => !from(name) && to(name))];
  const named = (names: readonly string[]): string =>
    `${names.slice(0, MAX_COMMANDS).join(', ')}${names.length > MAX_COMMANDS ? ` and ${names.length - MAX_COMMANDS} more` : ''}`;
  const differences = [
    ...(lost.length > 0 ? [`may not run ${named(lost)} on the target`] : []),
    ...(won.length > 0 ? [`may run ${named(won)} on the target only`] : []),
  ];
  return differences.length === 0 ? null : differences.join(', ');
}

/**
 * Whether the rules, applied in order, allow a command at a server. If the server lists no subcommands, they follow
 * their container.
 */
function mayRun(rules: readonly string[], { categories }: Pick<UserFacts, 'categories'>): (name: string) => boolean {
  const allowed = new Set<string>();
  for (const rule of rules) {
    const word = rule.slice(1);
    const set = rule.startsWith('+')
      ? (name: string) => void allowed.add(name)
      : (name: string) => void allowed.delete(name);
    const isMeant = word.startsWith('@')
      ? (_name: string, of: ReadonlySet<string>): boolean => word === '@all' || of.has(word.slice(1))
      : (name: string): boolean => name === word || name.startsWith(`${word}|`);
    for (const [name, of] of categories) if (isMeant(name, of)) set(name);
    // A subcommand that the server allows by name, and does not list.
    if (word.includes('|')) set(word);
    else for (const name of [...allowed]) if (!categories.has(name) && isMeant(name, NONE)) allowed.delete(name);
  }
  return (name) => allowed.has(name) || (!categories.has(name) && allowed.has(name.split('|', 1)[0]));
}

const NONE: ReadonlySet<string> = new Set();
