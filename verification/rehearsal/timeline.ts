/** What happened, when, and whether it held. */

export class Timeline {
  readonly #startedAt = performance.now();
  readonly #checks: { readonly name: string; readonly holds: boolean; readonly evidence: string }[] = [];

  constructor(private readonly write: (text: string) => void) {}

  say(text: string): void {
    const lines = text.split('\n');
    this.write(`${[`${this.#clock()}  ${lines[0]}`, ...lines.slice(1).map((line) => `       ${line}`)].join('\n')}\n`);
  }

  /** Something that has to hold for the rehearsal to have succeeded. */
  check(name: string, holds: boolean, evidence: string): void {
    this.#checks.push({ name, holds, evidence });
    this.say(`${holds ? 'holds' : 'FAILS'}: ${name}${evidence ? ` (${evidence})` : ''}`);
  }

  get holds(): boolean {
    return this.#checks.length > 0 && this.#checks.every(({ holds }) => holds);
  }

  verdict(): string {
    const failed = this.#checks.filter(({ holds }) => !holds);
    const took = `${this.#checks.length} checks in ${this.#clock()} minutes`;
    if (failed.length === 0) return `The rehearsal holds: ${took}.`;
    return [
      `The rehearsal does NOT hold: ${failed.length} of ${took} failed:`,
      ...failed.map(({ name, evidence }) => `  ${name}: ${evidence}`),
    ].join('\n');
  }

  #clock(): string {
    const seconds = Math.floor((performance.now() - this.#startedAt) / 1000);
    return `${String(Math.floor(seconds / 60)).padStart(2, '0')}:${String(seconds % 60).padStart(2, '0')}`;
  }
}
