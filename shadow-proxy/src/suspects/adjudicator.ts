/**
 * What a difference means. Equal bytes never come here. The judge names the rule that explains the difference, or a
 * mismatch; asks both servers if the frames alone do not decide; and has the keys repaired.
 */
import {
  compareEachOfExec,
  compareReplies,
  judgeAbsence,
  judgeRefusal,
  MIRROR_FULL,
  needsEvidence,
  readAtDestination,
  type CommandView,
  type Mismatch,
  type MismatchKind,
  type Tolerances,
  type Verdict,
} from '../compare/compare.js';
import { Command } from '../command/command.js';
import { rowOf } from '../command/rows.js';
import { formsOf, titleOf, type Form } from '../command/forms.js';
import { monotonicMs } from '../io/clock.js';
import { after } from '../io/timers.js';
import { locateArguments } from '../resp/decode.js';
import { mayHaveWritten } from '../upstream/refusals.js';
import { encodeCommand } from '../resp/encode.js';
import type { DeferredPair, DeferredPairs } from './deferred.js';
import { keyId, type Suspect } from './suspects.js';
import type { Workload } from '../route/router.js';
import { countInconclusive, increment } from '../telemetry/workload-counters.js';
import type { Observer } from '../pipeline/observer.js';
import { NOTHING, Operation, TTL_TOLERANCE_MS, ttlErrorMs, WRITE } from '../pipeline/operation.js';
import { lifeOnBoth, type BothLives } from '../pipeline/question.js';
import { pttlOf, type KeyLife } from '../resp/key-life.js';
import { otherSide, type Side } from '../route/stage.js';
import { otherDatabase } from '../script/frame-keys.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import { SPREAD, type LostConnection, type Verdicts } from '../pipeline/suspicion.js';
import type { Server } from '../upstream/server.js';

export interface Finding {
  readonly workload: string;
  readonly command: string;
  readonly db: number;
  readonly key: Buffer | null;
  /** What differed. */
  readonly kind: string;
  readonly authority: Side;
  /** The replies of both servers, as whole frames. */
  readonly source: Buffer;
  readonly target: Buffer;
}

/** The most questions to both servers at a time. Beyond that, differences get no verdict. */
const MINUS = '-'.charCodeAt(0);
const MAX_QUESTIONS = 256;

/** A pair of replies that is compared again, and a function that says whether their difference is one of the data. */
interface Recomparison {
  readonly pair: DeferredPair;
  readonly decides: boolean;
}

/** How the values of one key differ, and what each server holds. */
interface ValueDifference {
  readonly kind: keyof typeof VALUE_KINDS;
  /** False if the difference may come from the moment alone. */
  readonly sure: boolean;
  readonly authority: HeldValue;
  readonly mirror: HeldValue;
}

interface HeldValue {
  /** The key's DUMP; null if the key does not exist. */
  readonly payload: Buffer | null;
  readonly life: KeyLife;
}

const VALUE_KINDS = {
  missing: 'missing-on-mirror',
  foreign: 'missing-on-authority',
  extra: 'missing-on-authority',
  type: 'type',
  value: 'value',
  ttl: 'value',
} as const satisfies Record<string, MismatchKind>;

const dumpOf = ({ payload }: HeldValue): Buffer =>
  payload === null ? Buffer.from('$-1\r\n') : Buffer.concat([Buffer.from(`$${payload.length}\r\n`), payload, CRLF]);
const replyOf = (life: KeyLife): Buffer => Buffer.from(`:${pttlOf(life)}\r\n`);
const CRLF = Buffer.from('\r\n');

export class Adjudicator implements Verdicts {
  #questions = 0;
  /**
   * Keys about which both servers are being asked, with the number of questions, and of writes that the mirror was not
   * sent meanwhile.
   */
  readonly #asked = new Map<
    string,
    { readonly db: number; readonly key: Buffer; readonly workload: Workload; questions: number; writes: number }
  >();
  /** How many lost connections may still run what is left in the server's receive buffers, by server. */
  readonly #burying = new Map<Server, number>();

  constructor(
    private readonly sequencer: Sequencer,
    private readonly found: (finding: Finding) => void,
    /** Called when a lost connection is seen to be closed at its server. */
    private readonly connectionClosed: () => void,
    private readonly deferred: DeferredPairs,
    /** Whether the plan allows a form that one server does not support, by its name. */
    private readonly allows: (workload: Workload, form: string) => boolean,
    private readonly observer: Pick<Observer, 'concluded'> | null = null,
  ) {}

  /** Differences without a verdict yet: both servers are being asked. */
  get undecided(): number {
    return this.#questions;
  }

  /** Whether both servers are being asked if the key is equal. */
  asksAbout(id: string): boolean {
    return this.#asked.has(id);
  }

  written(id: string): void {
    const asked = this.#asked.get(id);
    if (asked !== undefined) asked.writes++;
  }

  /** All keys about which the servers are being asked. */
  keysAsked(): Iterable<{ readonly db: number; readonly key: Buffer }> {
    return this.#asked.values();
  }

  /** Whether the servers are being asked about a key of the workload. */
  asksOf(workload: Workload): boolean {
    for (const asked of this.#asked.values()) if (asked.workload === workload) return true;
    return false;
  }

  /** Whether every lost connection (to that server) is closed there, so that it can change nothing more. */
  allClosed(server?: Server): boolean {
    return server === undefined ? this.#burying.size === 0 : !this.#burying.has(server);
  }

  /** Closes a lost connection at the server. Repeated while the server cannot be reached. */
  awaitClosed({ server, clientId, runId }: LostConnection): void {
    this.#countBurying(server, 1);
    const attempt = (): void => {
      server
        .identify()
        .then(() => (server.runId === runId ? server.connections.kill(clientId) : undefined))
        .then(
          () => {
            this.#countBurying(server, -1);
            this.connectionClosed();
          },
          () => server.connections.ended || after(100, attempt).unref(),
        );
    };
    attempt();
  }

  #countBurying(server: Server, by: 1 | -1): void {
    const count = (this.#burying.get(server) ?? 0) + by;
    if (count === 0) this.#burying.delete(server);
    else this.#burying.set(server, count);
  }

  /** An effect was confirmed, or the authority's reply came, perhaps so late that a time to live in it is wrong. */
  late(operation: Operation, now: number): void {
    const { follow, batch, db } = operation;
    if (follow !== WRITE || ttlErrorMs(operation, now) <= TTL_TOLERANCE_MS) return;
    if (batch === null) {
      if (operation.spec !== undefined && this.#counts(operation.spec.name, operation.command))
        this.sequencer.suspects.operation(operation, 'ttl-lag');
      return;
    }
    for (const [i, command] of batch.commands.entries())
      if (batch.writes[i] && this.#counts(batch.names[i], command))
        this.sequencer.suspects.command(db, command, 'ttl-lag');
  }

  get #sameRelease(): boolean {
    const { source, target } = this.sequencer.servers;
    return (
      source.traits.software?.name === target.traits.software?.name &&
      source.traits.software?.version === target.traits.software?.version
    );
  }

  /** Whether the command sets a time to live that counts from the moment it runs. */
  #counts(name: string, command: Command): boolean {
    if (name.startsWith('eval')) return this.sequencer.scripts.find(command.args)?.setsTtl !== false;
    const ttl = rowOf(name)?.relativeTtl;
    return ttl !== undefined && ttl(command.args) !== null;
  }

  /** The mirror's reply `buffer[start, end)` is not the authority's, byte by byte. */
  differs(operation: Operation, buffer: Buffer, start: number, end: number, now: number): void {
    this.#differs(operation, Buffer.from(buffer.subarray(start, end)), now, null);
  }

  #differs(operation: Operation, mirror: Buffer, now: number, recomparison: Recomparison | null): void {
    const authority = operation.reply.subarray(operation.replyStart, operation.replyEnd);
    const limits = {
      ttlMs: TTL_TOLERANCE_MS + (now - operation.answeredAt) + operation.stalledMs,
      clockAheadMs: this.sequencer.mirrorOf(operation).clockAheadMs,
      sameRelease: this.#sameRelease,
    };
    for (const pair of pairsOf(operation, authority, mirror, limits))
      this.#judge(pair, now, limits.ttlMs, recomparison);
  }

  #judge(pair: Pair, now: number, toleranceMs: number, recomparison: Recomparison | null): void {
    const { verdict, command, authority, mirror } = pair;
    if (verdict.kind !== 'match' && this.#isInChunks(pair)) {
      this.#defer(pair, recomparison);
    } else if (verdict.kind === 'mismatch' && recomparison?.decides !== true && this.#suspectOperation(pair)) {
      // What the command read on the mirror may have been wrong: so may be what it wrote there.
      if (pair.writes) this.#suspectWritten(pair, SPREAD);
      this.#defer(pair, recomparison);
    } else if (verdict.kind === 'mismatch' && recomparison?.decides !== true && this.#showsUnnamed(pair)) {
      this.#suspectKeys(pair, 'inconclusive');
      this.#defer(pair, recomparison);
    } else if (
      verdict.kind === 'mismatch' &&
      authority.length > 0 &&
      needsEvidence(verdict, command, authority, mirror) !== null
    ) {
      this.#ask(pair, now, toleranceMs);
    } else {
      this.#conclude(pair, verdict);
    }
  }

  /** The pair shows nothing until its keys are copied. Then its replies or values are compared. */
  #defer(pair: Pair, recomparison: Recomparison | null): void {
    const { operation, writes } = pair;
    const { db, workload } = operation;
    this.observer?.concluded(operation, { kind: 'inconclusive', reason: 'suspect' });
    const { pairs, tries } = recomparison === null ? { pairs: 1, tries: 0 } : recomparison.pair;
    const keys: Buffer[] = [];
    const all = this.sequencer.keys.each(pair.frame, pair.start, (key) => keys.push(Buffer.from(key)));
    const command = new Command(pair.frame, pair.start);
    const read = writes ? null : encodeCommand(command.args);
    const suspects = all && otherDatabase(command) === null ? this.#suspectsOf(pair, keys) : [];
    const [first] = suspects;
    const of = (suspect: Suspect): DeferredPair => ({
      ...{ db, workload, read, pairs: suspect === first ? pairs : 0, tries: tries + 1 },
      keys: read === null ? [suspect.key] : keys,
    });
    // The values of a write's keys are compared one by one, once each key is copied.
    const waits = suspects.slice(0, read === null ? undefined : 1).map((each) => this.deferred.add(each, of(each)));
    if (waits[0] !== true) this.inconclusive({ workload, pairs }, first);
  }

  /** The suspects among the keys. If none is a suspect, all of them become suspects. */
  #suspectsOf(pair: Pair, keys: readonly Buffer[]): Suspect[] {
    const { db, workload } = pair.operation;
    if (this.sequencer.suspects.isWhole(workload)) return [];
    if (this.deferred.suspectOf(db, keys) === undefined) this.#suspectKeys(pair, 'inconclusive');
    return keys.flatMap((key) => this.deferred.suspectOf(db, [key]) ?? []);
  }

  /** The pairs could not be compared the other way, either. */
  inconclusive({ workload, pairs }: Pick<DeferredPair, 'workload' | 'pairs'>, suspect?: Suspect): void {
    if (pairs === 0) return;
    const counters = this.sequencer.counters.of(workload);
    increment(counters.inconclusive, 'suspect', pairs);
    const script = suspect?.script ?? null;
    if (script !== null) countInconclusive(counters, script, pairs);
  }

  /**
   * Both servers have answered a read again, at one place in the order.
   * @param echo carries the authority's reply
   * @param decides whether a difference is one of the data
   */
  recompared(echo: Operation, mirror: Buffer, pair: DeferredPair, decides: boolean): void {
    const counters = this.sequencer.counters.of(echo.workload);
    if (mirror.equals(echo.reply.subarray(echo.replyStart, echo.replyEnd))) {
      counters.compared++;
      counters.matched++;
    } else this.#differs(echo, Buffer.from(mirror), monotonicMs(), { pair, decides });
  }

  /** Both servers have given the value of a key, at one place in the order. */
  valuesCompared(pair: DeferredPair, authority: Side, difference: ValueDifference | null, decides: boolean): void {
    const { db, workload, keys, pairs, tries } = pair;
    const counters = this.sequencer.counters.of(workload);
    const [key] = keys;
    if (difference === null) {
      counters.compared++;
      counters.matched++;
    } else if (difference.sure && decides) {
      const isTtl = difference.kind === 'ttl';
      const shown = (held: HeldValue): Buffer => (isTtl ? replyOf(held.life) : dumpOf(held));
      const replies = { authority: shown(difference.authority), mirror: shown(difference.mirror) };
      this.#found(workload, db, key, isTtl ? 'pttl' : 'dump', VALUE_KINDS[difference.kind], authority, replies);
      this.sequencer.suspects.key(db, key, 'mismatch');
    } else if (pairs > 0) {
      this.sequencer.suspects.key(db, key, 'inconclusive');
      const suspect = this.deferred.suspectOf(db, keys);
      if (suspect === undefined || !this.deferred.add(suspect, { ...pair, tries: tries + 1 }))
        this.inconclusive(pair, suspect);
    }
  }

  /** Only one server has the key: both have said so at one place in the order, and no expiry explains it. */
  oneSided(db: number, key: Buffer, authority: Side, lives: Readonly<Record<'authority' | 'mirror', KeyLife>>): void {
    const { router, suspects } = this.sequencer;
    const workload = router.match(key, 0, key.length);
    const isKnown = suspects.isWhole(workload) || this.deferred.suspectOf(db, [key]) !== undefined;
    if (!isKnown && !this.asksAbout(keyId(db, key))) {
      const kind = lives.authority.state === 'absent' ? 'missing-on-authority' : 'missing-on-mirror';
      const replies = { authority: replyOf(lives.authority), mirror: replyOf(lives.mirror) };
      this.#found(workload, db, key, 'pttl', kind, authority, replies);
    }
    suspects.named(db, key, 'mismatch');
  }

  /** A mismatch that a comparison of the kit's own has found. */
  #found(
    workload: Workload,
    db: number,
    key: Buffer,
    command: string,
    kind: MismatchKind,
    authority: Side,
    replies: Readonly<Record<'authority' | 'mirror', Buffer>>,
  ): void {
    const counters = this.sequencer.counters.of(workload);
    counters.compared++;
    increment(counters.mismatches, kind);
    const [source, target] =
      authority === 'source' ? [replies.authority, replies.mirror] : [replies.mirror, replies.authority];
    this.found({ workload: workload.name, command, db, key, kind, authority, source, target });
  }

  #conclude(pair: Pair, found: Verdict): void {
    const { workload } = pair.operation;
    const counters = this.sequencer.counters.of(workload);
    const verdict = found.kind === 'mismatch' ? this.#byForm(pair, found) : found;
    this.observer?.concluded(pair.operation, verdict);
    switch (verdict.kind) {
      case 'match':
        counters.compared++;
        counters.matched++;
        return;
      case 'allowed':
        counters.compared++;
        increment(counters.allowed, verdict.rule);
        // After an allowed difference of a write the data differ, except for the form of a number. After an eviction
        // they differ, too.
        if ((pair.writes && verdict.rule !== 'score-form') || verdict.rule === 'evicted')
          this.#suspectKeys(pair, verdict.rule);
        return;
      case 'inconclusive':
        increment(counters.inconclusive, verdict.reason);
        if (verdict.reason === MIRROR_FULL) this.sequencer.mirrorOf(pair.operation).server.refusedForMemory();
        this.#noteLackingScript(pair);
        // What the mirror could not do shows nothing about the keys that are read.
        if (pair.mirror[0] !== MINUS) this.#suspectKeys(pair, 'inconclusive');
        else if (pair.writes) this.#suspectWritten(pair, verdict.reason === MIRROR_FULL ? MIRROR_FULL : 'inconclusive');
        return;
      case 'mismatch':
        counters.compared++;
        increment(counters.mismatches, verdict.what);
        if (isNewError(pair)) increment(counters.newErrors, titleOf(pair.name));
        this.#tell(pair, verdict.what);
        // A read that one server does not know shows nothing about its keys.
        if (pair.writes || verdict.what !== 'unsupported') this.#suspectKeys(pair, 'mismatch');
    }
  }

  /** A mismatch that comes from a form which only one server supports. */
  #byForm(pair: Pair, found: Mismatch): Verdict {
    const { lane, workload } = pair.operation;
    const { side } = lane!.server;
    const [authorityRefuses, mirrorRefuses] = [pair.authority, pair.mirror].map((reply) => reply[0] === MINUS);
    const refuses = authorityRefuses === mirrorRefuses ? null : authorityRefuses ? side : otherSide(side);
    const forms = formsIn(pair).filter(({ how, lacks }) => how === 'reply' || lacks === refuses);
    if (forms.some(({ name }) => this.allows(workload, name))) return { kind: 'allowed', rule: 'unsupported' };
    return forms.some(({ how }) => how === 'refused') ? { ...found, what: 'unsupported' } : found;
  }

  /** The mirror refused the script or lacks its text: it is given the text again. */
  #noteLackingScript({ operation, name, frame, start, mirror }: Pair): void {
    if (mirror[0] !== MINUS || !name.startsWith('eval') || mayHaveWritten(mirror, 0, mirror.length)) return;
    this.sequencer.scripts.unknownTo(this.sequencer.mirrorOf(operation).server, new Command(frame, start).args);
  }

  #tell({ operation, name, frame, start, authority, mirror }: Pair, kind: string): void {
    let key: Buffer | null = null;
    this.sequencer.keys.each(frame, start, (each) => {
      key ??= Buffer.from(each);
    });
    const side = operation.lane!.server.side;
    const [source, target] = side === 'source' ? [authority, mirror] : [mirror, authority];
    this.found({
      workload: operation.workload.name,
      command: name,
      db: operation.db,
      key,
      kind,
      authority: side,
      source,
      target,
    });
  }

  /** Every key of the command, read or written, becomes a suspect. */
  #suspectKeys(pair: Pair, reason: string): void {
    const { operation, frame, start } = pair;
    this.sequencer.keys.each(frame, start, (key) => this.sequencer.suspects.named(operation.db, key, reason));
    // Keys that the command does not name become suspects, too.
    if (pair.writes) this.#suspectWritten(pair, reason);
  }

  /** Every key that the command wrote, or may have written, becomes a suspect. */
  #suspectWritten({ operation, frame, start }: Pair, reason: string): void {
    this.sequencer.suspects.frame(operation.db, frame, start, reason);
  }

  /**
   * Whether the only key of the effect has a chunked copy in progress: the mirror lacks a part of the key, and a
   * difference shows no more than that.
   */
  #isInChunks({ operation, frame, start }: Pair): boolean {
    const { chunked } = this.sequencer.suspects;
    if (chunked.size === 0) return false;
    let [keys, found] = [0, false];
    // The client may have named several keys. The mirror gets only the key from which something was taken.
    const [replicated, at] = operation.batch === null ? [operation.frame, operation.start] : [frame, start];
    const all = this.sequencer.keys.eachPlaced(operation.db, new Command(replicated, at), (db, key) => {
      keys++;
      found = chunked.has(keyId(db, key));
    });
    return all && keys === 1 && found;
  }

  /** Makes the command's keys suspects if one of them is a suspect already, or had an unknown time to live. */
  #suspectOperation({ operation, frame, start }: Pair): boolean {
    const { sequencer } = this;
    const { suspects } = sequencer;
    if (suspects.isWhole(operation.workload) || suspects.isIn(operation.db, frame, start)) return true;
    let asks = false;
    sequencer.keys.eachPlaced(operation.db, new Command(frame, start), (db, key) => {
      asks ||= sequencer.expiry.asksAbout(db, key);
    });
    return asks;
  }

  /** Whether a script whose changes are not known yet may have changed a key of the command. */
  #showsUnnamed({ operation, frame, start }: Pair): boolean {
    const lane = operation.lane!;
    const changes = this.sequencer.changes[lane.server.side];
    const databases = [operation.db, otherDatabase(new Command(frame, start)) ?? operation.db];
    return databases.some((db) => changes.mayShow(db, lane, operation.answeredAt));
  }

  /** One server has the key and the other has not: asks whether the key expired or was evicted. */
  #ask(pair: Pair, now: number, toleranceMs: number): void {
    const { operation, verdict } = pair;
    const { sequencer } = this;
    const lane = operation.lane!.home;
    const keys = this.#keysOf(pair);
    if (keys.length === 0 || this.#questions >= MAX_QUESTIONS || lane.closed) {
      this.#conclude(pair, { kind: 'inconclusive', reason: keys.length === 0 ? 'keys-unknown' : 'no-evidence' });
      return;
    }
    this.#questions++;
    const watch: Watch = {
      keys,
      unplaced: keys.length,
      written: pair.writtenInside(keys.map(({ key }) => key)) || this.#writtenSince(operation, keys),
    };
    const unlisten = sequencer.mirrorOf(operation).listen((other) => {
      // A copy that repairs this very difference comes after the questions. Writes of clients may have been answered
      // before them.
      const isCopy = other.confirmed !== null;
      if (other.follow === WRITE && !(isCopy && watch.unplaced === 0))
        watch.written ||= this.#writes(other, watch.keys);
    });
    const ids = keys.map(({ db, key }) => keyId(db, key));
    for (const [i, id] of ids.entries()) {
      const asked = this.#asked.get(id);
      if (asked) asked.questions++;
      else this.#asked.set(id, { ...keys[i], workload: operation.workload, questions: 1, writes: 0 });
    }
    const writesBefore = ids.map((id) => this.#asked.get(id)!.writes);
    Promise.all(
      keys.map(async ({ db, key }) =>
        lifeOnBoth(sequencer, await this.#inDatabase(operation, db), key, () => watch.unplaced--),
      ),
    )
      .then(async (answers) => {
        const elapsedMs = monotonicMs() - now;
        const authorityEvicted = await lane.server.losses.hasEvicted();
        const mirrorEvicted = await sequencer.mirrorOf(operation).server.losses.hasEvicted();
        watch.written ||=
          sequencer.suspects.isWhole(operation.workload) ||
          ids.some((id, i) => this.#asked.get(id)!.writes !== writesBefore[i]);
        const { read, about } = readingOf(pair, answers);
        const verdicts = about.map((lives) =>
          judgeAbsence(read, {
            authorityLife: lives.authority,
            mirrorLife: lives.mirror,
            authorityEvicted,
            mirrorEvicted,
            writtenSince: watch.written,
            toleranceMs,
            elapsedMs,
            readOnly: !pair.writes,
          }),
        );
        // With several keys, one key that explains the difference is enough.
        const final =
          verdicts.find(({ kind }) => kind === 'allowed') ??
          verdicts.find(({ kind }) => kind === 'inconclusive') ??
          verdict;
        if (final.kind === 'allowed' && final.rule === 'evicted') {
          const lostHere = read.kind === 'mismatch' && read.what === 'missing-on-authority';
          (lostHere ? lane.server : sequencer.mirrorOf(operation).server).losses.spendEviction();
        }
        this.#conclude(pair, final);
      })
      .catch(() => this.#conclude(pair, { kind: 'inconclusive', reason: 'no-evidence' }))
      .finally(() => {
        this.#questions--;
        for (const id of ids) if (--this.#asked.get(id)!.questions === 0) this.#asked.delete(id);
        unlisten();
      });
  }

  /** The pair's keys, each with the database in which the command uses it. */
  #keysOf({ operation, frame, start }: Pair): PlacedKey[] {
    const keys: PlacedKey[] = [];
    this.sequencer.keys.eachPlaced(operation.db, new Command(frame, start), (db, key) => {
      keys.push({ db, key: Buffer.from(key) });
    });
    return keys;
  }

  /** An operation in that database which a question can refer to. */
  async #inDatabase(operation: Operation, db: number): Promise<Operation> {
    if (operation.db === db) return operation;
    const { frame, start, end, spec, workload, protocol } = operation;
    const { server, identity } = operation.lane!.home;
    const there = new Operation(frame, start, end, null, spec, workload, db, protocol, NOTHING);
    there.lane = await this.sequencer.lanes[server.side].open({ ...identity, db });
    return there;
  }

  /**
   * Whether the write may have changed one of the keys. FLUSHALL and the like may have changed any key in any database.
   */
  #writes(operation: Operation, keys: readonly PlacedKey[]): boolean {
    return operation.spec?.handling === 'exclusive' || this.#hasKey(operation, keys);
  }

  #hasKey(operation: Operation, keys: readonly PlacedKey[]): boolean {
    const { db, bundle, original } = operation;
    let has = false;
    const visit = (db: number, key: Buffer): void => {
      has ||= keys.some((wanted) => wanted.db === db && wanted.key.equals(key));
    };
    if (bundle?.keys) {
      for (const key of bundle.keys) visit(db, key);
      return has;
    }
    const all = this.sequencer.keys.eachPlaced(db, original, visit);
    return has || (!all && keys.some((wanted) => wanted.db === db));
  }

  /** Whether a later write to one of the keys is in the order already. */
  #writtenSince(operation: Operation, keys: readonly PlacedKey[]): boolean {
    let written = false;
    this.sequencer.mirrorOf(operation).eachQueued((other) => {
      written = other.follow === WRITE && this.#writes(other, keys);
      return !written;
    });
    return written;
  }
}

interface PlacedKey {
  readonly db: number;
  readonly key: Buffer;
}

/** Keys about which a question is in progress, and whether they were written since. */
interface Watch {
  readonly keys: readonly PlacedKey[];
  /** Questions that have no place in the mirror's order yet. */
  unplaced: number;
  written: boolean;
}

/**
 * The keys that the pair's verdict is about. MOVE and COPY … DB use two keys: the one that they read, which MOVE
 * removes, and one of the same name in the other database.
 */
function readingOf(
  { verdict, name, operation, frame, start }: Pair,
  answers: readonly BothLives[],
): { readonly read: Verdict; readonly about: readonly BothLives[] } {
  const other = otherDatabase(new Command(frame, start));
  if (other === null || other === operation.db) return { read: verdict, about: answers };
  const [taken, ...written] = answers;
  const read = readAtDestination(verdict, { authorityLife: taken.authority, mirrorLife: taken.mirror });
  return { read, about: read === verdict && name === 'copy' ? answers : written };
}

/** Two replies to one command that are not equal, and what the frames alone say about them. */
interface Pair {
  readonly operation: Operation;
  /** The command that was sent to the mirror. */
  readonly command: CommandView;
  /** The client's command: its name and its bytes. */
  readonly name: string;
  readonly frame: Buffer;
  readonly start: number;
  readonly writes: boolean;
  readonly verdict: Verdict;
  readonly authority: Buffer;
  readonly mirror: Buffer;
  /** Whether a later command of the same transaction writes one of the keys. */
  writtenInside(keys: readonly Buffer[]): boolean;
}

/**
 * The target answered the client with an error, and the source did not. Forms that only one server knows were counted
 * when the command was sent.
 */
function isNewError(pair: Pair): boolean {
  const { operation, authority, mirror } = pair;
  if (operation.lane?.server.side !== 'target' || authority[0] !== MINUS || mirror[0] === MINUS) return false;
  return formsIn(pair).length === 0;
}

/** What in the client's command only one server supports. */
function formsIn({ operation, name, frame, start }: Pair): readonly Form[] {
  const forms = operation.spec?.name === name ? operation.spec.forms : formsOf(name);
  if (forms === null) return [];
  const [argStart, argEnd]: number[][] = [[], []];
  const argc = locateArguments(frame, start, argStart, argEnd);
  return forms.filter((form) => form.matches(frame, argStart, argEnd, argc));
}

function pairsOf(operation: Operation, authority: Buffer, mirror: Buffer, limits: Tolerances): Pair[] {
  const { batch } = operation;
  const { frame, start } = operation.original;
  const { args } = operation.command;
  const asItWas = operation.asked === null && operation.spec !== undefined;
  const command = { name: asItWas ? operation.spec!.name : args[0].toString('latin1').toLowerCase(), args };
  const whole = {
    operation,
    command,
    frame,
    start,
    name: operation.spec?.name ?? command.name,
    writes: operation.follow === WRITE,
    writtenInside: () => false,
  };
  if (authority.length === 0) return [{ ...whole, verdict: judgeRefusal(command, mirror), authority, mirror }];
  if (batch === null)
    return [{ ...whole, verdict: compareReplies(command, authority, mirror, limits), authority, mirror }];
  const findings = compareEachOfExec(batch.views, batch.expected(authority, mirror), mirror, limits);
  return findings.flatMap((finding): Pair[] => {
    const of = (index: number): Pair => ({
      ...whole,
      ...finding,
      command: batch.views[index],
      name: batch.names[index],
      frame: batch.commands[index].frame,
      start: 0,
      writes: batch.writes[index],
      writtenInside: (keys) =>
        batch.commands.some(({ frame }, i) => i > index && batch.writes[i] && keys.some((key) => frame.includes(key))),
    });
    // If the replies differ as a whole, no single command has a verdict.
    return finding.index === null ? batch.commands.map((_, index) => of(index)) : [of(finding.index)];
  });
}
