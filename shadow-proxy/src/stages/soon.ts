/** Questions to a server that may hang: an operator waits for the gates just then. */
import { inTime } from '../io/in-time.js';

/** For how long an answer is waited, in ms. */
const ANSWER_MS = 2_000;

/** @returns null if it fails, or is not answered within two seconds */
export const soon = <T>(asked: Promise<T>): Promise<T | null> =>
  inTime(asked, ANSWER_MS, () => new Error('no answer')).catch(() => null);
