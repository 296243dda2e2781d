/**
 * What the mirror gets of scripts and functions. One that does the same anywhere is replicated; of any other, only the
 * state of its keys shows what it did. Where neither its declared keys nor its text show which keys those are, the
 * authority is asked to name what changes meanwhile.
 */
import { Command } from '../command/command.js';
import type { CommandTable } from '../command/table.js';
import { argumentsOf } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import type { Side } from '../route/stage.js';
import { Script, type Scripts } from '../script/catalog.js';
import type { Changes, Span } from '../script/changed-keys.js';
import type { Lanes } from './lanes.js';
import type { MirrorLane } from './mirror.js';
import { ACCEPT, BEYOND, Operation, WRITE, type Carrier } from './operation.js';
import type { SuspectKeys } from './suspicion.js';

/** The parts of the order that scripts need. */
export interface ScriptOrder {
  readonly table: CommandTable;
  readonly scripts: Scripts;
  readonly suspects: SuspectKeys;
  readonly lanes: Readonly<Record<Side, Lanes>>;
  /** What scripts change at the servers. */
  readonly changes: Readonly<Record<Side, Changes>>;
  mirrorOf(operation: Operation): MirrorLane;
}

export class ScriptEffects {
  constructor(private readonly order: ScriptOrder) {}

  /** A deterministic script is replicated; of any other only the keys' state shows what it did. */
  follow(operation: Operation): void {
    if (this.repeats(operation, operation.command.args)) {
      this.dropSpan(operation);
      this.order.mirrorOf(operation).append(operation);
      return;
    }
    operation.mustCopy = true;
    if (operation.span !== null) this.followUnnamed(operation, 'script');
    else this.order.suspects.script(operation.db, operation.command, 'script');
  }

  /**
   * Whether the script in `frame` may write what neither its declared keys nor its text tell, and the authority can.
   */
  hidesChanges(frame: Buffer, start: number): boolean {
    const args = argumentsOf(frame, start);
    const routine = this.order.scripts.find(args);
    // A digest whose text was never seen, or a function that the server does not have.
    if (routine === undefined)
      return args[0].toString('latin1').toLowerCase().startsWith('evalsha') && args[2]?.toString('latin1') !== '0';
    if (!routine.staysInDatabase(args) || routine.writesNothing(this.order.table) || !routine.callsCommands)
      return false;
    const { writes } = this.order.scripts.undeclared(args, this.order.table);
    return writes === null || (writes.length > 0 && routine instanceof Script && args[2].toString('latin1') !== '0');
  }

  /** Notes what changes at the authority from now on: the operation is sent to it on that lane. */
  beginSpan(operation: Operation, lane: Carrier): void {
    operation.span = this.order.changes[lane.server.side].begin(operation.db, lane);
  }

  /** Nothing has run. */
  dropSpan(operation: Operation): void {
    if (operation.span !== null) this.order.changes[operation.lane!.server.side].drop(operation.span);
    operation.span = null;
  }

  /**
   * The keys that changed at the authority since the span began are suspect; until they are known, the mirror is sent
   * nothing more. Where the server does not name them, `otherwise` is called.
   * @param script one that may have changed them
   */
  followChanges(operation: Operation, reason: string, script: Command, otherwise: () => void): void {
    const { db, lane } = operation;
    const title = this.order.scripts.titleOf(script.args);
    const span: Span = operation.span!;
    operation.span = null;
    const open = this.order.mirrorOf(operation).gate();
    const { side } = lane!.server;
    this.order.changes[side].end(span, (keys) => {
      const locks = this.order.lanes[side].locks(db);
      for (const blockedClient of keys === null ? locks.blocked() : locks.wokenBy(keys)) blockedClient.unordered = true;
      if (keys === null) otherwise();
      else for (const key of keys) this.order.suspects.key(db, Buffer.from(key, 'latin1'), reason, title);
      open();
    });
  }

  /** The same for a script that ran by itself: if the server names no keys, those of its text are suspects. */
  followUnnamed(operation: Operation, reason: string): void {
    const asked = new Command(Buffer.from(operation.frame.subarray(operation.start, operation.end)));
    this.followChanges(operation, reason, asked, () => this.order.suspects.script(operation.db, asked, reason));
  }

  /**
   * Whether the script of this EVAL or EVALSHA, which ran on the operation's lane, can be replicated on the mirror;
   * if so, the mirror is given its text where it lacks it. The mirror runs it as the kit's user, who may do everything:
   * so it is repeated only for users who may, too.
   */
  repeats(operation: Operation, args: readonly Buffer[]): boolean {
    const mirror = this.order.mirrorOf(operation);
    const { server, identity } = operation.lane!;
    if (!server.privileges.isUnrestricted(identity.credentials)) return false;
    const script = this.order.scripts.find(args);
    if (
      !(script instanceof Script) ||
      !script.repeatable(mirror.server.commands) ||
      script.endsKeydb(args.length) ||
      (script.setsMoment && (mirror.clockAheadMs !== 0 || mirror.clockKnownFrom === Infinity))
    )
      return false;
    if (script.writesNumbers && server.writesShortNumbers !== mirror.server.writesShortNumbers) return false;
    // If it declares only some of its keys, the order of several lanes on the others is unknown.
    const { reads, writes } = this.order.scripts.undeclared(args, this.order.table);
    if (reads === null || writes === null || (reads.length + writes.length > 0 && args[2].toString('latin1') !== '0'))
      return false;
    const byDigest = args[0].length >= 'evalsha'.length;
    const known = this.order.scripts.knownTo(mirror.server, script);
    // Before it is appended: a load that finds no room is forgotten again.
    this.order.scripts.loadedOn(mirror.server, script);
    // From then on the mirror knows the text in every database.
    if (!known) operation.reach = BEYOND;
    if (byDigest && !known) {
      const frame = encodeCommand(['SCRIPT', 'LOAD', script.body]);
      const load = new Operation(
        frame,
        0,
        frame.length,
        null,
        operation.spec,
        operation.workload,
        operation.db,
        operation.protocol,
        WRITE,
      );
      load.lane = operation.lane;
      load.answeredAt = operation.answeredAt;
      load.check = ACCEPT;
      load.reach = BEYOND;
      load.asked = new Command(encodeCommand(args));
      mirror.append(load);
      return this.order.scripts.knownTo(mirror.server, script);
    }
    return true;
  }
}
