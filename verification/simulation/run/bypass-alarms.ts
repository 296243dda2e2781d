/** Where all clients use the proxy, it reports no write that bypasses it, however late its own commands run. */
import type { Scene } from './scene.js';

const ASK_MS = [50, 400] as const;

export class BypassAlarms {
  constructor(private readonly scene: Scene) {}

  start(): void {
    const { scene } = this;
    scene.later(scene.random.between(...ASK_MS), () => {
      this.#ask();
      this.start();
    });
  }

  #ask(): void {
    const { scene } = this;
    scene.proxy.within(() => {
      void scene.proxy.parts?.collector.passedWrites().then(({ last }) => {
        if (last !== null)
          scene.fail(`no client bypasses the proxy, and it reports writes: ${JSON.stringify(last.writes)}`);
      });
    });
  }
}
