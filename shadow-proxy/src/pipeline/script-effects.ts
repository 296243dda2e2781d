/**
 * What the mirror gets of scripts and functions. A deterministic script is replicated. For any other, only the state of
 * its keys shows what it did. If neither its declared keys nor its text name those keys, the authority is asked which
 * keys change meanwhile.
 */
import { Command } from '../command/command.js';
import type { CommandTable } from '../command/table.js';
import { argumentsOf } from '../resp/decode.js';
import { encodeCommand } from '../resp/encode.js';
import type { Side } from '../route/stage.js';
import { Script, type Scripts } from '../script/catalog.js';
import type { Changes, Span } from '../script/changed-keys.js';
import type { Authorities } from './authorities.js';
import type { Lanes } from './lanes.js';
import type { MirrorLane } from './mirror.js';
import { ACCEPT, BEYOND, Operation, WRITE, type Carrier } from './operation.js';
import type { SuspectKeys } from './suspicion.js';

/** What script effects need of the sequencer. */
export interface ScriptContext {
  readonly table: CommandTable;
  readonly scripts: Scripts;
  readonly suspects: SuspectKeys;
  readonly lanes: Readonly<Record<Side, Lanes>>;
  readonly authorities: Pick<Authorities, 'distrusts'>;
  /** The keys that scripts change at the servers. */
  readonly changes: Readonly<Record<Side, Changes>>;
  mirrorOf(operation: Operation): MirrorLane;
}

export class ScriptEffects {
  constructor(private readonly context: ScriptContext) {}

  /** Replicates a deterministic script; for any other, copies its keys. */
  follow(operation: Operation): void {
    if (this.repeats(operation, operation.command.args)) {
      this.dropSpan(operation);
      this.context.mirrorOf(operation).append(operation);
      return;
    }
    operation.mustCopy = true;
    if (operation.span !== null) this.followUnnamed(operation, 'script');
    else this.context.suspects.script(operation.db, operation.command, 'script');
  }

  /**
   * Whether the script in `frame` may write keys that neither its declared keys nor its text name, and the authority
   * can name.
   */
  hidesChanges(frame: Buffer, start: number): boolean {
    const args = argumentsOf(frame, start);
    const routine = this.context.scripts.find(args);
    // A digest whose text never came through the proxy, or a function that the server lacks.
    if (routine === undefined)
      return args[0].toString('latin1').toLowerCase().startsWith('evalsha') && args[2]?.toString('latin1') !== '0';
    if (!routine.staysInDatabase(args) || routine.writesNothing(this.context.table) || !routine.callsCommands)
      return false;
    const { writes } = this.context.scripts.undeclared(args, this.context.table);
    return writes === null || (writes.length > 0 && routine instanceof Script && args[2].toString('latin1') !== '0');
  }

  /** Collects the keys that change at the authority from now on. The operation is sent on that lane. */
  beginSpan(operation: Operation, lane: Carrier): void {
    operation.span = this.context.changes[lane.server.side].begin(operation.db, lane);
  }

  /** Ends the collection: nothing has run. */
  dropSpan(operation: Operation): void {
    if (operation.span !== null) this.context.changes[operation.lane!.server.side].drop(operation.span);
    operation.span = null;
  }

  /**
   * The keys that changed at the authority since the span began become suspects. Until they are known, the mirror is
   * sent nothing more. If the server cannot name them, `otherwise` is called.
   * @param script the script that may have changed them
   */
  followChanges(operation: Operation, reason: string, script: Command, otherwise: () => void): void {
    const { db, lane } = operation;
    const title = this.context.scripts.titleOf(script.args);
    const span: Span = operation.span!;
    operation.span = null;
    const open = this.context.mirrorOf(operation).gate();
    const { side } = lane!.server;
    this.context.changes[side].end(span, (keys) => {
      const locks = this.context.lanes[side].locks(db);
      for (const blockedClient of keys === null ? locks.blocked() : locks.wokenBy(keys)) blockedClient.unordered = true;
      if (keys === null) otherwise();
      else for (const key of keys) this.context.suspects.key(db, Buffer.from(key, 'latin1'), reason, title);
      open();
    });
  }

  /**
   * The same for a script outside a transaction. If the server names no keys, those in the script's text become
   * suspects.
   */
  followUnnamed(operation: Operation, reason: string): void {
    const asked = new Command(Buffer.from(operation.frame.subarray(operation.start, operation.end)));
    this.followChanges(operation, reason, asked, () => this.context.suspects.script(operation.db, asked, reason));
  }

  /**
   * Whether the script of this EVAL or EVALSHA, which ran on the operation's lane, can be replicated. If so, a mirror
   * that lacks the text is sent it. The mirror runs it as the kit's user, who may do everything: so it is replicated
   * only for users who may do everything, too. At an authority that may have lost keys a script may have done less
   * than it would do on the mirror.
   */
  repeats(operation: Operation, args: readonly Buffer[]): boolean {
    const mirror = this.context.mirrorOf(operation);
    const { server, identity } = operation.lane!;
    if (!server.privileges.isUnrestricted(identity.credentials)) return false;
    if (this.context.authorities.distrusts(server.side)) return false;
    const script = this.context.scripts.find(args);
    if (
      !(script instanceof Script) ||
      !script.repeatable(mirror.server.traits.commands) ||
      script.endsKeydb(args.length) ||
      (script.setsMoment && (mirror.clockAheadMs !== 0 || mirror.clockKnownFrom === Infinity))
    )
      return false;
    if (script.writesNumbers && server.traits.writesShortNumbers !== mirror.server.traits.writesShortNumbers)
      return false;
    // If it declares only some of its keys, the order of several lanes on the other keys is unknown.
    const { reads, writes } = this.context.scripts.undeclared(args, this.context.table);
    if (reads === null || writes === null || (reads.length + writes.length > 0 && args[2].toString('latin1') !== '0'))
      return false;
    const byDigest = args[0].length >= 'evalsha'.length;
    const known = this.context.scripts.knownTo(mirror.server, script);
    // Noted before it is appended: if there is no room for the load, the note is removed again.
    this.context.scripts.loadedOn(mirror.server, script);
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
      return this.context.scripts.knownTo(mirror.server, script);
    }
    return true;
  }
}
