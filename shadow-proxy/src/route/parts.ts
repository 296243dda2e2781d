/**
 * Keys that the proxy itself keeps on a target: the parts of counters whose layout is `per-region`. They are nobody's
 * data.
 */

export const PARTS = 'shadow-proxy:counters';

export const isPart = (key: Buffer): boolean => key.toString('latin1', 0, PARTS.length + 1) === `${PARTS}:`;
