/** Options of commands: words in any case. */
import { SYNTAX } from './reply.js';

export const lower = (text: string): string => text.toLowerCase();

/** Reads the arguments from `at` on, one option after the other. */
export class Options {
  constructor(
    private readonly args: readonly string[],
    private at: number,
  ) {}

  get more(): boolean {
    return this.at < this.args.length;
  }

  get left(): number {
    return this.args.length - this.at;
  }

  /** The next argument, in lower case. */
  word(): string {
    return lower(this.next());
  }

  /** @throws {Refusal} where there is none */
  next(): string {
    if (!this.more) throw SYNTAX;
    return this.args[this.at++];
  }

  rest(): readonly string[] {
    return this.args.slice(this.at);
  }
}
