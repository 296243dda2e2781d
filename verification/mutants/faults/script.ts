/** A script is taken for one that is known when it is not. */
import type { Fault } from '../fault.js';

export const SCRIPT: readonly Fault[] = [
  {
    id: 'large-numbers-are-written-alike',
    file: 'shadow-proxy/src/script/values.ts',
    from: 'Number.isInteger(expression.value) && expression.value < MAX_PLAIN',
    to: 'Number.isInteger(expression.value)',
    tests: ['unit/script/text'],
    unseen: 'Redis 7.0 and KeyDB 6.3.4, the simulated servers, write numbers alike.',
  },
  {
    id: 'any-script-is-repeated',
    file: 'shadow-proxy/src/script/repeatable.ts',
    from: 'if (repeated === undefined) return rest.length === 0;',
    to: 'if (repeated === undefined) return true;',
    tests: ['unit/script/text'],
    kept: 'scripts-refused',
  },
  {
    id: 'a-script-that-hides-keys-tells-them-all',
    file: 'shadow-proxy/src/script/frame-keys.ts',
    from: 'return reads !== null && writes !== null;',
    to: 'return true;',
    tests: ['unit/script/frame-keys'],
    unseen:
      'A script whose keys are not all known is never sent to the mirror: what it changed is copied, whatever it read.',
  },
  {
    id: 'copy-to-another-database-stays-in-its-own',
    file: 'shadow-proxy/src/script/frame-keys.ts',
    from: 'if ((access & WRITES) !== 0) visit(otherDb, key, access);',
    to: '',
    tests: ['unit/script/frame-keys'],
  },
  {
    id: 'the-database-of-move-is-not-seen',
    file: 'shadow-proxy/src/script/frame-keys.ts',
    from: "if (args[0] === 'MOVE') return Number(args[2]);",
    to: "if (args[0] === 'MOVE') return null;",
    tests: ['unit/script/frame-keys'],
  },
  {
    id: 'an-unknown-command-writes-nothing',
    file: 'shadow-proxy/src/script/frame-keys.ts',
    from: 'if (spec === undefined) return true;',
    to: 'if (spec === undefined) return false;',
    tests: ['unit/script/frame-keys'],
    unseen: 'The simulated servers have no command that the table lacks.',
  },
];
