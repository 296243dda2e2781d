/** Turns options into the parts of a load test: the profile, the load generator, the sides. */
import { randomBytes } from 'node:crypto';
import os from 'node:os';
import { isLoopback } from '../../shadow-proxy/src/plan/endpoint.js';
import type { Driver } from '../driver/driver.js';
import { HOW_TO_GET_IT, MEMTIER, Memtier } from '../driver/memtier.js';
import { REDIS_BENCHMARK, RedisBenchmark } from '../driver/redis-benchmark.js';
import type { Point } from '../figures/results.js';
import { LoadtestError } from '../rig/errors.js';
import { onPath } from '../../shadow-proxy/src/local/program.js';
import type { Rig } from '../rig/rig.js';
import { givenSides, isGiven } from '../sides/given.js';
import { startLocal } from '../sides/local.js';
import type { Side } from '../sides/side.js';
import type { Profile } from '../workload/profile.js';
import type { PlaceOptions, RunCliOptions } from './options.js';

/** @throws {LoadtestError} that says how to install it, and what can be done without it */
export function driverOf(name: RunCliOptions['driver'], profile: Profile): Driver {
  if (name === 'redis-benchmark') {
    const file = onPath(REDIS_BENCHMARK);
    if (file === null)
      throw new LoadtestError(
        'MISSING_PROGRAM',
        'redis-benchmark is not on the PATH: it comes with Redis (apt install redis-tools)',
      );
    if (profile.fallback === undefined)
      throw new LoadtestError(
        'USAGE',
        `--driver redis-benchmark cannot send profile ${profile.name}, which mixes commands and names no fallback: take memtier`,
      );
    return new RedisBenchmark(file);
  }
  const file = onPath(MEMTIER);
  if (file !== null) return new Memtier(file);
  const instead =
    profile.fallback === undefined
      ? ''
      : `\nWithout it: --driver redis-benchmark measures one command of this profile (${profile.fallback})`;
  throw new LoadtestError('MISSING_PROGRAM', `${HOW_TO_GET_IT}.${instead}`);
}

/** The named servers, or else real ones on loopback. @throws {LoadtestError} */
export async function sidesOf(
  rig: Rig,
  options: PlaceOptions,
  profile: Profile,
  serverThreads: readonly number[],
): Promise<readonly Side[]> {
  const tls = profile.tls && options.tls !== false;
  const given = { ...options, roles: options.against };
  if (!isGiven(given)) return (await startLocal(rig, { roles: options.against, serverThreads, tls })).sides;
  const sides = await givenSides(rig, given);
  const clear = sides.find(({ address }) => address.tls === null);
  if (tls && clear !== undefined) {
    throw new LoadtestError(
      'USAGE',
      `profile ${profile.name} is measured over TLS, but ${clear.where} is in the clear: give rediss:// and --ca, or --no-tls`,
    );
  }
  return sides;
}

export function pointsOf(
  { clients, pipeline }: Pick<RunCliOptions, 'clients' | 'pipeline'>,
  profile: Profile,
): Point[] {
  const all = (clients ?? [profile.connections]).flatMap((connections) =>
    (pipeline ?? [profile.pipeline]).map((depth) => ({ connections, pipeline: depth })),
  );
  const wrong = all.find(({ connections }) => connections % profile.threads !== 0);
  if (wrong !== undefined)
    throw new LoadtestError(
      'USAGE',
      `--clients ${wrong.connections}: must be a multiple of the profile's ${profile.threads} threads`,
    );
  return all;
}

/** The rate is divided among the connections, in whole commands. @throws {LoadtestError} */
export function checkRate(rate: number | null, points: readonly Point[]): void {
  const uneven = rate === null ? undefined : points.find(({ connections }) => rate % connections !== 0 || rate === 0);
  if (uneven !== undefined)
    throw new LoadtestError(
      'USAGE',
      `--rate ${rate}: must be a multiple of the ${uneven.connections} connections; each sends its whole share a second`,
    );
}

export const newPrefix = (): string => `loadtest:${randomBytes(4).toString('hex')}:`;

export const onLoopback = (sides: readonly Side[]): boolean => sides.every(({ address }) => isLoopback(address.host));

/** Does not contain the host's name, because people pass reports on. */
export function hostLine(): string {
  const cores = os.cpus();
  return `${cores.length} × ${cores[0]?.model ?? 'unknown processor'}, ${Math.round(os.totalmem() / 2 ** 30)} GiB, ${os.type()} ${os.release()}`;
}
