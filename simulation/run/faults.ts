/** The faults of a run: each strikes by itself, with the profile's mean time between two. */
import { WORLD } from '../world/events.js';
import type { Connection } from '../world/network.js';
import type { ServerHost } from '../world/server-host.js';
import type { Load } from './load.js';
import type { Operator } from './operator.js';
import type { Fault } from './profiles.js';
import type { Scene } from './scene.js';

export class Faults {
  /** How often each struck. */
  readonly struck = new Map<Fault, number>();
  /** By kind: strikes, and says what it did; null where nothing could be done. */
  readonly #strikes: Readonly<Record<Fault, () => string | null>>;

  constructor(
    private readonly scene: Scene,
    private readonly load: Load,
    operator: Operator,
  ) {
    this.#strikes = {
      cut: () => this.#cut(),
      silence: () => this.#silence(),
      leave: () => this.#leave(),
      slowReader: () => this.#readSlowly(),
      pause: () => this.#pause(),
      serverRestart: () => this.#restartServer(),
      proxyKill: () => this.#killProxy(),
      stageChange: () => operator.changeStage(),
      verify: () => operator.verify(),
    };
    scene.proxy.onEnd = (problem) => {
      scene.say(`the proxy ends: ${problem.message}`);
      this.#restartProxy();
    };
  }

  start(): void {
    for (const fault of Object.keys(this.#strikes) as Fault[]) {
      const meanMs = this.scene.profile.faults[fault];
      if (meanMs !== undefined) this.#repeat(fault, meanMs);
    }
  }

  /** Ends what lasts: servers and the proxy run again. */
  end(): void {
    const { source, target, proxy } = this.scene;
    for (const server of [source, target]) server.start(true);
    if (proxy.process === null) proxy.start();
  }

  #repeat(fault: Fault, meanMs: number): void {
    const { scene } = this;
    scene.world.events.after(-Math.log(1 - scene.random.share()) * meanMs, WORLD, () => {
      const what = scene.isQuiet ? null : this.#strikes[fault]();
      if (what !== null) {
        this.struck.set(fault, (this.struck.get(fault) ?? 0) + 1);
        scene.say(what);
      }
      this.#repeat(fault, meanMs);
    });
  }

  // ── network and clients ───────────────────────────────────────────────────────────────────────────────────────────

  /** While the proxy starts, few connections are struck: nothing else would ever happen. */
  #pickConnection(): { readonly name: string; readonly connection: Connection } | null {
    const { world, proxy, random } = this.scene;
    const { connections } = world.network;
    if (connections.size === 0 || (proxy.launched === null && random.chance(0.9))) return null;
    const connection = random.pick([...connections]);
    const { from, to } = connection;
    return { connection, name: `${from.host}:${from.port} → ${to.host}:${to.port}` };
  }

  #cut(): string | null {
    const found = this.#pickConnection();
    found?.connection.cut();
    return found && `cut ${found.name}`;
  }

  #silence(): string | null {
    const { random, profile } = this.scene;
    const found = this.#pickConnection();
    if (found === null) return null;
    const ms = random.between(1, profile.faults.silenceMs ?? 100);
    const end = random.pick([found.connection.near, found.connection.far]);
    end.silence(ms);
    return `nothing arrives at ${end.local.host}:${end.local.port} of ${found.name} for ${ms.toFixed(0)} ms`;
  }

  #leave(): string {
    const client = this.scene.random.pick(this.load.clients);
    client.leave(this.scene.random.chance(0.5));
    return `${client.name} closes its connection`;
  }

  #readSlowly(): string {
    const client = this.scene.random.pick(this.load.clients);
    client.readLate(this.scene.random.between(10, 500));
    return `${client.name} does not read`;
  }

  // ── servers ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #pickServer(): { readonly name: string; readonly server: ServerHost } {
    const { random, source, target } = this.scene;
    return random.chance(0.5) ? { name: 'source', server: source } : { name: 'target', server: target };
  }

  #pause(): string {
    const { random, profile } = this.scene;
    const { name, server } = this.#pickServer();
    const ms = random.between(1, profile.faults.pauseMs ?? 100);
    server.pause(ms);
    return `the ${name} is stopped for ${ms.toFixed(0)} ms`;
  }

  #restartServer(): string | null {
    const { scene } = this;
    const { name, server } = this.#pickServer();
    if (!server.isUp) return null;
    server.stop();
    scene.world.events.after(scene.random.between(1, 1_500), WORLD, () => {
      if (server.isUp) return;
      server.start(true);
      scene.say(`the ${name} has started`);
    });
    return `the ${name} ends`;
  }

  // ── proxy ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  #killProxy(): string | null {
    const { proxy } = this.scene;
    if (proxy.launched === null) return null;
    proxy.kill();
    this.#restartProxy();
    return 'the proxy is killed';
  }

  /** As a supervisor does. */
  #restartProxy(): void {
    const { scene } = this;
    scene.world.events.after(scene.random.between(1, 300), WORLD, () => {
      if (scene.proxy.process === null) scene.proxy.start();
      scene.say('the proxy starts');
    });
  }
}
