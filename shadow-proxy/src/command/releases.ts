/**
 * Releases after Redis 7.0, from the answers of their servers (generate-release.ts); 8.10 from its documentation. Add
 * one file for the next release. Together they are one table: which commands a server has, it lists itself when it is
 * connected.
 */
import type { Release } from './release.js';
import { RELEASE as REDIS_7_2 } from './releases/redis-7.2.generated.js';
import { RELEASE as REDIS_7_4 } from './releases/redis-7.4.generated.js';
import { RELEASE as REDIS_8_0 } from './releases/redis-8.0.generated.js';
import { RELEASE as REDIS_8_2 } from './releases/redis-8.2.generated.js';
import { RELEASE as REDIS_8_6 } from './releases/redis-8.6.generated.js';
import { RELEASE as REDIS_8_10 } from './releases/redis-8.10.js';
import { RELEASE as VALKEY_8_1 } from './releases/valkey-8.1.generated.js';
import { RELEASE as VALKEY_9_1 } from './releases/valkey-9.1.generated.js';
import type { GeneratedCommand } from './table.generated.js';

export const RELEASES: readonly Release[] = [
  REDIS_7_2,
  REDIS_7_4,
  REDIS_8_0,
  REDIS_8_2,
  REDIS_8_6,
  REDIS_8_10,
  VALKEY_8_1,
  VALKEY_9_1,
];

/** The commands that these releases add. */
export function newerCommands(): GeneratedCommand[] {
  const rows = new Map<string, GeneratedCommand>();
  for (const row of RELEASES.flatMap(({ commands }) => commands)) rows.set(row[0], rows.get(row[0]) ?? row);
  return [...rows.values()];
}

const arities = new Map<string, number[]>();
for (const { commands, arities: changed } of RELEASES)
  for (const [name, arity] of [...commands, ...changed]) arities.set(name, [...(arities.get(name) ?? []), arity]);

/** The arity of a command, wide enough for every release. */
export function widestArity(name: string, arity: number): number {
  const all = [arity, ...(arities.get(name) ?? [])];
  return all.every((each) => each === arity) ? arity : -Math.min(...all.map(Math.abs));
}
