/** Faults of the process that serves, and of those that wait for its end. */
import type { Proxy } from '../../world/proxy.js';
import type { Connection } from '../../world/network.js';
import type { Scene } from '../scene.js';
import type { Strikes } from './strikes.js';

/** A standby takes over within so long (docs/kubernetes.md), and after a goodbye at once. */
export const VACANT_MS = 5_000;
const HANDED_MS = 1_500;

export function standbyFaults(
  scene: Scene,
): Strikes<'holderKill' | 'holderEnd' | 'holderStop' | 'holderCut' | 'holderReset' | 'standbyStop' | 'standbyKill'> {
  const { random, world, profile, source, target } = scene;
  const holder = (): Proxy | null => (scene.proxy.launched === null || !scene.proxy.answers ? null : scene.proxy);
  const pickStandby = (): Proxy | undefined =>
    random.pick(scene.seats.filter((seat) => seat !== scene.proxy && seat.process !== null && seat.answers));
  const connectionsOf = (seat: Proxy): Connection[] =>
    [...world.network.connections].filter(({ from }) => from.host === seat.host.address);

  function stop(seat: Proxy, mostMs: number): string {
    const ms = random.between(1, mostMs);
    seat.process!.stopUntil(scene.now + ms);
    scene.troubled(seat, ms);
    return `${scene.nameOf(seat)} is stopped for ${ms.toFixed(0)} ms`;
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
      seat.end(random.pick([0, 200]), () => {
        scene.onVacant(seat, HANDED_MS);
        scene.startLater(seat);
      });
      return `${scene.nameOf(seat)} is asked to end`;
    },
    holderStop() {
      const seat = holder();
      const mostMs = profile.faults.holderStopMs ?? 1_000;
      return seat && scene.mayTrouble(mostMs) ? stop(seat, mostMs) : null;
    },
    holderCut() {
      const seat = holder();
      if (seat === null) return null;
      const ms = random.between(1, profile.faults.holderCutMs ?? 1_000);
      if (!scene.mayTrouble(ms)) return null;
      const { host } = random.pick([source, target]).address;
      const pair = `${seat.host.address} ${host}`;
      if (world.network.blocked.has(pair)) return null;
      world.network.blocked.add(pair);
      scene.later(ms, () => world.network.blocked.delete(pair));
      const isSilent = random.chance(0.5);
      for (const connection of connectionsOf(seat).filter(({ to }) => to.host === host)) {
        if (!isSilent) connection.cut();
        else for (const end of [connection.near, connection.far]) end.silence(ms);
      }
      scene.troubled(seat, ms);
      return `${scene.nameOf(seat)} cannot reach ${host} for ${ms.toFixed(0)} ms`;
    },
    holderReset() {
      const seat = holder();
      if (seat === null || !scene.mayTrouble(0)) return null;
      for (const connection of connectionsOf(seat)) connection.cut();
      scene.troubled(seat, 0);
      return `${scene.nameOf(seat)} loses all its connections`;
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
  };
}
