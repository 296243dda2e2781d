/** What a model needs of the world around it: the simulation's virtual clock, or the real one in its own tests. */
export interface Surroundings {
  /** Unix milliseconds, with a fraction. */
  unixMs(): number;
  after(ms: number, run: () => void): { cancel(): void };
  /** From 0 up to, not including, 1. */
  random(): number;
}
