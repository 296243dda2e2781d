/**
 * Capabilities of a server that the kit uses if its user may, and can do without. Each is tried when a server is first
 * seen. If a capability is indispensable, its refusal prevents the start (`lease/ownership.ts`) or closes the gate
 * `servers` (`NEEDED`).
 */
import { isError, text, type Reply } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';

export interface Capability {
  readonly name: string;
  /** A harmless call of the capability. */
  readonly probe: readonly Argument[];
  /** What is missing if the server refuses it, for people. */
  readonly without: string;
}

export const CAPABILITIES: readonly Capability[] = [
  {
    name: 'ACL GETUSER',
    probe: ['ACL', 'GETUSER', 'default'],
    without: 'scripts are not replayed on the mirror: the keys that they change are copied',
  },
  {
    name: 'ACL LIST',
    probe: ['ACL', 'LIST'],
    without: 'the gate users cannot compare the users: it tries the logins of clients instead',
  },
  {
    name: 'CLIENT TRACKING',
    probe: ['CLIENT', 'TRACKING', 'OFF'],
    without: 'keys that a script changes and does not declare are unknown: all keys become suspects, and are verified',
  },
  {
    name: 'CLIENT UNBLOCK',
    probe: ['CLIENT', 'UNBLOCK', 0],
    without:
      'a stage change waits for the timeout of commands that block, or aborts at limits.flipMs; where a client leaves, its blocked connection to the server is closed',
  },
  {
    name: 'CONFIG GET',
    probe: ['CONFIG', 'GET', 'lua-time-limit'],
    without: 'a script is taken to run for 5 s before the server says BUSY; assess cannot compare the settings',
  },
  {
    name: 'INFO commandstats',
    probe: ['INFO', 'commandstats'],
    without: 'writes that bypass the proxy are not counted: the gate bypass stays unknown',
  },
  {
    name: 'MEMORY USAGE',
    probe: ['MEMORY', 'USAGE', ''],
    without: 'TYPE and the length of each key are asked before it is copied: backfill takes longer',
  },
];

/** The capabilities that the server refuses: it does not know the command, or its user may not call it. */
export async function missingOf(ask: (...args: Argument[]) => Promise<Reply>): Promise<readonly Capability[]> {
  const replies = await Promise.all(CAPABILITIES.map(({ probe }) => ask(...probe)));
  return CAPABILITIES.filter((_, i) => isError(replies[i]) && /^(NOPERM|ERR unknown)/i.test(text(replies[i])));
}
