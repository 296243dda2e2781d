/** What the proxy says of itself when no command is on its way and nothing is left to do, against what there is. */
import type { ShardSnapshot } from '../../../shadow-proxy/src/telemetry/snapshot.js';

export interface Facts {
  /** Connections of clients that the proxy has. */
  readonly clients: number;
}

/** What is not true, in sentences. */
export function untruths(snapshot: ShardSnapshot, { clients }: Facts): readonly string[] {
  const { mirror, reservations, compared, matched, allowed, mismatches } = snapshot;
  const decided = matched + sumOf(allowed) + sumOf(mismatches);
  const named = (what: string, figure: number, expected = 0): string[] =>
    figure === expected ? [] : [`${what}: ${figure}, not ${expected}`];
  return [
    ...named('bytes in the queues of the mirrors', mirror.queuedBytes),
    ...named('lag of the mirrors in ms', mirror.lagMs),
    ...named('age of the oldest reservation in ms', reservations.oldestMs),
    ...named('reservations', sumOf(reservations.byAge)),
    ...named('ms that a command waits for its keys', reservations.longestWaitMs),
    ...named('clients', snapshot.clients, clients),
    ...named('replies at which the proxy failed', snapshot.replyFailures),
    ...named('pairs that were compared', compared, decided),
  ];
}

const sumOf = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((a, b) => a + b, 0);
