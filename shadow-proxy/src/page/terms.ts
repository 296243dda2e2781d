/**
 * The meanings of the words on the page, in one or two sentences each. The texts follow the project's glossary. Pure.
 */
import type { GateName } from '../route/transitions.js';

export const TERMS = {
  source: 'The Redis that you are leaving.',
  target: 'The KeyDB that you are moving to.',
  authority: 'The server whose reply the client gets.',
  mirror: 'The other server: the proxy sends it each write too, and compares its replies.',
  'mirror lag': 'Age of the oldest write that the mirror has not confirmed yet.',
  'queued writes': 'Writes that wait in the proxy until the mirror has confirmed them.',
  commands: 'Commands of clients that were answered.',
  compared: 'Pairs of replies, one from each server, that were compared.',
  match: 'Both servers gave the same reply.',
  allowed: 'The replies differ, and a named rule permits this difference.',
  mismatch: 'The replies differ, and no rule permits this difference.',
  inconclusive: 'The two replies could not be compared fairly, so there is no verdict.',
  suspect: 'A key that may differ between the servers. The proxy copies it again from the authority.',
  repair: 'Copying a suspect key again from the authority to the mirror.',
  frozen: 'Repairs are stopped until an operator decides which server holds the right data.',
  'client errors': 'Error replies that clients got, by error code. PROXY: the proxy itself refused the command.',
  gate: 'A condition that must hold before a workload may enter its next stage.',
  workload: 'Keys that move to the target together, named in the plan by their patterns.',
  backfill: 'Copies the existing keys from the authority to the mirror.',
  verify: 'Compares all keys of both servers. With --repair it also copies the keys that differ.',
  'foreign key': 'A key on the target that the source does not have and the kit did not write.',
  p50: 'Half of the replies took no longer than this.',
  p99: '99 % of the replies took no longer than this.',
  'p99.9': '99.9 % of the replies took no longer than this.',
} as const;
export type TermName = keyof typeof TERMS;

export const GATE_TERMS: Readonly<Record<GateName, string>> = {
  servers:
    'Source and target are two different servers, the target accepts writes, and settings that clients can see are equal or accepted.',
  target: 'The target holds no keys that the migration would overwrite without your consent.',
  users: 'The users of both servers have the same passwords and rules.',
  compared: 'Enough pairs of replies were compared in this stage.',
  time: 'Replies were compared for long enough in this stage.',
  mismatches: 'No more mismatches in this stage than the plan permits.',
  allowed: 'Allowed differences are not too large a share of the pairs.',
  inconclusive: 'Inconclusive pairs are not too large a share of the pairs.',
  suspects: 'No key is suspect.',
  verify: 'A recent verify compared all keys and found no difference.',
  unsupported: 'Clients use no command that only one of the servers supports.',
  bypass: 'No client talks to the source directly, bypassing the proxy.',
  counters: 'Counters cannot be written on two nodes of the target at once.',
  evictions: 'The target has evicted no keys.',
  latency: 'The target answers about as fast as the source.',
  drill: 'A rollback was rehearsed.',
  steps: 'The share of the keys that the target answers grows in steps.',
  fence: 'The users of the source lose their writes, so that no client writes there bypassing the proxy.',
  checks: 'Every check of the plan agrees: Prometheus queries, HTTP requests, programs.',
};
