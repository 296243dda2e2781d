/** Launches one shard, with its durable state and its ledger. They are opened before the shard, and closed after it. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { NO_CONSENT, type Consent } from '../stages/gate-facts.js';
import { tracesOf } from '../stages/served-before.js';
import { StageError } from '../stages/stage-change.js';
import type { Shard } from './contract.js';
import { Dialer } from '../upstream/dialer.js';
import { LeaseError } from '../lease/lease.js';
import { Ownership, type Predecessor, type Sight } from '../lease/ownership.js';
import { formatSlots } from '../plan/cluster-shards.js';
import type { Observer } from '../pipeline/observer.js';
import { formatAddress } from '../plan/endpoint.js';
import { PlanError } from '../plan/errors.js';
import type { Plan, ShardPlan, Stages } from '../plan/plan.js';
import { checkLayouts, checkOwns, checkReload, perRegionOf, routingOf, writtenOwns } from '../plan/reload.js';
import { makeHashKey, readHashKey } from '../storage/hash-key.js';
import { readLeftJournal } from '../storage/journal-reader.js';
import { Ledger } from '../telemetry/ledger.js';
import {
  holderSince,
  isCopy,
  readState,
  recordHolder,
  recordUnfollowed,
  resolveStages,
  setStateAside,
  StateError,
  StateStore,
  type Admission,
  type Holder,
  type AroundChange,
  type HistoryEvent,
  type ShardState,
  type StatePatch,
} from '../storage/state.js';
import { authoritiesOf, type Side } from '../route/stage.js';
import type { Masters } from '../sentinel/masters.js';
import { StateFollower } from './follow.js';
import { whyTaken } from './listener.js';
import { inheritState, nowServed, writtenByAll } from './inherit.js';
import { SentinelWatch } from './sentinel-watch.js';
import { startShard } from './shard.js';

export interface LaunchedShard {
  readonly shard: Shard;
  readonly ledger: Ledger;
  /** Resolves when another process has taken over the shard, and nothing is served any more. */
  readonly lost: Promise<LaunchError>;
  /** Why this shard cannot take over `next`; empty if it can. */
  checkReload(next: Plan): readonly string[];
  /** Takes over a plan that has passed `checkReload`. */
  reload(next: Plan): Promise<void>;
  /** Closes the shard at once, then the ledger and the state; releases the lease last. */
  stop(): Promise<void>;
}

export interface LaunchOptions {
  /** Wait until the process that has the shard ends, and take it over. */
  readonly standby?: boolean;
  /** For a standby: admin addresses of the proxies whose state it copies while one of them serves the shard. */
  readonly peers?: readonly string[];
  /**
   * At the very first start, both servers are assumed to hold the same data: no operator is asked to copy existing
   * keys.
   */
  readonly alike?: boolean;
  /** The operator has confirmed that no process has served the shard before, although its target holds keys. */
  readonly firstStart?: boolean;
  /** At the very first start: what may happen to keys of the target that the shard did not write. Default: nothing. */
  readonly consent?: Consent;
  /** What the Sentinel of this process knows; null if there is none. */
  readonly masters?: Masters | null;
  /**
   * How many other processes wait to take over, or serve. Default: as many as there are `peers`, and for a standby one
   * at least.
   */
  readonly others?: number;
  /** Whether each of them has a state folder of its own. Default: if there are `peers`. */
  readonly ownFolder?: boolean;
  /** The shards of this process. */
  readonly shards?: () => readonly Shard[];
  /** How many shards this process will run. */
  readonly shardCount?: number;
  /** Observes single commands. */
  readonly observer?: Observer | null;
  /** Called with each event of the shard's history. */
  readonly recorded?: (event: HistoryEvent) => void;
}

/** How long a standby tries to open an address that the process before may still have, in ms. */
const LISTEN_MS = 5_000;

/** A shard cannot start, or must stop. The message names the shard, its servers, and what to check. */
export class LaunchError extends Error {
  override readonly name = 'LaunchError';
  constructor(
    /**
     * `listen`: the address cannot be opened. `servers`: a server that the shard needs cannot be reached, or refuses
     * it. `lease`: another process has it. `one-server`: source and target are one server.
     */
    readonly code: 'listen' | 'servers' | 'lease' | 'one-server',
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

/**
 * Takes the shard's lease, and starts the shard in the stages of its state, or of the plan if there is no state yet.
 * The state is read after the lease is taken: before, it may belong to another process.
 * @throws {PlanError} if the plan moves keys between stages
 * @throws {StateError} if the state cannot be read
 * @throws {LaunchError}
 */
export async function launch(
  plan: Plan,
  shardPlan: ShardPlan,
  logger: Logger,
  {
    standby = false,
    peers = [],
    alike = false,
    consent = NO_CONSENT,
    firstStart = false,
    masters = null,
    others = standby ? Math.max(1, peers.length) : 0,
    ownFolder = peers.length > 0,
    shards = () => [],
    shardCount = 1,
    recorded = () => undefined,
    observer = null,
  }: LaunchOptions = {},
): Promise<LaunchedShard> {
  let lose: (reason: LeaseError) => void = () => undefined;
  const taken = new Promise<LeaseError>((resolve) => (lose = resolve));
  const ownership = ownershipOf(plan, shardPlan, others, lose);
  const master = plan.sentinel?.masters.find(({ shard }) => shard === shardPlan.name);
  const watch = masters && master ? new SentinelWatch(masters, ownership, master) : null;
  let isAcquired = false;
  try {
    const follower = new StateFollower(plan, shardPlan, peers, logger);
    let from: string | null;
    try {
      from = await acquire(ownership, plan, shardPlan, logger, { standby, follower, watch });
    } finally {
      await follower.stop();
    }
    isAcquired = true;
    const launched = await start(ownership, plan, shardPlan, logger, {
      standby,
      ownFolder,
      alike,
      consent,
      firstStart,
      shards,
      shardCount,
      recorded,
      observer,
      from,
    });
    watch?.serves(launched.shard.port);
    const stop = async (): Promise<void> => {
      watch?.stop();
      await launched.stop();
    };
    const lost = taken.then(async (reason) => {
      // Where no other process waits, it was cut off from its servers, and none took over.
      if (reason.holder !== null || others > 0)
        await noteHolder(plan, shardPlan, logger, reason.holder ?? UNKNOWN, ownership.process);
      await stop();
      return new LaunchError(
        'lease',
        `shard ${shardPlan.name} ${reason.message}. This proxy stopped serving the shard`,
        reason,
      );
    });
    return { ...launched, stop, lost };
  } catch (error) {
    watch?.stop();
    await release(ownership, plan, shardPlan, logger, { clean: false, ownFolder: ownFolder && isAcquired });
    throw error;
  }
}

/**
 * Releases the leases. Another process may serve and end before one of this folder sees it. So that is noted first:
 * this process may be killed at any moment behind the release.
 */
async function release(
  ownership: Ownership,
  plan: Plan,
  shardPlan: ShardPlan,
  logger: Logger,
  { clean, ownFolder }: { readonly clean: boolean; readonly ownFolder: boolean },
): Promise<void> {
  const directory = join(plan.state, shardPlan.name);
  const isNoted =
    ownFolder && (await holderSince(directory)) === null && (await noteHolder(plan, shardPlan, logger, UNKNOWN));
  const isFollowed = await ownership.release(clean);
  if (isNoted && !isFollowed)
    await recordUnfollowed(directory).catch((error: Error) =>
      logger.error({ shard: shardPlan.name, problem: error.message }, 'the next start copies all keys'),
    );
}

const ownershipOf = (
  { limits: { connectMs }, sentinel }: Plan,
  { name, source, target, slots }: ShardPlan,
  others: number,
  lost: (reason: LeaseError) => void,
): Ownership =>
  new Ownership({
    shard: slots === null ? name : `${name}@${formatSlots(slots)}`,
    others,
    dialers: { source: new Dialer(source, connectMs), target: new Dialer(target, connectMs) },
    sentinel: sentinel === null ? '' : formatAddress(sentinel.announce),
    lost,
  });

/** @returns the process that it took over from; null if there was none @throws {LaunchError} {StateError} */
async function acquire(
  ownership: Ownership,
  plan: Plan,
  shardPlan: ShardPlan,
  logger: Logger,
  {
    standby,
    follower,
    watch,
  }: { readonly standby: boolean; readonly follower: StateFollower; readonly watch: SentinelWatch | null },
): Promise<string | null> {
  const { name } = shardPlan;
  let seenHolder: string | null = null;
  let noted: Holder | null = null;
  const waiting = async (holder: string, { process, note }: Holder): Promise<void> => {
    if (noted?.process !== process || noted.note !== note) {
      const isNoted = await follower.between(() => noteHolder(plan, shardPlan, logger, { process, note }));
      if (isNoted) noted = { process, note };
    }
    if (standby && seenHolder === null) logger.info({ shard: name, holder }, 'standing by');
    seenHolder = holder;
  };
  let problem = '';
  const hindered = ({ message }: Error): void => {
    if (message !== problem)
      logger.error(
        { shard: name, problem: message },
        'standing by: a server or the address that the shard needs cannot be used; retrying',
      );
    problem = message;
  };
  const needed = async (): Promise<readonly Side[]> => {
    const { current } = await follower.between(() => StateStore.open(plan.state, name));
    return authoritiesOf(Object.values(resolveStages(plan, current).stages));
  };
  const knows = async (note: string): Promise<boolean> => {
    if (!follower.follows || note === '') return true;
    const copy = await follower.between(() => readState(join(plan.state, name), name)).catch(() => null);
    if (copy !== null && digestOf(resolveStages(plan, copy).stages) === note) return true;
    follower.hurry();
    return false;
  };
  try {
    const cannotServe = async (): Promise<Error | null> => {
      const { listen, replica } = shardPlan;
      return (await whyTaken(listen)) ?? (replica && (await whyTaken(replica.listen)));
    };
    const looked = (sight: Sight): void => watch?.looked(sight);
    await ownership.acquire({ standby, needed, knows, cannotServe, waiting, looked, hindered });
  } catch (error) {
    if (error instanceof LeaseError && error.code === 'one-server')
      throw new LaunchError('one-server', `shard ${name} cannot start: ${error.message}`, error);
    if (error instanceof LeaseError)
      throw new LaunchError(
        'lease',
        `shard ${name} ${error.message}; stop that proxy, or start this one with --standby: it takes over when the other proxy ends`,
        error,
      );
    if (error instanceof StateError) throw error;
    throw explain(error as NodeJS.ErrnoException, shardPlan);
  }
  if (seenHolder !== null) logger.warn({ shard: name, from: seenHolder }, 'taking over');
  return seenHolder;
}

interface StartOptions extends Required<Omit<LaunchOptions, 'peers' | 'others' | 'masters'>> {
  /** The process that it took over from. */
  readonly from: string | null;
}

async function start(
  ownership: Ownership,
  plan: Plan,
  shardPlan: ShardPlan,
  logger: Logger,
  { standby, ownFolder, alike, consent, firstStart, shards, shardCount, recorded, observer, from }: StartOptions,
): Promise<Omit<LaunchedShard, 'lost'>> {
  await inheritState(plan, shardPlan, logger);
  const around = { ...aroundOf(ownership, shardPlan, logger), recorded };
  const state = await StateStore.open(plan.state, shardPlan.name, around);
  const directory = join(plan.state, shardPlan.name);
  ownership.needs = () => authoritiesOf(Object.values(resolveStages(plan, state.current).stages));
  const predecessor = await lastToServe(ownership, state, directory);
  const unknownBecause =
    (predecessor === null && ownFolder ? crashedUnseen(state) : unknownBecauseOf(predecessor, state)) ??
    newlyOwned(state, plan, shardPlan);
  await checkStages(predecessor, state, plan, shardPlan);
  // What that process confirmed before it ended is true for a copy of its state, too.
  if (isCopy(state.previous) && ownership.predecessor?.clean) await state.update({ cleanShutdown: true });
  if (firstStart && state.previous !== null)
    logger.warn(
      { shard: shardPlan.name },
      'the shard has a saved state: --first-start has no effect; remove it from the command',
    );
  if (state.previous === null && !alike && !firstStart) await checkNew(ownership, plan, shardPlan);
  await takeOver(plan, shardPlan, state, logger.child({ shard: shardPlan.name }));
  const takeover = from === null ? {} : { from };
  // If this process ends before it has a journal, the next one must not trust the journal that is here either.
  const outdated = unknownBecause === null ? {} : { cleanShutdown: false, journal: null };
  await state.update({ owner: ownership.epoch, ...outdated }, { event: 'owner', ...ownership.epoch, ...takeover });
  const hashKey = hashKeyIn(directory, logger);
  const file = join(directory, 'ledger.jsonl');
  const ledger = new Ledger({
    ...plan.ledger,
    hashKey,
    shard: shardPlan.name,
    file,
    onError: (error) =>
      logger.error(
        { shard: shardPlan.name, file, err: error },
        'the ledger cannot be written: mismatches are counted, but not recorded',
      ),
  });
  let current = plan;
  let shard: Shard;
  try {
    shard = await startShard({
      plan,
      shard: shardPlan,
      logger,
      ledger,
      hashKey,
      state,
      left: await readLeftJournal(directory, state.previous),
      ownership,
      unknownBecause,
      alike,
      consent,
      shards,
      shardCount,
      observer,
      listenMs: standby ? LISTEN_MS : 0,
    });
  } catch (error) {
    await Promise.all([ledger.close(), state.close()]);
    if (error instanceof StageError) throw error;
    throw explain(error as NodeJS.ErrnoException, shardPlan);
  }
  return {
    shard,
    ledger,
    checkReload: (next) => checkReload(current, next, state.current.workloads),
    async reload(next) {
      shard.reload(next);
      ledger.configure(next.ledger);
      await takeOver(next, shardPlan, state, logger.child({ shard: shardPlan.name }));
      current = next;
    },
    async stop() {
      await shard.stop();
      await Promise.all([ledger.close(), state.close()]);
      await release(ownership, plan, shardPlan, logger, { clean: state.current.cleanShutdown, ownFolder });
    },
  };
}

/**
 * A stage change takes effect when each standby knows it: otherwise a standby that takes over would use the earlier
 * stages.
 */
function aroundOf(ownership: Ownership, { name }: ShardPlan, logger: Logger): Omit<AroundChange, 'recorded'> {
  /** The digest that was spread last; null before the first change, which is made at the start. */
  let spread: string | null = null;
  return {
    async fence({ workloads }) {
      await ownership.check();
      await ownership.publishNote(digestOf(workloads));
    },
    async spread({ workloads }) {
      const note = digestOf(workloads);
      const ignorant = spread === null || spread === note ? [] : await ownership.waitForNote(note);
      spread = note;
      if (ignorant.length > 0)
        logger.warn(
          { shard: name, standby: ignorant },
          'the stages changed, and a standby does not have them: if it takes over now, it may refuse to serve',
        );
    },
  };
}

/** @throws {Error} if a key can neither be read nor created */
function hashKeyIn(directory: string, logger: Logger): Buffer {
  try {
    return readHashKey(directory) ?? makeHashKey(directory);
  } catch (error) {
    logger.warn(
      { problem: (error as Error).message },
      'the key for hashes was replaced: hashes of earlier ledger entries do not match any more',
    );
    return makeHashKey(directory);
  }
}

/**
 * Why the suspects of the process before us are not known here; null if they are known. We saw that process, but
 * another one used this folder last: the journal is in another folder.
 */
function unknownBecauseOf(predecessor: Predecessor | null, state: StateStore): string | null {
  if (predecessor === null || predecessor.clean || isHeir(predecessor, state)) return null;
  return `took over from a process (${predecessor.process || 'unknown'}) with its journal in another folder: every key that it wrote is a suspect`;
}

/** Why the suspects are not known if others have folders of their own, and none is seen; null if they are known. */
const crashedUnseen = ({ previous }: StateStore): string | null =>
  previous !== null && previous.owner !== null && !previous.cleanShutdown
    ? 'the last process of this folder crashed, and another proxy may have served and ended since: every key is a suspect'
    : null;

/**
 * Why the mirror may lack keys that belong to the shard from now on; null if the shard's keys are the same as before.
 */
function newlyOwned({ previous }: StateStore, plan: Plan, shardPlan: ShardPlan): string | null {
  if (previous === null || previous.owns === writtenOwns(plan, shardPlan)) return null;
  return shardPlan.slots !== null
    ? 'slots have moved: keys that are new to the shard may differ'
    : '`owns` of this shard changed in the plan: keys that are new to the shard may not be copied yet';
}

/**
 * A folder that the process before us did not use may have other stages: clients would be sent to the wrong server. It
 * is set aside, because the next start sees no predecessor.
 * @throws {LaunchError}
 */
async function checkStages(
  predecessor: Predecessor | null,
  state: StateStore,
  plan: Plan,
  { name }: ShardPlan,
): Promise<void> {
  const note = predecessor?.note ?? '';
  if (note === '' || isHeir(predecessor, state) || note === digestOf(resolveStages(plan, state.current).stages)) return;
  await setStateAside(join(plan.state, name), 'the last process that served the shard had other stages');
  throw new LaunchError(
    'lease',
    `shard ${name} has other stages in ${join(plan.state, name)} than the last process that served it; use the state folder of that process, or a copy of its state.json`,
  );
}

/** Without a state the plan's stages hold, which are wrong for a shard that was served before. @throws {StateError} */
async function checkNew({ predecessor }: Ownership, plan: Plan, shard: ShardPlan): Promise<void> {
  // The process that we took over from has left its stages, and they are equal to the plan's.
  if ((predecessor?.note ?? '') !== '') return;
  const traces = await tracesOf(plan, shard).catch(
    (error: Error) => `does not answer whether it holds keys (${error.message})`,
  );
  if (traces === null) return;
  throw new StateError(
    'state-missing',
    `shard ${shard.name} has no state in ${join(plan.state, shard.name)}, but its target ${shard.target.label} ${traces}: if a proxy served this shard before, its clients may have to use the target. ` +
      'Mount or restore the folder with state.json. Only if no proxy has served this shard before: start once with --first-start',
  );
}

/** Whether the predecessor used this folder. */
const isHeir = (predecessor: Predecessor | null, { previous }: StateStore): boolean =>
  predecessor !== null && previous?.owner?.process === predecessor.process;

/**
 * The process that had the shard last. A connection may still show the process of this folder although another one has
 * served since, at a server that the other one did not reach: then what this folder has noted counts.
 */
async function lastToServe(
  { predecessor }: Ownership,
  state: StateStore,
  directory: string,
): Promise<Predecessor | null> {
  if (predecessor !== null && (predecessor.clean || !isHeir(predecessor, state))) return predecessor;
  return (await unseenSince(directory)) ?? predecessor;
}

/**
 * The process that had the shard last, where no connection shows it any more: one that was seen while a process of this
 * folder did not serve.
 */
async function unseenSince(directory: string): Promise<Predecessor | null> {
  const holder = await holderSince(directory);
  return holder && { ...holder, clean: false };
}

/** Another process, of which nothing is known. */
const UNKNOWN: Holder = { process: '', note: '' };

/** @returns whether the folder has it now */
async function noteHolder(
  plan: Plan,
  { name }: ShardPlan,
  logger: Logger,
  holder: Holder,
  lostBy: string | null = null,
): Promise<boolean> {
  try {
    await recordHolder(join(plan.state, name), name, holder, lostBy);
    return true;
  } catch (error) {
    logger.error(
      { shard: name, problem: (error as Error).message },
      'the folder cannot note that another process has the shard: if both end now, a start from this folder trusts an old journal',
    );
    return false;
  }
}

const digestOf = (stages: Stages): string => {
  const points = Object.entries(stages).map(([name, { stage, percent }]) => `${name} ${stage} ${percent}`);
  return createHash('sha256').update(points.sort().join('\n')).digest('hex').slice(0, 16);
};

function explain(error: NodeJS.ErrnoException, { name, listen, source, target }: ShardPlan): LaunchError {
  if (error.syscall === 'listen') {
    const why = error.code === 'EADDRINUSE' ? 'the address is in use' : error.message;
    return new LaunchError(
      'listen',
      `shard ${name} cannot listen at ${listen.label}: ${why}; choose another address`,
      error,
    );
  }
  const servers = `source ${source.label}, target ${target.label}`;
  return new LaunchError(
    'servers',
    `shard ${name} cannot start: ${error.message} (${servers}); check that they run, and their user, password and certificates`,
    error,
  );
}

/**
 * What is known about the target's keys after a change of patterns. The shard wrote all of them if that was so for
 * every workload that is written to the target; else nothing is known.
 */
function admittedAfter(
  before: ShardState,
  next: Pick<ShardState, 'workloads' | 'routing' | 'owns'>,
  slots: ShardPlan['slots'],
): ShardState['admitted'] {
  const { admitted } = before;
  const sameKeys = before.owns === next.owns;
  const sameRouting = isDeepStrictEqual(before.routing, next.routing);
  if (sameKeys && sameRouting) return admitted;
  // For slots that are new to the shard, `inheritState` has done this.
  const written = sameKeys || slots !== null ? writtenByAll([before]) : {};
  if (sameRouting) return written;
  const mirrored = Object.keys(before.workloads).filter((name) => before.workloads[name].stage !== 'off');
  if (mirrored.length === 0 || !mirrored.every((name) => name in written)) return {};
  const first = written[mirrored[0]];
  const names = Object.keys(next.workloads).filter((name) => next.workloads[name].stage !== 'off');
  return Object.fromEntries(
    names.map((name) => [name, (admitted as Readonly<Record<string, Admission | undefined>>)[name] ?? first]),
  );
}

/** Saves the stages and patterns that hold from now on. */
async function takeOver(plan: Plan, shardPlan: ShardPlan, state: StateStore, logger: Logger): Promise<void> {
  const { stages, notices, problems } = resolveStages(plan, state.current);
  const owned = state.previous && checkOwns(plan, shardPlan, state.current.owns, stages);
  const layouts = checkLayouts(plan, state.previous && state.current.perRegion, stages);
  const wrong = [...problems, ...(owned === null ? [] : [owned]), ...layouts];
  if (wrong.length > 0)
    throw new PlanError(
      'the plan',
      wrong.map((message) => ({ path: [], message })),
    );
  for (const notice of notices) logger.warn(notice);
  const patch = (current: ShardState): StatePatch => {
    const next = {
      workloads: { ...resolveStages(plan, current).stages },
      routing: routingOf(plan),
      owns: writtenOwns(plan, shardPlan),
      served: nowServed(current, shardPlan),
    };
    return { ...next, perRegion: perRegionOf(plan), admitted: admittedAfter(current, next, shardPlan.slots) };
  };
  await state.update(patch, { event: 'plan', plan: plan.name, stages });
}
