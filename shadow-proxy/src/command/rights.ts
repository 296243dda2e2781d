/**
 * What KeyDB allows a user outside the user's key patterns, and Redis 7 does not. `rights.generated.ts` has the
 * behaviour of both servers for each command. This file has what the kit does about it: the gate `users` names each of
 * these commands, and the proxy refuses them if KeyDB answers.
 */
import { locateArguments } from '../resp/decode.js';
import type { WiderRight } from '../plan/plan.js';
import { isWord } from './keys.js';
import type { Handling } from './policy.js';
import { RIGHTS } from './rights.generated.js';

/** Commands with such a right, and their description in the gate. */
export const WIDER_RIGHTS: Readonly<Record<WiderRight, string>> = {
  sort: 'reads keys outside the patterns by BY and GET',
  debug: 'reads and changes what it likes, where Redis 7 refuses it (enable-debug-command)',
  'keydb.hrename': 'changes hashes outside the patterns',
};

const WIDER: ReadonlySet<string> = new Set(
  RIGHTS.filter(([, wider]) => wider === 'target').map(([command]) => command),
);

/** Whether KeyDB checks less of the command than Redis 7 does. */
export const isWider = (command: string): boolean => WIDER.has(command);

/** What must be checked before a command is sent to KeyDB for a user with key patterns. */
export type RightsCheck = 'sort' | 'debug' | 'script';

/** KEYDB.HRENAME is missing, because the proxy refuses it to all users. */
export const rightsCheckOf = (name: string, handling: Handling): RightsCheck | null =>
  handling === 'script' ? 'script' : name === 'sort' || name === 'debug' ? name : null;

/** The facts about a server that matter here. */
interface Enforcing {
  /** Empty if the server was never asked. */
  readonly version: string;
  readonly isKeydb: boolean;
}

/** Whether the target allows more than the source: Redis before 7.0 has none of the checks. */
export const allowsMore = (source: Enforcing, target: Enforcing): boolean =>
  !source.isKeydb &&
  (source.version === '' || parseInt(source.version, 10) >= 7) &&
  (target.isKeydb || target.version === '');

const ASTERISK = 42;

/** The option for which Redis 7 refuses the SORT in `frame` to a user who may not read all keys; null without one. */
export function refusedOption(frame: Buffer): 'BY' | 'GET' | null {
  const [argStart, argEnd]: number[][] = [[], []];
  const argc = locateArguments(frame, 0, argStart, argEnd);
  const is = (at: number, word: string): boolean => isWord(frame, argStart[at], argEnd[at], word);
  for (let i = 2; i < argc - 1; i++) {
    if (is(i, 'get')) return 'GET';
    if (is(i, 'by')) {
      i++;
      if (frame.subarray(argStart[i], argEnd[i]).includes(ASTERISK)) return 'BY';
    } else if (is(i, 'limit')) i += 2;
    else if (is(i, 'store')) i++;
  }
  return null;
}

/**
 * Whether a script that the kit cannot parse may call one of the commands, judged by the names in its text. Scripts
 * cannot call DEBUG.
 */
export const mentionsWider = (text: string): boolean => /(['"]|\[=*\[)(sort|keydb\.hrename)['"\]]/i.test(text);
