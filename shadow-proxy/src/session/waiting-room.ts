/** Commands that wait for a stage change or an exclusive command to end. They continue in the order of their places. */
export class WaitingRoom {
  #lastPlace = 0;
  #waiting: { readonly retry: () => void; readonly place: number }[] = [];

  /** A place behind all earlier ones. */
  nextPlace(): number {
    return ++this.#lastPlace;
  }

  /** Calls `retry` once, at the next `open`. */
  onceOpen(retry: () => void, place = this.nextPlace()): void {
    this.#waiting.push({ retry, place });
  }

  /** The stage change or the exclusive command is over: all waiting commands are tried again. */
  open(): void {
    const waiting = this.#waiting.sort((a, b) => a.place - b.place);
    this.#waiting = [];
    for (const { retry } of waiting) retry();
  }
}
