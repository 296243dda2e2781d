/** Faults of the proxy's process, its machine and its disk. */
import type { Scene } from '../scene.js';
import { Tampering } from './tampering.js';
import type { Strikes } from './strikes.js';

export function proxyFaults(
  scene: Scene,
): Strikes<'proxyKill' | 'proxyStop' | 'proxyPause' | 'powerLoss' | 'tamper' | 'diskFull' | 'diskSlow'> {
  const { random, world, profile } = scene;
  const [proxy] = scene.seats;
  const { disk } = proxy.host;
  const tampering = new Tampering(scene, disk);

  const startLater = (): void => scene.startLater(proxy);

  for (const seat of scene.seats)
    seat.onEnd = (problem) => {
      scene.say(`${scene.nameOf(seat)} ends: ${problem.message}`);
      scene.onEnd(seat, problem);
      scene.ended(seat);
      scene.startLater(seat);
    };

  /** The next process is killed as soon as it serves, before it has repaired anything. */
  let killsNext = false;
  const served = scene.onServe;
  scene.onServe = (seat) => {
    served(seat);
    if (!killsNext) return;
    killsNext = false;
    scene.later(random.between(0, 5), () => {
      if (proxy.launched === null) return;
      proxy.kill();
      startLater();
      scene.say('the proxy is killed');
    });
  };

  return {
    proxyKill() {
      if (proxy.launched === null) return null;
      proxy.kill();
      startLater();
      killsNext = random.chance(0.3);
      return `the proxy is killed${killsNext ? ', and the next will be' : ''}`;
    },
    proxyStop() {
      if (proxy.launched === null || proxy.isEnding) return null;
      proxy.end(random.pick([0, 200, 5_000]), startLater);
      return 'the proxy is asked to end';
    },
    proxyPause() {
      if (proxy.process === null) return null;
      const ms = random.between(1, profile.faults.proxyPauseMs ?? 1_000);
      proxy.process.stopUntil(scene.now + ms);
      return `the proxy is stopped for ${ms.toFixed(0)} ms`;
    },
    powerLoss() {
      if (proxy.launched === null || (profile.faults.tamper !== undefined && scene.isSuspect)) return null;
      proxy.kill();
      // The system may have written everything before.
      if (random.chance(0.5)) disk.losePower();
      scene.damages++;
      scene.damage = 'its machine has lost its power';
      disk.place('/proc/sys/kernel/random/boot_id', world.randomUuid());
      startLater();
      return 'the machine of the proxy loses its power';
    },
    tamper() {
      // What is suspect as a whole stays so, whatever is damaged.
      if (proxy.launched === null || scene.isSuspect) return null;
      proxy.kill();
      startLater();
      scene.damages++;
      scene.damage = `${tampering.strike()}`;
      return `the proxy is killed, and ${scene.damage}`;
    },
    diskFull() {
      scene.damages++;
      const ms = random.between(1, 1_000);
      const kind = random.pick(['fullShare', 'errorShare'] as const);
      disk.faults[kind] = random.pick([0.05, 0.5, 1]);
      scene.later(ms, () => {
        disk.faults[kind] = 0;
        scene.say('the disk takes everything');
      });
      return `the disk refuses ${disk.faults[kind] * 100} % of the writes (${kind === 'fullShare' ? 'full' : 'broken'}) for ${ms.toFixed(0)} ms`;
    },
    diskSlow() {
      const ms = random.between(1, 2_000);
      const mostMs = random.pick([20, 300]);
      world.diskMs = [1, mostMs];
      if (mostMs === 300) scene.slowDiskUntil = Math.max(scene.slowDiskUntil, scene.now + ms + mostMs);
      scene.later(ms, () => (world.diskMs = [0.02, 0.5]));
      return `the disk takes up to ${mostMs} ms for each call, for ${ms.toFixed(0)} ms`;
    },
  };
}
