/**
 * What happens when an authority is down: `failover` in the plan.
 *
 *   silent for downAfterMs, or another process ─▶ automatic, and the mirror clean ─▶ its clients are sent to the mirror
 *                                              └▶ else ─▶ they get an error, and the status says what the operator can
 * do
 *
 * The mirror is clean in the sense of rule 4: it has confirmed every acknowledged effect. Commands in flight have
 * failed for their clients, and are counted and listed. From then on the old authority is a mirror. It is suspect as a
 * whole until all of it is verified.
 */
import type { Logger } from 'pino';
import { unixMs } from '../io/clock.js';
import type { Server } from '../upstream/server.js';
import type { Plan } from '../plan/plan.js';
import type { OutageSnapshot, OutageWorkload } from '../telemetry/snapshot.js';
import type { Suspects } from '../suspects/suspects.js';
import { formatPoint } from '../storage/state.js';
import type { Router, Workload } from '../route/router.js';
import { authoritiesOf, isMirrored, otherSide, type Side, type StagePoint } from '../route/stage.js';
import { forceBackOf, forceOf, insteadOf } from '../telemetry/advice.js';
import type { GateAnswer } from '../stages/gate-answer.js';
import { LISTED, StageError, type StageChange, type StageRequest } from '../stages/stage-change.js';

export interface FailoverFacts extends StagePoint {
  readonly name: string;
  /** The authority that is down. */
  readonly dead: Side;
  readonly policy: Plan['failover'];
  /** Why all its keys are suspect; null if they are not. */
  readonly suspect: string | null;
  /** Keys that the mirror may lack although their writes were acknowledged. */
  readonly unconfirmed: number;
  /** Commands that the mirror does not support: clients would get errors, and the mirror may lack what they wrote. */
  readonly unsupported: number;
  /** The answer of the gate `users` for the target; null if clients would not be sent there. */
  readonly users: GateAnswer | null;
}

/** The stage to move to; or the reason against it, and what the operator can do. */
export type Decision =
  { readonly to: StagePoint } | ({ readonly why: string } & Pick<OutageWorkload, 'next' | 'instead'>);

/** Whether the workload's clients are sent to the mirror automatically. Pure. */
export function decideFailover(facts: FailoverFacts): Decision {
  const { name, stage, dead, policy, suspect, unconfirmed, unsupported, users } = facts;
  const next = `start the ${dead} again`;
  const to: StagePoint = { stage: dead === 'source' ? 'live' : 'shadow', percent: 100 };
  if (!isMirrored(stage)) return { why: `only the ${dead} has its keys`, next };
  if (suspect !== null) return { why: `the mirror is not clean: every key is a suspect: ${suspect}`, next };
  const why =
    unconfirmed > 0 ? `the mirror is not clean: it may lack acknowledged writes to ${unconfirmed} keys` : null;
  if (stage === 'dualwrite')
    return {
      why: why ?? 'the workload is in dualwrite: no reply of the mirror was compared',
      next,
      instead: {
        text: `continue on the ${otherSide(dead)}, in two steps. The first moves the workload to shadow, and the next step is shown there`,
        command: `promote ${name} --to shadow --force --reason 'the source is down'`,
      },
    };
  const closed = users !== null && users.answer !== 'yes' ? `the gate users is closed: ${users.evidence}` : null;
  const force = closed === null ? '--force' : '--force --force-users';
  if (why !== null) {
    const command = dead === 'target' ? forceBackOf(name, to) : forceOf(name, to).replace('--force', force);
    return {
      why,
      next,
      instead: { text: `accept the loss of these writes${closed === null ? '' : ` (${closed})`}`, command },
    };
  }
  const command =
    dead === 'target'
      ? `rollback ${name}`
      : `promote ${name} --to live --percent 100 ${force} --reason 'the source is down'`;
  if (unsupported > 0)
    return {
      why: `clients use commands that the ${otherSide(dead)} does not support (${unsupported} calls)`,
      next,
      instead: { text: 'continue without these commands', command },
    };
  if (policy === 'manual')
    return {
      why: 'failover is manual; the mirror is clean: no acknowledged write would be lost',
      next,
      instead: { text: `continue on the ${otherSide(dead)}${closed === null ? '' : ` (${closed})`}`, command },
    };
  if (closed !== null)
    return { why: closed, next, instead: { text: `let clients use the ${otherSide(dead)} all the same`, command } };
  return { to };
}

export interface FailoverContext {
  readonly router: Router;
  readonly suspects: Suspects;
  policy(workload: Workload): Plan['failover'];
  /** Calls of commands that the workload's clients use and the server `side` does not support. */
  unsupported(workload: Workload, side: Side): number;
  /** The answer of the gate `users`, without asking the source. */
  usersWithoutSource(): Promise<GateAnswer>;
  /** @throws {StageError} with nothing changed */
  change(request: StageRequest): Promise<StageChange>;
  /** Lets waiting clients continue after a workload was held. */
  open(): void;
  readonly servers: Readonly<Record<Side, Server>>;
  /** The key's name as it may be shown. */
  redact(key: Buffer): string;
  readonly logger: Logger;
}

/** Writes whose result is unknown, because they were in flight when the authority was lost. */
export function unanswered(
  workload: Workload,
  { suspects, redact }: Pick<FailoverContext, 'suspects' | 'redact'>,
): Pick<OutageWorkload, 'unanswered' | 'keys'> {
  const keys = [...suspects.all()].filter((suspect) => suspect.workload === workload && !suspect.acknowledged);
  return { unanswered: keys.length, keys: keys.slice(0, LISTED).map(({ key }) => redact(key)) };
}

interface Outage {
  readonly side: Side;
  readonly since: Date;
  readonly how: string;
  endedAt: Date | null;
  readonly workloads: Map<string, OutageWorkload>;
}

export class Failover {
  count = 0;
  #outage: Outage | null = null;
  #busy = false;
  /** By workload whose commands wait for the decision: what ends that. */
  readonly #holds = new Map<Workload, () => void>();

  constructor(private readonly context: FailoverContext) {}

  /** Called when the server has not answered for `silentMs`. */
  down(side: Side, silentMs: number): void {
    const seconds = (silentMs / 1000).toFixed(1);
    void this.#decide(side, `no answer for ${seconds} s`, new Date(unixMs() - silentMs));
  }

  /** Called when another process answers in its place, which lacks acknowledged writes. */
  replaced(side: Side): void {
    void this.#decide(side, 'restarted or was replaced (run ID changed)', new Date(unixMs()));
  }

  /** What the operator should know about an authority that does not answer, or about the last one that did not. */
  snapshot(silentMs: (side: Side) => number): OutageSnapshot | null {
    const outage = this.#outage;
    if (outage === null) return null;
    if (outage.endedAt === null && silentMs(outage.side) === 0) outage.endedAt = new Date(unixMs());
    const { side, since, endedAt, workloads } = outage;
    return {
      side,
      url: this.context.servers[side].endpoint.label,
      since: since.toISOString(),
      endedAt: endedAt?.toISOString() ?? null,
      workloads: [...workloads.values()],
    };
  }

  #concerned(side: Side): Workload[] {
    return this.context.router.workloads.filter((workload) => authoritiesOf([workload.position]).includes(side));
  }

  async #decide(side: Side, how: string, since: Date): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    const { logger } = this.context;
    if (this.#outage?.side !== side || this.#outage.endedAt !== null) {
      this.#outage = { side, since, how, endedAt: null, workloads: new Map() };
      logger.error({ server: side }, `the ${side} is lost: ${how}`);
      // Until the decision no command goes to the server, and none is refused.
      for (const workload of this.#concerned(side))
        if (this.context.policy(workload) === 'automatic' && !this.#holds.has(workload))
          this.#holds.set(workload, this.context.router.hold(workload));
    }
    const outage = this.#outage;
    try {
      // If nothing fails over automatically, clients need not wait for the facts that the operator sees.
      const concerned = this.#concerned(side);
      const isManual = concerned.every((workload) => this.context.policy(workload) === 'manual');
      if (isManual && concerned.length > 0 && !this.context.servers[side].up) this.#refuse(side, how);
      for (const workload of concerned) {
        const outcome = await this.#failOver(workload, side, how);
        if (outcome.why !== null && outcome.why !== outage.workloads.get(workload.name)?.why)
          logger.error(
            { server: side, workload: workload.name },
            `no failover: ${outcome.why}; next: ${outcome.next}${insteadOf(outcome)}`,
          );
        outage.workloads.set(workload.name, outcome);
      }
      if (this.#concerned(side).length === 0) outage.endedAt ??= new Date(unixMs());
      else if (!this.context.servers[side].up) this.#refuse(side, how);
    } finally {
      this.#busy = false;
    }
  }

  /** From now on, a client that needs a connection to the server gets an error, and is not closed. */
  #refuse(side: Side, how: string): void {
    const server = this.context.servers[side];
    server.refuse(
      `MASTERDOWN the ${side} ${server.endpoint.label} is lost (${how}): nothing was read or written; run shadow-compare status for the next step`,
    );
  }

  async #failOver(workload: Workload, dead: Side, how: string): Promise<OutageWorkload> {
    const { context } = this;
    const {
      name,
      position: { stage, percent },
    } = workload;
    const suspect = context.suspects.workloads.of(workload);
    const policy = context.policy(workload);
    const unconfirmed = context.suspects.count(
      workload,
      ({ key, acknowledged }) => acknowledged && workload.position.rule(key, 0, key.length).authority === dead,
    );
    const toTarget = dead === 'source' && isMirrored(stage);
    const decision = decideFailover({
      name,
      stage,
      percent,
      dead,
      policy,
      suspect,
      unconfirmed,
      unsupported: context.unsupported(workload, otherSide(dead)),
      users: toTarget ? await context.usersWithoutSource() : null,
    });
    const about = { name, policy, from: { stage, percent } };
    try {
      if ('why' in decision) return { ...about, movedTo: null, ...decision, ...unanswered(workload, this.context) };
      await context.change({
        workload: name,
        ...decision.to,
        failover: true,
        note: { by: 'failover', reason: `the ${dead} is lost: ${how}` },
      });
      const lost = unanswered(workload, this.context);
      this.count++;
      context.logger.warn(
        { server: dead, workload: name, ...lost },
        `failed over: ${formatPoint({ stage, percent })} → ${formatPoint(workload.position)}; its clients get the ${otherSide(dead)}'s replies`,
      );
      return {
        ...about,
        movedTo: { stage: workload.position.stage, percent: workload.position.percent },
        why: null,
        next: `when the ${dead} answers again, its keys are verified and repaired automatically; then promote or roll back`,
        ...lost,
      };
    } catch (problem) {
      const { message } = problem as Error;
      if (!(problem instanceof StageError))
        context.logger.error({ workload: name, problem: message }, 'the failover failed');
      return {
        ...about,
        movedTo: null,
        why: message,
        next: `the failover is retried; or start the ${dead} again`,
        ...unanswered(workload, this.context),
      };
    } finally {
      const endHold = this.#holds.get(workload);
      if (endHold !== undefined) {
        this.#holds.delete(workload);
        endHold();
        context.open();
      }
    }
  }
}
