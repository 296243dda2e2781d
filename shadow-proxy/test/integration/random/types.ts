/** Types of keys. Each has its own few names, so that commands mostly fit and connections collide. */
export const TYPES = [
  'str',
  'num',
  'float',
  'bits',
  'list',
  'nums',
  'hash',
  'hnum',
  'set',
  'zset',
  'lex',
  'geo',
  'log',
  'ids',
  'hll',
] as const;
export type KeyType = (typeof TYPES)[number];
