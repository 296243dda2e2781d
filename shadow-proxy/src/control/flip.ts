/**
 * A change of stage: holds the workload's new commands until the old authority has answered and the mirror has
 * confirmed all that was on its way, then changes the rule; or gives up at a deadline with nothing changed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sequencer } from '../lane/sequencer.js';
import type { Suspects } from '../record/suspects.js';
import type { Workload } from '../route/router.js';
import { STAGES, stageRule, type Stage } from '../route/stage.js';
import type { Clients } from '../session/clients.js';
import { StageError, type StageChange, type StagePoint, type StageRequest } from './status.js';

export interface FlipContext {
  readonly sequencer: Sequencer;
  readonly clients: Clients;
  readonly suspects: Suspects;
  /** How long the workload's commands may be held, in ms. */
  readonly holdMs: number;
  /** True where another shard has the same target and this one does not say which keys are its own. */
  readonly sharedTarget: boolean;
  /** Makes the new stage durable; the flip takes effect only after it. */
  persist(workload: Workload, from: StagePoint, to: StagePoint): Promise<void>;
  /** Why authority must not change now; null where it may. */
  frozen(): string | null;
}

/** How long suspects may take to be healed before a flip that needs a clean mirror is refused. */
const HEAL_MS = 2_000;

export class Flipper {
  flips = 0;
  #busy = false;

  constructor(private readonly context: FlipContext) {}

  /** @throws {StageError} with nothing changed */
  async change(request: StageRequest): Promise<StageChange> {
    if (this.#busy) throw new StageError('busy', 'another change of stage is under way: try again when it has ended');
    const { sequencer } = this.context;
    const workload = sequencer.router.named(request.workload);
    if (workload === undefined) {
      const names = sequencer.router.workloads.map(({ name }) => name).join(', ');
      throw new StageError('unknown-workload', `there is no workload "${request.workload}": the plan has ${names}`);
    }
    const from = { stage: workload.stage, percent: workload.percent };
    const to = { stage: request.stage, percent: request.stage === 'live' ? (request.percent ?? 100) : 100 };
    if (from.stage === to.stage && from.percent === to.percent) return { workload: workload.name, from, to, heldMs: 0 };
    this.#check(workload, from, to, request.force === true);
    this.#busy = true;
    try {
      const movesAuthority = authorityMoves(from, to);
      if (movesAuthority && request.force !== true) await this.#requireClean(workload);
      if (to.stage === 'dualwrite' && from.stage === 'off') await this.#beginCopy(workload);
      const heldMs = await this.#flip(workload, from, to, movesAuthority && request.force !== true);
      this.flips++;
      return { workload: workload.name, from, to, heldMs };
    } finally {
      this.#busy = false;
    }
  }

  #check(workload: Workload, from: StagePoint, to: StagePoint, force: boolean): void {
    if (from.stage === 'complete') throw new StageError('no-return', `"${workload.name}" is complete: going back from there is a backfill the other way`);
    const step = STAGES.indexOf(to.stage) - STAGES.indexOf(from.stage);
    if (Math.abs(step) > 1) {
      throw new StageError('not-adjacent', `"${workload.name}" is in ${from.stage}: the next stage is ${around(from.stage)}, one step at a time`);
    }
    if (to.stage === 'live' && to.percent < 100 && workload.counters.spanning > 0) {
      throw new StageError('refused', `percent is not offered for "${workload.name}": ${workload.counters.spanning} commands spanned hash slots or hid their keys; take it whole`);
    }
    const beyondShadow = STAGES.indexOf(to.stage) > STAGES.indexOf('shadow');
    if (beyondShadow && this.context.sharedTarget) {
      throw new StageError('refused', 'the target is shared with other shards of the plan: say with `owns` which keys are this shard\'s before a workload goes beyond shadow');
    }
    const frozen = this.context.frozen();
    if (frozen !== null && authorityMoves(from, to) && !force) throw new StageError('refused', `the authority is not trusted now: ${frozen}`);
  }

  /** Waits for suspects to be healed. */
  async #requireClean(workload: Workload): Promise<void> {
    const deadline = performance.now() + HEAL_MS;
    while (workload.suspect === null && this.context.suspects.count(workload) > 0 && performance.now() < deadline) await sleep(10);
    this.#assertClean(workload);
  }

  #assertClean(workload: Workload): void {
    const keys = this.context.suspects.count(workload);
    if (workload.suspect === null && keys === 0) return;
    const why = workload.suspect ?? `${keys} keys are in doubt`;
    throw new StageError('not-clean', `the mirror of "${workload.name}" is not clean: ${why}. Force it only if what the mirror lacks may be lost`, { suspect: workload.suspect, keys });
  }

  /** Keys from before are not on the mirror, unless there are none on either server. */
  async #beginCopy(workload: Workload): Promise<void> {
    const { servers } = this.context.sequencer;
    const counts = await Promise.all([servers.source, servers.target].map((server) => server.keyCount().catch(() => 1)));
    if (counts.some((count) => count > 0)) workload.suspect = 'keys from before the dual write are not copied yet';
  }

  async #flip(workload: Workload, from: StagePoint, to: StagePoint, requireClean: boolean): Promise<number> {
    const { sequencer, clients, holdMs } = this.context;
    const since = performance.now();
    workload.held = true;
    try {
      const done = await Promise.race([drained(sequencer).then(() => true), sleep(holdMs, false)]);
      if (!done) {
        throw new StageError('deadline', `"${workload.name}" stays in ${from.stage}: a server did not answer all that was on its way within ${holdMs} ms`);
      }
      if (requireClean) this.#assertClean(workload);
      await this.context.persist(workload, from, to);
      workload.move(to.stage, to.percent);
      if (to.stage === 'off') workload.suspect = null;
      return performance.now() - since;
    } finally {
      workload.held = false;
      clients.open();
    }
  }
}

/** Resolves when all that is on its way now is answered by the authorities, and confirmed by the mirrors. */
export async function drained(sequencer: Sequencer): Promise<void> {
  const sides = ['source', 'target'] as const;
  await Promise.all(sides.flatMap((side) => [...sequencer.lanes[side].all()].map((lane) => new Promise<void>((resolve) => lane.afterInFlight(resolve)))));
  await Promise.all(
    sides.map((side) => {
      sequencer.mirrors[side].flush();
      return new Promise<void>((resolve) => sequencer.mirrors[side].afterAppended(resolve));
    }),
  );
}

function authorityMoves(from: StagePoint, to: StagePoint): boolean {
  return stageRule(from.stage).authority !== stageRule(to.stage).authority || from.percent !== to.percent;
}

function around(stage: Stage): string {
  const at = STAGES.indexOf(stage);
  return [STAGES[at + 1], STAGES[at - 1]].filter(Boolean).join(' or ');
}
