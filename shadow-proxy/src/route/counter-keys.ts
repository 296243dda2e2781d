/**
 * The prefix of keys that the proxy itself keeps on a target: the parts of counters with layout `per-region`. They
 * belong to no client.
 */

export const PARTS = 'shadow-proxy:counters';

export const isPart = (key: Buffer): boolean => key.toString('latin1', 0, PARTS.length + 1) === `${PARTS}:`;
