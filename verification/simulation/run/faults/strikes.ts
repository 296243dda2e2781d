import type { Fault } from '../profiles.js';

/** By fault: strikes, and says what it did; null where nothing could be done. */
export type Strikes<Kind extends Fault = Fault> = Readonly<Record<Kind, () => string | null>>;
