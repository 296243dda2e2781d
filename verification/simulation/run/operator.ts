/** The operator of a run: changes stages, copies, verifies, reloads the plan, and accepts authorities. */
import { STAGES, type Stage } from '../../../shadow-proxy/src/route/stage.js';
import type { JobChange } from '../../../shadow-proxy/src/copy/job/jobs.js';
import { jobRequest } from '../../../shadow-proxy/src/storage/job-file.js';
import type { ShardCondition } from '../../../shadow-proxy/src/shard/snapshot.js';
import type { LaunchedShard } from '../../../shadow-proxy/src/shard/launch.js';
import type { Strikes } from './faults/strikes.js';
import type { Scene } from './scene.js';
import type { Pace } from '../check/job-pace.js';
import { StageChanges, type Wanted } from './stage-changes.js';

/** Keys that were deleted in stage off are deleted from the target, too. */
const CONSENT = { overwrite: true, deleteForeign: true, confirm: 100_000 };
/** A copy lasts for seconds. */
const SLOW: Pace = { keysPerSecond: 15 };
const JOB_CHANGES: readonly JobChange[] = [
  { state: 'pause' },
  { state: 'pause', limits: { keysPerSecond: 5 } },
  { state: 'resume' },
  { state: 'resume', limits: { keysPerSecond: null } },
  { limits: { keysPerSecond: 50, bytesPerSecond: 1_000 } },
  { limits: { bytesPerSecond: null } },
];
const UNLIMITED: JobChange = { state: 'resume', limits: { keysPerSecond: null, bytesPerSecond: null } };
/** The operator lets a paused job go on, and ends its limits, after so long. */
const PAUSED_MS = 5_000;
const LIMITS = [
  { queueBytes: '1mb', batchMs: 0 },
  { queueBytes: '64kb', batchMs: 5 },
  { queueBytes: '64mb', batchMs: 1 },
];

export class Operator {
  /** How often each stage was entered. */
  readonly stages = new Map<string, number>();
  readonly acts: Strikes<
    'stageChange' | 'rollback' | 'verify' | 'backfill' | 'stopJob' | 'changeJob' | 'reload' | 'handFence'
  > = {
    stageChange: () => this.#changeStage(),
    rollback: () => this.#rollback(),
    verify: () => this.#job('verify'),
    backfill: () => this.#job('backfill'),
    stopJob: () => this.#stopJob(),
    changeJob: () => this.#changeJob(this.scene.random.pick(JOB_CHANGES)),
    reload: () => this.#reload(),
    handFence: () => this.#fence(),
  };
  #suspectSince: number | null = null;
  /** When a job was paused or limited; null once it goes on without limits. The next process goes on with both. */
  #slowedAt: number | null = null;
  #stage: Stage | null = null;
  /** The process that was asked to raise the fence by hand, or to lift it, and has not answered. */
  #fencing: LaunchedShard | null = null;

  /** What becomes of an authority that is not trusted; `asked`: keys are restored first. */
  #way: 'left' | 'accepted' | 'asked' | 'restored' | null = null;

  readonly #changes: StageChanges;

  constructor(private readonly scene: Scene) {
    this.#changes = new StageChanges(scene);
  }

  start(): void {
    this.#care();
  }

  /** Counts the stages that were entered. */
  afterEvent(): void {
    const { scene } = this;
    this.#changes.afterEvent();
    const { stage } = scene;
    if (stage === null || stage === this.#stage) return;
    this.#stage = stage;
    this.stages.set(stage, (this.stages.get(stage) ?? 0) + 1);
    scene.say(`the stage is ${stage}`);
  }

  #changeStage(): string | null {
    const { random, proxy } = this.scene;
    const { parts } = proxy;
    if (parts === null) return null;
    const {
      name: workload,
      position: { stage: from },
    } = random.pick(parts.router.workloads);
    const at = STAGES.indexOf(from);
    const stage = from === 'live' && random.chance(0.5) ? 'live' : STAGES[random.chance(0.5) ? at + 1 : at - 1];
    if (stage === undefined || (stage === 'off' && workload === 'default') || stage === 'complete') return null;
    const percent =
      stage === 'live' ? random.pick(this.scene.profile.fenced === true ? [100] : [1, 50, 99, 100]) : undefined;
    return this.#change(workload, stage, percent);
  }

  #change(workload: string, stage: Stage, percent?: number): string {
    const wanted: Wanted = { workload, stage, percent, consent: this.#consent };
    return this.#ask(`${stage}${percent === undefined ? '' : ` for ${percent} % of the keys`}`, (launched) =>
      this.#changes.change(launched, wanted),
    );
  }

  /** Nobody confirms that keys are deleted which the target had before. */
  get #consent(): typeof CONSENT {
    return this.scene.profile.foreign === true ? { ...CONSENT, deleteForeign: false } : CONSENT;
  }

  #rollback(): string | null {
    return this.#ask('a rollback', (launched) => this.#changes.rollback(launched, 'default'));
  }

  #job(kind: 'verify' | 'backfill'): string {
    const repair = kind === 'verify' && this.scene.random.chance(0.5);
    return this.#ask(`a ${kind}${repair ? ' with repair' : ''}`, ({ shard }) => {
      const deletes = (kind === 'verify' && !repair) || this.scene.profile.foreign === true ? 0 : CONSENT.confirm;
      const pace = this.scene.profile.bounded === true ? SLOW : {};
      const rest = {
        workloads: this.#written,
        deletes,
        dryRun: false,
        again: true,
        sample: 100,
        limits: pace,
        automatic: false,
      };
      shard.startJob(jobRequest.parse({ kind, repair, ...rest }));
      this.scene.pace = pace;
    });
  }

  /** Workloads that are written twice. */
  get #written(): string[] {
    const workloads = this.scene.proxy.parts?.router.workloads ?? [];
    return workloads.filter(({ position: { stage } }) => stage !== 'off').map(({ name }) => name);
  }

  #stopJob(): string {
    return this.#ask('the end of the job', ({ shard }) => void shard.stopJob());
  }

  #changeJob(change: JobChange): string | null {
    const { scene } = this;
    if (scene.proxy.condition()?.job?.state !== 'running') return null;
    this.#slowedAt = change === UNLIMITED ? null : (this.#slowedAt ?? scene.now);
    if (change.state === 'resume') scene.resumedAt = scene.now;
    return this.#ask(`another job: ${JSON.stringify(change)}`, ({ shard }) => void shard.changeJob(change));
  }

  #reload(): string {
    const limits = this.scene.random.pick(LIMITS);
    return this.#ask(`other limits: ${JSON.stringify(limits)}`, async (launched) => {
      const next = this.scene.proxy.planWith({ limits });
      const problems = launched.checkReload(next);
      if (problems.length > 0) throw new Error(problems.join('; '));
      await launched.reload(next);
    });
  }

  /** Raises the fence by hand, or lifts one that was raised so. */
  #fence(): string | null {
    const { scene } = this;
    const isMoved = (): boolean => scene.stage === 'live' || scene.stage === 'rampdown';
    const action = scene.handFence === null ? 'apply' : 'lift';
    if (isMoved() && scene.random.chance(0.8)) return null;
    if (this.#fencing === scene.proxy.launched) return null;
    return this.#ask(`to ${action} the fence`, async (launched) => {
      this.#fencing = launched;
      scene.handFence = 'unknown';
      await launched.shard.fence(action).finally(() => (this.#fencing = null));
      // One that is lifted while the target answers stays so until the next stage change.
      scene.handFence = action === 'apply' ? 'applied' : isMoved() ? 'unknown' : null;
    });
  }

  #ask(what: string, act: (launched: LaunchedShard) => unknown): string {
    const { scene } = this;
    scene.proxy.within((launched) => {
      void (async () => {
        await act(launched);
      })().catch((problem: Error & { readonly code?: string }) => {
        scene.say(`the operator is refused ${what}: ${problem.message}`);
        // Where replies are bound to come in time, nothing is a reason for it to be late.
        const { boundMs, faults, certainMoves } = scene.profile;
        if (problem.code === 'deadline' && boundMs !== undefined && faults.hang === undefined)
          scene.fail(problem.message);
        // Where nothing is lost, suspects are few, and repaired at once, as far as the disk allows it.
        if (problem.code === 'not-clean' && certainMoves === true && scene.now > scene.slowDiskUntil)
          scene.fail(problem.message);
      });
    });
    return `the operator asks for ${what}`;
  }

  /**
   * What becomes of an authority that may have lost keys: it is left, or accepted. Before it is accepted, keys may be
   * restored.
   */
  #decide(job: ShardCondition['job']): void {
    const { scene } = this;
    const { emptied, profile, random } = scene;
    this.#way ??= emptied?.isLost === true ? random.pick(['left', 'accepted', 'asked', 'asked']) : 'accepted';
    if (this.#way === 'left' || (emptied === null && profile.faults.stageChange !== undefined)) this.#leave();
    if (this.#way === 'asked') return this.#restore();
    if (this.#way === 'restored' && job?.kind === 'restore') {
      if (job.state !== 'done') return;
      // Else a connection was lost meanwhile, and the job says so.
      if (job.failed === 0) emptied?.restored();
    }
    if (this.#way === 'left' && random.chance(0.5)) return;
    scene.say(
      this.#ask('to accept', ({ shard }) => {
        emptied?.accepting();
        return shard.acceptAuthority(null);
      }),
    );
  }

  #restore(): void {
    const rest = { repair: false, dryRun: false, again: true, sample: 100, limits: {}, automatic: false, deletes: 0 };
    const request = jobRequest.parse({ kind: 'restore', workloads: this.#written, ...rest });
    this.scene.say(
      this.#ask('to restore keys', ({ shard }) => {
        this.#way = 'accepted';
        shard.startJob(request);
        this.#way = 'restored';
      }),
    );
  }

  /** Asks for a stage in which the authority is another one. */
  #leave(): void {
    const { stage } = this.scene;
    if (stage === 'shadow') this.scene.say(this.#change('default', 'live', 100));
    if (stage === 'live') this.scene.say(this.#change('default', 'shadow'));
  }

  /**
   * An authority that has started again has its data: it is accepted. A workload that stays suspect is copied, and one
   * that was taken back to off is written twice again. A job that was slowed goes on.
   */
  #care(): void {
    const { scene } = this;
    const { backfillAfterMs } = scene.profile;
    scene.later(scene.random.between(100, Math.min(2_000, 100 + backfillAfterMs)), () => {
      const condition = scene.proxy.condition();
      if (condition?.frozen) this.#decide(condition.job);
      else if (condition !== null && this.#way !== null) {
        this.#way = null;
        scene.emptied?.end();
      }
      if (scene.stage === 'off') scene.say(this.#change('default', 'dualwrite'));
      if (scene.stage === 'dualwrite' && scene.profile.foreign === true) scene.say(this.#change('default', 'shadow'));
      if (this.#slowedAt !== null && scene.now - this.#slowedAt > PAUSED_MS) {
        const resumed = this.#changeJob(UNLIMITED);
        if (resumed !== null) scene.say(resumed);
      }
      const isSuspect = condition?.workloads.some(({ suspect }) => suspect !== null) ?? false;
      if (!isSuspect) this.#suspectSince = null;
      else this.#suspectSince ??= scene.now;
      if (this.#suspectSince !== null && scene.now - this.#suspectSince > backfillAfterMs) {
        this.#suspectSince = null;
        scene.say(this.#job('backfill'));
      }
      this.#care();
    });
  }
}
