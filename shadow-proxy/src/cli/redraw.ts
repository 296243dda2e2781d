/** Text that is redrawn in place on a terminal. Apart from `output.ts`, so that only what redraws loads it. */
import logUpdate from 'log-update';
import { printableLines } from '../text/printable.js';

/** Draws on a terminal, and replaces the last drawing. */
export const redraw = (text: string): void => logUpdate(printableLines(text));

/** Keeps the last drawing on the screen. */
export const drawn = (): void => logUpdate.done();
