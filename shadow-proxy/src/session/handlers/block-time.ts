/** How long a command may block, and how to write that time when the command is sent, or sent again. */
import { blockOption, type Blocking } from '../../command/policy.js';
import { monotonicMs } from '../../io/clock.js';
import { wordOf } from '../../resp/decode.js';
import { encodeCommand } from '../../resp/encode.js';

/**
 * The shortest timeout that is sent, in ms, where the unit is seconds. KeyDB, and Redis before 7.0.8 (its issue
 * #11687), round 0.001 down to 0 ms, and then block without a limit.
 */
const LEAST_MS = 2;

/** The index of the timeout among the arguments. */
function timeoutAt(args: readonly Buffer[], { timeout }: Blocking): number {
  if (timeout === 'last') return args.length - 1;
  return timeout === 'option' ? blockOption(args) + 1 : timeout;
}

export class BlockTime {
  /** How long the command may block, in ms; Infinity without a limit. */
  readonly #ms: number;
  /** When the time is over, in ms of the monotonic clock; Infinity without a limit. */
  readonly #until: number;

  /**
   * @param frame the client's command @param args its arguments
   */
  constructor(
    private readonly frame: Buffer,
    private readonly args: readonly Buffer[],
    private readonly blocking: Blocking,
  ) {
    const given = args.at(timeoutAt(args, blocking));
    const ms = (given === undefined ? NaN : Number(wordOf(given))) * blocking.unit;
    this.#ms = ms > 0 ? ms : Infinity;
    this.#until = monotonicMs() + this.#ms;
  }

  get isOver(): boolean {
    return monotonicMs() >= this.#until;
  }

  /** Whether KeyDB would round the timeout down to 0, which is no limit. */
  get isCutByKeydb(): boolean {
    return this.#ms <= 1 && this.blocking.unit > 1;
  }

  /**
   * The command to send now. If it is `resent`, or its timeout is too short for some server, it has the time that is
   * left.
   */
  frameNow(resent: boolean): Buffer {
    const { unit } = this.blocking;
    const leastMs = unit === 1 ? 1 : LEAST_MS;
    if (this.#until === Infinity || (!resent && this.#ms >= leastMs)) return this.frame;
    const left = Math.max(leastMs, Math.ceil(this.#until - monotonicMs()));
    const at = timeoutAt(this.args, this.blocking);
    return encodeCommand(this.args.map((arg, i) => (i === at ? String(left / unit) : arg)));
  }
}
