/** How long a command may block, and how that is said to a server when the command is sent, or sent again. */
import { blockOption, type Blocking } from '../../command/policy.js';
import { monotonicMs } from '../../io/clock.js';
import { wordOf } from '../../resp/decode.js';
import { encodeCommand } from '../../resp/encode.js';

/**
 * What is asked of a server at least, in ms, where the time is in seconds. KeyDB, and Redis before 7.0.8 (its issue
 * #11687), cut what they make of 0.001 down to 0 ms, and so block without a limit.
 */
const LEAST_MS = 2;

/** Which argument says how long. */
function timeoutAt(args: readonly Buffer[], { timeout }: Blocking): number {
  if (timeout === 'last') return args.length - 1;
  return timeout === 'option' ? blockOption(args) + 1 : timeout;
}

export class BlockTime {
  /** How long it may take, in ms; Infinity for as long as may be. */
  readonly #ms: number;
  /** When that is over, in ms of the monotonic clock; Infinity for never. */
  readonly #until: number;

  /** @param frame the command as it came, and `args` its arguments */
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

  /** Whether KeyDB would take it for no limit at all. */
  get isCutByKeydb(): boolean {
    return this.#ms <= 1 && this.blocking.unit > 1;
  }

  /**
   * The command; or, if it is `resent`, or has less time than every server can tell from none, the command with
   * the time that is left.
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
