/** Questions to a server that may hang, while an operator waits for the gates. */
import { inTime } from '../io/in-time.js';

/** How long to wait for an answer, in ms. */
const ANSWER_MS = 2_000;

/** @returns null if the question fails, or is not answered within two seconds */
export const soon = <T>(asked: Promise<T>): Promise<T | null> =>
  inTime(asked, ANSWER_MS, () => new Error('no answer')).catch(() => null);
