/**
 * The fence: while the target answers clients, the users of the source have no writes, so that nothing is written there
 * bypassing the proxy. Clients of the proxy keep their rights: their connections log in as fence users
 * (`upstream/fence-users.ts`). The earlier rules of the users are saved first, so that the fence can be lifted after a
 * crash at any point.
 *
 *   raise: rules saved ─▶ fence users made ─▶ lanes log in as them ─▶ users lose their writes
 *   lower: users get their rules back ─▶ lanes log in as themselves ─▶ fence users deleted ─▶ saved rules removed
 *
 * Nothing is written to the disk of the source. After its restart there is no fence, and it is raised again.
 */
import type { Logger } from 'pino';
import { allowsAny, digestOf, rulesIn, type UserRules } from '../command/users.js';
import { isoTime } from '../io/clock.js';
import { inTime } from '../io/in-time.js';
import { clearTimer, every, type Timer } from '../io/timers.js';
import type { Lanes } from '../pipeline/lanes.js';
import type { Plan } from '../plan/plan.js';
import { errorText, isError, text, type Reply } from '../resp/decode.js';
import type { Argument } from '../resp/encode.js';
import type { Router } from '../route/router.js';
import { stageRule } from '../route/stage.js';
import type { FenceState, HistoryEvent, ShardState, StatePatch } from '../storage/state.js';
import type { FenceSnapshot } from '../telemetry/snapshot.js';
import { fenceUserOf, isFenceUser, type FencedUser } from '../upstream/fence-users.js';
import { clientField } from '../upstream/handshake.js';
import type { Server } from '../upstream/server.js';
import { listForeignClients } from './bypass-counter.js';
import type { FenceReport } from './fence-gate.js';
import { soon } from './soon.js';
import { StageError, type StageRequest } from './stage-change.js';

export interface FenceContext {
  readonly source: Server;
  /** Lanes to the source as an authority. */
  readonly lanes: Pick<Lanes, 'logInAgain'>;
  readonly router: Pick<Router, 'positions'>;
  readonly plan: () => Pick<Plan, 'fence'>;
  /** Whether proxies of other shards write to the source, too, as users of their own. */
  readonly sharedSource: boolean;
  readonly state: () => Pick<ShardState, 'fence'>;
  /** Replaces part of the state, durably. */
  readonly persist: (patch: StatePatch, event?: HistoryEvent) => Promise<void>;
  /** Takes blocking commands back from the servers, and sends them again. */
  readonly resend: () => Promise<void>;
  /** How long clients' connections may take to log in again, in ms. */
  readonly patienceMs: () => number;
  readonly logger: Logger;
}

/** Who asks for a change, and why, for the history. */
export interface FenceNote {
  readonly by?: string;
  readonly reason?: string;
}

const TEND_MS = 5_000;
/** How long a stage change waits for the fence to be lifted, in ms. After that it is lifted in the background. */
const LIFT_MS = 2_000;
/**
 * No server has such a command: `ACL SETUSER` with it changes nothing, and a refusal shows that the kit's user lacks
 * the right.
 */
const NO_COMMAND = '+shadow-proxy-asks-whether-it-may';

export class Fence {
  #timer: Timer | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #problem: string | null = null;
  /** How many stage changes that need it are in progress. */
  #needed = 0;

  constructor(private readonly by: FenceContext) {
    const { fence } = by.source;
    fence.users = named(by.state().fence?.users ?? []);
    fence.renew = () => this.settle();
  }

  /** Raises or lifts the fence as the stages want it, before clients come, and keeps it so. */
  async start(): Promise<void> {
    this.#timer = every(TEND_MS, () => void this.settle()).unref();
    await soon(this.settle());
  }

  close(): void {
    clearTimer(this.#timer);
  }

  /**
   * Called when the source is identified: it may be another process, without a fence. A source that was down when this
   * process started may have no fence either.
   */
  seen({ side, runId }: Server): void {
    const { at } = this.by.source.fence;
    const mayLackFence = at === null ? this.#timer !== undefined && this.#isWanted : at !== runId;
    if (side === 'source' && mayLackFence) void this.settle();
  }

  /** Null if there is no fence, and none is wanted. */
  snapshot(): FenceSnapshot | null {
    const { fence } = this.by.state();
    if (!this.#isWanted && (fence?.users.length ?? 0) === 0) return null;
    return {
      since: fence?.at ?? null,
      users: fence?.users.map(({ name }) => name) ?? [],
      problem: this.#isWanted || this.#problem !== null ? this.#problem : null,
    };
  }

  /** Whether the change sends clients to the target, and the plan wants the source to be fenced then. */
  isFor({ stage, failover = false }: StageRequest): boolean {
    return this.by.plan().fence === 'acl' && !failover && stageRule(stage).authority === 'target';
  }

  /** A stage change needs the fence: until it ends, no other change, no look and no operator lifts what it raises. */
  async keptWhile<T>(change: () => Promise<T>): Promise<T> {
    this.#needed++;
    try {
      return await change();
    } finally {
      this.#needed--;
    }
  }

  /**
   * Called before clients are sent to the target, within `keptWhile`.
   * @throws {StageError} then `settle` undoes what was done
   */
  async raise(workload: string, note: FenceNote = {}): Promise<void> {
    try {
      await this.#serially(async () => {
        const problem = await this.#hindrance();
        if (problem !== null) throw new Error(problem);
        await this.#raise(this.by.state().fence?.hand === 'applied' ? 'applied' : null, note);
      });
    } catch (problem) {
      const { message } = problem as Error;
      throw new StageError('refused', `"${workload}" keeps its stage: the source cannot be fenced: ${message}`);
    }
  }

  /** Raises or lifts the fence, as the stages and the operator want it. Failures are logged, and it is tried again. */
  async settle(): Promise<void> {
    const { plan, state, logger } = this.by;
    if (plan().fence === 'off' && state().fence === null) return;
    const settled = this.#serially(async () => {
      const { fence } = state();
      if (this.#isWanted) await this.#tend();
      else if (this.#needed === 0 && fence !== null && (fence.users.length > 0 || fence.hand === null))
        await this.#lower(fence.hand, {});
      this.#problem = null;
    });
    await inTime(settled, LIFT_MS, () => new Error('the source does not answer')).catch((problem: Error) => {
      const { message } = problem;
      if (message !== this.#problem)
        logger.error({ problem: message }, 'the fence at the source is not as the stages want it: trying again');
      this.#problem = message;
    });
  }

  /** Raises the fence by hand, in any stage, until it is lifted by hand. @throws {StageError} with nothing changed */
  async apply(note: FenceNote): Promise<FenceReport> {
    await this.#byHand(async () => {
      const problem = await this.#hindrance();
      if (problem !== null) throw new Error(problem);
      await this.#raise('applied', note);
    });
    return this.report();
  }

  /**
   * Lifts the fence by hand, until the next stage change that needs it.
   * @throws {StageError} code `busy` while a stage change needs it
   */
  async lift(note: FenceNote): Promise<FenceReport> {
    if (this.#needed > 0)
      throw new StageError('busy', 'a stage change that needs the fence is in progress: try again when it has ended');
    await this.#byHand(() => this.#lower(this.#areWritesMoved ? 'lifted' : null, note));
    return this.report();
  }

  async #byHand(change: () => Promise<void>): Promise<void> {
    try {
      await this.#serially(change);
      this.#problem = null;
    } catch (problem) {
      throw new StageError('refused', (problem as Error).message);
    }
  }

  /** Who has lost writes at the source, or would lose them. */
  async report(): Promise<FenceReport> {
    const { plan, state, source } = this.by;
    const { fence } = state();
    const saved = fence?.users.map(({ name }) => name) ?? [];
    const problem = saved.length > 0 ? this.#problem : await this.#hindrance();
    const users = saved.length > 0 ? saved : ((await soon(this.#writers())) ?? []).map(({ name }) => name);
    const listed = (await soon(listForeignClients(source))) ?? [];
    const clients = listed.filter((line) => users.includes(clientField(line, 'user')));
    return {
      plan: plan().fence,
      since: saved.length > 0 ? fence!.at : null,
      hand: fence?.hand ?? null,
      problem,
      users,
      clients: clients.map((line) => ({
        name: clientField(line, 'name'),
        address: clientField(line, 'addr'),
        user: clientField(line, 'user'),
        command: clientField(line, 'cmd'),
        idleSeconds: Number(clientField(line, 'idle')),
      })),
    };
  }

  get #isWanted(): boolean {
    const hand = this.by.state().fence?.hand ?? null;
    return hand === null ? this.#areWritesMoved : hand === 'applied';
  }

  /** Whether clients get the target's replies for some keys, and the plan wants the source to be fenced then. */
  get #areWritesMoved(): boolean {
    const { plan, router } = this.by;
    return plan().fence === 'acl' && router.positions.some(({ stage }) => stageRule(stage).authority === 'target');
  }

  /** Why the source cannot be fenced; null if it can. */
  async #hindrance(): Promise<string | null> {
    const { source, sharedSource } = this.by;
    if (sharedSource) return 'other shards of the plan have the same source, and their proxies would lose their writes';
    if (/^[1-5]\./.test(source.traits.version))
      return `the source is Redis ${source.traits.version}, which has no users: give it another password (requirepass) that only the proxy has, or close its port to all but the proxy; then set fence: off`;
    const kit = kitOf(source);
    if (kit === 'default')
      return 'the kit logs in to the source as default, as clients without a user do: make a user for the kit (ACL SETUSER shadow-proxy on >PASSWORD ~* &* +@all), and name it in the URL of the source';
    const asked = await soon(Promise.all([source.ask('ACL', 'LIST'), source.ask('ACL', 'SETUSER', kit, NO_COMMAND)]));
    if (asked === null) return 'the source does not answer';
    const refused = asked.find((reply) => isError(reply) && !errorText(reply).includes('Error in ACL SETUSER'));
    return refused === undefined
      ? null
      : `the kit's user may not change users of the source (${errorText(refused)}): allow it ACL, or set fence: off and keep other writers away yourself`;
  }

  async #rules(): Promise<readonly UserRules[]> {
    const kit = kitOf(this.by.source);
    const { items } = await this.#must('ACL', 'LIST');
    return items!.map((line) => rulesIn(text(line))).filter(({ name }) => name !== kit);
  }

  /** Users that may write at the source now, without the kit's own. */
  async #writers(): Promise<readonly UserRules[]> {
    return writersAmong(await this.#rules(), this.by.source);
  }

  /** Raises the fence again if it is not complete: the source has restarted, or its users were changed. */
  async #tend(): Promise<void> {
    const { source, state, router, logger } = this.by;
    const { fence } = state();
    // The source may have been stopped for good.
    if (router.positions.every(({ stage }) => stage === 'complete')) return;
    await source.identify();
    const rules = await this.#rules();
    const names = new Set(rules.map(({ name }) => name));
    const lost = (fence?.users ?? []).filter(({ name }) => names.has(name) && !names.has(fenceUserOf(name)));
    const writers = writersAmong(rules, source);
    if (source.fence.at === source.runId && lost.length === 0 && writers.length === 0) return;
    const was = source.fence.at;
    await this.#raise(fence?.hand ?? null, { reason: 'the source had no fence, or not for all of its users' });
    logger.warn(
      { users: writers.map(({ name }) => name) },
      was === null ? 'the source is fenced' : 'the source had lost its fence, or part of it: it is fenced again',
    );
  }

  async #raise(hand: FenceState['hand'], { by, reason }: FenceNote): Promise<void> {
    const { source, lanes, state, persist, resend, patienceMs } = this.by;
    await source.identify();
    const rules = await this.#rules();
    const writers = writersAmong(rules, source);
    const before = state().fence;
    const kept = (before?.users ?? []).filter(({ name }) => writers.every((writer) => writer.name !== name));
    const users: readonly FencedUser[] = [
      ...kept,
      ...writers.map(({ name, commands, selectors }) => ({ name, commands, selectors })),
    ];
    const names = users.map(({ name }) => name);
    if (writers.length > 0 || before === null || before.hand !== hand)
      await persist(
        {
          fence: {
            at: kept.length > 0 ? before!.at : isoTime(),
            hand,
            users: users.map(({ name, commands, selectors }) => ({
              ...{ name, commands: [...commands], selectors: [...selectors] },
            })),
          },
        },
        { event: 'fence', state: 'raised', users: names, by, reason },
      );
    source.fence.users = named(users);
    for (const { name, commands, selectors } of users) {
      const now = rules.find((each) => each.name === name);
      if (now === undefined) continue;
      const password = digestOf(source.fence.password);
      await this.#set(fenceUserOf(name), ['reset', 'on', password, ...now.patterns, ...commands, ...selectors]);
    }
    source.fence.at = source.runId;
    const loggedIn = lanes.logInAgain(new Set(names));
    const late = (): Error => new Error(`commands of clients were in flight at the source for ${patienceMs()} ms`);
    await inTime(Promise.all([loggedIn, resend()]), patienceMs(), late);
    const writes = writesOf(source);
    for (const { name, selectors } of writers) await this.#set(name, withoutWrites(selectors, writes.unlisted));
    const left = await this.#writers();
    if (left.length > 0) throw new Error(`${namesOf(left)} may still write there`);
  }

  async #lower(hand: FenceState['hand'], { by, reason }: FenceNote): Promise<void> {
    const { source, lanes, state, persist, patienceMs } = this.by;
    const { users = [] } = state().fence ?? {};
    const names = users.map(({ name }) => name);
    if (names.length > 0) {
      const rules = await this.#rules();
      for (const { name, commands, selectors } of users) {
        const now = rules.find((each) => each.name === name);
        // The user has changed meanwhile, or has no writes already.
        if (now === undefined || writersAmong([now], source).length > 0) continue;
        const further = selectors.length > 0 ? ['clearselectors', ...selectors] : [];
        await this.#set(name, ['-@all', ...commands, ...further]);
      }
      source.fence.at = null;
      const late = (): Error => new Error('connections of clients did not log in again');
      await inTime(lanes.logInAgain(new Set(names)), patienceMs(), late);
      const made = rules.map(({ name }) => name).filter(isFenceUser);
      if (made.length > 0) await this.#must('ACL', 'DELUSER', ...made);
    }
    source.fence.users = new Map();
    await persist(
      { fence: hand === 'lifted' ? { at: isoTime(), hand, users: [] } : null },
      { event: 'fence', state: 'lifted', users: names, by, reason },
    );
  }

  #set(name: string, rules: readonly string[]): Promise<Reply> {
    return this.#must('ACL', 'SETUSER', name, ...rules);
  }

  /** @throws {Error} if the source refuses */
  async #must(...command: Argument[]): Promise<Reply> {
    const reply = await this.by.source.ask(...command);
    if (isError(reply)) throw new Error(`the source refuses ${command.slice(0, 2).join(' ')}: ${errorText(reply)}`);
    return reply;
  }

  #serially<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

const named = (users: readonly FencedUser[]): Map<string, FencedUser> =>
  new Map(users.map((user) => [user.name, user]));

const namesOf = (users: readonly { readonly name: string }[]): string => users.map(({ name }) => name).join(', ');

const kitOf = ({ endpoint: { credentials } }: Server): string => credentials?.username ?? 'default';

const writersAmong = (rules: readonly UserRules[], source: Server): readonly UserRules[] => {
  const { all } = writesOf(source);
  return rules.filter(
    ({ name, ...each }) => !isFenceUser(name) && allowsAny(each, all, source.traits.supported.categories),
  );
};

/** Commands that write; and those of them that are not in the category `@write`, such as some commands of modules. */
function writesOf({ traits: { supported } }: Server): {
  readonly all: readonly string[];
  readonly unlisted: readonly string[];
} {
  const isListed = (name: string): boolean => supported.categories.get(name)?.has('write') === true;
  const all = [...supported.names].filter((name) => isListed(name) || supported.listed(name)?.writes === true);
  return { all, unlisted: all.filter((name) => !isListed(name)) };
}

function withoutWrites(selectors: readonly string[], unlisted: readonly string[]): string[] {
  const rules = ['-@write', ...unlisted.map((name) => `-${name}`)];
  if (selectors.length === 0) return rules;
  return [...rules, 'clearselectors', ...selectors.map((each) => `${each.slice(0, -1)} ${rules.join(' ')})`)];
}
