/** Faults of the process that serves, and of those that wait for its end. */
import type { Proxy } from '../../world/proxy.js';
import type { Connection } from '../../world/network.js';
import type { ServerHost } from '../../world/server-host.js';
import type { Scene } from '../scene.js';
import type { Strikes } from './strikes.js';

/** A standby takes over within so long (docs/kubernetes.md), and after a goodbye at once. */
export const VACANT_MS = 5_000;
const HANDED_MS = 1_500;

/** By then it has not lost its lease: others wait for 2 s. */
const RESET_MS = 1_000;
const WAITED_MS = 4_000;
/** Longer than after which one that sends nothing looks silent; it is watched for 2 s then. */
const ALL_STOP_MS = [3_500, 6_000] as const;
const LATE_MS = 500;
/** The end of a machine without power is seen within so long. */
const SEEN_MS = 2_500;
/** A mirror that is stopped for so long does not confirm what was written before. */
const SLOW_MS = 300;

export function standbyFaults(
  scene: Scene,
): Strikes<
  | 'holderKill'
  | 'holderEnd'
  | 'holderStop'
  | 'allStop'
  | 'holderCut'
  | 'holderReset'
  | 'relapse'
  | 'standbyStop'
  | 'standbyKill'
  | 'standbyLoss'
  | 'standbyCut'
> {
  const { random, world, profile, source, target } = scene;
  const holder = (): Proxy | null => (scene.proxy.launched === null || !scene.proxy.answers ? null : scene.proxy);
  const pickStandby = (): Proxy | undefined =>
    profile.holderStays && scene.troubledUntil(scene.proxy) > scene.now - WAITED_MS
      ? undefined
      : random.pick(scene.seats.filter((seat) => seat !== scene.proxy && seat.process !== null && seat.answers));
  /** Whether each other process has waited for a while: then none can have served while the holder is cut off. */
  const othersWait = (): boolean =>
    scene.seats.every(
      (seat) =>
        seat === scene.proxy ||
        (seat.process !== null && Math.max(seat.startedAt, scene.troubledUntil(seat)) < scene.now - WAITED_MS),
    );
  const connectionsOf = (seat: Proxy): Connection[] =>
    [...world.network.connections].filter(({ from }) => from.host === seat.host.address);

  function stop(seat: Proxy, mostMs: number): string {
    const ms = random.between(1, mostMs);
    seat.process!.stopUntil(scene.now + ms);
    scene.troubled(seat, ms);
    if (ms > VACANT_MS) scene.onVacant(seat, VACANT_MS);
    return `${scene.nameOf(seat)} is stopped for ${ms.toFixed(0)} ms`;
  }

  /** It cannot reach the servers; its connections to them are cut, or nothing passes. */
  function apart(seat: Proxy, from: readonly ServerHost[], mostMs: number, leastMs = 1): string | null {
    const ms = random.between(leastMs, mostMs);
    if (!scene.mayTrouble(ms)) return null;
    const hosts = from.map(({ address }) => address.host);
    const pairs = hosts.map((host) => `${seat.host.address} ${host}`);
    if (pairs.some((pair) => world.network.blocked.has(pair))) return null;
    for (const pair of pairs) world.network.blocked.add(pair);
    scene.later(ms, () => pairs.forEach((pair) => world.network.blocked.delete(pair)));
    const isSilent = random.chance(0.5);
    for (const connection of connectionsOf(seat).filter(({ to }) => hosts.includes(to.host))) {
      if (!isSilent) connection.cut();
      else for (const end of [connection.near, connection.far]) end.silence(ms);
    }
    scene.troubled(seat, ms);
    return `${scene.nameOf(seat)} cannot reach ${hosts.join(' and ')} for ${ms.toFixed(0)} ms`;
  }

  return {
    holderKill() {
      const seat = holder();
      if (seat === null) return null;
      seat.kill();
      scene.onVacant(seat, VACANT_MS);
      scene.startLater(seat);
      return `${scene.nameOf(seat)} is killed`;
    },
    holderEnd() {
      const seat = holder();
      if (seat === null || seat.isEnding) return null;
      const isSlow = random.chance(0.5);
      if (isSlow) scene.mirror?.server.pause(SLOW_MS);
      seat.end(random.pick([0, 200]), () => {
        scene.onVacant(seat, HANDED_MS + SLOW_MS);
        scene.startLater(seat);
      });
      return `${scene.nameOf(seat)} is asked to end${isSlow ? ', while the mirror is stopped' : ''}`;
    },
    holderStop() {
      const seat = holder();
      const mostMs = profile.faults.holderStopMs ?? 1_000;
      return seat && scene.mayTrouble(mostMs) ? stop(seat, mostMs) : null;
    },
    allStop() {
      const seat = holder();
      const ms = random.between(...ALL_STOP_MS);
      if (seat === null || !othersWait() || !scene.mayTrouble(ms)) return null;
      const [stopsServers, stopsWaiting] = random.pick([
        [false, true],
        [true, false],
        [true, true],
      ]);
      if (stopsServers) for (const server of [source, target]) server.pause(ms);
      for (const each of scene.seats) {
        if (each !== seat && !stopsWaiting) continue;
        // The one that serves goes on last: until then it looks silent.
        const lateMs = each === seat ? random.between(0, LATE_MS) : 0;
        each.process?.stopUntil(scene.now + ms + lateMs);
        scene.troubled(each, ms + lateMs);
      }
      const others = [...(stopsServers ? ['both servers'] : []), ...(stopsWaiting ? ['all that wait'] : [])];
      return `${scene.nameOf(seat)} is stopped for ${ms.toFixed(0)} ms, with ${others.join(' and ')}`;
    },
    holderCut() {
      const seat = profile.holderStays && !othersWait() ? null : holder();
      return seat && apart(seat, [random.pick([source, target])], profile.faults.holderCutMs ?? 1_000);
    },
    holderReset() {
      const seat = holder();
      return seat && apart(seat, [source, target], RESET_MS);
    },
    relapse() {
      const seat = holder();
      if (seat === null) return null;
      const ms = random.between(VACANT_MS, 3 * VACANT_MS);
      // It may have the shard for a while.
      scene.later(ms - random.between(0, VACANT_MS), () => {
        const next = holder();
        if (next === null || next === seat) return;
        next.kill();
        scene.onVacant(next, VACANT_MS);
        scene.startLater(next);
        scene.say(`${scene.nameOf(next)} is killed`);
      });
      return apart(seat, [source, target], ms, ms);
    },
    standbyStop() {
      const seat = pickStandby();
      return seat === undefined ? null : stop(seat, profile.faults.standbyStopMs ?? 1_000);
    },
    standbyKill() {
      const seat = pickStandby();
      if (seat === undefined) return null;
      seat.kill();
      scene.startLater(seat);
      return `${scene.nameOf(seat)} is killed while it waits`;
    },
    standbyLoss() {
      const seat = pickStandby();
      if (seat === undefined) return null;
      const ms = random.between(0, SEEN_MS);
      for (const { far } of connectionsOf(seat)) far.silence(ms);
      seat.kill();
      scene.startLater(seat);
      return `${scene.nameOf(seat)} loses its power while it waits, which servers see after ${ms.toFixed(0)} ms`;
    },
    standbyCut() {
      const seat = pickStandby();
      return seat === undefined
        ? null
        : apart(seat, [random.pick([source, target])], profile.faults.holderCutMs ?? 1_000);
    },
  };
}
