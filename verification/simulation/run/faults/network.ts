/** Faults of connections and clients. */
import type { Connection } from '../../world/network.js';
import type { Load } from '../load.js';
import type { Scene } from '../scene.js';
import type { Strikes } from './strikes.js';

/** So many connections there are where nothing is lost, or more. */
const AS_OF = 30;
/** A server sees so much later that a connection was lost, and reads till then what was sent. */
const LATE_END_MS = 60;
/** Commands whose second word says what they do. */
const CONTAINERS = new Set(['CLIENT', 'CONFIG', 'SCRIPT', 'XGROUP', 'OBJECT']);
/** A client that blocks is given what it waits for. */
const SERVED = 'a command that blocked';
/** A silent connection is noticed in less. A second one meanwhile may make a command wait for as long again. */
const MUTED_MS = 3_500;

export function networkFaults(
  scene: Scene,
  load: Load,
): Strikes<'cut' | 'laneCut' | 'answerLost' | 'silence' | 'mute' | 'astray' | 'leave' | 'rest' | 'slowReader'> {
  const { world, random, profile } = scene;
  /** What servers have been sent, by kind; and the kind whose next reply is lost. */
  const kinds = new Set<string>();
  let awaited: string | null = null;
  let mutedAt = -Infinity;
  if (profile.faults.answerLost !== undefined)
    for (const server of [scene.source, scene.target]) {
      const { onCommand } = server;
      const runs = (address: string, kind: string): void => {
        kinds.add(kind);
        if (kind !== awaited) return;
        awaited = null;
        for (const connection of world.network.connections)
          if (`${connection.from.host}:${connection.from.port}` === address) connection.cut();
        scene.say(`the ${server.engine} runs ${kind} of ${address}, and the reply is lost`);
      };
      server.onCommand = (address, args) => {
        onCommand(address, args);
        runs(address, CONTAINERS.has(args[0]) ? `${args[0]} ${args[1]}` : args[0]);
      };
      server.onServe = (address) => runs(address, SERVED);
    }

  /** Each connection is struck as often, however few there are: else nothing could ever be connected again. */
  function pick(): { readonly name: string; readonly connection: Connection } | null {
    const connections = [...world.network.connections];
    const at = random.below(Math.max(connections.length, AS_OF));
    if (at >= connections.length) return null;
    const connection = connections[at];
    const { from, to } = connection;
    return { connection, name: `${from.host}:${from.port} → ${to.host}:${to.port}` };
  }

  return {
    cut() {
      const found = pick();
      found?.connection.cut();
      return found && `cut ${found.name}`;
    },
    laneCut() {
      const { host } = scene.proxy.address;
      const own = [...world.network.connections].filter(({ from, near }) => from.host === host && !near.isClosed);
      if (own.length === 0) return null;
      const { near, far, from, to } = random.pick(own);
      const ms = random.between(0, LATE_END_MS);
      near.arrived('reset');
      far.silence(ms);
      scene.later(ms, () => far.arrived('reset'));
      return `the proxy loses ${from.host}:${from.port} → ${to.host}:${to.port}, which the server reads for ${ms.toFixed(0)} ms`;
    },
    answerLost() {
      if (kinds.size === 0) return null;
      awaited = kinds.has(SERVED) && random.chance(0.2) ? SERVED : random.pick([...kinds]);
      return `the next reply to ${awaited} will be lost`;
    },
    silence() {
      const found = pick();
      if (found === null) return null;
      const ms = random.between(1, profile.faults.silenceMs ?? 100);
      const end = random.pick([found.connection.near, found.connection.far]);
      end.silence(ms);
      return `nothing arrives at ${end.local.host}:${end.local.port} of ${found.name} for ${ms.toFixed(0)} ms`;
    },
    mute() {
      const { host } = scene.proxy.address;
      const own = [...world.network.connections].filter(({ from }) => from.host === host);
      if (own.length === 0 || scene.now - mutedAt < MUTED_MS) return null;
      mutedAt = scene.now;
      const { near, far, from, to } = random.pick(own);
      const ms = random.between(6_000, 10_000);
      for (const end of [near, far]) end.silence(ms);
      return `nothing passes between ${from.host}:${from.port} and ${to.host}:${to.port} for ${ms.toFixed(0)} ms`;
    },
    astray() {
      const { source, target } = scene;
      const [name, address, other] = random.chance(0.5)
        ? (['source', source.address, target.address] as const)
        : (['target', target.address, source.address] as const);
      const led = [...world.network.connections].filter(({ to }) => to.host === address.host);
      if (led.length === 0) return null;
      const ms = random.between(1, 300);
      world.network.lead(address, other);
      scene.later(ms, () => {
        world.network.lead(address, null);
        scene.say(`the address of the ${name} leads to it again`);
      });
      for (const connection of random.chance(0.2) ? led : [random.pick(led)]) connection.cut();
      return `the address of the ${name} leads to the other server for ${ms.toFixed(0)} ms`;
    },
    leave() {
      const client = random.pick(load.clients);
      client.leave(random.chance(0.5));
      return `${client.name} closes its connection`;
    },
    rest() {
      const ms = random.between(1, profile.faults.restMs ?? 1_000);
      load.rest(ms);
      return `no client sends anything for ${ms.toFixed(0)} ms`;
    },
    slowReader() {
      const client = random.pick(load.clients);
      client.readLate(random.between(10, 500));
      return `${client.name} does not read`;
    },
  };
}
