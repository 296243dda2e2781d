/** Random numbers and bytes. */
import { world } from './world.js';

/** A number from 0 up to, but not including, 1: for spreading load, not for secrets. */
export const randomShare = (): number => world.randomShare();

/** Bytes for secrets. */
export const randomBytes = (count: number): Buffer => world.randomBytes(count);

export const randomUuid = (): string => world.randomUuid();
