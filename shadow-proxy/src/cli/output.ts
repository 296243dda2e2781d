/**
 * The output of the programs. Only this file and `redraw.ts` write to the standard streams: so no control character
 * reaches the terminal except line breaks, tabs, and those that redraw text in place.
 */
import { printableLines } from '../text/printable.js';

interface Output {
  write(text: string): void;
}

const to = (stream: NodeJS.WriteStream): Output => ({ write: (text) => void stream.write(printableLines(text)) });

export const stdout = to(process.stdout);
export const stderr = to(process.stderr);

/** Prints one line on standard output. */
export const print = (text: string): void => stdout.write(`${text}\n`);

/** Removes the current line of standard error. */
export const clearLine = (): void => void process.stderr.write('\r\u001B[2K');
