/**
 * Shows what a command waits for: after 5 s without output it prints a line, in place on a terminal, else once every 5
 * s.
 */
import { duration } from '../text/figures.js';
import { clearLine, stderr } from './output.js';

export const SILENCE_MS = 5_000;
const TICK_MS = 1_000;

/** Calls `write` at once, and then at most every 5 s. */
export function occasionally(write: (text: string) => void): (text: string) => void {
  let at = -Infinity;
  return (text) => {
    // A timer may fire slightly early.
    if (performance.now() - at < SILENCE_MS - TICK_MS / 2) return;
    at = performance.now();
    write(text);
  };
}

/** A line on standard error that is redrawn. Without a terminal it is written at most every 5 s. */
export class StatusLine {
  #shown = false;
  readonly #write = occasionally((text) => stderr.write(`${text}\n`));

  show(text: string): void {
    this.#shown = true;
    if (!process.stderr.isTTY) return this.#write(text);
    clearLine();
    stderr.write(text.slice(0, (process.stderr.columns || 80) - 1));
  }

  /** Removes it from the terminal. */
  end(): void {
    if (this.#shown && process.stderr.isTTY) clearLine();
    this.#shown = false;
  }
}

/** The output for the lines. */
type Output = Pick<StatusLine, 'show' | 'end'>;

/** Only the outer wait prints, because it describes best what is awaited. */
let spoken = false;

export class Silence {
  #since = performance.now();
  #timer: NodeJS.Timeout | undefined;

  /** @param text what is awaited, such as `waiting for the proxy`; the elapsed time follows */
  constructor(
    private readonly text: string,
    private readonly output: Output = new StatusLine(),
  ) {
    if (spoken) return;
    spoken = true;
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  /** The awaited thing has happened: the time starts again. */
  heard(): void {
    this.output.end();
    this.#since = performance.now();
  }

  end(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    spoken = false;
    this.output.end();
  }

  #tick(): void {
    const ms = performance.now() - this.#since;
    if (ms >= SILENCE_MS) this.output.show(`${this.text} (${duration(Math.floor(ms / 1_000))})`);
  }
}

/** @param text what is awaited; the elapsed time follows */
export async function waitingFor<T>(text: string, work: Promise<T>): Promise<T> {
  const silence = new Silence(text);
  try {
    return await work;
  } finally {
    silence.end();
  }
}
