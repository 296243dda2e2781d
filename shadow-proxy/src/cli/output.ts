/**
 * What the programs print. Nothing else writes to the standard streams: no control character reaches the terminal but
 * line breaks, tabs, and what draws a text again in place.
 */
import logUpdate from 'log-update';
import { printableLines } from '../text/printable.js';

interface Output {
  write(text: string): void;
}

const to = (stream: NodeJS.WriteStream): Output => ({ write: (text) => void stream.write(printableLines(text)) });

export const stdout = to(process.stdout);
export const stderr = to(process.stderr);

/** A line of its own on standard output. */
export const print = (text: string): void => stdout.write(`${text}\n`);

/** Draws on a terminal, in place of what was drawn before. */
export const redraw = (text: string): void => logUpdate(printableLines(text));

/** The last drawing stays. */
export const drawn = (): void => logUpdate.done();

/** Removes the current line of standard error. */
export const clearLine = (): void => void process.stderr.write('\r\u001B[2K');
