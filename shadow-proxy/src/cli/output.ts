/**
 * The output of the programs. Only this file writes to the standard streams: so no control character reaches the
 * terminal except line breaks, tabs, and those that redraw text in place.
 */
import logUpdate from 'log-update';
import { printableLines } from '../text/printable.js';

interface Output {
  write(text: string): void;
}

const to = (stream: NodeJS.WriteStream): Output => ({ write: (text) => void stream.write(printableLines(text)) });

export const stdout = to(process.stdout);
export const stderr = to(process.stderr);

/** Prints one line on standard output. */
export const print = (text: string): void => stdout.write(`${text}\n`);

/** Draws on a terminal, and replaces the last drawing. */
export const redraw = (text: string): void => logUpdate(printableLines(text));

/** Keeps the last drawing on the screen. */
export const drawn = (): void => logUpdate.done();

/** Removes the current line of standard error. */
export const clearLine = (): void => void process.stderr.write('\r\u001B[2K');
