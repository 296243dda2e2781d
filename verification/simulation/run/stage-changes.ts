/** What an operator is answered who changes stages, against what there is; and the stages that outlive a process. */
import type { LaunchedShard } from '../../../shadow-proxy/src/shard/launch.js';
import { SIDES, type Side, type Stage } from '../../../shadow-proxy/src/route/stage.js';
import type { Parts } from '../../../shadow-proxy/src/shard/parts.js';
import type { Consent } from '../../../shadow-proxy/src/stages/gate-facts.js';
import type { Proxy } from '../world/proxy.js';
import type { Scene } from './scene.js';

/** So long the proxy may wait for repairs, before it holds commands and while it does. */
const REPAIRS_MS = 4_000;
/** So long a disk that is slow may take to keep a stage. */
const SLOW_DISK_MS = 5_000;
const SLACK_MS = 1_000;
/** How often is looked whether it has ended. */
const LOOK_MS = 50;

export interface Wanted {
  readonly workload: string;
  readonly stage: Stage;
  readonly percent?: number;
  readonly consent: Consent;
}

/** A request without an answer. */
interface Request {
  /** Who was asked. */
  readonly launched: LaunchedShard;
  /** Absent: a rollback, which is several changes. */
  readonly wanted?: Wanted;
}

type Problem = Error & { readonly code?: string };

export class StageChanges {
  readonly #open = new Set<Request>();
  /** By workload: when the guard took it back last, and whether an operator has promoted it since then. */
  readonly #takenBack = new Map<string, { readonly at: string; promoted: boolean }>();
  /** What was looked at last. */
  #holds: Parts['state']['current']['holds'] | null = null;
  /** By workload: the stages that the next process may begin in; null where any will do. */
  #left: ReadonlyMap<string, readonly string[]> | null = null;

  constructor(private readonly scene: Scene) {
    const { seats, profile, proxy } = scene;
    // An older state folder has older stages.
    if (seats.length > 1 || profile.faults.tamper !== undefined) return;
    proxy.onKill = () => this.#ended(proxy);
    const served = scene.onServe;
    scene.onServe = (seat) => {
      this.#begun(seat);
      served(seat);
    };
  }

  /** The guard takes no workload back twice without an operator's promotion between, whatever has ended meanwhile. */
  afterEvent(): void {
    const { scene } = this;
    const { parts } = scene.proxy;
    if (parts === null || scene.proxy.plan.guard === null) return;
    const { holds } = parts.state.current;
    if (holds === this.#holds) return;
    this.#holds = holds;
    for (const [workload, { why, at }] of Object.entries(holds)) {
      const before = this.#takenBack.get(workload);
      if (why !== 'rolled-back' || before?.at === at) continue;
      scene.say(`the guard has taken ${workload} back`);
      if (before?.promoted === false) scene.fail(`the guard takes ${workload} back twice, and nobody has promoted it`);
      this.#takenBack.set(workload, { at, promoted: false });
    }
  }

  #promoted(workload: string): void {
    const known = this.#takenBack.get(workload);
    if (known !== undefined) known.promoted = true;
  }

  /** @throws what the proxy answers */
  async rollback(launched: LaunchedShard, workload: string): Promise<void> {
    await this.#within({ launched }, () => launched.shard.rollback({ workload }));
  }

  /** @throws what the proxy answers */
  async change(launched: LaunchedShard, wanted: Wanted): Promise<void> {
    const { scene } = this;
    const { router } = scene.proxy.parts!;
    const asked = scene.now;
    const {
      position: { stage, percent },
    } = router.named(wanted.workload)!;
    const [before, after] = [shareOfTarget(stage, percent), shareOfTarget(wanted.stage, wanted.percent)];
    const gains: Side | null = before === after ? null : after > before ? 'target' : 'source';
    const frozen = scene.proxy.condition()?.frozen ?? null;
    const isSecond = this.#openOf(launched).some((each) => each.wanted !== undefined);
    const what = `${wanted.workload} is moved to ${wanted.stage}`;
    const request = { launched, wanted };
    if (stage !== 'off') this.#limit(request, what);
    await this.#within(request, () => launched.shard.changeStage(wanted));
    if (after > before) this.#promoted(wanted.workload);
    // One that raises the fence is not in progress before that: all is checked again behind it.
    if (isSecond && scene.profile.fenced !== true) scene.fail(`${what} while another stage change is in progress`);
    if (gains === null) return;
    if (frozen !== null) scene.fail(`${what}, although repairs are frozen: ${frozen}`);
    if (scene[gains].stillMs > scene.now - asked) scene.fail(`${what}, and the ${gains} has not answered since`);
  }

  #openOf(launched: LaunchedShard): readonly Request[] {
    return [...this.#open].filter((each) => each.launched === launched);
  }

  async #within(request: Request, act: () => Promise<unknown>): Promise<void> {
    const others = this.#openOf(request.launched).length;
    this.#open.add(request);
    try {
      await act();
    } catch (problem) {
      // The guard's own changes are none of the operator's. A fence is lifted before a refusal is answered.
      const { profile, proxy } = this.scene;
      if ((problem as Problem).code === 'busy' && others === 0 && proxy.plan.guard === null && profile.fenced !== true)
        this.scene.fail(`no other stage change is in progress: ${(problem as Problem).message}`);
      throw problem;
    } finally {
      this.#open.delete(request);
    }
  }

  /** It is made, or refused, in time. Where something must be repaired first, that has a time of its own. */
  #limit(request: Request, what: string): void {
    const { scene } = this;
    const { profile, proxy } = scene;
    const flipMs = 2 * proxy.plan.limits.flipMs + (profile.faults.diskSlow === undefined ? 0 : SLOW_DISK_MS) + SLACK_MS;
    const asked = scene.now;
    let mostMs = flipMs;
    const look = (): void => {
      if (!this.#open.has(request) || proxy.launched !== request.launched || profile.faults.proxyPause !== undefined)
        return;
      if (!this.#isWell) mostMs = flipMs + REPAIRS_MS;
      if (scene.now - asked >= mostMs) scene.fail(`no answer for ${mostMs} ms: ${what}`);
      else scene.later(LOOK_MS, look);
    };
    look();
  }

  /** Whether both servers answer, and nothing is to be repaired. */
  get #isWell(): boolean {
    const { proxy, source, target } = this.scene;
    const { sequencer, suspects } = proxy.parts!;
    const { servers } = sequencer;
    return (
      SIDES.every((side) => servers[side].up) && source.stillMs === 0 && target.stillMs === 0 && suspects.size === 0
    );
  }

  // ── what a process leaves ───────────────────────────────────────────────────────────────────────────────────────────

  #ended(proxy: Proxy): void {
    const { launched, parts } = proxy;
    if (launched === null || parts === null) return;
    const open = this.#openOf(launched);
    // A change may hold although its answer was never sent.
    for (const { wanted } of open) if (wanted !== undefined) this.#promoted(wanted.workload);
    this.#left =
      open.some(({ wanted }) => wanted === undefined) ||
      proxy.plan.failover === 'automatic' ||
      proxy.plan.guard !== null
        ? null
        : new Map(
            parts.router.workloads.map(({ name, position: { stage, percent } }) => [
              name,
              [
                pointOf(stage, percent),
                ...open.flatMap(({ wanted }) =>
                  wanted?.workload === name ? [pointOf(wanted.stage, wanted.percent)] : [],
                ),
              ],
            ]),
          );
  }

  /** A stage that held is kept, whatever the end of the process was. */
  #begun(seat: Proxy): void {
    for (const {
      name,
      position: { stage, percent },
    } of seat.parts!.router.workloads) {
      const allowed = this.#left?.get(name) ?? null;
      if (allowed !== null && !allowed.includes(pointOf(stage, percent)))
        this.scene.fail(
          `${name} was in ${allowed.join(', or on its way to ')}, and begins in ${pointOf(stage, percent)}`,
        );
    }
    this.#left = null;
  }
}

const pointOf = (stage: Stage, percent = 100): string => (stage === 'live' ? `${stage} ${percent} %` : stage);

/** Of the keys, in percent. */
const shareOfTarget = (stage: Stage, percent = 100): number =>
  stage === 'live' ? percent : stage === 'rampdown' || stage === 'complete' ? 100 : 0;
