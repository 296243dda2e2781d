/**
 * Which workloads may be written to the target, and what the kit knows about the keys there. If the target held none of
 * a workload's keys before the first write, everything it holds is the kit's. Foreign keys are neither deleted nor
 * overwritten unless an operator confirmed it.
 *
 *   off ─▶ count(target) ─▶ judgeTarget ─▶ admitted (durable) ─▶ dualwrite
 *                                             ▲
 *   all keys compared or copied, no foreign key left ─▶ ours ──┘
 */
import type { Logger } from 'pino';
import type { Permissions } from '../copy/foreign/permissions.js';
import { TargetKeysCounter, type TargetKeysContext } from '../copy/foreign/target-keys.js';
import { isoTime } from '../io/clock.js';
import { inTime } from '../io/in-time.js';
import { sleep } from '../io/timers.js';
import { isError } from '../resp/decode.js';
import type { Admission, ShardState, StatePatch } from '../storage/state.js';
import type { Workload } from '../route/router.js';
import { otherSide } from '../route/stage.js';
import type { TargetFacts } from './gate-facts.js';

export interface AdmittedContext extends TargetKeysContext {
  readonly permissions: Permissions;
  readonly state: () => ShardState;
  /** Replaces part of the state, durably. */
  readonly persist: (patch: (current: ShardState) => StatePatch) => Promise<void>;
  readonly logger: Logger;
}

/** How many keys of a restarted or replaced target are looked up on the source. */
const SAMPLE = 200;
/** How long to wait, in ms, for a target that accepts connections and does not answer. */
const ANSWER_MS = 2_000;
const RETRY_MS = 1_000;

export class Admitted {
  readonly #counter: TargetKeysCounter;
  /** How many times the target restarted or was replaced; and that number when its keys were last recognised. */
  #changes = 0;
  #recognised = 0;
  /** Recognitions that are under way. */
  #recognising = 0;
  #closed = false;

  constructor(private readonly context: AdmittedContext) {
    this.#counter = new TargetKeysCounter(context);
  }

  /**
   * The facts for the gate. Keys are counted if that is needed. `waitMs` limits the wait for the count; a few seconds
   * by default.
   */
  async facts(workload: Workload, waitMs?: number): Promise<TargetFacts> {
    // Find out which process the target is now.
    await answered(this.context.sequencer.servers.target.identify()).catch(() => undefined);
    const known = await this.glance(workload);
    if (known.of === 0 || known.of === null || known.ownSince !== null) return known;
    try {
      return { ...known, keys: await this.#counter.of(workload, waitMs) };
    } catch (problem) {
      return { ...known, problem: (problem as Error).message };
    }
  }

  /** The same facts without a count of keys, and without waiting for one. */
  async glance(workload: Workload): Promise<TargetFacts> {
    const { target } = this.context.sequencer.servers;
    let ownSince: string | null = null;
    try {
      if (target.traits.version === '') await answered(target.identify());
      if (this.#isOurs(workload)) ownSince = this.#of(workload)!.at;
      return { ownSince, keys: this.#counter.last(workload), of: await answered(target.keyCount()), problem: null };
    } catch (problem) {
      return { ownSince, keys: null, of: null, problem: (problem as Error).message };
    }
  }

  /** What is saved when a workload with these facts is first written to the target. */
  admission({ ownSince, keys }: TargetFacts, deleteForeign: boolean): Admission {
    const { runId } = this.context.sequencer.servers.target;
    const { found = 0, onSource = 0 } = keys !== null && ownSince === null ? keys : {};
    const foreign = found - onSource;
    return {
      at: ownSince ?? isoTime(),
      target: runId,
      foreign,
      overwrites: onSource,
      deleteForeign: deleteForeign ? foreign : 0,
    };
  }

  /** Called when the state has changed: sets what the workload may do with the keys on the target. */
  apply(workload: Workload): void {
    this.#counter.forget(workload);
    const admission = this.#of(workload);
    const mayDelete = admission !== undefined && this.#isKnown(admission);
    this.context.permissions.set(workload, {
      mayOverwrite: admission === undefined || admission.foreign > 0 || admission.overwrites > 0,
      deletable: !mayDelete ? 0 : admission.foreign === 0 ? Infinity : admission.deleteForeign,
    });
  }

  /**
   * Called when the target answers. `changed`: it may hold other data than before. Nothing is deleted there until its
   * keys were recognised as those of the source, because another server may answer at the address.
   */
  targetSeen(changed: boolean): void {
    const { router } = this.context.sequencer;
    if (changed) this.#changes++;
    for (const workload of router.workloads) this.apply(workload);
    const admissions = router.workloads.map((workload) => this.#of(workload)).filter((each) => each !== undefined);
    if (!admissions.every((each) => this.#isKnown(each))) void this.#recognise();
  }

  /** Called when all keys of the workloads were checked, and the mirror has no key that the authority lacks. */
  async proven(workloads: readonly Workload[]): Promise<void> {
    const { sequencer, permissions } = this.context;
    const { runId } = sequencer.servers.target;
    const known = ({ foreign, overwrites, target }: Admission): boolean =>
      foreign === 0 && overwrites === 0 && target === runId;
    const { workloads: all } = sequencer.router;
    const mirrored = all.filter(({ position: { keylessRule, whole } }) => keylessRule.mirrorsWrites || !whole);
    if (mirrored.every((workload) => workloads.includes(workload))) this.#recognised = this.#changes;
    const changed = workloads.filter(
      (workload) =>
        !permissions.isOurs(workload) ||
        !known(this.#of(workload) ?? { at: '', target: '', foreign: 1, overwrites: 0, deleteForeign: 0 }),
    );
    if (changed.length === 0) return;
    const at = isoTime();
    const of = (name: string, now: ShardState): Admission => ({
      at: now.admitted[name]?.at ?? at,
      target: runId,
      foreign: 0,
      overwrites: 0,
      deleteForeign: 0,
    });
    await this.context.persist((now) => ({
      admitted: { ...now.admitted, ...Object.fromEntries(changed.map(({ name }) => [name, of(name, now)])) },
    }));
    for (const workload of changed) this.apply(workload);
  }

  /** Whether it is still unknown if the target holds the keys that the kit wrote. */
  get isRecognising(): boolean {
    return this.#recognising > 0;
  }

  close(): void {
    this.#closed = true;
    this.#counter.close();
  }

  #of({ name }: Workload): Admission | undefined {
    return (this.context.state().admitted as Readonly<Record<string, Admission | undefined>>)[name];
  }

  #isOurs(workload: Workload): boolean {
    const admission = this.#of(workload);
    return admission !== undefined && admission.foreign === 0 && this.#isKnown(admission);
  }

  /** Whether the target holds the data that this entry describes. */
  #isKnown({ target }: Admission): boolean {
    if (this.#changes > this.#recognised) return false;
    return target === this.context.sequencer.servers.target.runId || this.#recognised > 0;
  }

  /** A restarted target has its earlier keys; a replaced target has other keys. */
  async #recognise(): Promise<void> {
    this.#recognising++;
    await this.#recogniseTarget();
    this.#recognising--;
  }

  async #recogniseTarget(): Promise<void> {
    const { sequencer, logger } = this.context;
    const { target } = sequencer.servers;
    // The target may also have changed before this process started.
    this.#changes = Math.max(1, this.#changes);
    const changes = this.#changes;
    while (!this.#closed && this.#changes === changes && this.#recognised < changes) {
      const share = await this.#shareOnSource().catch(() => null);
      if (this.#changes !== changes) return;
      if (share === null) {
        await sleep(RETRY_MS, undefined, { ref: false });
        continue;
      }
      if (share < 0.5) {
        return logger.error(
          { target: target.endpoint.label, share },
          'the target restarted or was replaced (run ID changed), and the source has less than half of its keys: keys that only the target has are kept; compare both with shadow-compare verify',
        );
      }
      this.#recognised = changes;
      for (const workload of sequencer.router.workloads) this.apply(workload);
    }
  }

  /**
   * Looks up some random keys of the target that the kit should have written. Returns the share that the authority has.
   */
  async #shareOnSource(): Promise<number> {
    const { sequencer, readers, owners } = this.context;
    const { target } = sequencer.servers;
    const connection = await target.open({ db: 0, protocol: 2, credentials: target.endpoint.credentials });
    let [there, onSource] = [0, 0];
    try {
      for (const db of (await target.databases()).keys()) {
        if (isError(await connection.ask('SELECT', db))) continue;
        const replies = await connection.askAll(Array.from({ length: SAMPLE }, () => ['RANDOMKEY']));
        const keys = replies.flatMap((reply) =>
          reply.data && !isError(reply) ? [{ key: Buffer.from(reply.data) }] : [],
        );
        const mine = keys.filter(({ key }) => {
          const workload = sequencer.router.byPattern(key);
          const owned = owners === null || owners.of(key, 0, key.length) !== 'another';
          return owned && this.#of(workload) !== undefined && workload.position.rule(key, 0, key.length).mirrorsWrites;
        });
        there += mine.length;
        onSource += mine.length - (await readers[otherSide('target')].absent(db, mine)).length;
      }
    } finally {
      connection.destroy();
    }
    return there === 0 ? 1 : onSource / there;
  }
}

/** @throws {Error} if the answer takes too long */
const answered = <T>(answer: Promise<T>): Promise<T> =>
  inTime(answer, ANSWER_MS, () => new Error(`no answer from the target for ${ANSWER_MS / 1000} s`));
