/** What happened last, for a finding: who sent what when. */

/** A text is made when it is shown: few are. */
type What = readonly string[] | (() => readonly string[]);

interface Line {
  readonly at: number;
  readonly who: string;
  readonly what: What;
}

export class Timeline {
  readonly #lines: Line[] = [];
  #next = 0;

  constructor(private readonly kept = 20_000) {}

  add(at: number, who: string, what: What): void {
    this.#lines[this.#next] = { at, who, what };
    this.#next = (this.#next + 1) % this.kept;
  }

  /** The last `count` lines that have one of the words, or are none of a client's or a server's. */
  about(words: readonly string[], count: number): string[] {
    const lines = [...this.#lines.slice(this.#next), ...this.#lines.slice(0, this.#next)];
    return lines
      .map(({ at, who, what }) => ({ at, who, what: typeof what === 'function' ? what() : what }))
      .filter(({ who, what }) => words.length === 0 || who === '!' || what.some((each) => words.includes(each)))
      .slice(-count)
      .map(
        ({ at, who, what }) =>
          `${at.toFixed(3).padStart(12)}  ${who.padEnd(24)} ${(who === '!' ? what : what.map(shown)).join(' ')}`,
      );
  }
}

const shown = (text: string): string =>
  /[^\x20-\x7e]/.test(text) || text.length > 60 ? `${JSON.stringify(text.slice(0, 40))}…` : text;
