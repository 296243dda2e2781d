/** The operator of a run: changes stages, verifies, and accepts authorities. */
import { STAGES } from '../../shadow-proxy/src/route/stage.js';
import { WORLD } from '../world/events.js';
import type { Scene } from './scene.js';

export class Operator {
  /** How often each stage was entered. */
  readonly stages = new Map<string, number>();
  #stage: string;

  constructor(private readonly scene: Scene) {
    this.#stage = scene.profile.stage;
  }

  start(): void {
    this.#enter(this.#stage);
    this.#acceptAuthorities();
  }

  changeStage(): string | null {
    const { scene } = this;
    const at = STAGES.indexOf(this.#stage as (typeof STAGES)[number]);
    const stage = STAGES[scene.random.chance(0.5) ? at + 1 : at - 1];
    if (stage === 'off' || stage === 'complete') return null;
    scene.proxy.within(({ shard }) => {
      shard.changeStage({ workload: 'default', stage }).then(
        () => this.#enter(stage),
        (problem: Error) => scene.say(`${stage} is refused: ${problem.message}`),
      );
    });
    return `the operator asks for ${stage}`;
  }

  verify(): string {
    const { scene } = this;
    scene.proxy.within(({ shard }) => {
      try {
        shard.startJob({ kind: 'verify', workloads: ['default'], repair: false } as Parameters<
          typeof shard.startJob
        >[0]);
      } catch (problem) {
        scene.say(`the verification is refused: ${(problem as Error).message}`);
      }
    });
    return 'the operator asks for a verification';
  }

  /** The operator accepts an authority that has started again: it has its data. */
  #acceptAuthorities(): void {
    const { scene } = this;
    scene.world.events.after(scene.random.between(100, 2_000), WORLD, () => {
      if (scene.proxy.snapshot()?.frozen)
        scene.proxy.within(({ shard }) => {
          shard.acceptAuthority(null).then(
            (sides) => scene.say(`the operator accepts ${sides.join(', ')}`),
            (problem: Error) => scene.say(`the operator may not accept the authority: ${problem.message}`),
          );
        });
      this.#acceptAuthorities();
    });
  }

  #enter(stage: string): void {
    this.#stage = stage;
    this.stages.set(stage, (this.stages.get(stage) ?? 0) + 1);
    this.scene.say(`the stage is ${stage}`);
  }
}
