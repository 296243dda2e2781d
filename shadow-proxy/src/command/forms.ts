/**
 * Forms of commands that only one of the two servers supports. Only the client's arguments decide, not the result on
 * the mirror. The table is generated from the answers of Redis 7.0.15 and KeyDB 6.3.4 (generate-forms.ts), and of newer
 * releases beside KeyDB (generate-release.ts).
 */
import type { Side } from '../route/stage.js';
import { FORMS } from './forms.generated.js';
import type { GeneratedForm } from './generated-rows.js';
import { isWord, lower } from './keys.js';
import { continues, type Software } from './release.js';
import { RELEASES } from './releases.js';

/** One form, ready to be matched. */
export interface Form {
  /** The name for people and in the plan: `lmpop`, `expire GT`, `set NX GET`, `command info`. */
  readonly name: string;
  /** The server that does not support it: Redis 7 (`source`) or KeyDB (`target`). */
  readonly lacks: Side;
  /** Whether the form is the whole command: then the server's own `COMMAND` shows it, too. */
  readonly whole: boolean;
  /** Whether the form is newer than both servers of the table. */
  readonly isNewer: boolean;
  /** The newer releases that introduced it. */
  readonly since: readonly Software[];
  /** Whether the server refuses it, or answers with a reply of another structure. */
  readonly how: 'refused' | 'reply';
  readonly example: string;
  readonly says: string;
  /** Matches a command with these arguments. */
  readonly matches: Matches;
}

type Matches = (frame: Buffer, argStart: readonly number[], argEnd: readonly number[], argc: number) => boolean;

const UPPER = ':upper';
const always: Matches = () => true;

/**
 * Commands whose different replies are counted; all other replies are alike for clients, or compared by a rule.
 * XAUTOCLAIM's third element matters only if entries were deleted, which its reply shows (`DELETED`).
 */
const REPLIES_COUNTED = new Set(['command', 'command|info', 'acl|getuser', 'memory|stats']);

/** XAUTOCLAIM and XCLAIM that found deleted entries: KeyDB returns null for each, and keeps it pending. */
export const DELETED = 'xautoclaim deleted entries';

/**
 * Forms that are harmless for clients, each with the reason. An operator adds to them in the plan
 * (`gates.allowUnsupported`).
 */
export const HARMLESS: Readonly<Record<string, string>> = {
  command: 'clients read the fields that both servers have',
  'command docs': 'redis-cli sends it at its start, and works without it',
  'memory stats': 'KeyDB gives fewer fields, each by its name',
  'client no-evict': 'the proxy answers it',
  'client no-touch': 'the proxy answers it',
  'client capa': 'the proxy answers it, and redirects nobody',
  'client setinfo': 'clients send it when they connect, and work without it; the proxy answers it',
};

/** By name in lower case: why a form may be used although one server does not support it. */
export const allowedForms = (planned: Readonly<Record<string, string>>): ReadonlyMap<string, string> =>
  new Map(Object.entries({ ...HARMLESS, ...planned }).map(([name, reason]) => [name.toLowerCase(), reason]));

/** The name of a command as people write it: `xgroup create`. */
export const titleOf = (command: string): string => command.replace('|', ' ');

/** The forms of each command that has any. */
const byCommand = new Map<string, Form[]>();
for (const row of FORMS) add(row, null);
for (const release of RELEASES) for (const row of release.forms) add(row, release);

function add(row: GeneratedForm, release: Software | null): void {
  const [command, lacks, how, words, , example, says] = row;
  if (how === 'reply' && !REPLIES_COUNTED.has(command)) return;
  const name = nameOf(command, words);
  const forms = byCommand.get(command) ?? [];
  const known = forms.find((form) => form.name === name && form.how === how);
  if (known !== undefined) {
    if (release !== null) (known.since as Software[]).push(release);
    return;
  }
  const whole = words === '' && how === 'refused';
  const since = release === null ? [] : [release];
  forms.push({ name, lacks, whole, isNewer: since.length > 0, since, how, example, says, matches: matcherOf(row) });
  byCommand.set(command, forms);
}

/** Null if both servers support all forms of the command. */
export const formsOf = (command: string): readonly Form[] | null => byCommand.get(command) ?? null;

/** The form for a command that is newer than both servers of the table. */
export const newerForm = (command: string): Form => ({
  name: titleOf(command),
  lacks: 'target',
  whole: true,
  isNewer: true,
  since: [],
  how: 'refused',
  example: titleOf(command).toUpperCase(),
  says: 'ERR unknown command',
  matches: always,
});

function nameOf(command: string, words: string): string {
  const shown = words
    .replace(/<([^>]+)>\.\.\./g, '$1 $1')
    .replace(/[<>]/g, '')
    .replaceAll(UPPER, ' in upper case');
  return `${titleOf(command)} ${shown}`.trim();
}

function matcherOf([, , , words, first, example, , ...strings]: GeneratedForm): Matches {
  if (words === '') return always;
  if (words === 'ms-*') return hasPartialId;
  // More repetitions of an argument than the other server accepts.
  if (words.includes('...')) return (_frame, _argStart, _argEnd, argc) => argc >= example.split(' ').length;
  const each = words
    .split(' ')
    .map((word) => ({ word: word.replace(UPPER, '').toLowerCase(), isUpper: word.endsWith(UPPER) }));
  const skipped = strings.map((word) => word.toLowerCase());
  return (frame, argStart, argEnd, argc) => {
    for (let i = 0; i < each.length; i++) {
      const { word, isUpper } = each[i];
      let at = first;
      for (; at < argc; at++) {
        if (isWord(frame, argStart[at], argEnd[at], word) && (!isUpper || !isLower(frame, argStart[at], argEnd[at])))
          break;
        for (let s = 0; s < skipped.length; s++) if (isWord(frame, argStart[at], argEnd[at], skipped[s])) at++;
      }
      if (at >= argc) return false;
    }
    return true;
  };
}

function isLower(frame: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (lower(frame[i]) !== frame[i]) return false;
  return true;
}

const [DASH, STAR] = [45, 42];

/** XADD with an ID such as `5-*`, after its options, as both servers read them. */
function hasPartialId(frame: Buffer, argStart: readonly number[], argEnd: readonly number[], argc: number): boolean {
  let at = 2;
  const is = (word: string): boolean => at < argc && isWord(frame, argStart[at], argEnd[at], word);
  for (;;) {
    if (is('nomkstream') || is('keepref') || is('delref') || is('acked')) at++;
    else if (is('limit') || is('idmpauto')) at += 2;
    else if (is('idmp')) at += 3;
    else if (is('maxlen') || is('minid')) {
      at++;
      if (is('=') || is('~')) at++;
      at++;
    } else break;
  }
  return at < argc && frame[argEnd[at] - 2] === DASH && frame[argEnd[at] - 1] === STAR && argEnd[at] - argStart[at] > 2;
}

/** Facts about a server that determine which forms it supports. */
export interface Supporting {
  /** Empty if the server was never asked. */
  readonly version: string;
  readonly isKeydb: boolean;
  /** Absent if the server was never asked. */
  readonly software?: Software;
  /** Lower-case names from its `COMMAND`; empty if it was never asked. */
  readonly commands: ReadonlySet<string>;
}

/**
 * Whether a server supports a form. A server that was never asked is assumed to be like the one from which the table
 * was made. Everything that KeyDB lacks came with Redis 7.0, except for whole commands, which each server lists itself.
 */
export function supports(form: Form, command: string, side: Side, server: Supporting): boolean {
  const { version, isKeydb, commands, software } = server;
  if (form.whole && commands.size > 0) return commands.has(command);
  if (form.isNewer) return software !== undefined && form.since.some((release) => continues(software, release));
  const keydb = version === '' ? side === 'target' : isKeydb;
  return form.lacks === 'source' ? keydb : !keydb && (version === '' || parseInt(version, 10) >= 7);
}
