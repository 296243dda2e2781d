/**
 * Redis 8.8 and 8.10, from their documentation, because no such server was available. The file lists commands that are
 * refused by name, and those whose keys are copied. The proxy reads the other new commands from the server when it
 * connects. The rows are as in table.generated.ts.
 */
import type { Release } from '../release.js';

export const RELEASE: Release = {
  name: 'redis',
  version: '8.10.0',
  commands: [
    ['blmovem', -6, 0, 'blocking denyoom write', 'RW,access,delete 1', 'RW,insert 2'],
    ['himport', -2, 0, ''],
    ['himport|discard', 3, 0, ''],
    ['himport|discardall', 2, 0, ''],
    ['himport|help', 2, 0, 'loading stale'],
    ['himport|prepare', -4, 0, 'denyoom'],
    ['himport|set', -5, 0, 'denyoom write', 'OW,update 2'],
    ['increx', -2, 0, 'denyoom fast write', 'RW,access,update 1'],
    ['lmovem', -5, 0, 'denyoom write', 'RW,access,delete 1', 'RW,insert 2'],
    ['xnack', -7, 0, 'fast write', 'RW,update 1'],
  ],
  arities: [],
  forms: [],
};
