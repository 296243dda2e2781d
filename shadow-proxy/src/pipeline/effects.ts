/**
 * What the mirror gets once the authority has replied: a read unchanged, so that its reply can be compared; a write
 * unchanged, or as its effect, or not at all. In the last case its keys become suspects, and are copied.
 */
import { copied, type EffectTraitPair, type Effect } from '../command/effect.js';
import type { CommandSpec, CommandTable } from '../command/table.js';
import { argumentCount, decodeReply, type Reply } from '../resp/decode.js';
import type { Workload } from '../route/router.js';
import { countUnsupported, type Counters } from '../telemetry/workload-counters.js';
import type { Side } from '../route/stage.js';
import type { Scripts } from '../script/catalog.js';
import { isAboutData, isNoScript, mayHaveWritten } from '../upstream/refusals.js';
import type { Server } from '../upstream/server.js';
import type { MirrorLane } from './mirror.js';
import { ACCEPT, Operation, READ, WRITE, type Follow } from './operation.js';
import type { ScriptEffects } from './script-effects.js';
import type { SuspectKeys } from './suspicion.js';

const MINUS = '-'.charCodeAt(0);

/** What effects need of the sequencer. */
export interface EffectsContext {
  readonly counters: Counters;
  readonly table: CommandTable;
  readonly servers: Readonly<Record<Side, Server>>;
  readonly scripts: Scripts;
  readonly scriptEffects: ScriptEffects;
  readonly suspects: SuspectKeys;
  mirrorOf(operation: Operation): MirrorLane;
}

export class Effects {
  readonly #companions: Operation[] = [];
  /** By the side of the authority. */
  readonly traits: Readonly<Record<Side, EffectTraitPair>>;

  constructor(private readonly context: EffectsContext) {
    const { source, target } = context.servers;
    this.traits = {
      source: { authority: source.traits, mirror: target.traits },
      target: { authority: target.traits, mirror: source.traits },
    };
  }

  /** The second read that the command's effect needs; null if it needs none. */
  probeFor(operation: Operation): Buffer | null {
    const probe = operation.spec!.effect?.probe ?? null;
    return probe && probe(operation.command.args);
  }

  /**
   * Sends the mirror the effect of a command whose second read was answered.
   * @param probe null if that read was refused
   */
  probed(operation: Operation, probe: Reply | null): void {
    if (operation.reply[operation.replyStart] === MINUS) {
      this.context.counters.of(operation.workload).refused++;
      return;
    }
    const { reply } = decodeReply(operation.reply, operation.replyStart);
    const effect = operation.spec!.effect!;
    const { args } = operation.command;
    this.follow(
      operation,
      operation.mustCopy
        ? 'copy'
        : effect.of(args, reply, operation.protocol, probe ?? undefined, this.#traitsOf(operation)),
    );
  }

  /** A read was answered by the authority. */
  read(operation: Operation, buffer: Buffer, start: number, end: number): void {
    // An error about the user or the server says nothing about the data.
    if (buffer[start] === MINUS && !isAboutData(buffer, start)) return;
    operation.reply = buffer;
    operation.replyStart = start;
    operation.replyEnd = end;
    this.context.mirrorOf(operation).append(operation);
  }

  /** A write was answered by the authority. */
  write(operation: Operation, buffer: Buffer, start: number, end: number): void {
    const { scripts, scriptEffects, suspects } = this.context;
    const spec = operation.spec!;
    if (buffer[start] === MINUS) {
      this.context.counters.of(operation.workload).refused++;
      if (spec.handling === 'script' && isNoScript(buffer, start))
        scripts.unknownTo(operation.lane!.server, operation.command.args);
      if (spec.handling !== 'script') return;
      if (!mayHaveWritten(buffer, start, end)) scriptEffects.dropSpan(operation);
      else if (operation.span !== null) scriptEffects.followUnnamed(operation, 'script-failed');
      else suspects.script(operation.db, operation.command, 'script-failed');
      return;
    }
    operation.reply = buffer;
    operation.replyStart = start;
    operation.replyEnd = end;
    const derived = spec.derives && suspects.isReadBy(operation.db, operation.frame, operation.start);
    if (derived || operation.mustCopy) {
      if (operation.span !== null) scriptEffects.followUnnamed(operation, derived ? 'derived' : 'copy');
      else suspects.operation(operation, derived ? 'derived' : 'copy');
      return;
    }
    if (spec.handling === 'script') {
      scriptEffects.follow(operation);
      return;
    }
    const rewrite = spec.effect;
    if (rewrite === null || argumentCount(operation.frame, operation.start) < rewrite.least) {
      this.context.mirrorOf(operation).append(operation);
      return;
    }
    const { reply } = decodeReply(buffer, start);
    if (rewrite.form !== null) this.noteReply(rewrite.form(reply), operation.workload);
    this.follow(
      operation,
      rewrite.of(operation.command.args, reply, operation.protocol, undefined, this.#traitsOf(operation)),
    );
  }

  #traitsOf({ lane }: Operation): EffectTraitPair {
    return this.traits[lane!.server.side];
  }

  /** @param form the form in the authority's reply that servers before 7.0 do not support; null if there is none */
  noteReply(form: string | null, workload: Workload): void {
    const { source, target } = this.context.servers;
    if (form !== null && source.traits.isBefore70 !== target.traits.isBefore70)
      countUnsupported(this.context.counters.of(workload), form, source.traits.isBefore70 ? 'source' : 'target', false);
  }

  /** Sends the mirror the effect of an operation whose `reply` is set. */
  follow(operation: Operation, effect: Effect): void {
    if (effect === null) return;
    if (effect === 'verbatim') {
      this.context.mirrorOf(operation).append(operation);
      return;
    }
    if (effect === 'copy') {
      this.context.suspects.operation(operation, 'copy');
      return;
    }
    if ('read' in effect) {
      const { name, read, reply } = effect;
      const asked = besides(operation, read, 0, read.length, this.context.table.byName(name), READ);
      asked.reply = reply;
      asked.replyEnd = reply.length;
      this.context.mirrorOf(asked).append(asked);
      return;
    }
    const { reply: authority, replyStart, replyEnd } = operation;
    for (const [i, { frame, reply }] of effect.entries()) {
      const follower = i === 0 ? operation : this.#companion(operation);
      follower.become(frame);
      if (reply === null) {
        follower.check = ACCEPT;
        follower.replyEnd = follower.replyStart;
      } else {
        const same = reply === 'same';
        follower.reply = same ? authority : reply;
        follower.replyStart = same ? replyStart : 0;
        follower.replyEnd = same ? replyEnd : reply.length;
      }
    }
    // Appended only now: its `frame` was needed above.
    this.context.mirrorOf(operation).append(operation);
    for (const companion of this.#companions.splice(0)) this.context.mirrorOf(companion).append(companion);
  }

  /**
   * Sends the mirror what a command took that blocked on a private lane. If the order among the clients that were woken
   * together is unknown, only effects that are the same in any order are sent.
   * @param operation the command
   * @param reply the authority's
   */
  woken(operation: Operation, reply: Buffer, ordered: boolean): void {
    operation.reply = reply;
    operation.replyEnd = reply.length;
    const args = operation.command.args;
    const decoded = decodeReply(reply).reply;
    const spec = operation.spec!;
    const derived = spec.derives && this.context.suspects.isReadBy(operation.db, operation.frame, operation.start);
    if (derived || operation.mustCopy) this.context.suspects.operation(operation, derived ? 'derived' : 'copy');
    else {
      const { of, ofWoken } = spec.effect!;
      const effect = ordered ? of : (ofWoken ?? copied);
      this.follow(operation, effect(args, decoded, operation.protocol, undefined, this.#traitsOf(operation)));
    }
  }

  #companion(operation: Operation): Operation {
    const { frame, start, end, spec } = operation;
    const companion = besides(operation, frame, start, end, spec, WRITE);
    companion.asked = operation.original;
    this.#companions.push(companion);
    return companion;
  }
}

/** Another operation that was answered at the same place. */
function besides(
  { workload, db, protocol, lane, answeredAt, submittedAt, stalledMs }: Operation,
  frame: Buffer,
  start: number,
  end: number,
  spec: CommandSpec | undefined,
  follow: Follow,
): Operation {
  const other = new Operation(frame, start, end, null, spec, workload, db, protocol, follow);
  return Object.assign(other, { lane, answeredAt, submittedAt, stalledMs });
}
