/** Commands that wait for a stage change or an exclusive command to end; they go on in the order of their places. */
export class WaitingRoom {
  #lastPlace = 0;
  #waiting: { readonly retry: () => void; readonly place: number }[] = [];

  /** A place behind all that were given. */
  nextPlace(): number {
    return ++this.#lastPlace;
  }

  /** Calls `retry` once, when `open` is called next. */
  onceOpen(retry: () => void, place = this.nextPlace()): void {
    this.#waiting.push({ retry, place });
  }

  /** The stage change or the exclusive command is over: all that wait are tried again. */
  open(): void {
    const waiting = this.#waiting.sort((a, b) => a.place - b.place);
    this.#waiting = [];
    for (const { retry } of waiting) retry();
  }
}
