/**
 * How processes of a shard find each other at a server: by the names of their connections. Pure functions; `lease.ts`
 * describes the names.
 */
import { commonSlots } from '../plan/cluster-shards.js';
import { parseSlots } from '../plan/owns.js';
import { clientField } from '../upstream/handshake.js';

const NAME = 'shadow-proxy-lease';
const DATA_NAME = 'shadow-proxy';

export type Word = 'waits' | 'aside' | 'holds' | 'clean' | 'left';

/** Addresses of a process as others reach it: `host:port`, or empty. */
export interface Places {
  /** Where the shard's clients connect. Only the holder has it, from when it accepts clients. */
  readonly service: string;
  /** Where it answers as a Sentinel. */
  readonly sentinel: string;
}
export const NOWHERE: Places = { service: '', sentinel: '' };

/** A process in a server's list of connections. */
export interface Claim {
  /** The connection's client ID. */
  readonly id: number;
  readonly process: string;
  readonly word: Word;
  readonly note: string;
  /** Addresses that the process announces, `host:port`; empty if it announces none. */
  readonly places: Places;
  /** The address of the process. */
  readonly from: string;
  readonly ageS: number;
  readonly idleS: number;
}

/** The name of the connection that claims the lease. */
export function claimName(shard: string, process: string, word: Word, note: string, places: Places): string {
  const { service, sentinel } = places;
  const announced = service === '' && sentinel === '' ? '' : `:${service};${sentinel}`;
  return `${NAME}:${shard}:${process}:${word}:${note}${announced}`;
}

/** The name of a process's connections that carry data; without `process` the beginning of all processes' names. */
export const dataName = (shard: string, process?: string): string =>
  process === undefined ? `${DATA_NAME}:${nameOf(shard)}` : `${DATA_NAME}:${nameOf(shard)}:${process}`;

/** Whether the connection has this name, or one that continues it behind a colon. */
export const isNamed = (line: string, name: string): boolean => {
  const own = clientField(line, 'name');
  return own === name || own.startsWith(`${name}:`);
};

/** All claims on the shard in a server's list of connections, in the order of their client IDs. */
export function claimsIn(lines: ReadonlyMap<number, string>, shard: string): Claim[] {
  const prefix = `${NAME}:`;
  const claims: Claim[] = [];
  for (const [id, line] of lines) {
    const name = clientField(line, 'name');
    if (!name.startsWith(prefix)) continue;
    const [claimed, process, word, note = '', ...rest] = name.slice(prefix.length).split(':');
    if (!isSameShard(claimed, shard)) continue;
    claims.push({
      id,
      process,
      word: word as Word,
      note,
      places: placesIn(rest.join(':')),
      from: clientField(line, 'addr'),
      ageS: Number(clientField(line, 'age')),
      idleS: Number(clientField(line, 'idle')),
    });
  }
  return claims.sort((a, b) => a.id - b.id);
}

export const isThere = (word: Word): boolean => word === 'holds' || isWaiting(word);
export const isGoodbye = (word: Word): boolean => word === 'clean' || word === 'left';

export const goodbyeIn = (claims: readonly Claim[]): Claim | null =>
  claims.findLast(({ word }) => isGoodbye(word)) ?? null;

export const isWaiting = (word: Word): boolean => word === 'waits' || word === 'aside';

function placesIn(text: string): Places {
  const [service, sentinel = ''] = text.split(';');
  return { service, sentinel };
}

const nameOf = (shard: string): string => shard.split('@', 1)[0];

/** Whether both names are of the same shard, or of shards of a cluster that have a slot in common. */
function isSameShard(a: string, b: string): boolean {
  const [[name, slots], [other, others]] = [a.split('@'), b.split('@')];
  if (slots === undefined || others === undefined || name === other) return name === other;
  try {
    return commonSlots(parseSlots(slots), parseSlots(others)).length > 0;
  } catch {
    // Any client may choose such a name.
    return false;
  }
}
