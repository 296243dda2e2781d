/**
 * Decides whether two error replies mean the same. The texts are those of Redis 7.0.15 and KeyDB 6.3.4 (which are Redis
 * 6.2's), taken from both servers.
 */
// cspell:ignore bybox bypolygon
import type { CommandView } from './verdict.js';

const SCRIPTS = new Set(['eval', 'evalsha', 'eval_ro', 'evalsha_ro', 'fcall', 'fcall_ro']);

/** Whether the command runs a script, whose author chooses the reply. */
export const isScript = (command: CommandView): boolean => SCRIPTS.has(command.name);

interface Meaning {
  /** The first word, which clients check. */
  readonly code: string;
  /** The rest, without differences of wording. */
  readonly text: string;
  /** The script that failed, where the error names it. */
  readonly script?: string;
}

/** How Redis 7 shows where a script failed: `… script: <sha1>, on @user_script:1.`. */
const SCRIPT_7 = / script: ([0-9a-f]{40}), on @[^:]*:\d+\.$/;
/** How Redis 6 shows it: `Error running script (call to f_<sha1>): @user_script:1: @user_script: 1: ERR …`. */
const SCRIPT_6 = /^Error running script \(call to f_([0-9a-f]{40})\): @[^:]*:\d+: (?:@[^:]*: \d+: )?(?:ERR )?/;

function meaningOf(error: string, command: CommandView): Meaning {
  const space = error.indexOf(' ');
  const code = space === -1 ? error : error.slice(0, space);
  let text = space === -1 ? '' : error.slice(space + 1);
  let script: string | undefined;
  if (isScript(command)) {
    script = (SCRIPT_7.exec(text) ?? SCRIPT_6.exec(text))?.[1];
    text = text.replace(SCRIPT_7, '').replace(SCRIPT_6, '');
  }
  return { code, text: plain(text), script };
}

/** The text in lower case, with one kind of quotes, and without the list of arguments. */
function plain(text: string): string {
  return text
    .replace(/`/g, "'")
    .replace(/^(unknown command '.*'), with args beginning with: .*$/is, '$1')
    .toLowerCase()
    .replace(/\b(for|in|the) '([^']*)' command\b/g, '$1 $2')
    .replace(/\bkeydb\b/g, 'redis');
}

/** Two texts that mean the same, in either order. Groups of the same name must match equal text. */
interface Pair {
  /** The commands that give these texts; absent means all. */
  readonly commands?: readonly string[];
  readonly newer: RegExp;
  readonly older: RegExp;
}

const EXPIRES = ['expire', 'pexpire', 'expireat', 'pexpireat'];
const POPS = ['zpopmin', 'zpopmax'];
const GEO_STORES = ['georadius', 'georadiusbymember', 'geosearchstore'];
const GEO_MEMBERS = ['georadiusbymember', 'georadiusbymember_ro', 'geosearch', 'geosearchstore'];
const SCRIPT_COMMANDS = [...SCRIPTS];
/** Since 7.2 the command is in quotes, and 8.0 names one ID more. */
const UNBALANCED_STREAMS =
  /^unbalanced '?(?<command>xread(group)?)'? list of streams: for each stream key an id.* must be specified\.$/;

const PAIRS: readonly Pair[] = [
  {
    newer: /^unknown subcommand '(?<sub>.+)'\. try (?<command>\S+) help\.$/,
    older: /^unknown subcommand or wrong number of arguments for '(?<sub>.+)'\. try (?<command>\S+) help\.$/,
  },
  {
    newer: /^wrong number of arguments for (?<command>[^|]+)\|(?<sub>.+)$/,
    older: /^unknown subcommand or wrong number of arguments for '(?<sub>.+)'\. try (?<command>\S+) help\.$/,
  },
  {
    newer: /^this user has no permissions to run the (?<command>[^|]+)(\|.+)?$/,
    older: /^this user has no permissions to run the (?<command>.+) or its subcommand$/,
  },
  {
    newer: /^can't execute '(?<command>[^|']+)(\|.+)?': only \(p\|s\)subscribe \/ \(p\|s\)unsubscribe \/ (?<rest>.+)$/,
    older: /^can't execute '(?<command>.+)': only \(p\)subscribe \/ \(p\)unsubscribe \/ (?<rest>.+)$/,
  },
  {
    commands: ['config|set'],
    newer: /^config set failed \(possibly related to argument '(?<option>.+)'\) - (?<why>.+)$/,
    older: /^invalid argument '.*' for config set '(?<option>.+)' - (?<why>.+)$/s,
  },
  {
    commands: ['config|set'],
    newer: /^unknown option or number of arguments for config set - '(?<option>.+)'$/,
    older: /^unsupported config parameter: (?<option>.+)$/,
  },
  {
    commands: EXPIRES,
    newer: /^(unsupported option .*|(nx and xx, )?gt (or|and) lt options at the same time are not compatible)$/,
    older: /^wrong number of arguments for p?expire(at)?$/,
  },
  {
    commands: ['zrank', 'zrevrank'],
    newer: /^syntax error$/,
    older: /^wrong number of arguments for z(rev)?rank$/,
  },
  {
    commands: POPS,
    newer: /^value is out of range, must be positive$/,
    older: /^value is not an integer or out of range$/,
  },
  {
    commands: ['lpos'],
    newer: /^rank can't be zero: use 1 to start from the first match, 2 from the second \.\.\. or use negative .*$/,
    older: /^rank can't be zero: use 1 to start from the first match, 2 from the second, \.\.\.$/,
  },
  {
    commands: GEO_STORES,
    newer:
      /^(store option in georadius|geosearchstore) is not compatible with withdist, withhash and withcoord options$/,
    older: /^store option in georadius is not compatible with withdist, withhash and withcoords options$/,
  },
  {
    commands: ['xread', 'xreadgroup'],
    newer: UNBALANCED_STREAMS,
    older: UNBALANCED_STREAMS,
  },
  {
    // Valkey 9 has one more shape.
    commands: ['geosearch', 'geosearchstore'],
    newer: /^exactly one of byradius, bybox and bypolygon can be specified for (?<command>.+)$/,
    older: /^exactly one of byradius and bybox can be specified for (?<command>.+)$/,
  },
  {
    // Valkey 9.
    commands: GEO_MEMBERS,
    newer: /^member .* does not exist$/s,
    older: /^could not decode requested zset member$/,
  },
  {
    commands: [...SCRIPT_COMMANDS, 'script|load'],
    newer: /^error compiling script \(new function\): user_script:\d+: /,
    older: /^error compiling script \(new function\): user_script:\d+: /,
  },
  {
    commands: SCRIPT_COMMANDS,
    newer: /^unknown redis command called from script$/,
    older: /^unknown redis command called from lua script$/,
  },
  {
    commands: SCRIPT_COMMANDS,
    newer: /^wrong number of args calling redis command from script$/,
    older: /^wrong number of args calling redis command from lua script$/,
  },
  {
    commands: SCRIPT_COMMANDS,
    newer: /^please specify at least one argument for this redis lib call$/,
    older: /^please specify at least one argument for redis\.call\(\)$/,
  },
  {
    commands: SCRIPT_COMMANDS,
    newer: /^lua redis lib command arguments must be strings or integers$/,
    older: /^lua redis\(\) command arguments must be strings or integers$/,
  },
  {
    commands: SCRIPT_COMMANDS,
    newer: /^this redis command is not allowed from script$/,
    older: /^this redis command is not allowed from scripts$/,
  },
  {
    commands: SCRIPT_COMMANDS,
    newer: /^user_script:(?<line>\d+): attempt to modify a readonly table$/,
    older: /^user_script:(?<line>\d+): script attempted to create global variable '.+'$/,
  },
];

/** Whether two error replies (their text, without the `-`) have the same code and mean the same. */
export function meanTheSame(a: string, b: string, command: CommandView): boolean {
  const [x, y] = [meaningOf(a, command), meaningOf(b, command)];
  if (x.code !== y.code) return false;
  if (x.script !== undefined && y.script !== undefined && x.script !== y.script) return false;
  if (x.text === y.text) return true;
  return PAIRS.some(
    ({ commands, newer, older }) =>
      (commands === undefined || commands.includes(command.name)) &&
      (agree(newer.exec(x.text), older.exec(y.text)) || agree(newer.exec(y.text), older.exec(x.text))),
  );
}

function agree(a: RegExpExecArray | null, b: RegExpExecArray | null): boolean {
  if (a === null || b === null) return false;
  return Object.entries(a.groups ?? {}).every(([name, value]) => b.groups?.[name] === value);
}

/**
 * Whether the server does not know the command or its options, or has them only outside a cluster: it refuses the same
 * bytes whatever the data are.
 */
export function isRefusal(error: string): boolean {
  return REFUSAL.test(error);
}
const REFUSAL =
  /^ERR (unknown (sub)?command|wrong number of arguments|syntax error|unsupported option|(BY|GET) option of SORT denied)/i;

const CONDITIONS = new Set(
  (
    'OOM LOADING BUSY MASTERDOWN READONLY NOAUTH WRONGPASS NOPERM MISCONF NOREPLICAS ' +
    'CLUSTERDOWN TRYAGAIN MOVED ASK NOSCRIPT NOTBUSY UNKILLABLE'
  ).split(' '),
);

/** Whether the error is about the state of the server or the user's rights, not about the data. */
export const isCondition = (error: string): boolean => CONDITIONS.has(error.split(' ', 1)[0]);

/**
 * Whether the server had no memory left for the command: by its own reply, that of a script, or that of a transaction.
 */
export const lacksMemory = (error: string, command: CommandView): boolean =>
  error.startsWith('OOM ') ||
  ((isScript(command) || error.startsWith('EXECABORT ')) && error.includes('OOM command not allowed'));

/** Whether the server refuses writes because it is a replica now: by its own reply, or that of a script. */
export const takesNoWrites = (error: string, command: CommandView): boolean =>
  error.startsWith('READONLY ') || (isScript(command) && error.includes('READONLY You can'));

/** Whether a node of a cluster does not serve the key's slot now: by its own reply, or that of a script. */
export const servesNotSlot = (error: string, command: CommandView): boolean =>
  /^(MOVED|ASK|CLUSTERDOWN|TRYAGAIN) /.test(error) ||
  (isScript(command) && /CLUSTERDOWN|attempted to access (a non local key|keys that do not hash)/.test(error));

/** Whether the error depends on the value of the key: a server that lacks the key does not give it. */
export const isAboutKey = (error: string, { name }: CommandView): boolean =>
  ABOUT_KEY.test(error) || (name === 'xinfo|consumers' && error.startsWith('NOGROUP '));
const ABOUT_KEY =
  /^((WRONGTYPE|BUSYKEY|BUSYGROUP|INVALIDOBJ) |ERR (could not decode requested zset member|member .* does not exist$|An LFU maxmemory policy|One or more scores can't be converted))/s;
