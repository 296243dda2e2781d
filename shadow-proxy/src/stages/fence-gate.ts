/**
 * The gate `fence`: who loses writes at the source while the target answers clients, or why the source cannot be
 * fenced.
 */
import type { Plan } from '../plan/plan.js';
import type { FenceState } from '../storage/state.js';
import { says, unknown, type GateAnswer } from './gate-answer.js';

/** A client that is connected to the source directly, as a user that loses its writes. */
export interface FencedClient {
  /** Set by `CLIENT SETNAME`; may be empty. */
  readonly name: string;
  /** `host:port`. */
  readonly address: string;
  readonly user: string;
  /** The client's last command. */
  readonly command: string;
  readonly idleSeconds: number;
}

export interface FenceReport {
  /** The plan's `fence`. */
  readonly plan: Plan['fence'];
  /** When the fence was raised (ISO 8601); null if there is no fence. */
  readonly since: string | null;
  /** What an operator did by hand; null if stage changes decide. */
  readonly hand: FenceState['hand'];
  /** Why the fence cannot be raised, or is not complete; null if nothing is wrong. */
  readonly problem: string | null;
  /** Users that have lost their writes, or would lose them. */
  readonly users: readonly string[];
  /** Clients that can no longer write, or could not. */
  readonly clients: readonly FencedClient[];
}

/** Maximum number of clients that an answer names. */
const NAMED = 5;

/** The gate `fence`. @param report null if it is not known yet */
export function judgeFence(report: FenceReport | null): GateAnswer {
  if (report === null) return unknown('the source was not asked yet who may write there');
  const { since, problem, users, clients, hand } = report;
  if (problem !== null) return says(false, problem);
  const listed = clients.slice(0, NAMED).map(describeClient);
  const more = clients.length > NAMED ? ` and ${clients.length - NAMED} more` : '';
  const who =
    clients.length === 0 ? 'no client is connected to it directly as one of them' : `${listed.join(', ')}${more}`;
  if (since !== null) return says(true, `the source is fenced since ${since}: ${users.join(', ')} may not write there`);
  const again = hand === 'lifted' ? '; it was lifted by hand, and is raised again' : '';
  return users.length === 0
    ? says(true, "no user of the source but the kit's may write there")
    : says(true, `${users.join(', ')} will lose their writes at the source${again}; who loses them: ${who}`);
}

export const describeClient = ({ name, address, user, command }: FencedClient): string =>
  `${name === '' ? address : `${name} at ${address}`} (user ${user}, ${command})`;
