/** One measurement: sets the same keyspace on both servers, loads one peer, and reads the cost. */
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds, memory, resetPeak, threadsOf } from '../../rig/proc.js';
import type { Rig } from '../../rig/rig.js';
import { digest, readCommands, readsAndWrites, seed, seedCommands, type Servers } from '../../rig/servers.js';
import { LoadtestError } from '../../rig/errors.js';
import type { Sample } from './figures.js';
import { drive, type Load } from './memtier.js';
import { isShadow, type Peer } from './peers.js';
import { spentBy, type Spent } from './threads.js';

/** The commands that reset a keyspace, and that read it. */
export interface Keyspace {
  readonly keys: number;
  readonly seed: Buffer;
  readonly read: Buffer;
}

export const keyspaceOf = (keys: number, valueBytes: number): Keyspace => ({
  keys,
  seed: seedCommands(keys, valueBytes),
  read: readCommands(keys),
});

/** Loads one peer once. All peers run the whole time; those that are not measured are idle. */
export async function measure(
  rig: Rig,
  servers: Servers,
  peer: Peer,
  keyspace: Keyspace,
  load: Load,
  round: number,
): Promise<Sample> {
  const { source, target } = servers;
  for (const server of [source, target]) await seed(server, keyspace.seed, keyspace.keys);
  const before = await usage(servers, peer);
  if (peer.between) resetPeak(peer.pid);

  const result = await drive(rig, peer.port, load);
  const mirrorLagMs = await untilQuiet(servers);
  const after = await usage(servers, peer);
  rig.assertAlive();

  const executed = after.onSource - before.onSource;
  if (executed < result.operations) {
    const counts = `${result.operations} commands were answered, the source executed ${executed}`;
    throw new LoadtestError('MEASUREMENT', `${peer.name}: ${counts}`);
  }
  const perMillion = (seconds: number): number => (seconds / result.operations) * 1e6;
  const threads = spentBy(before.threads, after.threads, isShadow(peer.name) ? peer.pid : 'busiest').map(
    ({ name, cpu }): Spent => ({ name, cpu: perMillion(cpu) }),
  );
  const busiest = (of: 'sourceThreads' | 'targetThreads'): number =>
    perMillion(spentBy(before[of], after[of], 'busiest')[0]?.cpu ?? 0);
  const used = peer.between ? memory(peer.pid) : null;
  const { operations, opsPerSecond, p50, p99 } = result;
  return {
    ...{ round, peer: peer.name, pipeline: load.pipeline, clients: load.clients, rate: load.rate },
    ...{ operations, opsPerSecond, p50, p99 },
    cpu: perMillion(after.peer - before.peer),
    threadCpu: threads[0]?.cpu ?? 0,
    threads,
    loadCpu: perMillion(result.cpu),
    sourceCpu: perMillion(after.source - before.source),
    sourceThreadCpu: busiest('sourceThreads'),
    targetCpu: perMillion(after.target - before.target),
    targetThreadCpu: busiest('targetThreads'),
    rss: used?.rss ?? null,
    peakRss: used?.peak ?? null,
    mirrored: (after.onTarget - before.onTarget) / executed,
    mirrorLagMs,
    equal: peer.mirrors ? (await digest(source, keyspace.read)) === (await digest(target, keyspace.read)) : null,
  };
}

/** CPU seconds and executed commands so far. */
async function usage({ source, target }: Servers, peer: Peer) {
  return {
    onSource: await readsAndWrites(source),
    onTarget: await readsAndWrites(target),
    source: cpuSeconds(source.pid),
    sourceThreads: threadsOf(source.pid),
    target: cpuSeconds(target.pid),
    targetThreads: threadsOf(target.pid),
    peer: cpuSeconds(peer.pid),
    threads: threadsOf(peer.pid),
  };
}

const QUIET_MS = 200;

/** Waits until neither server has executed a command for a while. Returns how long the target was still busy, in ms. */
async function untilQuiet({ source, target }: Servers): Promise<number> {
  const start = Date.now();
  let last = -1;
  let since = start;
  for (;;) {
    const executed = (await readsAndWrites(source)) + (await readsAndWrites(target));
    const now = Date.now();
    if (executed !== last) [last, since] = [executed, now];
    if (now - since >= QUIET_MS) return since - start;
    if (now - start > 60_000)
      throw new LoadtestError('MEASUREMENT', 'the mirror is still busy a minute after the load ended');
    await sleep(20);
  }
}
