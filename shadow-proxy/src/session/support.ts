/**
 * Counts the commands and options of clients that only one of the two servers supports, in every stage. They are judged
 * by what the client sent, because the mirror may get something else. Called only for scripts, and for commands that
 * have such a form.
 */
import { supports, type Form } from '../command/forms.js';
import { arityHolds, KeyList, keysOf } from '../command/keys.js';
import type { CommandSpec } from '../command/table.js';
import type { Routine } from '../script/routine.js';
import type { Sequencer } from '../pipeline/sequencer.js';
import { locateArguments } from '../resp/decode.js';
import type { RequestParser } from '../resp/request.js';
import type { Workload } from '../route/router.js';
import { countUnsupported } from '../telemetry/workload-counters.js';
import type { Side, StageRule } from '../route/stage.js';

/** A command, and the positions of its arguments. */
interface ParsedCommand {
  readonly frame: Buffer;
  readonly argStart: readonly number[];
  readonly argEnd: readonly number[];
  readonly argc: number;
}

/** Commands in a script that only one of the servers has. */
interface Unsupported {
  readonly source: ReadonlySet<string>;
  readonly target: ReadonlySet<string>;
  readonly names: readonly string[];
}

export class Support {
  readonly #keys = new KeyList();
  /** Workloads for which the command at hand was counted already. */
  readonly #counted = new Set<Workload>();
  readonly #unsupported = new WeakMap<Routine, Unsupported>();

  constructor(private readonly sequencer: Sequencer) {}

  /**
   * Counts the command at hand, which has these forms. A command is not counted if both servers or the proxy refuse it,
   * or if its client has not logged in.
   */
  offer(parser: RequestParser, spec: CommandSpec, forms: readonly Form[]): void {
    const { frame, argStart, argEnd, argc, unauthenticated } = parser;
    if (spec.handling === 'refused' || unauthenticated || !arityHolds(spec.arity, argc)) return;
    const { servers } = this.sequencer;
    for (let i = 0; i < forms.length; i++) {
      const form = forms[i];
      if (!form.matches(frame, argStart, argEnd, argc)) continue;
      const bySource = supports(form, spec.name, 'source', servers.source.traits);
      if (bySource === supports(form, spec.name, 'target', servers.target.traits)) continue;
      this.#count(form.name, bySource ? 'target' : 'source', form.how === 'refused', spec, parser);
    }
  }

  /** The command at hand has more arguments than the server `lacks` takes. @param most how many that server takes */
  tooLong(spec: CommandSpec, parser: RequestParser, lacks: Side, most: number): void {
    if (!parser.unauthenticated) this.#count(`${spec.name} of over ${most} arguments`, lacks, true, spec, parser);
  }

  /** The EVAL, EVALSHA or FCALL in `frame` uses something that the server `lacks` does not support. */
  inScript(spec: CommandSpec, frame: Buffer, name: string, lacks: Side): void {
    this.#count(name, lacks, true, spec, located(frame));
  }

  /** Counts the commands that the script in `frame` calls, as far as its text shows them. */
  offerScript(spec: CommandSpec, frame: Buffer, routine: Routine): void {
    const { source, target } = this.sequencer.servers;
    let known = this.#unsupported.get(routine);
    if (known?.source !== source.traits.commands || known.target !== target.traits.commands) {
      const names = routine.called.filter((name) => this.#has('source', name) !== this.#has('target', name));
      known = { source: source.traits.commands, target: target.traits.commands, names };
      this.#unsupported.set(routine, known);
    }
    for (const name of known.names)
      this.inScript(spec, frame, `${spec.name} ${name}`, this.#has('source', name) ? 'target' : 'source');
  }

  /** A server that was never asked is taken to know the commands of the table. */
  #has(side: Side, name: string): boolean {
    const { servers, table } = this.sequencer;
    if (servers[side].traits.commands.size > 0) return servers[side].traits.commands.has(name);
    const spec = table.byName(name);
    return spec !== undefined && (side === 'source' ? spec.inSource : spec.inTarget);
  }

  /**
   * @param isRefused whether the server that lacks it answers with an error
   */
  #count(
    name: string,
    lacks: Side,
    isRefused: boolean,
    spec: CommandSpec,
    { frame, argStart, argEnd, argc }: ParsedCommand,
  ): void {
    const { router, counters } = this.sequencer;
    const count = (workload: Workload, { authority, mirrorsWrites }: StageRule): void => {
      // A command that only the target supports matters if the source is the mirror.
      if (lacks === 'target' || mirrorsWrites)
        countUnsupported(counters.of(workload), name, lacks, isRefused && authority === lacks);
    };
    if (spec.handling === 'subscribe' || spec.handling === 'publish') {
      const workload = argc > 1 ? router.channel(frame, argStart[1], argEnd[1]) : router.default;
      return count(workload, workload.position.keylessRule);
    }
    const hasKeys = spec.handling === 'keyed' || spec.handling === 'script';
    const keys = hasKeys ? keysOf(spec, frame, argStart, argEnd, argc, this.#keys) : 0;
    if (keys <= 0) return count(router.default, router.default.position.keylessRule);
    for (let i = 0; i < keys; i++) {
      const at = this.#keys.index[i];
      const workload = router.match(frame, argStart[at], argEnd[at]);
      if (this.#counted.has(workload)) continue;
      this.#counted.add(workload);
      count(workload, workload.position.rule(frame, argStart[at], argEnd[at]));
    }
    this.#counted.clear();
  }
}

function located(frame: Buffer): ParsedCommand {
  const [argStart, argEnd]: number[][] = [[], []];
  return { frame, argStart, argEnd, argc: locateArguments(frame, 0, argStart, argEnd) };
}
