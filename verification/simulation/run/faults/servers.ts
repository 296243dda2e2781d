/** Faults of the two servers. */
import type { ModelServer } from '../../server/server.js';
import type { ServerHost } from '../../world/server-host.js';
import type { Scene } from '../scene.js';
import { slotOf } from '../../server/slots.js';
import { OWN_TAGS } from '../load.js';
import type { Strikes } from './strikes.js';

/** Commands by which the proxy begins a connection, or learns what a server is. */
const HANDSHAKE = ['hello', 'auth', 'select', 'info', 'ping', 'role', 'config|get', 'client|id', 'client|setname'];

/** No server refuses these for its state. A client whose CLIENT REPLY ON is refused would wait without a limit. */
const NEVER_REFUSED = new Set(['multi', 'exec', 'discard', 'watch', 'unwatch', 'hello', 'client|reply']);

/** A clock that is set by less is none that was set, for the proxy: docs/decisions/016-expiry-and-clocks.md. */
const LEAST_SET_MS = 600;

/** Long enough for a failover. */
const LEAST_HANG_MS = 5_000;
/** So long a server answers between two such faults. */
const BETWEEN_MS = 500;
/** Of the time after which a server is down. */
const BLIP_SHARE = 0.6;

interface Trouble {
  readonly name: string;
  begin(model: ModelServer): void;
  end(model: ModelServer): void;
}

const setting = (name: 'loading' | 'busy' | 'outOfMemory' | 'cannotSave'): Trouble => ({
  name,
  begin: ({ troubles }) => void (troubles[name] = true),
  end: ({ troubles }) => void (troubles[name] = false),
});

export function serverFaults(
  scene: Scene,
): Strikes<
  | 'pause'
  | 'bothPause'
  | 'serverRestart'
  | 'bothRestart'
  | 'sourceRestart'
  | 'mirrorLoss'
  | 'authorityLoss'
  | 'outage'
  | 'tight'
  | 'hang'
  | 'blip'
  | 'trouble'
  | 'refusal'
  | 'handshake'
  | 'clockSet'
  | 'failover'
  | 'slotMove'
> {
  const { random, profile, source, target } = scene;
  const pick = (): { readonly name: string; readonly server: ServerHost } =>
    random.chance(0.5) ? { name: 'source', server: source } : { name: 'target', server: target };
  /** Servers that are in some trouble: one at a time. */
  const inTrouble = new Set<ServerHost>();
  /** Until then one refuses PING. */
  let refusesUntil = 0;
  /** When the last server that did not answer answers again. */
  let hangsUntil = -Infinity;

  function restart(
    { name, server }: ReturnType<typeof pick>,
    keepData: boolean,
    ms = random.between(1, 1_500),
  ): string | null {
    if (!server.isUp) return null;
    server.stop();
    scene.later(ms, () => {
      if (server.isUp) return;
      server.start(keepData);
      scene.say(`the ${name} has started${keepData ? '' : ', and is empty'}`);
    });
    return `the ${name} ends`;
  }

  function troubled(begin: (model: ModelServer) => { readonly what: string; end(): void }): string | null {
    const { name, server } = pick();
    if (inTrouble.has(server) || !server.isUp) return null;
    inTrouble.add(server);
    const { what, end } = begin(server.model);
    const ms = random.between(1, profile.faults.troubleMs ?? 500);
    scene.later(ms, () => {
      end();
      inTrouble.delete(server);
      scene.say(`the ${name} answers as always`);
    });
    return `the ${name} ${what} for ${ms.toFixed(0)} ms`;
  }

  /** Some commands are refused, each with this chance. */
  function refuse(model: ModelServer, names: readonly string[] | null, error: string, share: number): () => void {
    const isRefused = (name: string): boolean => (names === null ? !NEVER_REFUSED.has(name) : names.includes(name));
    model.refuse((_, name) => (isRefused(name) && random.chance(share) ? error : null));
    return () => model.refuse(() => null);
  }

  const replica: Trouble = {
    name: 'is a replica without its primary',
    begin: (model) => model.becomeReplica('10.0.0.9', 6379),
    end: (model) => model.promote(),
  };
  const troubles = [setting('loading'), setting('busy'), setting('outOfMemory'), setting('cannotSave'), replica];

  function hang(model: ServerHost, ms: number): void {
    if (random.chance(0.6)) return model.pause(ms);
    const { troubles } = model.model;
    troubles.loading = true;
    scene.later(ms, () => (troubles.loading = false));
  }

  return {
    tight() {
      if (scene.tightMs > 0) return null;
      const ms = random.between(500, 4_000);
      scene.setRoom(true);
      scene.later(ms, () => scene.setRoom(false));
      return `the target has no room for all keys for ${ms.toFixed(0)} ms`;
    },
    hang() {
      const { mirror } = scene;
      const { workloads } = scene.proxy.condition() ?? {};
      const isBusy = [source, target].some(({ isSilent, stillMs }) => isSilent || stillMs > 0);
      if (mirror === null || isBusy || refusesUntil > scene.now || workloads?.every(({ clean }) => clean) !== true)
        return null;
      // Two of them would look like one, if no look at the server came in between.
      if (scene.now < hangsUntil + BETWEEN_MS) return null;
      const isMirror = random.chance(0.2);
      const server = isMirror === (mirror.name === 'target') ? target : source;
      const ms = random.between(LEAST_HANG_MS, profile.faults.hangMs!);
      hangsUntil = scene.now + ms;
      hang(server, ms);
      return `the ${server === source ? 'source' : 'target'} does not answer for ${ms.toFixed(0)} ms`;
    },
    blip() {
      const { name, server } = pick();
      const { downAfterMs } = scene.proxy.plan.limits;
      if (source.isSilent || target.isSilent || refusesUntil > scene.now) return null;
      if (random.chance(0.5)) {
        const ms = random.between(0, BLIP_SHARE * downAfterMs);
        server.pause(ms);
        return `the ${name} is stopped for ${ms.toFixed(0)} ms`;
      }
      const end = refuse(server.model, ['ping'], 'ERR ping is refused', 1);
      const ms = random.between(downAfterMs, 4 * downAfterMs);
      refusesUntil = scene.now + ms;
      scene.later(ms, end);
      return `the ${name} refuses PING for ${ms.toFixed(0)} ms`;
    },
    pause() {
      const { name, server } = pick();
      const ms = random.between(1, profile.faults.pauseMs ?? 100);
      if (!scene.mayTrouble(ms)) return null;
      server.pause(ms);
      return `the ${name} is stopped for ${ms.toFixed(0)} ms`;
    },
    bothPause() {
      const ms = random.between(1, profile.faults.pauseMs ?? 100);
      if (!scene.mayTrouble(ms)) return null;
      source.pause(ms);
      target.pause(ms);
      // A process that waits goes on a moment before, as one on their machine may.
      const waiting = scene.seats.filter((seat) => seat !== scene.proxy && seat.process !== null);
      const also = random.chance(0.5) ? waiting : [];
      for (const seat of also) {
        seat.process!.stopUntil(scene.now + ms - random.between(0, 1));
        scene.troubled(seat, ms);
      }
      return `both servers${also.length > 0 ? ', and all that wait,' : ''} are stopped for ${ms.toFixed(0)} ms`;
    },
    bothRestart() {
      const ms = random.between(1_000, 6_000);
      if (!source.isUp || !target.isUp || !scene.mayTrouble(ms)) return null;
      for (const [name, server] of [
        ['source', source],
        ['target', target],
      ] as const)
        restart({ name, server }, true, ms + random.between(0, 100));
      return `both servers end for ${ms.toFixed(0)} ms`;
    },
    serverRestart: () => restart(pick(), true),
    sourceRestart: () => restart({ name: 'source', server: source }, true),
    mirrorLoss() {
      const mirror = scene.mirror;
      return mirror && restart(mirror, false);
    },
    authorityLoss() {
      const { authority, mirror, emptied, proxy } = scene;
      if (authority === null || emptied === null || emptied.isLost || proxy.parts === null) return null;
      if (!authority.server.isUp || mirror?.server.isUp !== true) return null;
      emptied.begin();
      return restart(authority, false);
    },
    outage() {
      const mirror = scene.mirror;
      return mirror && restart(mirror, true, random.between(4_000, 15_000));
    },
    failover() {
      const group = random.pick(scene.groups);
      const ms = random.between(1, 2_000);
      if (!group.failOver(ms, random.between(0, 1_000), () => scene.failedOver(group))) return null;
      return `the ${group.name} ends, and its replica is promoted`;
    },
    slotMove() {
      const cluster = random.pick(scene.clusters);
      if (scene.proxy.launched === null) return null;
      const slot = slotOf(random.pick(OWN_TAGS));
      const [leavingMs, awayMs] = [random.between(1, 1_500), random.between(1, 2_000)];
      if (!cluster.moveSlot(slot, leavingMs, awayMs)) return null;
      // The mirror refuses commands on its keys.
      scene.trueMismatches.add('error');
      return `slot ${slot} of the ${cluster.name} moves to another node for ${awayMs.toFixed(0)} ms`;
    },
    clockSet() {
      // Two that nearly cancel each other out are not seen by the proxy.
      if (scene.isClockUnknown) return null;
      const byMs = random.between(LEAST_SET_MS, profile.faults.clockSetMs!) * random.pick([-1, 1]);
      const machine = random.pick(scene.machines);
      machine.clockAheadMs += byMs;
      scene.clockWasSet();
      return `the clock of ${machine === source ? 'the source' : machine === target ? 'the target' : 'a proxy'} is set by ${byMs.toFixed(0)} ms`;
    },
    trouble: () =>
      troubled((model) => {
        const trouble = random.pick(troubles);
        trouble.begin(model);
        return { what: trouble.name, end: () => trouble.end(model) };
      }),
    refusal: () =>
      troubled((model) => {
        const error = random.pick([
          "NOPERM this user has no permissions to run the 'x' command",
          "OOM command not allowed when used memory > 'maxmemory'.",
          'ERR a module has failed',
        ]);
        const share = random.pick([0.02, 0.3, 1]);
        scene.trueMismatches.add('error');
        return { what: `refuses commands (${error.split(' ', 1)[0]})`, end: refuse(model, null, error, share) };
      }),
    handshake: () =>
      troubled((model) => {
        const name = random.pick(HANDSHAKE);
        const end = refuse(model, [name], `ERR ${name} is refused`, random.pick([0.5, 1]));
        // Connections that are there have had theirs.
        for (const client of [...model.clients.values()]) if (random.chance(0.5)) client.close();
        return { what: `refuses ${name} of new connections`, end };
      }),
  };
}
