/** Where a round takes place, and who drives the commands of one node. */
import type { Redis } from 'ioredis';
import type { Mesh, Name } from './mesh.js';
import type { Proxies } from './proxies.js';

/** Sends `times` of a command to a node. @returns how many were acknowledged */
export type Driver = (port: number, times: number, command: readonly string[]) => Promise<number>;

export interface Place {
  readonly mesh: Mesh;
  /** In front of the nodes. */
  readonly proxies: Proxies;
  /** Before all keys of the round. */
  readonly prefix: string;
  readonly drive: Driver;
}

/** What was asked for and confirmed, over all nodes. */
export interface Driven {
  readonly attempted: number;
  readonly acknowledged: number;
  /** Of a limiter: how many were let pass. */
  readonly admitted?: number;
}

export const clientOf = ({ mesh }: Place, name: Name): Redis => mesh.clients[name];

export const sumOf = (a: Driven, b: Driven): Driven => ({
  attempted: a.attempted + b.attempted,
  acknowledged: a.acknowledged + b.acknowledged,
  ...(a.admitted === undefined || b.admitted === undefined ? {} : { admitted: a.admitted + b.admitted }),
});

export const NOTHING: Driven = { attempted: 0, acknowledged: 0 };

/** On all nodes at once. */
export const onEach = async ({ mesh }: Place, work: (name: Name) => Promise<Driven>): Promise<Driven> =>
  (await Promise.all(mesh.names.map(work))).reduce(sumOf);

/**
 * Calls `take` so many times, a few at once; what fails is not acknowledged. @returns what was, and what was let pass
 */
export async function takeMany(times: number, take: () => Promise<boolean>): Promise<Driven> {
  let [left, acknowledged, admitted] = [times, 0, 0];
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const passed = await take().catch(() => null);
      if (passed !== null) acknowledged++;
      if (passed === true) admitted++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { attempted: times, acknowledged, admitted };
}

const AT_ONCE = 4;
