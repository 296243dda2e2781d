/** What cannot be foreseen. */
import { world } from './world.js';

/** From 0 up to 1, without 1: for spreading load, not for secrets. */
export const randomShare = (): number => world.randomShare();

/** Cannot be guessed. */
export const randomBytes = (count: number): Buffer => world.randomBytes(count);

export const randomUuid = (): string => world.randomUuid();
