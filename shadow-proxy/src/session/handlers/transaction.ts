/** MULTI … EXEC of one client. The commands are queued in the proxy, and answered QUEUED. */
import type { CommandSpec } from '../../command/table.js';
import { Refusal, rewrite, type CounterCommand } from '../../regional/counter-commands.js';
import { argumentsOf } from '../../resp/decode.js';
import { array, error, simple } from '../../resp/encode.js';
import type { Workload } from '../../route/router.js';
import type { Side } from '../../route/stage.js';
import type { OpenTransaction } from '../client-state.js';
import type { CommandContext } from '../context.js';
import { hiddenKeys, routeKeys } from '../routing.js';
import { refusalOfDatabases } from './databases.js';
import { isAboutEveryKey, refusalOfEveryKey } from './exclusive.js';
import { isKeyed, type Queued } from './exec-plan.js';
import { Exec, type OwnReply } from './exec.js';
import { carryOut, perform } from './regional.js';
import { crossing } from './split.js';
import { CROSSSLOT } from '../cluster-face.js';
import { refuseInMulti } from './nested.js';
import { usesKeys } from './script.js';

const QUEUED = simple('QUEUED');
/** Bytes that a queued command takes in addition to its own, about. */
const QUEUED_BYTES = 256;
const ABORTED = error('EXECABORT Transaction discarded because of previous errors.');

export class Transaction implements OpenTransaction {
  readonly #queue: Queued[] = [];
  #authority: Side | null = null;
  #workload: Workload | null = null;
  #spoiled = false;
  /** The slot of the keys, in a cluster; null if they are in several. */
  #slot: number | null | undefined;
  /** Bytes that the queued commands take. */
  bytes = 0;
  /**
   * Replies of commands that the proxy answers itself, each with the index of the queued command before which it
   * belongs.
   */
  readonly #own: OwnReply[] = [];
  /** Commands on counters that the proxy rewrites. A transaction has either these or others. */
  readonly #regional: (Queued & { readonly workload: Workload })[] = [];
  readonly #exec: Exec;

  constructor(private readonly context: CommandContext) {
    this.#exec = new Exec(context, this.#queue, this.#own);
  }

  get size(): number {
    return this.#queue.length + this.#own.length + this.#regional.length;
  }

  /** Makes EXEC answer EXECABORT. The queued commands are dropped. */
  spoil(): void {
    this.#spoiled = true;
    this.#queue.length = 0;
    this.#regional.length = 0;
    this.#own.length = 0;
    this.bytes = 0;
  }

  /**
   * Whether `bytes` bytes more may be queued. If not, the command at hand is answered with an error, and EXEC will
   * answer EXECABORT.
   */
  #admits(bytes: number): boolean {
    const { context } = this;
    const { transactionBytes } = context.clients.limits.bounds;
    if (this.#spoiled) context.reply(QUEUED);
    else if ((this.bytes += bytes + QUEUED_BYTES) <= transactionBytes) return true;
    else
      context.refuse(
        `ERR shadow-proxy: the transaction takes more than ${transactionBytes} bytes (limits.transactionBytes of the plan): send smaller transactions, or raise the limit`,
      );
    return false;
  }

  /** Queues the reply to a command that the proxy answers itself: it becomes one of EXEC's. */
  queueReply(reply: Buffer): void {
    if (!this.#admits(reply.length)) return;
    this.#own.push({ before: this.#queue.length, reply });
    this.context.reply(QUEUED);
  }

  /** Queues the command at hand, which uses counters that the proxy rewrites. */
  queueRegional(spec: CommandSpec, workload: Workload): void {
    if (this.#isMalformed(spec)) return;
    if (!this.#admits(this.context.command.length)) return;
    this.#regional.push({ frame: Buffer.from(this.context.command), spec, workload });
    this.context.reply(QUEUED);
  }

  /** Queues the command at hand. */
  queue(spec: CommandSpec): void {
    const { context } = this;
    const { parser } = context;
    if (this.#isMalformed(spec)) return;
    if (spec.name === 'save' && !this.#authorityIsKeydb) return refuseInMulti(context, 'save');
    const loads = spec.name === 'script|load';
    // The text is kept for the other server, which may have to run it.
    if (loads) context.sequencer.scripts.learn(context.argument(2));
    const everyKey = isAboutEveryKey(spec);
    const runsAlone = spec.name === 'move' || (everyKey && spec.name !== 'swapdb');
    const keepsOut = (spec.handling === 'exclusive' && !runsAlone) || (spec.handling === 'broadcast' && !loads);
    if (spec.handling === 'subscribe' || keepsOut) {
      context.refuse(`ERR shadow-proxy: ${spec.name.replace('|', ' ').toUpperCase()} inside MULTI is not supported`);
      return;
    }
    const refused = refusalOfDatabases(context, spec) ?? (everyKey ? refusalOfEveryKey(context.clients, spec) : null);
    if (refused !== null) return context.refuse(refused);
    if (isKeyed(spec)) {
      const { router, counters } = context.sequencer;
      const route = routeKeys(router, spec, parser);
      if (route !== null) counters.addSpanning(route.spanning);
      if (route !== null && (route.keys > 0 || usesKeys(context.sequencer, spec, context.command))) {
        const other =
          route.other ?? (this.#authority !== null && this.#authority !== route.rule.authority ? this.#workload : null);
        if (other !== null) {
          context.clients.counts.addRefused();
          context.refuse(crossing('a transaction', route.workload, other));
          return;
        }
        this.#authority = route.rule.authority;
        this.#workload = route.workload;
      }
      const hidden = route === null ? null : hiddenKeys(context.clients, spec, route);
      if (hidden !== null) {
        context.refuse(hidden);
        return;
      }
    }
    if (!this.#admits(context.command.length)) return;
    this.#queue.push({ frame: Buffer.from(context.command), spec });
    context.reply(QUEUED);
  }

  /** KeyDB queues SAVE, as Redis before 7.0 does. */
  get #authorityIsKeydb(): boolean {
    const { router, servers } = this.context.sequencer;
    return servers[this.#authority ?? router.default.position.keylessRule.authority].traits.isKeydb;
  }

  #isMalformed(spec: CommandSpec): boolean {
    const { argc } = this.context.parser;
    if (spec.arity > 0 ? argc === spec.arity : argc >= -spec.arity) return false;
    this.context.refuse(`ERR wrong number of arguments for '${spec.name}' command`);
    return true;
  }

  entersSlot(slot: number): void {
    this.#slot = this.#slot === undefined || this.#slot === slot ? slot : null;
  }

  /** Answers EXEC, the command at hand. If it has to wait, it is dispatched again. */
  exec(): void {
    const { context } = this;
    if (!this.#spoiled && this.#slot === null) {
      context.client.endTransaction();
      return context.reply(error(CROSSSLOT));
    }
    if (this.#spoiled) {
      context.client.endTransaction();
      context.reply(ABORTED);
      return;
    }
    if (this.#regional.length > 0) return this.#execRegional();
    if (this.#queue.length === 0 && context.client.watch === null) {
      context.client.endTransaction();
      context.reply(array(this.#own.map(({ reply }) => reply)));
      return;
    }
    this.#exec.begin();
  }

  /** Such a transaction is answered from this region's counters. No server's transaction is involved. */
  #execRegional(): void {
    const { context } = this;
    const [{ workload }] = this.#regional;
    if (this.#queue.length > 0 || this.#own.length > 0 || context.client.watch !== null) {
      context.client.endTransaction();
      return context.reply(
        error(
          `EXECABORT shadow-proxy: a transaction with counters of "${workload.name}", whose counterLayout is per-region, may contain no other commands, and no WATCH before MULTI`,
        ),
      );
    }
    const commands = this.#regional.map(({ frame, spec }) =>
      rewrite(spec.name, argumentsOf(frame), context.client.protocol),
    );
    const begun = carryOut(
      context,
      this.#regional.map(({ frame }) => frame),
      workload,
      async (plain) => {
        for (const { spec, workload: of } of this.#regional) context.clients.counts.sent(spec, of);
        const done = await perform(
          plain,
          commands.filter((command): command is CounterCommand => !(command instanceof Refusal)),
        );
        return array(commands.map((command) => (command instanceof Refusal ? command.reply : done.shift()!)));
      },
    );
    if (begun) context.client.endTransaction();
  }
}
