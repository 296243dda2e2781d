/** The bytes of one command, `frame[start, end)`. Its arguments are parsed once, when they are first needed. */
import { argumentsOf } from '../resp/decode.js';

export class Command {
  #args: readonly Buffer[] | null = null;

  constructor(
    readonly frame: Buffer,
    readonly start = 0,
    readonly end = frame.length,
  ) {}

  /** The name and its arguments, as views of the frame. */
  get args(): readonly Buffer[] {
    return (this.#args ??= argumentsOf(this.frame, this.start));
  }
}
