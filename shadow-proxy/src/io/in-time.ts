/**
 * The answer, if it comes within `ms`.
 * @throws what the answer is rejected with, or `late()`
 */
export function inTime<T>(answer: Promise<T>, ms: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout;
  const over = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(late()), ms).unref();
  });
  return Promise.race([answer, over]).finally(() => clearTimeout(timer));
}
