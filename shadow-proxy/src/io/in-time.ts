import { after, clearTimer, type Timer } from './timers.js';

/**
 * The answer, if it comes within `ms`.
 * @throws the answer's own error, or `late()`
 */
export function inTime<T>(answer: Promise<T>, ms: number, late: () => Error): Promise<T> {
  let timer: Timer;
  const over = new Promise<never>((_resolve, reject) => {
    timer = after(ms, () => reject(late())).unref();
  });
  return Promise.race([answer, over]).finally(() => clearTimer(timer));
}
